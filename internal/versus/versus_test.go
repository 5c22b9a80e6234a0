package versus

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/rawtcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const slice = time.Millisecond // what a test needs of time

func TestTournament(t *testing.T) {
	contestants := []rpcbench.Stack{rawtcp.New(), rawtcp.New(), httpjson.Stream(), rawtcp.New()}
	contestants[1].Name, contestants[3].Name = "second", "third"
	blocks := 0
	results, err := Tournament(t.Context(), httpjson.New(), contestants, slice, Budget{Blocks: 6}, 1, func() { blocks++ })
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Equal(t, 12, blocks)
	require.Equal(t, []string{"httpjson", "httpjson again", "rawtcp", "second", "httpjson.stream"}, results[0].Arms)
	require.Equal(t, []string{"httpjson", "httpjson again", "third"}, results[1].Arms)
	for _, r := range results {
		require.Len(t, r.Blocks, 6)
		require.Len(t, r.Costs, len(r.Arms))
		require.InEpsilon(t, r.Costs[0].Allocs, r.Costs[1].Allocs, 0.1)
		require.Less(t, r.Costs[2].Allocs, r.Costs[0].Allocs/2, "the contestant's own, not the base's")
		require.Less(t, r.Costs[2].Bytes, r.Costs[0].Bytes/2)
		require.False(t, r.Incomplete)
	}
	require.NotEqual(t, results[0].Seed, results[1].Seed)

	base, floor, ok := Base(results, 0.95)
	require.True(t, ok)
	require.Equal(t, []string{"httpjson", "httpjson again"}, base.Arms)
	require.Len(t, base.Blocks, 12, "of both groups")
	require.Len(t, base.Costs, 2)
	for _, r := range results {
		aa, err := r.Ratio(1, 0, 0.95)
		require.NoError(t, err)
		require.GreaterOrEqual(t, floor, aa.Floor(), "the greatest of the groups")
	}
	results[1].Incomplete, results[1].Blocks = true, results[1].Blocks[:5]
	base, _, ok = Base(results, 0.95)
	require.False(t, ok, "five blocks have no floor")
	require.True(t, base.Incomplete)
	require.Len(t, base.Blocks, 11)
	base, _, ok = Base(nil, 0.95)
	require.False(t, ok)
	require.Empty(t, base.Blocks)
}

func TestTournamentOfTheBaseAlone(t *testing.T) {
	base, made := counted(rawtcp.New())
	results, err := Tournament(t.Context(), base, nil, slice, Budget{Time: time.Microsecond}, 1, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, made.Load(), "the base and its copy have a fixture each")
	require.Len(t, results, 1)
	require.Len(t, results[0].Blocks, 1, "a budget of time has one block at least")
}

func TestLevel(t *testing.T) {
	require.Equal(t, 0.95, Level(0))
	require.Equal(t, 0.95, Level(1))
	require.Equal(t, 0.99375, Level(8))
}

// counted counts how often the stack's server is made.
func counted(s rpcbench.Stack) (rpcbench.Stack, *atomic.Int64) {
	made := new(atomic.Int64)
	server := s.Server
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		made.Add(1)
		return server(config)
	}
	return s, made
}

func TestFixturesAreReplaced(t *testing.T) {
	for _, test := range []struct {
		why  string
		keep bool
		want int64
	}{
		{"for each block", false, 3},
		{"unless told otherwise", true, 1},
	} {
		t.Run(test.why, func(t *testing.T) {
			g := &Group{Keep: test.keep}
			stack, made := counted(rawtcp.New())
			for _, name := range []string{"a", "b"} {
				require.NoError(t, g.Open(t.Context(), name, stack))
			}
			record, err := g.Run(t.Context(), slice, Budget{Blocks: 3}, 1, nil)
			require.NoError(t, err)
			require.Len(t, record.Blocks, 3)
			require.NoError(t, g.Close(0))
			require.Equal(t, 2*test.want, made.Load())
		})
	}
}

// replaced is rawtcp with its Calls, but for those of the start and the warm-up, replaced.
func replaced(call func(n int64, real rpcbench.Call) error) rpcbench.Stack {
	s := rawtcp.New()
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return &client{Client: c, call: call}, err
	}
	return s
}

type client struct {
	rpcbench.Client
	call func(int64, rpcbench.Call) error
	n    atomic.Int64
}

func (c *client) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	real, err := c.Client.Prepare(u)
	return func(ctx context.Context) error {
		if n := c.n.Add(1); n > 400 {
			return c.call(n-400, real)
		}
		return real(ctx)
	}, err
}

func TestBrokenContestants(t *testing.T) {
	for _, test := range []struct {
		why  string
		call func(int64, rpcbench.Call) error
		want string
	}{
		{"a call that fails", func(int64, rpcbench.Call) error { return errors.New("broken") }, `timing: arm "b", .*broken`},
		{"a call that panics", func(int64, rpcbench.Call) error { panic("broken") }, `^rpcbench: panic: broken, at .*versus_test\.go:\d+$`},
	} {
		t.Run(test.why, func(t *testing.T) {
			g := &Group{}
			require.NoError(t, g.Open(t.Context(), "a", rawtcp.New()))
			require.NoError(t, g.Open(t.Context(), "b", replaced(test.call)))
			_, err := g.Run(t.Context(), slice, Budget{Blocks: 50}, 1, nil)
			require.Error(t, err)
			require.Regexp(t, test.want, err.Error())
			require.NoError(t, g.Close(0))
		})
	}
}

// A call that never ends is ended by closing the fixtures under it.
func TestHangingContestant(t *testing.T) {
	g := &Group{hang: 300 * time.Millisecond}
	require.NoError(t, g.Open(t.Context(), "a", rawtcp.New()))
	require.NoError(t, g.Open(t.Context(), "b", replaced(func(int64, rpcbench.Call) error {
		f := g.Arms[1].fixture.Load()
		for { // as a call does that waits for a server
			if _, err := f.Client.CreateUser(context.Background(), rpcbench.User{}); rpcbench.CodeOf(err) == rpcbench.Unavailable {
				return err
			}
		}
	})))
	_, err := g.Run(t.Context(), slice, Budget{Blocks: 50}, 1, nil)
	require.ErrorContains(t, err, "(a call hung, so the fixtures were closed)")
	require.NoError(t, g.Close(0))
}

func TestThirdConnectionIsAnError(t *testing.T) {
	g := &Group{}
	require.NoError(t, g.Open(t.Context(), "a", rawtcp.New()))
	f := g.Arms[0].fixture.Load()
	dial := func() {
		other, err := rawtcp.New().Dial(rpcbench.ClientConfig{Addr: f.Addr, DialContext: new(net.Dialer).DialContext, Conns: 1})
		require.NoError(t, err)
		_, err = other.CreateUser(t.Context(), rpcbench.User{Email: "a@example.com", Name: "anna", Password: "pass"})
		require.NoError(t, err)
		require.NoError(t, other.Close())
	}
	dial()
	require.NoError(t, g.renew(t.Context()), "one is the machine's doing")
	require.EqualValues(t, 1, g.Arms[0].reconnects)
	f = g.Arms[0].fixture.Load()
	dial()
	require.EqualError(t, g.Close(0), "rpcbench: a: 2 connections in 128 calls beyond the one to be used throughout; 1 are allowed")
}

func TestTooShortSlices(t *testing.T) {
	_, err := Tournament(t.Context(), rawtcp.New(), []rpcbench.Stack{httpjson.New()}, time.Nanosecond, Budget{Blocks: 1}, 1, nil)
	require.ErrorContains(t, err, "timing: slices of 1ns are too short for a clock")
	require.ErrorIs(t, err, timing.ErrClock, "by which BenchmarkVersus knows that there is nothing to be had")
}

func TestServerThatDoesNotStart(t *testing.T) {
	broken := rawtcp.New()
	broken.Name = "broken"
	broken.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, errors.New("no server today") }
	results, err := Tournament(t.Context(), rawtcp.New(), []rpcbench.Stack{httpjson.New(), httpjson.Stream(), httpjson.H2C(), broken},
		slice, Budget{Blocks: 1}, 1, nil)
	require.EqualError(t, err, "rpcbench: broken: server: no server today")
	require.Len(t, results, 1, "the group before is kept")
	require.Len(t, results[0].Blocks, 1)
}
