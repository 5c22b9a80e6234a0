package stacktest

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/arms"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(withoutMain) != "" {
		os.Exit(m.Run())
	}
	if share, err := strconv.ParseFloat(os.Getenv(othersUse), 64); err == nil {
		current.others = func() func() float64 { return func() float64 { return share } }
	}
	Main(m)
}

// stub is the faultless fake with its Calls, but for those that connect the fixture, replaced.
func stub(call func(n int64) error) rpcbench.Stack {
	return named("stub", uncrossed(func(c rpcbench.Users, handle func()) rpcbench.Client {
		made := new(atomic.Int64)
		return testkit.Around(c, func(rpcbench.User, rpcbench.Call) rpcbench.Call {
			return func(context.Context) error {
				handle()
				return call(made.Add(1))
			}
		})
	}))
}

// uncrossed is the faultless fake with its client changed to one whose calls cross no connection. handle counts a call
// as the server does.
func uncrossed(change func(c rpcbench.Users, handle func()) rpcbench.Client) rpcbench.Stack {
	var newest atomic.Pointer[rpcbench.ServerConfig]
	s := clientOf(func(c rpcbench.Users) rpcbench.Client { return change(c, newest.Load().CountAndWait) })
	server := s.Server
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		newest.Store(&config)
		return server(config)
	}
	return s
}

func idle(int64) error { return nil }

// BenchmarkHarness is the loop around a call that does nothing: what the harness itself costs each row.
func BenchmarkHarness(b *testing.B) {
	Benchmark(b, stub(idle), rpcbench.Workload{})
}

// BenchmarkCallers is the same of four callers.
func BenchmarkCallers(b *testing.B) {
	Benchmark(b, stub(idle), rpcbench.Workload{Callers: 4, Conns: 1})
}

const (
	inChild     = "RPCBENCH_TEST_CHILD"
	withoutMain = "RPCBENCH_TEST_WITHOUT_MAIN" // a package that has fixtures in plain benchmarks, and no TestMain
	othersUse   = "RPCBENCH_TEST_OTHERS"       // share of the machine
)

// emptyAfter is a stack whose server sends empty replies after n right ones.
func emptyAfter(n int64) rpcbench.Stack {
	var served atomic.Int64
	return fake{body: func(data []byte) []byte {
		if served.Add(1) > n {
			return nil
		}
		return data
	}}.stack()
}

// hangingAfter is a stack whose server no longer answers after n calls.
func hangingAfter(n int64) rpcbench.Stack {
	return fake{server: func(s *http.Server) {
		inner, served := s.Handler, new(atomic.Int64)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) > n+1 {
				<-r.Context().Done()
				return
			}
			inner.ServeHTTP(w, r)
		})
	}}.stack()
}

// redialling is a stack that opens a new connection in the timed loop, so many times, and does something else first.
func redialling(warmUp, times int64, first func()) rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		made := new(atomic.Int64)
		return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				n := made.Add(1) - warmUp
				if n == 2 {
					first()
				}
				if n > 1 && n <= 1+times {
					c.(*fakeClient).http.CloseIdleConnections()
				}
				return call(ctx)
			}
		})
	})
}

// forChildren skips a benchmark whose rows a test runs in child processes.
func forChildren(b *testing.B) {
	b.Helper()
	if os.Getenv(inChild) == "" {
		b.Skip("is run by a test")
	}
}

// child runs this test binary again with the given flags.
func child(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	testkit.Alone(t)
	out, err := testkit.Again(t, inChild+"=1", append([]string{"-test.run=^$"}, args...)...).CombinedOutput()
	return string(out), err
}

// figures are those of each row of a child, by units. Each unit has a Unit line, unless package testing knows it.
func figures(t *testing.T, args ...string) (rows []map[string]float64, names []string) {
	t.Helper()
	out, err := child(t, args...)
	require.NoError(t, err, out)
	return figuresIn(t, out)
}

func figuresIn(t *testing.T, out string) (rows []map[string]float64, names []string) {
	t.Helper()
	parsed, units := testkit.Rows(t, out)
	for _, r := range parsed {
		row := map[string]float64{}
		for _, v := range r.Values {
			row[v.Unit] = v.Value
			if v.OrigUnit != "" {
				row[v.OrigUnit] = v.OrigValue
			}
			custom := !strings.Contains("sec/op B/op allocs/op", v.Unit)
			require.Equal(t, custom, units[v.OrigUnit] || units[v.Unit], "a Unit line for %q", v.Unit)
		}
		rows, names = append(rows, row), append(names, string(r.Name.Full()))
	}
	return rows, names
}

// figuresOf are those of the only row.
func figuresOf(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	rows, _ := figures(t, args...)
	require.Len(t, rows, 1)
	return rows[0]
}

// starve lets goroutines wait long until they run, as a busy machine does.
func starve() {
	var enough atomic.Bool
	var spinning sync.WaitGroup
	for range 16 * runtime.GOMAXPROCS(0) { // with 10 ms each
		spinning.Go(func() {
			for !enough.Load() {
			}
		})
	}
	before := arms.Late()
	for end := time.Now().Add(time.Minute); arms.Late() == before && time.Now().Before(end); {
		runtime.Gosched()
	}
	enough.Store(true)
	spinning.Wait()
}

// TestReconnects: a new connection costs no row, and the row has it, if the machine made net/http give up the one
// before, if goroutines waited for the machine, which a line says, or if the stack declares it.
func TestReconnects(t *testing.T) {
	for _, c := range []struct {
		name, line  string
		least, most float64
	}{
		{"redials", "", 1, 99},
		{"busy", `fake: \d+ reconnects in 100 timed calls: goroutines waited 50 ms and longer`, 6, 99},
		{"declared", "", 100, 100},
	} {
		out, err := child(t, scenarioOf(c.name, "100x")...)
		require.NoError(t, err, out)
		require.Regexp(t, c.line, out)
		rows, _ := figuresIn(t, out)
		require.Len(t, rows, 1, out)
		require.GreaterOrEqual(t, rows[0]["reconnects"], c.least, c.name)
		require.LessOrEqual(t, rows[0]["reconnects"], c.most, c.name)
	}
}

// TestRowsNeedNoTestMain: what readers of a row need precedes it, once, whether or not there is a TestMain. A row of
// several callers, whose loop package testing calls again with more ops, has the units of its own before its name.
func TestRowsNeedNoTestMain(t *testing.T) {
	for _, plain := range []string{"", "1"} {
		t.Setenv(withoutMain, plain)
		out, err := child(t, "-test.bench=^Benchmark(Harness|Callers|Fixture)$", "-test.benchtime=1000x", "-test.count=2")
		require.NoError(t, err, out)
		figuresIn(t, out) // which has a Unit line for each
		above := func(line, row string) {
			require.Equal(t, 1, strings.Count(out, "\n"+line), out)
			require.Less(t, strings.Index(out, "\n"+line), strings.Index(out, "\nBenchmark"+row), out)
		}
		require.Equal(t, 1, strings.Count("\n"+out, "\ncores: "), out)
		above("# date=", "Harness")
		above("Unit p99-ns better=lower\n", "Harness")
		above("# library=github.com/stretchr/testify@v", "Fixture")
		above("Unit req/s better=higher\n", "Callers")
		require.NotContains(t, out, "Unit round-trips/op", "no row has it")
		rows, _ := testkit.Rows(t, out)
		require.Len(t, rows, 6, out)
		for _, row := range rows {
			require.NotEmpty(t, row.GetConfig("cores"), "%s", row.Name)
		}
	}
}

// BenchmarkOtherJSON has rows of two stacks, of which json-iterator's knows no omitzero.
func BenchmarkOtherJSON(b *testing.B) {
	forChildren(b)
	type order struct {
		Left int `json:"left,omitzero"`
	}
	m := rpcbench.Method[order, order]{Name: "shop.v1.Orders/Put", Requests: []*order{{}}, Replies: []*order{{Left: 1}},
		Equal: func(want, got *order) bool { return *want == *got }}
	for _, s := range []rpcbench.Stack{httpjson.Of(m), httpjsoniter.Of(m)} {
		b.Run(s.Name, func(b *testing.B) { Benchmark(b, s, rpcbench.Workload{}) })
	}
}

// TestOtherJSONIsTold: a line beside the rows says once that their stacks send other JSON.
func TestOtherJSONIsTold(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkOtherJSON$", "-test.benchtime=20x", "-test.count=2")
	require.NoError(t, err, out)
	const want = "# rpcbench: httpjsoniter sends other JSON than httpjson: request.left is 0, and httpjson leaves it out\n"
	require.Equal(t, 1, strings.Count(out, want), out)
	rows, _ := testkit.Rows(t, out)
	require.Len(t, rows, 4, out)
}

// BenchmarkFixture is a loop of somebody's own.
func BenchmarkFixture(b *testing.B) {
	forChildren(b)
	stack := fake{}.stack()
	stack.Traits.ServerLibraries = append(stack.Traits.ServerLibraries, "github.com/stretchr/testify")
	Start(b, stack, rpcbench.Config{})
	for b.Loop() {
	}
}

func TestEveryFigureReachesTheOutput(t *testing.T) {
	percentiles := []string{"p50-ns", "p95-ns", "p99-ns"}
	for benchtime, n := range map[string]int{"1x": 0, "20x": 1, "999x": 2, "1000x": 3} { // percentiles of so many ops
		t.Run(benchtime, func(t *testing.T) {
			rows, names := figures(t, "-test.bench=^Benchmark(Harness|Callers)$", "-test.benchtime="+benchtime)
			require.Len(t, rows, 2)
			for i, row := range rows {
				units := []string{"ns/op", "B/op", "allocs/op", "cpu-ns/op", "sent-B/op", "recv-B/op"}
				if strings.HasPrefix(names[i], "Callers") {
					units = append(units, "req/s")
				}
				for _, unit := range append(units, percentiles[:n]...) {
					require.Contains(t, row, unit, names[i])
				}
				for _, unit := range percentiles[n:] {
					require.NotContains(t, row, unit, names[i])
				}
			}
		})
	}
}

func TestHarnessAllocatesNothing(t *testing.T) {
	rows, names := figures(t, "-test.bench=^Benchmark(Harness|Callers)$", "-test.benchtime=100000x")
	require.Len(t, rows, 2)
	for i, row := range rows {
		require.Contains(t, row, "allocs/op", names[i])
		require.Zero(t, row["allocs/op"], names[i])
	}
}

func TestHeader(t *testing.T) {
	var b bytes.Buffer
	printHeader(&b)
	reader := benchfmt.NewReader(strings.NewReader(b.String()+"BenchmarkX 1 1 ns/op\n"), "header")
	var keys []string
	for reader.Scan() {
		if r, ok := reader.Result().(*benchfmt.Result); ok {
			for _, c := range r.Config {
				if c.File {
					keys = append(keys, c.Key)
				}
			}
		}
	}
	require.Subset(t, []string{"cores", "goexperiment", "build"}, keys, "only what forbids comparing may be a key")
	require.Contains(t, keys, "cores")
	comments := regexp.MustCompile(`(?m)^#.*$`).FindAllString(b.String(), -1)
	for _, comment := range comments {
		require.Regexp(t, `^# [\w-]+=\S+$`, comment)
	}
	for _, part := range []string{"# go=" + runtime.Version(), "# json-engine=" + environ.JSONEngine()} {
		require.Contains(t, comments, part)
	}
}

// Rows of a busy hour end in a warning.
func TestBusyMachine(t *testing.T) {
	for _, c := range []struct{ why, share, bench, want string }{
		{"busy", "0.25", "^BenchmarkHarness$", `(?m)^# rpcbench: warning: other programs used 25% of the machine meanwhile$`},
		{"as much as a result allows", "0.1", "^BenchmarkHarness$", ""},
		{"without rows", "0.25", "", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Setenv(othersUse, c.share)
			out, err := child(t, "-test.benchtime=20x", "-test.bench="+c.bench)
			require.NoError(t, err, out)
			require.Equal(t, c.want != "", strings.Contains(out, "other programs"), out)
			require.Regexp(t, c.want, out)
		})
	}
}

// TestBenchstatMakesOneTable: results of two commits, with other versions and on another day, are compared by plain
// benchstat; results from another number of cores are not.
func TestBenchstatMakesOneTable(t *testing.T) {
	t.Setenv(withoutMain, "1")
	out, err := child(t, "-test.bench=^BenchmarkHarness$", "-test.benchtime=20x", "-test.count=2")
	require.NoError(t, err, out)
	comment := regexp.MustCompile(`(?m)^# .*$`)
	require.Regexp(t, comment, out)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	before := write("old.txt", out)
	const another = "# date=2001-01-01 go=go1.99 commit=0123456789ab example.com/x@v9.9.9"
	after := write("new.txt", comment.ReplaceAllString(out, another))
	cores := write("cores.txt", regexp.MustCompile(`(?m)^cores: .*$`).ReplaceAllString(out, "cores: 999"))
	benchstat := func(files ...string) string {
		args := append([]string{"tool", "-modfile=../internal/tools/go.mod", "benchstat"}, files...)
		cmd := exec.CommandContext(t.Context(), "go", args...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	const compared = "vs base"
	require.Contains(t, benchstat(before, after), compared)
	require.NotContains(t, benchstat(before, cores), compared)
}
