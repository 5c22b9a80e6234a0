package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// garbage is what ops of tests leave: a slice goes on until it is collected.
var garbage []byte

// The time of a codec is that of both messages, to encode as to decode.
func TestCodecTimesAreOfBothMessages(t *testing.T) {
	made := map[string]int{}
	messages := func(kind string) rpcbench.Messages {
		makes := func(does string) { garbage, made[does+" "+kind] = make([]byte, 1<<10), made[does+" "+kind]+1 }
		return rpcbench.Messages{Encode: func(int) ([]byte, error) { makes("encodes"); return nil, nil },
			Decode: func([]byte) error { makes("decodes"); return nil }}
	}
	_, err := codecTimes(t.Context(), 1, []codec{{requests: messages("requests"), replies: messages("replies")}})
	require.NoError(t, err)
	for _, does := range []string{"encodes ", "decodes "} {
		require.Greater(t, made[does+"requests"], 1000)
		require.Equal(t, made[does+"requests"], made[does+"replies"], "how often the codec %s replies", does)
	}
}

// Layers are those of the base and of the first contestant, on one core, at the first workload of one caller.
func TestLayersAreOfOneCaller(t *testing.T) {
	p := programOf(append(knownStacks(), knownStacks()[0]))
	p.Stacks[2].Name = "third"
	for i := range p.Stacks {
		p.Stacks[i].Serves = "yours"
	}
	for typed, want := range map[string]string{
		"-workloads call-saturated,call,call-tls": "call",
		"-callers 2 -conns 2 -tls":                "callers.2.conns.2.tls",
	} {
		children := testkit.Children(t, 0)
		t.Setenv(testkit.Variable, children)
		made := planned(t, p, append(strings.Fields(typed), "-base", "base", "other", "third")...)
		_, err := layersOf(t.Context(), made, func(string, time.Duration) {})
		require.NoError(t, err)
		asked := testkit.Asked[question](children)
		require.Len(t, asked, 2)
		for _, q := range asked {
			require.Equal(t, want+" base other", q.Spec.Workload.Name+" "+strings.Join(q.Spec.Arms, " "))
			require.Equal(t, 1, q.GOMAXPROCS, typed)
			require.Equal(t, child.Profiles, q.Does)
			require.Equal(t, 500*time.Millisecond, q.Spec.Slice)
		}
	}
}

// work takes some CPU time.
func work(rounds int) (sum [32]byte) {
	garbage = make([]byte, 1<<12+rounds<<6)
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

// A handler's share is that of the handler alone: neither the stack's work nor what it converts is in it.
func TestHandlersShare(t *testing.T) {
	type text struct{ Text string }
	method := func(rounds int) rpcbench.Method[text, text] {
		return rpcbench.Method[text, text]{Name: "talk.v1.Talk/Say", Requests: []*text{{"a"}, {"b"}},
			Equal: func(want, got *text) bool { return *want == *got },
			Handle: func(_ context.Context, q *text) (*text, error) {
				work(rounds)
				return q, nil
			}}
	}
	const much = 5000 // takes many times as long as the rest of a call
	named := func(name string, s rpcbench.Stack) rpcbench.Stack {
		s.Name = name
		return s
	}
	same := func(q *text) *text { return q }
	works := func(q *text) *text {
		work(much)
		return q
	}
	canned := method(0)
	canned.Handle, canned.Replies = nil, canned.Requests
	shares, err := handlers(t.Context(), 1, []rpcbench.Stack{
		named("canned", httpjson.Of(canned)), named("heavy", httpjson.Of(method(much))),
		named("converts", httpjson.Of(rpcbench.Converted(method(0), same, works, same, method(0).Equal))),
	}, time.Minute)
	require.NoError(t, err)
	require.Len(t, shares, 2)
	require.Nil(t, shares["canned"])
	for name, s := range shares {
		require.Less(t, 0.0, s.Handler.Ns, name)
		require.LessOrEqual(t, s.Lo, s.Share, name)
		require.GreaterOrEqual(t, s.Hi, s.Share, name)
		require.InDelta(t, s.Share, s.Handler.Ns/s.Call.Ns, 0.5, name)
	}
	require.Greater(t, shares["heavy"].Share, 0.5, "%+v", shares["heavy"])
	require.Less(t, shares["converts"].Share, 0.5, "%+v", shares["converts"])
}

// Where a handler can't be called alone again and again, no share is measured, and a line says why.
func TestNoShare(t *testing.T) {
	type text struct{ Text string }
	release := make(chan struct{})
	defer close(release)
	same := func(q *text) *text { c := *q; return &c }
	equal := func(want, got *text) bool { return true }
	appends := func(_ context.Context, q *text) (*text, error) {
		q.Text += "+"
		return new(text), nil
	}
	hangs := func(ctx context.Context, _ *text) (*text, error) {
		if ctx.Value(http.ServerContextKey) == nil {
			<-release // and heeds no context
		}
		return new(text), nil
	}
	for _, test := range []struct {
		why    string
		handle func(context.Context, *text) (*text, error)
		want   string
	}{
		{"its request grows", appends, "the Handle changes its request$"},
		{"it hangs", hangs, "^a handler does not answer$"},
	} {
		m := rpcbench.Method[text, text]{Name: "talk.v1.Talk/Say", Requests: []*text{{"a"}}, Replies: []*text{{}},
			Equal: equal, Handle: test.handle}
		for _, m := range []rpcbench.Method[text, text]{m, rpcbench.Converted(m, same, same, same, equal)} {
			shares, err := handlers(t.Context(), 1, []rpcbench.Stack{httpjson.Of(m)}, 200*time.Millisecond)
			require.Nil(t, shares, test.why)
			require.Error(t, err, test.why)
			require.Regexp(t, test.want, err.Error())
		}
	}
}

// A slice without CPU time has no share, and no page could hold what a division by it makes.
func TestNoShareOfNoTime(t *testing.T) {
	some := slices.Repeat([]float64{2}, blocks)
	none := append(slices.Clone(some[1:]), 0)
	for _, of := range [][2][]float64{{none, some}, {some, none}, {none, none}} {
		_, err := shareOf(of[0], of[1])
		require.ErrorContains(t, err, "told no CPU time")
	}
	share, err := shareOf(some, some)
	require.NoError(t, err)
	require.Equal(t, 1.0, share.Share)
}

// What stacks send as JSON is compared before anything is measured, and stands beside their ratio. A stack that hangs
// meanwhile has no part in it.
func TestOtherJSON(t *testing.T) {
	type order struct {
		Left int `json:"left,omitzero"`
	}
	m := rpcbench.Method[order, order]{Name: "shop.v1.Orders/Put", Requests: []*order{{}}, Replies: []*order{{Left: 1}},
		Equal: func(want, got *order) bool { return *want == *got }}
	p := plan.Plan{Program: programOf([]rpcbench.Stack{httpjson.Of(m), httpjsoniter.Of(m)}),
		Compared: plan.Contestants{plan.Of("httpjson"), plan.Of("httpjsoniter")}}
	want := map[string]string{
		"httpjsoniter": "httpjsoniter sends other JSON than httpjson: request.left is 0, and httpjson leaves it out"}
	require.Equal(t, want, otherJSON(t.Context(), p, time.Minute))

	one := &versus.Comparison{Spec: versus.Spec{Arms: []string{"httpjson", "httpjson", "httpjsoniter"}}}
	s := findings{comparisons: []*versus.Comparison{one}, otherJSON: want}.summary(p)
	require.Equal(t, want["httpjsoniter"], s.Answers[0].OtherJSON)

	release := make(chan struct{})
	defer close(release)
	dial := p.Stacks[1].Dial
	p.Stacks[1].Dial = func(c rpcbench.ClientConfig) (rpcbench.Client, error) {
		<-release
		return dial(c)
	}
	require.Empty(t, otherJSON(t.Context(), p, time.Millisecond))
	p.Compared[0].Build = "go1.26.8"
	require.Empty(t, otherJSON(t.Context(), p, time.Minute), "a program that this one isn't")
}

// JSON that is converted for its handler has a row of its own for another codec too.
func TestAnotherCodecOfConvertedJSON(t *testing.T) {
	for _, converts := range []string{"", ".converted"} {
		p := programOf(own.Stacks())
		for i := range p.Stacks[:2] {
			p.Stacks[i].Name += converts
		}
		require.Contains(t, planned(t, p).Also, "httpjsoniter"+converts)
	}
}

// A handler that can't be called directly costs a run its share, and nothing else.
func TestHandlersThatNeedAServer(t *testing.T) {
	asked := rpcbench.Method[rpcbench.User, rpcbench.Response]{Name: "test.v1.Users/Create",
		Requests: []*rpcbench.User{{}}, Replies: []*rpcbench.Response{{}},
		Equal: func(want, got *rpcbench.Response) bool { return want.Code == got.Code },
		Handle: func(ctx context.Context, _ *rpcbench.User) (*rpcbench.Response, error) {
			if ctx.Value(http.ServerContextKey) == nil {
				return nil, errors.New("no server")
			}
			return new(rpcbench.Response), nil
		}}
	p := plan.Plan{Program: programOf([]rpcbench.Stack{httpjson.Of(asked)}),
		Compared: plan.Contestants{{Stack: "httpjson"}}}
	said, warnings, err := call(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, said.Bodies, 1)
	require.Positive(t, said.Bodies[0].Encode.Ns)
	require.Nil(t, said.Bodies[0].Handler)
	require.Len(t, warnings, 1)
	require.Regexp(t, "^how much of a call the handler is, is not known: .* handler alone.*: internal: no server$",
		warnings[0])

	asked.Handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error) {
		garbage = make([]byte, 1<<10)
		return new(rpcbench.Response), nil
	}
	p.Stacks = []rpcbench.Stack{httpjson.Of(asked)}
	said, warnings, err = call(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.NotNil(t, said.Bodies[0].Handler)
}
