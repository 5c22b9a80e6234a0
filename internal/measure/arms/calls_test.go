package arms

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// Several callers call through the whole window: its calls are some of those made, and as many have been under way as
// there are callers. Their client has gone when the other arm has its turn.
func TestSeveralCallers(t *testing.T) {
	const callers, takes = 8, time.Millisecond
	base, own := testkit.Watched{Takes: takes}, testkit.Watched{Takes: takes}
	s := own.Stack(rawtcp.New())
	s.Name = "own"
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		if n := base.Clients.Load(); n > 0 {
			return nil, fmt.Errorf("%d clients of the other arm are open", n)
		}
		return dial(config)
	}
	g, err := Open(t.Context(), at(workload.Workload{Callers: callers}), base.Stack(rawtcp.New()), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	began := time.Now()
	require.NoError(t, run(t, g, 2))
	all, record := time.Since(began), g.Record()
	for arm, by := range []*testkit.Watched{&base, &own} {
		ops := 0
		for _, block := range record.Blocks {
			s := block[arm]
			require.Positive(t, s.Ops, "calls of arm %d in a window", arm)
			require.GreaterOrEqual(t, s.Wall, 100*time.Millisecond, "a window of arm %d", arm)
			require.GreaterOrEqual(t, s.Lead, 100*time.Millisecond, "a lead-in of arm %d", arm)
			require.Positive(t, s.Heap, "live bytes when a window of arm %d began", arm)
			ops += s.Ops
		}
		l := record.Latencies[arm]
		require.EqualValues(t, ops, l.Calls, "latencies of arm %d: each call of the windows, and no other", arm)
		require.Less(t, int64(ops), by.Made.Load(), "calls of arm %d in windows, of all that it made", arm)
		require.EqualValues(t, callers, by.Most.Load(), "callers of arm %d at once", arm)
		require.GreaterOrEqual(t, l.Sum, time.Duration(l.Calls)*takes*998/1000, "latencies of arm %d, of %d whole calls", arm,
			l.Calls)
		require.LessOrEqual(t, l.Sum, callers*all, "latencies of arm %d: the calls of a caller follow one another", arm)
		require.Zero(t, by.Clients.Load(), "clients of arm %d that are left open", arm)
	}
}

// What the loop itself keeps for a caller is less than 10 kB, so that the collector runs about as often as it does for
// a service with as many callers.
func TestCallersTakeLittleMemory(t *testing.T) {
	heap := func(callers int) (least int64) {
		g, err := Open(t.Context(), at(workload.Workload{Callers: callers, Conns: 1}), rawtcp.New(),
			rawtcp.New())
		require.NoError(t, err)
		defer func() { require.NoError(t, g.Close()) }()
		require.NoError(t, run(t, g, 1))
		for _, block := range g.Record().Blocks {
			for _, s := range block {
				if least == 0 || s.Heap < least {
					least = s.Heap
				}
			}
		}
		return least
	}
	few, many := heap(2), heap(100)
	t.Log(few, many)
	require.Less(t, many-few, int64(1<<20), "live bytes of 100 callers, less those of 2")
}

const works = 2 * time.Millisecond // CPU time of a call in the server

// worker is a stack whose server works for so long, or else waits.
func worker(name string, works time.Duration) rpcbench.Stack {
	m := rpcbench.Method[rpcbench.User, rpcbench.Response]{Name: "test.v1.Work/Do",
		Requests: []*rpcbench.User{{Name: "anna"}}, Replies: []*rpcbench.Response{{Code: 1}},
		Equal: func(want, got *rpcbench.Response) bool { return want.Code == got.Code },
		Key: func(*rpcbench.User) uint64 {
			if works == 0 {
				<-time.After(time.Millisecond)
				return 1
			}
			for began, _ := cpu.Time(); ; {
				if now, _ := cpu.Time(); now-began >= works {
					return 1
				}
			}
		}}
	s := httpjson.Of(m)
	s.Name = name
	return s
}

// A server apart lives as long as the group, each arm has its own, and its CPU time is of its own windows.
func TestServersApart(t *testing.T) {
	if _, told := cpu.Of(os.Getpid()); !told {
		t.Skip("this system does not tell the CPU time of another process")
	}
	for callers, blocks := range map[int]int{0: 2, 2: 1} {
		g, err := Open(t.Context(), at(workload.Workload{Apart: true, Callers: callers, TLS: true}),
			worker("rests", 0), worker("rests", 0), worker("works", works))
		require.NoError(t, err)
		var servers []string
		for _, arm := range g.Arms {
			servers = append(servers, arm.setup.Remote)
		}
		for len(g.Record().Blocks) < blocks { // of a block in which nobody had the machine there is nothing
			if err := run(t, g, 1); err != nil {
				require.ErrorContains(t, err, "no operation ended within ")
			}
		}
		for i, arm := range g.Arms {
			require.Equal(t, servers[i], arm.setup.Remote, "one server for all windows")
			require.NotContains(t, servers[:i], servers[i], "each arm has its own")
		}
		least := works * 8 / 10 / time.Duration(max(1, callers)) // calls at a time see each other's CPU time
		for _, block := range g.Record().Blocks {
			busy := block[2].Server / time.Duration(block[2].Ops)
			require.GreaterOrEqual(t, busy, least, "the server's CPU time of a call of arm 2, which works for %v", works)
			for arm, s := range block {
				if arm != 2 {
					require.Less(t, s.Server/time.Duration(s.Ops), busy, "the CPU time of a server that rests, arm %d", arm)
				}
				require.Less(t, (s.CPU-s.Server)/time.Duration(s.Ops), busy, "the client's CPU time of a call, arm %d", arm)
			}
		}
		require.NoError(t, g.Close())
		for _, arm := range g.Arms {
			_, lives := arm.server.Load().Used()
			require.False(t, lives, "the server of %s outlives the group", arm.Name)
		}
	}
}

// The clients of servers apart reach them as the workload says: by TLS, and by a Unix socket.
func TestServersApartAreReachedAsAsked(t *testing.T) {
	for _, w := range []workload.Workload{{Apart: true, Rate: 1000}, {Apart: true, TLS: true}, {Apart: true, Unix: true},
		{Apart: true, TLS: true, Unix: true, Callers: 3}} {
		var mu sync.Mutex
		seen := map[string]bool{}
		stack := testkit.Dialling(worker("rests", 0), func(c *rpcbench.ClientConfig) {
			dial, secure := c.DialContext, c.TLS != nil
			c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					seen[fmt.Sprintf("TLS %t, %s", secure, conn.RemoteAddr().Network())] = true
				}
				return conn, err
			}
		})
		g, err := Open(t.Context(), at(w), stack, stack)
		require.NoError(t, err)
		require.NoError(t, g.Close())
		want := fmt.Sprintf("TLS %t, %s", w.TLS, map[bool]string{false: "tcp", true: "unix"}[w.Unix])
		require.Equal(t, map[string]bool{want: true}, seen, "%+v", w)
	}
}
