package binding

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Format is how a stack encodes the messages of a method of one's own.
type Format struct {
	codec.Codec                           // as the calls do
	Sorted      func(any) ([]byte, error) // the same, with the entries of maps in one order
	Clone       func(any) any             // copies a message, since a handler may change its request
}

// Structs is the Format of plain structs whose codec sorts the entries of maps.
func Structs(c codec.Codec) Format { return Format{c, c.Marshal, Clone} }

func messages[T any](madeOf string, all []*T, f *Format) rpcbench.Messages {
	return rpcbench.Messages{
		MadeOf: madeOf,
		Encode: func(i int) ([]byte, error) { return f.Marshal(all[i%len(all)]) },
		Sorted: func(i int) ([]byte, error) { return f.Sorted(all[i%len(all)]) },
		Decode: func(data []byte) error { return f.Unmarshal(data, new(T)) },
	}
}

// check says what is wrong with a method.
func check[Q, A any](m rpcbench.Method[Q, A]) error {
	n, replies := len(m.Requests), len(m.Replies)
	switch {
	case m.Name == "" || m.Equal == nil:
		return errors.New("a Method has a Name, and Equal to compare replies")
	case n == 0:
		return fmt.Errorf("%s has no requests: give one or more", m.Name)
	case slices.Contains(m.Requests, nil):
		return fmt.Errorf("%s: request %d is nil: give a message", m.Name, slices.Index(m.Requests, nil))
	case m.Handle == nil && replies == 0:
		return fmt.Errorf("%s has neither a Handle nor Replies: give one of them", m.Name)
	case n != replies && (m.Handle == nil || replies > 0):
		return fmt.Errorf("%s: each request has a reply, and there are %d requests and %d replies; "+
			"with a Handle there may be no replies", m.Name, n, replies)
	}
	return nil
}

// Serve makes the operation that a server of m runs: its Handle, or what finds the reply by the request's key.
func Serve[Q, A any](
	config rpcbench.ServerConfig, m rpcbench.Method[Q, A]) (func(context.Context, *Q) (*A, error), error) {
	if err := check(m); err != nil {
		return nil, err
	}
	switch {
	case m.Handle != nil:
		return func(ctx context.Context, q *Q) (*A, error) {
			config.CountAndWait()
			return handled(ctx, m.Handle, q)
		}, nil
	case m.Key == nil:
		return func(context.Context, *Q) (*A, error) {
			config.CountAndWait()
			return m.Replies[0], nil
		}, nil
	}
	replies := map[uint64]*A{}
	for i, q := range m.Requests {
		key := m.Key(q)
		if replies[key] != nil {
			return nil, fmt.Errorf("%s: request %d has the key of an earlier one", m.Name, i)
		}
		replies[key] = m.Replies[i]
	}
	return func(_ context.Context, q *Q) (*A, error) {
		if reply := replies[m.Key(q)]; reply != nil {
			config.CountAndWait()
			return reply, nil
		}
		return nil, &rpcbench.Error{Code: rpcbench.CodeInvalid, Message: "no sample has this request"}
	}, nil
}

// Handled returns the name that profiles have for the function beneath which handlers run.
func Handled() string { return reflect.TypeFor[Format]().PkgPath() + ".handled" }

// handled runs a handler and makes one of the package's errors of whatever else than an answer it ends with, a panic
// too: grpc-go's server would die of it, and net/http's would close the connection.
//
//go:noinline
func handled[Q, A any](ctx context.Context, handle func(context.Context, *Q) (*A, error), q *Q) (a *A, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = nil, &rpcbench.Error{Code: rpcbench.CodeInternal, Message: fmt.Sprintf("Handle panicked%s: %v", place(), p)}
		}
	}()
	a, err = handle(ctx, q)
	switch {
	case err != nil:
		return nil, failure(err)
	case a == nil:
		return nil, &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "Handle returned neither a reply nor an error"}
	}
	return a, nil
}

// place says where the panic arose that a deferred function has recovered.
func place() string {
	var callers [64]uintptr
	frames, panics := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])]), false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panics = true
		case panics && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// failure is the error of a handler as every stack sends it. No stack sends Err, some send Violations of Invalid alone,
// and protobuf has no string that is not UTF-8.
func failure(err error) error {
	e := AsError(err)
	if !slices.Contains([]rpcbench.Code{rpcbench.CodeInvalid, rpcbench.CodeMalformed, rpcbench.CodeTooLarge,
		rpcbench.CodeCanceled,
		rpcbench.CodeDeadlineExceeded, rpcbench.CodeUnavailable, rpcbench.CodeInternal}, e.Code) {
		e = &rpcbench.Error{Code: rpcbench.CodeInternal, Message: err.Error()}
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	sent := &rpcbench.Error{Code: e.Code, Message: e.Message}
	if e.Err != nil {
		sent.Message = strings.TrimPrefix(sent.Message+": "+e.Err.Error(), ": ")
	}
	sent.Message = valid(sent.Message)
	for _, v := range e.Violations {
		if e.Code == rpcbench.CodeInvalid {
			sent.Violations = append(sent.Violations, rpcbench.Violation{Field: valid(v.Field), Rule: valid(v.Rule)})
		}
	}
	return sent
}

// method is a method whose Replies are known: those that it had, or those of its Handle.
type method[Q, A any] struct {
	rpcbench.Method[Q, A]
	Format
	asked bool // Handle was, for Replies
}

// complete asks the Handle for the replies that m lacks.
func complete[Q, A any](m rpcbench.Method[Q, A], f Format) (*method[Q, A], error) {
	if err := check(m); err != nil {
		return nil, err
	}
	m.Replies = slices.Clip(m.Replies) // a method may be several stacks'
	c := &method[Q, A]{m, f, m.Handle != nil && len(m.Replies) == 0}
	for i := 0; c.asked && i < len(m.Requests); i++ {
		a, err := c.answer(context.Background(), i)
		if err != nil {
			return nil, fmt.Errorf("%s: Handle, asked directly for its answer to request %d: %w", m.Name, i, err)
		}
		c.Replies = append(c.Replies, a)
	}
	return c, nil
}

// answer asks the Handle directly, and not through a stack.
func (m *method[Q, A]) answer(ctx context.Context, i int) (*A, error) {
	return handled(ctx, m.Handle, m.Clone(m.Requests[i%len(m.Requests)]).(*Q))
}

// wrong is the error of a reply to request i.
func (m *method[Q, A]) wrong(i int) error {
	than := "what was asked"
	switch {
	case m.asked:
		than = fmt.Sprintf("what Handle answered request %d at Dial; what varies by design, Equal leaves out", i)
	case m.Handle != nil:
		than = fmt.Sprintf("Replies[%d]", i)
	}
	return &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "wrong reply: a field differs from " + than}
}

// Of returns s, which serves m, and what makes its clients, whose calls are bound to conns in turn. The first of them
// asks a Handle for the replies that m lacks.
func Of[Q, A any](s rpcbench.Stack, m rpcbench.Method[Q, A], f Format) (
	of rpcbench.Stack, newCaller func(conns []*Conn[Q, A, struct{}]) (rpcbench.Client, error)) {
	s.Serves = m.Name
	if m.Alone != nil {
		s.Name += ".converted"
	}
	known := sync.OnceValues(func() (*method[Q, A], error) {
		if strings.Contains(s.Protocol, "json") && !strings.HasPrefix(s.Traits.Codec, "google.golang.org/protobuf") {
			for _, t := range []reflect.Type{reflect.TypeFor[Q](), reflect.TypeFor[A]()} {
				if unseen := opaque(t, map[reflect.Type]bool{}); unseen != nil {
					return nil, fmt.Errorf("%s: encoding/json sees no field of %v, an opaque message of protobuf: "+
						"give plain structs, and Converted makes the method for protobuf", m.Name, unseen)
				}
			}
		}
		return complete(m, f)
	})
	return s, func(conns []*Conn[Q, A, struct{}]) (rpcbench.Client, error) {
		m, err := known()
		if err != nil {
			for _, conn := range conns {
				conn.Close()
			}
			return nil, err
		}
		c := &methodClient[Q, A]{m, ring[Q, A, struct{}]{conns: conns}, messages(m.MadeOf, m.Requests, &m.Format),
			messages(m.MadeOf, m.Replies, &m.Format)}
		if m.Handle != nil {
			return handledClient[Q, A]{c}, nil
		}
		return c, nil
	}
}

// opaque returns the first type, of t and of what its values hold, that is a message of protobuf without a field that
// JSON has. It returns nil if there is none.
func opaque(t reflect.Type, known map[reflect.Type]bool) reflect.Type {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	pointer := reflect.PointerTo(t)
	if t.Kind() != reflect.Struct || known[t] ||
		pointer.Implements(reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()) ||
		pointer.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()) {
		return nil
	}
	known[t] = true
	fields, hidden := 0, 0
	for f := range t.Fields() {
		switch {
		case strings.HasPrefix(f.Name, "xxx_hidden_"):
			hidden++
		case !f.IsExported() || strings.HasPrefix(f.Name, "XXX_"):
		default:
			fields++
			if unseen := opaque(f.Type, known); unseen != nil {
				return unseen
			}
		}
	}
	if fields == 0 && hidden > 0 && pointer.Implements(reflect.TypeFor[interface{ ProtoMessage() }]()) {
		return t
	}
	return nil
}

type methodClient[Q, A any] struct {
	*method[Q, A]
	ring[Q, A, struct{}]
	requests, replies rpcbench.Messages
}

func (c *methodClient[Q, A]) Messages() (requests, replies rpcbench.Messages) {
	return c.requests, c.replies
}

func (c *methodClient[Q, A]) Prepare(i int) (rpcbench.Call, error) {
	conn, equal := c.conn(), c.Equal
	i %= len(c.Requests)
	asked, want := c.Requests[i], c.Replies[i]
	if c.Key == nil && c.Handle == nil {
		want = c.Replies[0]
	}
	return func(ctx context.Context) error {
		got, err := conn.Call(ctx, asked)
		if err != nil {
			return conn.Failure(ctx, err)
		}
		if !equal(want, got) {
			return c.wrong(i)
		}
		return nil
	}, nil
}

// handledClient is a client of a method with a Handle.
type handledClient[Q, A any] struct{ *methodClient[Q, A] }

// Alone returns what calls the handler with request i, without the stack and what the stack converts. It has called the
// handler once: one that changes its request can't be called with it again and again.
func (c handledClient[Q, A]) Alone(ctx context.Context, i int) (rpcbench.Call, error) {
	if alone := c.Method.Alone; alone != nil {
		nothing := new(struct{})
		do := func(ctx context.Context, i *int) (*struct{}, error) { return nothing, alone(ctx, *i) }
		call := func(ctx context.Context) error {
			_, err := handled(ctx, do, &i)
			return err
		}
		return call, call(ctx)
	}
	asked := c.Clone(c.Requests[i%len(c.Requests)]).(*Q)
	call := func(ctx context.Context) error {
		_, err := handled(ctx, c.Handle, asked)
		return err
	}
	before, err := c.Sorted(asked)
	err = cmp.Or(err, call(ctx))
	after, err2 := c.Sorted(asked)
	if err = cmp.Or(err, err2); err == nil && !bytes.Equal(before, after) {
		err = errors.New("the Handle changes its request")
	}
	return call, err
}

// Again returns how the stack encodes what Handle answers to request i now, with the entries of maps in one order.
func (c handledClient[Q, A]) Again(i int) ([]byte, error) {
	a, err := c.answer(context.Background(), i)
	if err != nil {
		return nil, err
	}
	return c.Sorted(a)
}
