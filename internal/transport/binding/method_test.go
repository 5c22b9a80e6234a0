package binding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacktest"
)

type handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error)

// answer is a handler that changes its request, which the answer points to.
func answer(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
	return rpcbench.AnswerUser(u), nil
}

// handling is a method of plain structs with a handler. Its Key must not be called.
func handling(h handle) rpcbench.Method[rpcbench.User, rpcbench.Response] {
	m := rpcbench.Method[rpcbench.User, rpcbench.Response]{
		Name: "test.v1.Users/Create", Handle: h,
		Key:   func(*rpcbench.User) uint64 { panic("a Handle takes the place of Key") },
		Equal: func(want, got *rpcbench.Response) bool { return rpcbench.CheckUser(want.User, got) == nil },
	}
	for i := range 4 {
		u := rpcbench.SampleUser(i, 10)
		m.Requests = append(m.Requests, &u)
	}
	return m
}

// generated is the same method on generated types.
func generated(m rpcbench.Method[rpcbench.User, rpcbench.Response]) rpcbench.Method[userv1.User,
	userv1.CreateUserResponse] {
	return rpcbench.Converted(m,
		func(u *rpcbench.User) *userv1.User { return binding.Convert[userv1.User](u) },
		func(u *userv1.User) *rpcbench.User { return binding.Convert[rpcbench.User](u) },
		func(r *rpcbench.Response) *userv1.CreateUserResponse {
			return binding.Convert[userv1.CreateUserResponse](r)
		},
		func(want, got *userv1.CreateUserResponse) bool { return proto.Equal(want, got) })
}

// stacksOf are all that serve a method of one's own.
func stacksOf(m rpcbench.Method[rpcbench.User, rpcbench.Response]) []rpcbench.Stack {
	pb := generated(m)
	return []rpcbench.Stack{httpjson.Of(m), httpjsoniter.Of(m), httpprotobuf.Of(pb),
		grpcprotobuf.Of(pb), connectrpc.Of(pb), connectrpc2.Of(pb)}
}

// withReplies gives a method the replies to its requests, so that no Dial asks for them.
func withReplies(m rpcbench.Method[rpcbench.User, rpcbench.Response]) rpcbench.Method[rpcbench.User,
	rpcbench.Response] {
	for _, u := range m.Requests {
		asked := *u
		m.Replies = append(m.Replies, rpcbench.AnswerUser(&asked))
	}
	return m
}

// calls starts a fixture for each stack of m, and makes the call of request i.
func calls(t *testing.T, m rpcbench.Method[rpcbench.User, rpcbench.Response], i int,
	check func(stack string, call rpcbench.Call)) {
	t.Helper()
	for _, s := range stacksOf(m) {
		f := stacktest.Start(t, s, rpcbench.Config{})
		call, err := f.Client.Prepare(i)
		require.NoError(t, err)
		check(s.Name, call)
	}
}

// Every stack serves a handler, which is asked once for each request at the first Dial, and no more at the next. It may
// change its request, also when it is asked directly.
func TestHandle(t *testing.T) {
	var names []string
	for i := range stacksOf(handling(answer)) { // each with a handler of its own
		var asked, sent atomic.Int64
		m := handling(func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
			asked.Add(1)
			if u.ID != "" {
				sent.Add(1)
			}
			return answer(ctx, u)
		})
		s := stacksOf(m)[i]
		names = append(names, s.Name)
		f := stacktest.Start(t, s, rpcbench.Config{})
		require.EqualValues(t, len(m.Requests)+1, asked.Load(), "%s: each request, and a call of the start", s.Name)
		for i := range 2 * len(m.Requests) {
			call, err := f.Client.Prepare(i)
			require.NoError(t, err)
			require.NoError(t, call(t.Context()), "%s: request %d", s.Name, i)
		}
		before := asked.Load()
		client, err := f.Dial()
		require.NoError(t, err)
		require.NoError(t, client.Close())
		require.Equal(t, before, asked.Load(), "%s: a second Dial asks no more", s.Name)
		require.Zero(t, sent.Load(), "%s: a request was sent as the handler had changed it", s.Name)
		alone, is := f.Client.(interface {
			Alone(context.Context, int) (rpcbench.Call, error)
		})
		require.True(t, is)
		_, err = alone.Alone(t.Context(), 5)
		require.ErrorContains(t, err, "the Handle changes its request", s.Name)
		require.Equal(t, before+1, asked.Load(), "%s: a handler alone", s.Name)
		for _, u := range m.Requests {
			require.Empty(t, u.ID, "%s: the handler has a request of its own", s.Name)
		}
	}
	require.Equal(t, []string{"httpjson", "httpjsoniter", "httpprotobuf.converted",
		"grpcprotobuf.converted", "connectrpc.converted", "connectrpc2.converted"}, names)
}

// What generated types cache in unexported fields is no change of a request.
func TestGeneratedRequestsCache(t *testing.T) {
	m := rpcbench.Method[userv1.User, userv1.User]{Requests: []*userv1.User{{Id: "a"}},
		Handle: func(_ context.Context, u *userv1.User) (*userv1.User, error) {
			if proto.Size(u); u.Id == "b" {
				u.Id = "c"
			}
			return u, nil
		}}
	same := func(u *userv1.User) *userv1.User { return &userv1.User{Id: u.Id} }
	require.NoError(t, rpcbench.Converted(m, same, same, same, nil).Alone(t.Context(), 0))
	m.Requests[0].Id = "b"
	require.EqualError(t, rpcbench.Converted(m, same, same, same, nil).Alone(t.Context(), 0),
		"the Handle changes its request")
}

// Stacks that share an array of Replies keep their own answers, which are appended.
func TestAnswersAreAppendedToNoSharedArray(t *testing.T) {
	m := handling(func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		asked := *u
		return rpcbench.AnswerUser(&asked), nil
	})
	shared := make([]*rpcbench.Response, len(m.Requests))
	m.Replies = shared[:0]
	stacktest.Start(t, httpjson.Of(m), rpcbench.Config{})
	require.Equal(t, make([]*rpcbench.Response, len(shared)), shared)
}

// An answer that the stack changes on its way is a wrong reply: what is compared with was not sent.
func TestNoLossyStackIsItsOwnReference(t *testing.T) {
	type lossy struct {
		Sent, Kept string `json:"-"`
		Both       string
	}
	m := rpcbench.Method[lossy, lossy]{Name: "test.v1.Lossy/Get", Requests: []*lossy{{Sent: "a", Both: "b"}},
		Equal: func(want, got *lossy) bool { return want.Both == got.Both },
		Handle: func(_ context.Context, q *lossy) (*lossy, error) {
			return &lossy{Kept: "c", Both: q.Sent + q.Both}, nil
		}}
	const differs = "wrong reply: a field differs from what Handle answered request 0 at Dial"
	_, err := rpcbench.Start(t.Context(), httpjson.Of(m), rpcbench.Config{})
	require.ErrorContains(t, err, differs, "the request")
	m.Handle = func(context.Context, *lossy) (*lossy, error) { return &lossy{Kept: "c"}, nil }
	stacktest.Start(t, httpjson.Of(m), rpcbench.Config{}) // for Equal leaves Kept out
	m.Equal = func(want, got *lossy) bool { return *want == *got }
	_, err = rpcbench.Start(t.Context(), httpjson.Of(m), rpcbench.Config{})
	require.ErrorContains(t, err, differs, "the answer")
}

// What a handler ends with comes to the caller with the same code, rules and text from every stack.
func TestHandlersErrors(t *testing.T) {
	broken := []rpcbench.Violation{{Field: "email", Rule: "taken"}}
	for _, c := range []struct {
		why    string
		answer *rpcbench.Response
		err    error
		panics any
		code   rpcbench.Code
		rules  []rpcbench.Violation
		says   string
	}{
		{why: "a broken rule", err: &rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: broken},
			code:  rpcbench.CodeInvalid,
			rules: broken},
		{why: "invalid without a rule", err: &rpcbench.Error{Code: rpcbench.CodeInvalid}, code: rpcbench.CodeInvalid},
		{why: "a rule that is not UTF-8", err: &rpcbench.Error{Code: rpcbench.CodeInvalid,
			Violations: []rpcbench.Violation{{Field: "\xff", Rule: "\xff"}}}, code: rpcbench.CodeInvalid,
			rules: []rpcbench.Violation{{Field: "\ufffd", Rule: "\ufffd"}}},
		{why: "rules of another code, which gRPC does not send",
			err: &rpcbench.Error{Code: rpcbench.CodeMalformed, Violations: broken}, code: rpcbench.CodeMalformed},
		{why: "too large", err: &rpcbench.Error{Code: rpcbench.CodeTooLarge}, code: rpcbench.CodeTooLarge},
		{why: "unavailable, with its cause", err: &rpcbench.Error{Code: rpcbench.CodeUnavailable, Message: "orders",
			Err: errors.New("database is down")}, code: rpcbench.CodeUnavailable, says: "orders: database is down"},
		{why: "an error of the package that is wrapped",
			err: fmt.Errorf("orders: %w", &rpcbench.Error{Code: rpcbench.CodeTooLarge}), code: rpcbench.CodeTooLarge},
		{why: "cancelled", err: &rpcbench.Error{Code: rpcbench.CodeCanceled}, code: rpcbench.CodeCanceled},
		{why: "a cancelled context", err: fmt.Errorf("query: %w", context.Canceled), code: rpcbench.CodeCanceled,
			says: "query: context canceled"},
		{why: "a deadline", err: context.DeadlineExceeded, code: rpcbench.CodeDeadlineExceeded},
		{why: "internal", err: &rpcbench.Error{Code: rpcbench.CodeInternal}, code: rpcbench.CodeInternal},
		{why: "a code of somebody's own", err: &rpcbench.Error{Code: "teapot", Message: "short and stout"},
			code: rpcbench.CodeInternal, says: "teapot: short and stout"},
		{why: "an error without a code", err: errors.New("no such order"), code: rpcbench.CodeInternal,
			says: "no such order"},
		{why: "a status of gRPC", err: status.Error(codes.NotFound, "no such order"), code: rpcbench.CodeInternal,
			says: "no such order"},
		{why: "neither an answer nor an error", code: rpcbench.CodeInternal,
			says: "Handle returned neither a reply nor an error"},
		{why: "an answer with an error", answer: new(rpcbench.Response), err: errors.New("no such order"),
			code: rpcbench.CodeInternal, says: "no such order"},
		{why: "an error that is a nil pointer", err: (*rpcbench.Error)(nil), code: rpcbench.CodeInternal, says: "panicked"},
		{why: "a panic", panics: "no such order", code: rpcbench.CodeInternal,
			says: "Handle panicked at method_test.go:"},
		{why: "a panic with an error", panics: errors.New("no such order"), code: rpcbench.CodeInternal,
			says: ": no such order"},
	} {
		t.Run(c.why, func(t *testing.T) {
			failing := rpcbench.SampleUser(1, 10)
			m := withReplies(handling(func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
				switch {
				case u.Name != failing.Name:
					return answer(ctx, u)
				case c.panics != nil:
					panic(c.panics)
				}
				return c.answer, c.err
			}))
			calls(t, m, 1, func(stack string, call rpcbench.Call) {
				for range 2 { // the server is still there
					err := call(t.Context())
					e, ok := errors.AsType[*rpcbench.Error](err)
					require.True(t, ok, "%s: %v", stack, err)
					require.Equal(t, c.code, e.Code, "%s: %v", stack, err)
					require.Equal(t, c.rules, e.Violations, "%s: %v", stack, err)
					require.ErrorContains(t, err, c.says, stack)
					require.NotContains(t, err.Error(), "\n", stack)
				}
			})
		})
	}
}

// A bug of a handler, which the runtime finds, is told with its place.
func TestHandlersBugIsTold(t *testing.T) {
	var none map[string]int
	m := withReplies(handling(func(context.Context, *rpcbench.User) (*rpcbench.Response, error) {
		none["x"]++
		return nil, nil
	}))
	for _, s := range stacksOf(m) {
		_, err := rpcbench.Start(t.Context(), s, rpcbench.Config{})
		require.ErrorContains(t, err, s.Name+": connect: internal: ")
		require.Regexp(t, `Handle panicked at method_test\.go:\d+: assignment to entry in nil map$`, err.Error())
	}
}

// What is wrong with a method's answers is told in a line.
func TestAnswersThatStartRefuses(t *testing.T) {
	type method = rpcbench.Method[rpcbench.User, rpcbench.Response]
	for why, c := range map[string]struct {
		change func(m *method)
		says   string
	}{
		"replies that are fewer than requests": {func(m *method) { m.Replies = make([]*rpcbench.Response, 3) },
			"server: test.v1.Users/Create: each request has a reply, and there are 4 requests and 3 replies"},
		"no requests": {func(m *method) { m.Requests = nil },
			"server: test.v1.Users/Create has no requests: give one or more"},
		"no handler and no replies": {func(m *method) { m.Handle = nil },
			"server: test.v1.Users/Create has neither a Handle nor Replies: give one of them"},
		"a request that is nil": {func(m *method) { m.Requests[1] = nil },
			"server: test.v1.Users/Create: request 1 is nil: give a message"},
		"replies that are not the handler's": {func(m *method) {
			*m = withReplies(*m)
			m.Replies[0] = m.Replies[1]
		}, "connect: internal: wrong reply: a field differs from Replies[0]"},
		"a handler that fails": {func(m *method) {
			m.Handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error) { return nil, errors.New("locked") }
		}, "dial: test.v1.Users/Create: Handle, asked directly for its answer to request 0: internal: locked"},
		"a handler that answers nothing": {func(m *method) {
			m.Handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error) { return nil, nil }
		}, "to request 0: internal: Handle returned neither a reply nor an error"},
		"a handler that panics": {func(m *method) {
			m.Handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error) { panic("locked") }
		}, ": locked"},
	} {
		t.Run(why, func(t *testing.T) {
			m := handling(answer)
			c.change(&m)
			_, err := rpcbench.Start(t.Context(), httpjson.Of(m), rpcbench.Config{})
			require.ErrorContains(t, err, c.says)
			require.Equal(t, 1, strings.Count(err.Error(), "httpjson"))
			require.NotContains(t, err.Error(), "\n")
		})
	}
	canned := withReplies(handling(nil))
	_, err := rpcbench.Start(t.Context(), grpcprotobuf.Of(generated(canned)), rpcbench.Config{})
	require.ErrorContains(t, err, "internal: Converted needs a Method with a Handle")
}

// Handler makes a method of a handler alone: of plain structs, and of generated messages over gRPC and over JSON. The
// handler runs once in each call, and a reply that differs from its answer is an error.
func TestHandler(t *testing.T) {
	type get struct{ Number uint64 }
	type order struct{ Item string }
	var asked atomic.Int64
	plain := rpcbench.Handler("shop.v1.Orders/Get", func(_ context.Context, q *get) (*order, error) {
		return &order{fmt.Sprint("item ", q.Number, " ", asked.Add(1) < 0)}, nil
	}, &get{1}, &get{2})
	generated := grpcprotobuf.Handler("shop.v1.Orders/Get", func(_ context.Context, q *wrapperspb.UInt64Value) (
		*wrapperspb.StringValue, error) {
		return wrapperspb.String(fmt.Sprint("item ", q.Value, " ", asked.Add(1) < 0)), nil
	}, wrapperspb.UInt64(1), wrapperspb.UInt64(2))
	for _, s := range []rpcbench.Stack{httpjson.Of(plain), httpjsoniter.Of(plain), grpcprotobuf.Of(generated),
		httpjson.Of(generated)} {
		f := stacktest.Start(t, s, rpcbench.Config{})
		for i := range 4 {
			call, err := f.Client.Prepare(i)
			require.NoError(t, err)
			before := asked.Load()
			require.NoError(t, call(t.Context()), s.Name)
			require.Equal(t, before+1, asked.Load(), "%s: calls of the handler in a call", s.Name)
		}
	}
	counts := rpcbench.Handler("shop.v1.Orders/Get", func(context.Context, *get) (*order, error) {
		return &order{fmt.Sprint(asked.Add(1))}, nil
	}, &get{1})
	_, err := rpcbench.Start(t.Context(), httpjson.Of(counts), rpcbench.Config{})
	require.ErrorContains(t, err, "wrong reply: a field differs from what Handle answered request 0 at Dial")
	counted := grpcprotobuf.Handler("shop.v1.Orders/Get", func(context.Context, *wrapperspb.UInt64Value) (
		*wrapperspb.StringValue, error) {
		return wrapperspb.String(fmt.Sprint(asked.Add(1))), nil
	}, wrapperspb.UInt64(1))
	_, err = rpcbench.Start(t.Context(), grpcprotobuf.Of(counted), rpcbench.Config{})
	require.ErrorContains(t, err, "wrong reply: a field differs from what Handle answered request 0 at Dial")
}

// A handler that never answers ends no start: neither asked directly nor in a call.
func TestHandlersThatNeverAnswer(t *testing.T) {
	before, release := goleak.IgnoreCurrent(), make(chan struct{})
	m := handling(func(context.Context, *rpcbench.User) (*rpcbench.Response, error) {
		<-release
		return nil, errors.New("too late")
	})
	start := func(s rpcbench.Stack, says string) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := rpcbench.Start(ctx, s, rpcbench.Config{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, s.Name+": "+says)
	}
	for _, s := range stacksOf(m) {
		start(s, "dial: context deadline exceeded: does the Handle of test.v1.Users/Create answer?")
	}
	for _, s := range stacksOf(withReplies(m)) {
		start(s, "connect: context deadline exceeded")
	}
	close(release)
	goleak.VerifyNone(t, before)
}

// deadlines are the stacks that tell the server the deadline of a call.
func deadlines() []string {
	return []string{"grpcprotobuf.converted", "connectrpc.converted", "connectrpc2.converted"}
}

// A call's deadline reaches the handler where the stack carries it. On every stack the handler's context ends when the
// caller gives up.
func TestHandlersContext(t *testing.T) {
	var mu sync.Mutex
	var bounded bool
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	waiting := rpcbench.SampleUser(1, 10)
	m := withReplies(handling(func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		mu.Lock()
		_, bounded = ctx.Deadline()
		mu.Unlock()
		if u.Name == waiting.Name {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		}
		return answer(ctx, u)
	}))
	for _, s := range stacksOf(m) {
		f := stacktest.Start(t, s, rpcbench.Config{})
		call, err := f.Client.Prepare(0)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, call(ctx))
		require.Equal(t, slices.Contains(deadlines(), s.Name), bounded, s.Name)
		require.NoError(t, call(t.Context()))
		require.False(t, bounded, s.Name)

		call, err = f.Client.Prepare(1)
		require.NoError(t, err)
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		<-began
		cancel()
		<-ended
		require.Equal(t, rpcbench.CodeCanceled, rpcbench.CodeOf(<-result), s.Name)
	}
}

// Wait comes before the handler.
func TestWaitComesBeforeHandle(t *testing.T) {
	const wait = 20 * time.Millisecond
	var handled time.Time
	m := withReplies(handling(func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		handled = time.Now()
		return answer(ctx, u)
	}))
	serve, err := binding.Serve(rpcbench.ServerConfig{Wait: wait}, m)
	require.NoError(t, err)
	began := time.Now()
	_, err = serve(t.Context(), m.Requests[0])
	require.NoError(t, err)
	require.GreaterOrEqual(t, handled.Sub(began), wait)
}

// A server runs a handler as it is: nothing is allocated around it.
func TestHandleCostsNoAllocation(t *testing.T) {
	reply := new(rpcbench.Response)
	m := handling(func(context.Context, *rpcbench.User) (*rpcbench.Response, error) { return reply, nil })
	serve, err := binding.Serve(rpcbench.ServerConfig{}, m)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = serve(t.Context(), m.Requests[0]) }))
}

// opaqueMessage has the fields that protoc-gen-go gives to a message of the opaque API.
type opaqueMessage struct {
	state                  int
	xxx_hidden_Name        *string
	XXX_raceDetectHookData int
	XXX_presence           [1]uint32
}

func (*opaqueMessage) ProtoMessage()    {}
func (m *opaqueMessage) String() string { return fmt.Sprint(m.state, m.xxx_hidden_Name) }

// An opaque message has no field that encoding/json sees. Two stacks of JSON would send empty objects, so the error at
// the start says what is wrong, also of an Equal that looks at nothing.
func TestOpaqueMessages(t *testing.T) {
	type within struct {
		ID    int
		Lines []map[string]*opaqueMessage
		Again *within
	}
	const want = "dial: shop.v1.Orders/Get: encoding/json sees no field of binding_test.opaqueMessage, an opaque " +
		"message of protobuf: give plain structs, and Converted makes the method for protobuf"
	of := rpcbench.Method[opaqueMessage, within]{Name: "shop.v1.Orders/Get", Requests: []*opaqueMessage{{}},
		Replies: []*within{{}}, Equal: func(_, _ *within) bool { return true }}
	nested := rpcbench.Method[rpcbench.User, within]{Name: of.Name, Requests: []*rpcbench.User{{}}, Replies: of.Replies,
		Equal: of.Equal}
	for _, s := range []rpcbench.Stack{httpjson.Of(of), httpjsoniter.Of(of), httpjson.Of(nested)} {
		_, err := rpcbench.Start(t.Context(), s, rpcbench.Config{})
		require.EqualError(t, err, s.Name+": "+want)
	}
	type plain struct {
		ID   int
		At   time.Time // which has no exported field, and writes itself
		All  map[string][]plain
		Next *plain
	}
	f, err := rpcbench.Start(t.Context(), httpjson.Of(rpcbench.Method[plain, plain]{Name: of.Name, Requests: []*plain{{}},
		Replies: []*plain{{}}, Equal: func(want, got *plain) bool { return want.ID == got.ID }}), rpcbench.Config{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A clone shares nothing with what it was made of but what fields hold that are not exported.
func TestClone(t *testing.T) {
	type inner struct {
		Bytes []byte
		Map   map[string]*int
	}
	type outer struct {
		Inner  *inner
		None   *inner
		All    []inner
		Array  [1]*inner
		Any    any
		Time   time.Time
		hidden *inner
	}
	one, now := 1, time.Now()
	in := func() *inner { return &inner{[]byte("x"), map[string]*int{"one": &one}} }
	made := func() *outer { return &outer{in(), nil, []inner{*in()}, [1]*inner{in()}, in(), now, nil} }
	from := made()
	from.hidden = in()
	to := binding.Clone(from).(*outer)
	require.Equal(t, from, to)
	require.Same(t, from.hidden, to.hidden)
	for _, c := range []*inner{to.Inner, &to.All[0], to.Array[0], to.Any.(*inner)} {
		c.Bytes[0] = 'y'
		*c.Map["one"]++
		c.Map["two"] = &one
	}
	from.hidden = nil
	require.Equal(t, made(), from)
}
