package arms

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

const slice = 250 * time.Microsecond // what a test needs of time

// TestMain is also the process of a server apart.
func TestMain(m *testing.M) {
	served := child.List([]rpcbench.Stack{rawtcp.New(), worker("rests", 0), worker("works", works)})
	switch done, err := child.Serve(os.Stdin, os.Stdout, served, map[string]child.Job{child.Serves: child.Serving()}); {
	case err != nil:
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

func small(t *testing.T) workload.Workload {
	t.Helper()
	w, err := workload.Find(workload.Small)
	require.NoError(t, err)
	return w
}

// at are slices, or windows, of a workload.
func at(w workload.Workload) Spec { return Spec{Workload: w, Slice: slice, Seed: 1} }

// group opens the stacks, and closes them when the test ends.
func group(t *testing.T, stacks ...rpcbench.Stack) *Group {
	t.Helper()
	g, err := Open(t.Context(), at(small(t)), stacks...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// run measures so many blocks, or as many as go well.
func run(t *testing.T, g *Group, blocks int) error {
	t.Helper()
	for range blocks {
		if err := g.Block(t.Context()); err != nil {
			return err
		}
	}
	return nil
}

func TestFixturesAreReplaced(t *testing.T) {
	var made atomic.Int64
	stack := testkit.WithServer(rawtcp.New(), func(inner rpcbench.Server) rpcbench.Server {
		made.Add(1)
		return inner
	})
	require.NoError(t, run(t, group(t, stack, stack), 3))
	require.EqualValues(t, 2*3, made.Load(), "the base and its copy have a fixture each, and new ones for each block")
}

// replaced is rawtcp with its Calls, but for those of the start and the warm-up, replaced.
func replaced(call func(n int64, real rpcbench.Call) error) rpcbench.Stack {
	return testkit.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
		var made atomic.Int64
		return testkit.Around(c, func(_ rpcbench.User, real rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				const warm = 4 * corpus.Round
				if n := made.Add(1); n > warm {
					return call(n-warm, real)
				}
				return real(ctx)
			}
		})
	})
}

func TestBrokenContestant(t *testing.T) {
	err := run(t, group(t, rawtcp.New(), replaced(func(int64, rpcbench.Call) error { return errors.New("broken") })), 50)
	require.Error(t, err)
	require.Regexp(t, `timing: arm "rawtcp again", .*broken`, err.Error())
}

// TestCallsThatAreLeftOut: a contestant that calls each second time is an error, of a caller and of callers, also if
// its server has a process of its own.
func TestCallsThatAreLeftOut(t *testing.T) {
	half := testkit.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
		var made atomic.Int64
		return testkit.Around(c, func(_ rpcbench.User, real rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				if made.Add(1)%2 == 0 {
					return nil
				}
				return real(ctx)
			}
		})
	})
	for _, w := range []workload.Workload{{}, {Callers: 3}, {Apart: true}, {Apart: true, Callers: 3},
		{Apart: true, Rate: 1000, Callers: 10}} {
		g, err := Open(t.Context(), at(w), rawtcp.New(), half)
		if err == nil {
			err = cmp.Or(run(t, g, 1), g.Close())
		}
		require.ErrorContains(t, err, ": its Call does not call each time", "%+v", w)
		require.ErrorContains(t, err, "rawtcp: its client made ", "%+v", w)
		g, err = Open(t.Context(), at(w), rawtcp.New(), rawtcp.New())
		require.NoError(t, err)
		require.NoError(t, cmp.Or(run(t, g, 1), g.Close()), "%+v", w)
	}
}

// A call that never ends is ended by closing the fixtures under it.
func TestHangingContestant(t *testing.T) {
	var g *Group
	g = group(t, rawtcp.New(), replaced(func(int64, rpcbench.Call) error {
		f := g.Arms[1].open.Load().Fixture
		for { // as a call does that waits for a server
			if _, err := testkit.As[rpcbench.Users](t, f).CreateUser(context.Background(),
				rpcbench.User{}); rpcbench.CodeOf(err) == rpcbench.CodeUnavailable {
				return err
			}
		}
	}))
	g.hang = 300 * time.Millisecond
	err := run(t, g, 50)
	hang, ok := errors.AsType[*child.Hang](err)
	require.True(t, ok, err)
	require.Regexp(t, `^rawtcp hangs: a call had not returned after [0-9.]+m?s$`, err)
	require.Contains(t, hang.Goroutines, "internal/measure/arms/arms_test.go:", "where the call was")
}

// What a hanging stack does not return from is told with its name, and Close does not wait for it again. Where even the
// calls don't return, nor does the group, and somebody else is told.
func TestHanging(t *testing.T) {
	defer func(was time.Duration) { child.Patience = was }(child.Patience)
	child.Patience = 300 * time.Millisecond
	for _, c := range []struct {
		why           string
		calls, closes bool
		said          string
	}{
		{"calls", true, false, "a call had not returned after [0-9.]+m?s"},
		{"Close", false, true, "Close had not returned after [0-9.]+m?s"},
		{"both", true, true, "a call had not returned after [0-9.]+m?s, and neither had Close after 450ms more"},
	} {
		t.Run(c.why, func(t *testing.T) {
			until, told, ended := make(chan struct{}), make(chan *child.Hang, 2), make(chan error, 1)
			spec := at(small(t))
			spec.Slice = 10 * time.Millisecond // for more calls of each than go well
			spec.Hangs = func(h *child.Hang) { told <- h }
			go func() {
				g, err := Open(t.Context(), spec, rawtcp.New(), rawtcp.New(),
					testkit.Hanging(rawtcp.New(), "shop", until, c.calls, c.closes))
				for err == nil {
					err = g.Block(t.Context())
				}
				ended <- errors.Join(err, g.Close())
			}()
			var err error
			if c.closes {
				err = <-told
				close(until)
				<-ended
			} else {
				err = <-ended
			}
			require.Regexp(t, "^shop hangs: "+c.said+"$", err)
			hang, ok := errors.AsType[*child.Hang](err)
			require.True(t, ok)
			require.Contains(t, hang.Goroutines, "github.com/rpcbench/rpcbench/internal/testkit/hanging.go:")
		})
	}
}

// reconnect makes a call of the first arm on another connection.
func reconnect(t *testing.T, g *Group) {
	t.Helper()
	other, err := g.Arms[0].open.Load().Fixture.Dial()
	require.NoError(t, err)
	call, err := other.(rpcbench.Users).PrepareUser(rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	require.NoError(t, call(t.Context()))
	require.NoError(t, other.Close())
}

func TestThirdConnectionIsAnError(t *testing.T) {
	g, err := Open(t.Context(), at(small(t)), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	require.NoError(t, run(t, g, 1))
	reconnect(t, g)
	require.NoError(t, g.Block(t.Context()), "one is the machine's doing")
	require.EqualValues(t, 1, g.Arms[0].Reconnects)
	many := g.Arms[0] // as if it had made many calls, and at the limit, on a quiet machine
	many.calls, many.Reconnects, many.late = 1e9-many.open.Load().Loop.Begun(), 1e6, Late()+1e5
	reconnect(t, g)
	require.ErrorContains(t, g.Close(), "rawtcp: connections were opened again 1000001 times in 1000000000 "+
		"calls, and 1000000 are allowed: a stack that does so by design declares Traits.Reconnects")
}

// A stack that reconnects declares no connections, so none is too many.
func TestConnectionsAsNeeded(t *testing.T) {
	g, err := Open(t.Context(), at(small(t)), httpjson.Default(), rawtcp.New())
	require.NoError(t, err)
	for range 3 {
		reconnect(t, g)
	}
	g.Arms[0].late = Late() // as on a quiet machine
	require.NoError(t, g.Close())
}

// On a machine whose goroutines wait, net/http drops connections, and a comparison goes on.
func TestConnectionsOfABusyMachine(t *testing.T) {
	g, err := Open(t.Context(), at(small(t)), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	g.Arms[0].Reconnects, g.Arms[0].late = 3, g.Arms[0].late-2
	require.NoError(t, g.Close())
}

func TestTooShortSlices(t *testing.T) {
	_, err := Open(t.Context(), Spec{Workload: small(t), Slice: time.Nanosecond, Seed: 1}, rawtcp.New(), httpjson.New())
	require.ErrorContains(t, err, "timing: the clock is too coarse: it steps by")
	require.ErrorIs(t, err, timing.ErrClock, "by which a campaign knows that there is nothing to be had")
}

func TestServerThatDoesNotStart(t *testing.T) {
	broken := rawtcp.New()
	broken.Name = "broken"
	broken.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, errors.New("no server today") }
	_, err := Open(t.Context(), at(small(t)), rawtcp.New(), broken)
	require.EqualError(t, err, "broken: server: no server today")
}

// Percentiles are of single calls, in the slices that count, and each arm has its own.
func TestLatencies(t *testing.T) {
	slow := replaced(func(n int64, real rpcbench.Call) error {
		if n%12 == 0 {
			<-time.After(time.Millisecond)
		} else {
			<-time.After(200 * time.Microsecond)
		}
		return real(context.Background())
	})
	slow.Name = "slow"
	g, err := Open(t.Context(), Spec{Workload: small(t), Slice: 20 * time.Millisecond, Seed: 1}, rawtcp.New(), slow)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	require.NoError(t, run(t, g, 4))
	for g.Record().Latencies[0].Calls < 1000 { // of which ten are beyond a p99
		require.NoError(t, run(t, g, 1))
	}
	record := g.Record()
	require.Len(t, record.Latencies, 2)
	for i, l := range record.Latencies {
		ops, wall := 0, time.Duration(0)
		for _, block := range record.Blocks {
			ops, wall = ops+block[i].Ops, wall+block[i].Wall
		}
		require.EqualValues(t, ops, l.Calls, "each call of the slices, and no other")
		require.InEpsilon(t, wall, l.Sum, 0.1)
	}
	base, own := record.Latencies[0], record.Latencies[1]
	require.Positive(t, base.P99)
	require.NotEqual(t, base.P50, own.P50)
	require.GreaterOrEqual(t, own.P50, 200*time.Microsecond)
	require.GreaterOrEqual(t, own.P95, time.Millisecond,
		"one call in twelve: the slowest tenth begins below, the slowest twentieth does not")
	for _, l := range record.Latencies {
		require.Equal(t, l.Calls >= 1000, l.P99 > 0, "fewer than ten calls beyond")
		require.Equal(t, l.Calls >= 10_000, l.P999 > l.P99, "fewer than ten calls beyond")
	}
}

func TestReconnects(t *testing.T) {
	for calls, want := range map[int64]int64{0: 1, 100: 1, 1000: 1, 1999: 1, 2000: 2, 1_000_000: 1000} {
		require.Equal(t, want, Reconnects(calls), "in %d calls", calls)
	}
}
