package versus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestMain is also the process that a Program starts.
func TestMain(m *testing.M) {
	switch done, err := child.Serve(os.Stdin, os.Stdout, find, jobs()); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

func jobs() map[string]child.Job {
	return map[string]child.Job{child.Serves: child.Serving(), child.Measures: Measuring(), child.Counts: Counting(),
		child.Routes: network.Routing(), child.Networks: network.Trying()}
}

func find(name string) (rpcbench.Stack, error) {
	switch name {
	case "httpjson":
		return httpjson.New(), nil
	case "rawtcp":
		return rawtcp.New(), nil
	case "procs" + fmt.Sprint(runtime.GOMAXPROCS(0)): // known only to a process of so many
		return rawtcp.New(), nil
	case "dies":
		os.Exit(3)
	case "leaves": // as if it had done what it was to do
		os.Exit(0)
	case "talks":
		fmt.Println("hello")
	case "fails": // in the third block
		return inBlock(3, func() error { return errors.New("the server died") }), nil
	case "killed":
		return inBlock(2, killed), nil
	case "leaves servers": // whose addresses it tells before it is killed
		return testkit.Dialling(inBlock(2, killed), func(c *rpcbench.ClientConfig) {
			dial := c.DialContext
			c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err == nil {
					err = tell(os.Getenv(serversEnv), conn.RemoteAddr().String())
				}
				return conn, err
			}
		}), nil
	case "bytes1000": // takes users with so many bytes
		return testkit.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
			return testkit.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
				if n := len(u.Avatar); n != 1000 && !testkit.Connects(u) {
					return nil, fmt.Errorf("asked for %d bytes", n)
				}
				return c.PrepareUser(u)
			}}
		}), nil
	case "sticks": // closes with an error, and ends well otherwise
		return testkit.WithServer(rawtcp.New(), func(s rpcbench.Server) rpcbench.Server {
			return testkit.Server{Server: s, OnClose: func() error { return errors.Join(s.Close(), errors.New("it sticks")) }}
		}), nil
	case "hangs":
		return inBlock(1, func() error { select {} }), nil
	}
	return rpcbench.Stack{}, errors.New("no stack is called " + name)
}

// serversEnv names a file for addresses of servers.
const serversEnv = "RPCBENCH_TEST_SERVERS"

// tell appends a line to a file.
func tell(name, line string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, line)
		err = cmp.Or(err, file.Close())
	}
	return err
}

// killed ends this process as nobody can foresee.
func killed() error {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
	select {}
}

// inBlock is rawtcp, whose calls do what is said from the n-th block on: each block has a fixture of its own.
func inBlock(n int, do func() error) rpcbench.Stack {
	fixtures := 0
	return testkit.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
		if fixtures++; fixtures < n {
			return c
		}
		return testkit.Around(c, func(rpcbench.User, rpcbench.Call) rpcbench.Call {
			return func(context.Context) error { return do() }
		})
	})
}

const slice = 250 * time.Microsecond // what a test needs of time

func spec(arms ...string) Spec {
	return Spec{Arms: arms, Slice: slice, Procs: 1, Blocks: 3, Seed: 3}
}

// apart runs each arm of a spec in a process of its own.
func apart(ctx context.Context, s Spec, p Program) (timing.Record, error) {
	return Run(ctx, s, slices.Repeat([]Program{p}, len(s.Arms))...)
}

func TestRun(t *testing.T) {
	s := spec("httpjson", "httpjson", "rawtcp")
	record, err := Run(t.Context(), s, Program{Layout: 7})
	require.NoError(t, err)
	require.Equal(t, []string{"httpjson", "httpjson again", "rawtcp"}, record.Arms)
	require.Len(t, record.Blocks, s.Blocks)
	require.Equal(t, uint64(3), record.Seed)
	require.Equal(t, slice, record.Length)
	_, err = record.Ratio(2, 0)
	require.NoError(t, err)
	for i := 1; i < len(record.Blocks); i++ {
		require.NotEqual(t, record.Blocks[i-1], record.Blocks[i], "each block is measured")
	}
	require.Len(t, record.Latencies, 3)
	require.Equal(t, 7, record.Layout)
	if runtime.GOOS == "linux" { // which tells half a tick even if nothing else runs
		require.Positive(t, record.Others, "what other programs used is recorded")
		require.LessOrEqual(t, record.Others, 1.0)
	}
}

// A process measures the workload that it is told, at its GOMAXPROCS.
func TestRunTellsTheWorkload(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	for _, test := range []struct {
		why, arm string
		procs    int
		workload workload.Workload
		want     string
	}{
		{"a payload", "bytes1000", 1, workload.Workload{Payload: "1kB"}, ""},
		{"another payload", "bytes1000", 1, workload.Workload{Payload: "10kB"}, "asked for 10000 bytes"},
		{"a Unix socket", "httpjson", 1, workload.Workload{Unix: true}, ""},
		{"one P", "procs1", 1, workload.Workload{}, ""},
		{"three Ps", "procs3", 3, workload.Workload{}, ""},
		{"the default, whatever this process was told", fmt.Sprint("procs", environ.Procs()), 0, workload.Workload{}, ""},
	} {
		s := spec("rawtcp", test.arm)
		s.Workload, s.Procs, s.Blocks = test.workload, test.procs, 1
		_, err := Run(t.Context(), s, Program{})
		if test.want == "" {
			require.NoError(t, err, test.why)
		} else {
			require.ErrorContains(t, err, test.want, test.why)
		}
	}
}

func TestApart(t *testing.T) {
	record, err := apart(t.Context(), spec("httpjson", "rawtcp"), Program{})
	require.NoError(t, err)
	require.Equal(t, []string{"httpjson", "rawtcp"}, record.Arms)
	require.Len(t, record.Blocks, 3)
	orders := map[int]bool{}
	for _, block := range record.Blocks {
		require.Len(t, block, 2)
		require.Equal(t, 1, block[0].Turn+block[1].Turn)
		orders[block[0].Turn] = true
		for _, s := range block {
			require.GreaterOrEqual(t, s.Wall, 2*slice, "two slices")
			require.Positive(t, s.Ops)
		}
	}
	require.Len(t, orders, 2, "in random order")
	_, err = record.Ratio(1, 0)
	require.NoError(t, err)
}

// An arm in a process of its own is measured there twice, and both slices count. The copy's process measures the base.
// Children aren't told of builds.
func TestSlicesOfAnArmApart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	script := filepath.Join(t.TempDir(), "child")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho 8; read spec\ncase $spec in\n"+
		`*'"arms":["base","base"]'*) n=2;; *'"arms":["other","other"]'*) n=5;; *) n=90;; esac`+"\nwhile read line; do echo '"+
		`{"answer":{"blocks":[[[1,'$n',30,400,5,6,0,70,80,90,100],[0,1,10,100,1,1,0,7,8,9,10]]],`+
		`"latencies":[{"calls":'$n',"most":7},{"calls":1,"most":6}]}}`+"'; done\n"), 0o700))
	asked := spec("base@HEAD~1", "base@HEAD~1", "other@HEAD")
	asked.Blocks = 6
	for asked.Seed = range 6 { // in the last block, whose latencies count, the order differs
		record, err := Run(t.Context(), asked, Program{Path: script, Layout: 4}, Program{Path: script, Layout: 5},
			Program{Path: script, Layout: 7})
		require.NoError(t, err)
		require.Equal(t, 7, record.Layout, "the contestant's: its copy's and the base's are noise")
		require.Len(t, record.Blocks, 6)
		for arm, ops := range []int{3, 3, 6} {
			for _, block := range record.Blocks {
				require.Equal(t, timing.Slice{Turn: block[arm].Turn, Ops: ops, Wall: 40, CPU: 500, GC: 6, Lead: 7, Server: 77,
					Busy: 88, Idle: 99, Switches: 110}, block[arm],
					"the process of arm %d, base, copy or contestant, measures another", arm)
			}
			require.Equal(t, timing.Latency{Calls: int64(ops), Most: 7}, record.Latencies[arm], "of arm %d are another's", arm)
		}
	}
}

// What a process has counted is nothing if it then fails.
func TestCountOfAProcessThatFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	script := filepath.Join(t.TempDir(), "child")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho 8; read spec; read line\n"+
		`echo '{"answer":{"calls":1}}'; echo it broke >&2; exit 1`), 0o700))
	_, err := Count(t.Context(), "base", workload.Workload{}, Program{Path: script})
	require.EqualError(t, err, "it broke")
}

// A process counts the calls of the stack that it is told, at the workload that it is told, whatever the build's name.
func TestCount(t *testing.T) {
	for arm, bytes := range map[string]int{"rawtcp": 0, "rawtcp@HEAD~1": 10_000} {
		w := workload.Workload{}
		if bytes > 0 {
			w.Payload = "10kB"
		}
		f, err := Count(t.Context(), arm, w, Program{})
		require.NoError(t, err)
		require.EqualValues(t, 1000, f.Calls)
		require.InDelta(t, 50+bytes, f.Sent, 50, "bytes of a call of rawtcp")
	}
	_, err := Count(t.Context(), "httpjsno", workload.Workload{}, Program{})
	require.EqualError(t, err, "no stack is called httpjsno")
}

func TestFailures(t *testing.T) {
	const contestantFirst = 0 // by this seed, of arms in processes of their own
	once := spec("rawtcp", "sticks")
	once.Blocks = 1
	for _, test := range []struct {
		why     string
		program Program
		spec    Spec
		want    string
		blocks  int // that were measured before
	}{
		{"an unknown stack", Program{}, spec("rawtcp", "httpjsno"), "no stack is called httpjsno", 0},
		{"nothing to compare with", Program{}, spec("rawtcp"), "timing: got 1 of the two or more arms to compare", 0},
		{"a process that dies", Program{}, spec("rawtcp", "dies"), "exit status 3", 0},
		{"a process that ends", Program{}, spec("rawtcp", "leaves"), "a child ended before its time", 0},
		{"a program that prints", Program{}, spec("rawtcp", "talks"),
			"a child printed something else than a reply: ", 0},
		{"a call that fails", Program{}, spec("rawtcp", "fails"), "the server died", 2},
		{"a process that is killed", Program{}, spec("rawtcp", "killed"), "", 1},
		{"a fixture that fails when all is measured", Program{}, once, "it sticks", 1},
		{"a program that is not there", Program{Path: "/nonexistent/rpcbench"}, spec("rawtcp", "rawtcp"),
			"child: fork/exec /nonexistent/rpcbench: ", 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			record, err := Run(t.Context(), test.spec, test.program)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n")
			require.Len(t, record.Blocks, test.blocks, "what was measured before it is kept, and no more")
			if len(test.spec.Arms) > 1 {
				test.spec.Seed = contestantFirst
				_, err = apart(t.Context(), test.spec, test.program)
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// The servers of a process that is killed end with it, on a Unix socket too.
func TestServersOfAKilledProcess(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		file := filepath.Join(t.TempDir(), "servers")
		t.Setenv(serversEnv, file)
		s := spec("leaves servers", "leaves servers")
		s.Workload = workload.Workload{Apart: true, Unix: network == "unix"}
		_, err := Run(t.Context(), s, Program{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "\n")
		told, err := os.ReadFile(file)
		require.NoError(t, err)
		servers := slices.Compact(slices.Sorted(strings.FieldsSeq(string(told))))
		require.Len(t, servers, 2, "each arm has its own")
		for _, addr := range servers {
			require.Eventually(t, func() bool {
				conn, err := net.Dial(network, addr)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			}, time.Minute, 10*time.Millisecond, "a server goes on at %s", addr)
		}
	}
}

// TestAChildEndsWithItsInput: a parent that was killed closes the pipe, whatever it could still do.
func TestAChildEndsWithItsInput(t *testing.T) {
	for why, s := range map[string]Spec{
		"before its first block": spec("rawtcp", "rawtcp"),
		"amid a block":           {Arms: []string{"rawtcp", "rawtcp"}, Slice: 200 * time.Millisecond}, // of four slices
	} {
		t.Run(why, func(t *testing.T) {
			in, parent := io.Pipe()
			ended := make(chan error, 1)
			t.Setenv(child.Variable, child.Measures)
			go func() {
				_, err := child.Serve(in, io.Discard, find, jobs())
				ended <- err
			}()
			require.NoError(t, json.NewEncoder(parent).Encode(s))
			if why == "amid a block" {
				_, err := io.WriteString(parent, "\n")
				require.NoError(t, err)
			}
			require.NoError(t, parent.Close())
			select {
			case err := <-ended:
				if why == "amid a block" {
					require.Error(t, err, "it gives the block up")
				}
			case <-time.After(45 * time.Second):
				require.Fail(t, "an orphan goes on measuring")
			}
		})
	}
}

// TestInterrupted: no child outlives the context, whatever it is doing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, spec("rawtcp", "hangs"), Program{})
	require.Error(t, err)
	require.Error(t, ctx.Err(), "it was the context that ended it")
}

func TestServeRefuses(t *testing.T) {
	const refused = "RPCBENCH_CHILD is set, which is for children of rpcbench, but " +
		"standard input has no question that this build reads: "
	for in, want := range map[string]string{
		"":    "EOF",
		"{\n": "unexpected EOF",
		// by parents of revisions that also sent the workload's name, or the name alone
		`{"arms":["rawtcp","rawtcp"],"workload":"small","slice":1000000,"seed":3}` + "\n":           "json: ",
		`{"arms":["rawtcp","rawtcp"],"workload":"unix","use":{"Unix":true},"slice":1000000}` + "\n": "json: ",
		`{"arms":["rawtcp","rawtcp"],"use":{"Unix":true},"slice":1000000}` + "\n":                   `json: unknown field "use"`,
		// by a parent whose workloads can be more
		`{"arms":["rawtcp","rawtcp"],"workload":{"HTTP3":true},"slice":1000000}` + "\n": `json: unknown field "HTTP3"`,
	} {
		var out bytes.Buffer
		t.Setenv(child.Variable, child.Measures)
		_, err := child.Serve(strings.NewReader(in), &out, find, jobs())
		require.ErrorContains(t, err, refused+want)
		require.NotContains(t, err.Error(), "\n")
		told, err := json.Marshal(err.Error())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d\n{\"failed\":{\"said\":%s}}\n", child.Protocol, told), out.String())
	}
}

// An arm in a process of its own has two fixtures, whose percentiles are averaged if both have them. Calls and planned
// starts add up.
func TestJoined(t *testing.T) {
	a := timing.Latency{Calls: 100, P50: 10, P95: 20, P99: 30, P999: 40, Sum: 1000, Planned: 110, Skipped: 7, Late: 5}
	b := timing.Latency{Calls: 300, P50: 20, P95: 40, P999: 60, Sum: 5000, Planned: 320, Skipped: 11, Late: 3}
	both := timing.Latency{Calls: 400, P50: 15, P95: 30, P999: 50, Sum: 6000, Planned: 430, Skipped: 18, Late: 5}
	require.Equal(t, both, joined([]timing.Latency{a, b}))
	require.Equal(t, both, joined([]timing.Latency{b, a}))
	require.Zero(t, joined(nil), "a build that does not tell")
}
