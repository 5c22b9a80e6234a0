package arms

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// journal has an entry for each call of its arms, in the order in which they began.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

// entry says who called, with which of the arm's fixtures, and how many collections had been forced until then.
type entry struct{ arm, fixture, forced int }

// arm is a stack whose calls are entered. A call takes so long at least.
func (j *journal) arm(number int, takes time.Duration) rpcbench.Stack {
	fixture, forced := -1, []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	s := testkit.WithServer(rawtcp.New(), func(s rpcbench.Server) rpcbench.Server {
		j.mu.Lock()
		defer j.mu.Unlock()
		fixture++
		return s
	})
	return testkit.WithClient(s, func(c rpcbench.Users) rpcbench.Client {
		return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				j.mu.Lock()
				metrics.Read(forced)
				j.entries = append(j.entries, entry{number, fixture, int(forced[0].Value.Uint64())})
				j.mu.Unlock()
				if takes > 0 {
					<-time.After(takes)
				}
				return call(ctx)
			}
		})
	})
}

// of are the entries of an arm's fixture. Each has the number of collections that were forced since the call before it,
// whoever made that, in place of the number of all.
func (j *journal) of(arm, fixture int) (all []entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, e := range j.entries {
		if e.arm == arm && e.fixture == fixture {
			e.forced -= j.entries[max(0, i-1)].forced
			all = append(all, e)
		}
	}
	return all
}

// Before calls count, an arm has warm callers, what others left has been collected, and calls have led in: of slices
// and of windows, planned or not.
func TestConditionsOfASlice(t *testing.T) {
	const callers, rate = 8, 2000
	for _, c := range []struct {
		why      string
		w        workload.Workload
		takes    time.Duration
		windowed bool
		blocks   int
		warm     int // four rounds of sixteen calls, or of four of each caller; one where each has a connection
		forced   int // collections before calls count
		lead     int // calls that lead in, at least
	}{
		{"slices", workload.Workload{}, 0, false, 4, 64, 4, 1},
		{"slices, a connection for each call", workload.Workload{NewConn: true}, 0, false, 4, 16, 4, 1},
		{"windows", workload.Workload{Callers: callers}, time.Millisecond, true, 1, 16 * callers, 1, 10 * callers},
		{"windows at a rate", workload.Workload{Callers: callers, Rate: rate}, 0, true, 1, 16 * callers, 1,
			rate * 3 / 10 / 2},
	} {
		t.Run(c.why, func(t *testing.T) {
			var j journal
			g, err := Open(t.Context(), at(c.w), j.arm(0, c.takes), j.arm(1, c.takes))
			require.NoError(t, err)
			defer func() { require.NoError(t, g.Close()) }()
			for arm := range g.Arms {
				require.Len(t, j.of(arm, 0), c.warm, "calls of arm %d that warm its first fixture", arm)
			}
			require.NoError(t, run(t, g, c.blocks))
			for i, block := range g.Record().Blocks {
				for arm, slice := range block {
					if c.windowed { // each has a fixture of its own, after the one that was looked at
						j.requireConditions(t, arm, i+1, c.warm, slice.Ops, c.forced, c.lead, true)
					} else if i > 0 { // the first fixture has the slices that are discarded
						j.requireConditions(t, arm, i, c.warm, slice.Ops, c.forced, c.lead, slice.Turn == 0)
					}
				}
			}
		})
	}
}

// requireConditions: so many calls of a fixture warm, at least so many lead in, and at least so many collections were
// forced meanwhile: one of them before the lead-in where collected is set.
func (j *journal) requireConditions(t *testing.T, arm, fixture, warm, ops, forced, lead int, collected bool) {
	t.Helper()
	made, found := j.of(arm, fixture), 0
	require.Greater(t, len(made), warm, "calls of arm %d with fixture %d, and those that warm", arm, fixture)
	for _, e := range made[warm:] {
		found += e.forced
	}
	require.GreaterOrEqual(t, found, forced, "collections since arm %d was warm, with fixture %d", arm, fixture)
	require.GreaterOrEqual(t, len(made)-warm-ops, lead, "calls of arm %d that lead in, with fixture %d: %d count",
		arm, fixture, ops)
	if collected {
		require.Positive(t, made[warm].forced, "collections of what opening left before arm %d leads in, with fixture %d",
			arm, fixture)
	}
}

// liar is a connection whose client's requests are of another user, once in fifty: the replies to them are wrong.
type liar struct {
	net.Conn
	lies *lies
}

type lies struct {
	skip, place int64 // requests before the first fifty, and which of these are changed
	seen, told  atomic.Int64
}

const every = 50

// names are what a request is known by, but for those that connect a fixture: a user, and a structured message.
var names = regexp.MustCompile(`Anna\d\d\D|field-00000`)

func (l liar) Write(p []byte) (int, error) {
	at := names.FindAllIndex(p, -1)
	if at == nil {
		return l.Conn.Write(p)
	}
	changed := bytes.Clone(p)
	for _, one := range at {
		if n := l.lies.seen.Add(1) - 1 - l.lies.skip; n >= 0 && n%every == l.lies.place {
			l.lies.told.Add(1)
			changed[one[0]+1] = 'o' // Aonna, foeld
		}
	}
	return l.Conn.Write(changed)
}

func (l *lies) stack(s rpcbench.Stack) rpcbench.Stack {
	s.Name = "lies"
	return testkit.Dialling(s, func(c *rpcbench.ClientConfig) {
		dial := c.DialContext
		c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return liar{conn, l}, err
		}
	})
}

// own calls a method of one's own, which answers with the name that it is asked for.
func own() rpcbench.Stack {
	m := rpcbench.Method[rpcbench.User, rpcbench.Response]{Name: "test.v1.Users/Get",
		Key:   func(u *rpcbench.User) uint64 { return uint64(u.Name[1])<<16 + uint64(u.Name[4])<<8 + uint64(u.Name[5]) },
		Equal: func(want, got *rpcbench.Response) bool { return want.Message == got.Message }}
	for i := range 2 * corpus.Round { // the second half are what lies ask for
		u := rpcbench.SampleUser(i%corpus.Round, 0)
		if i >= corpus.Round {
			u.Name = strings.Replace(u.Name, "nn", "on", 1)
		}
		m.Requests = append(m.Requests, &u)
		m.Replies = append(m.Replies, &rpcbench.Response{Message: u.Name})
	}
	return httpjson.Of(m)
}

// One wrong reply in fifty, at a random place, ends each kind of loop with each kind of call: the first one does.
func TestEachReplyIsCompared(t *testing.T) {
	loops := map[string]workload.Workload{"slices": {}, "windows": {Callers: 8}, "a rate": {Callers: 8, Rate: 5000}}
	calls := map[string]struct {
		stack rpcbench.Stack
		set   func(*workload.Workload)
	}{
		"as it is":             {rawtcp.New(), func(*workload.Workload) {}},
		"bytes":                {rawtcp.New(), func(w *workload.Workload) { w.Payload = "1kB" }},
		"a structured message": {rawtcp.New(), func(w *workload.Workload) { w.Payload = "flex.2kB" }},
		"a deadline":           {rawtcp.New(), func(w *workload.Workload) { w.Deadline = true }},
		"a connection each":    {rawtcp.New(), func(w *workload.Workload) { w.NewConn = true }},
		"a Unix socket":        {rawtcp.New(), func(w *workload.Workload) { w.Unix = true }},
		"a stream":             {grpcprotobuf.New(), func(w *workload.Workload) { w.Stream = true }},
		"HTTP/2":               {grpcprotobuf.New(), func(*workload.Workload) {}},
		"HTTP/1.1":             {httpjson.New(), func(*workload.Workload) {}},
		"a method":             {own(), func(*workload.Workload) {}},
	}
	for loop, w := range loops {
		for call, of := range calls {
			if of.set(&w); w.Check() != nil {
				w = loops[loop]
				continue
			}
			t.Run(loop+"/"+call, func(t *testing.T) { requireCompared(t, w, of.stack) })
			w = loops[loop]
		}
	}
}

func requireCompared(t *testing.T, w workload.Workload, s rpcbench.Stack) {
	t.Helper()
	l := lies{skip: 100, place: rand.Int64N(every)} // after the warm-up
	if w.Windowed() {
		l.skip = 2 * 16 * 8 // of two fixtures
	}
	where := fmt.Sprintf("of 50 replies after %d the one at %d is wrong", l.skip, l.place)
	g, err := Open(t.Context(), at(w), s, l.stack(s))
	require.NoError(t, err)
	err = run(t, g, 20)
	_ = g.Close()
	require.Error(t, err, "%s, and %d of them were taken", where, l.told.Load())
	require.Regexp(t, `\blies"?[:,] .*wrong reply: `, err.Error(), where)
	require.LessOrEqual(t, l.told.Load(), int64(max(1, min(2, w.Callers))), "%s: wrong replies until all ended", where)

	places := []int64{l.place}
	for i := int64(0); i < corpus.Round && !w.Windowed() && !testing.Short(); i++ { // each call of the round once
		places = append(places, i)
	}
	for _, place := range places {
		l = lies{skip: 2 * 16 * 8, place: place}
		_, err = w.CountCalls(t.Context(), l.stack(s), 1000)
		if w.Rate > 0 && l.told.Load() == 0 { // a busy machine skips starts
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "wrong reply: ", "counting: of 50 replies after %d the one at %d is wrong, and %d of "+
			"them were taken", l.skip, place, l.told.Load())
		require.LessOrEqual(t, l.told.Load(), int64(max(1, min(2, w.Callers))), "counting: wrong replies until all ended, "+
			"where of 50 after %d the one at %d is wrong", l.skip, place)
	}
}
