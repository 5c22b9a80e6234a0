package stacktest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/environ"
)

func TestMain(m *testing.M) { Main(m, append(elsewhereStacks(), apartStacks()...)...) }

// stub is the faultless fake with its Calls, but for those that connect the fixture, replaced.
func stub(call func(n int64) error) rpcbench.Stack {
	stack := fake{}.stack()
	stack.Name = "stub"
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return &stubClient{Client: c, call: call}, err
	}
	return stack
}

type stubClient struct {
	rpcbench.Client
	call func(n int64) error
	n    atomic.Int64
}

func (c *stubClient) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	if u.Name == "connect" {
		return c.Client.Prepare(u)
	}
	return func(context.Context) error { return c.call(c.n.Add(1)) }, nil
}

// BenchmarkHarness is the loop around a call that does nothing: what the harness itself costs each row.
func BenchmarkHarness(b *testing.B) {
	BenchmarkCreateUser(b, stub(func(int64) error { return nil }), rpcbench.Config{})
}

const inChild = "RPCBENCH_TEST_CHILD"

// BenchmarkBroken holds rows that must not be printed; TestBrokenStackHasNoRow runs them in a child process.
func BenchmarkBroken(b *testing.B) {
	if os.Getenv(inChild) == "" {
		b.Skip("run by TestBrokenStackHasNoRow")
	}
	const warmUp = warmRounds * corpus.Round
	hung := make(chan struct{})
	b.Cleanup(func() { close(hung) })
	inLoop := func(fault func() error) rpcbench.Stack {
		return stub(func(n int64) error {
			if n <= warmUp {
				return nil
			}
			return fault()
		})
	}
	emptyAfter := func(n int64) rpcbench.Stack {
		var served atomic.Int64
		return fake{body: func(data []byte) []byte {
			if served.Add(1) > n {
				return nil
			}
			return data
		}}.stack()
	}
	for _, c := range []struct {
		name  string
		stack rpcbench.Stack
	}{
		{"firstCall", emptyAfter(0)},
		{"warmUp", stub(func(int64) error { return errors.New("broken") })},
		{"empty", emptyAfter(1 + warmUp)},
		{"error", inLoop(func() error { return errors.New("broken") })},
		{"panic", inLoop(func() error { panic("broken") })},
	} {
		b.Run("case="+c.name, func(b *testing.B) { BenchmarkCreateUser(b, c.stack, rpcbench.Config{}) })
	}
	b.Run("case=late", func(b *testing.B) {
		stack := fake{}.stack()
		r := oneCaller(hangingAfter(stack, warmUp), rpcbench.Config{}, user(0))
		r.hang = 200 * time.Millisecond
		r.benchmark(b)
	})
	b.Run("case=dials", func(b *testing.B) {
		BenchmarkCreateUser(b, redialling(warmUp, 2), rpcbench.Config{})
	})
	b.Run("case=redials", func(b *testing.B) {
		BenchmarkCreateUser(b, redialling(warmUp, 1), rpcbench.Config{})
	})
}

// hangingAfter is a stack whose server no longer answers after n calls.
func hangingAfter(stack rpcbench.Stack, n int64) rpcbench.Stack {
	server := stack.Server
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		s, err := server(config)
		if err != nil {
			return nil, err
		}
		h := s.(tlsServer)
		inner := h.Handler
		var served atomic.Int64
		h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) > n+1 {
				<-r.Context().Done()
				return
			}
			inner.ServeHTTP(w, r)
		})
		return h, nil
	}
	return stack
}

// redialling is a stack that opens a new connection in the middle of the timed loop, so many times.
func redialling(n, times int64) rpcbench.Stack {
	stack := fake{}.stack()
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		if err != nil {
			return nil, err
		}
		return &redialClient{Client: c, http: c.(*fakeClient), after: n, times: times}, nil
	}
	return stack
}

type redialClient struct {
	rpcbench.Client
	http  *fakeClient
	after int64
	times int64
	n     atomic.Int64
}

func (c *redialClient) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	call, err := c.Client.Prepare(u)
	return func(ctx context.Context) error {
		if n := c.n.Add(1) - c.after; n%10 == 0 && n > 0 && n <= 10*c.times {
			_ = c.http.Close()
		}
		return call(ctx)
	}, err
}

// child runs this test binary again with the given flags.
func child(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^$"}, args...)...)
	cmd.Env = append(os.Environ(), inChild+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestBrokenStackHasNoRow(t *testing.T) {
	row := regexp.MustCompile(`(?m)^Benchmark\S*\s+\d+\s`)
	for name, want := range map[string]string{
		"firstCall": "rpcbench: fake: connect: rpcbench: malformed",
		"warmUp":    "rpcbench: stub: warm-up: broken",
		"empty":     "rpcbench: fake: call 0: rpcbench: malformed",
		"error":     "rpcbench: stub: call 0: broken",
		"panic":     "panic: broken",
		"late":      "rpcbench: fake: call 0: rpcbench: unavailable",
		"dials":     "rpcbench: fake: +2 connections inside the timed loop of 100 calls, against what is declared; 1 more are allowed",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := child(t, "-test.bench=^BenchmarkBroken$/^case="+name+"$", "-test.benchtime=100x")
			require.Error(t, err, out)
			require.Contains(t, out, want)
			require.NotRegexp(t, row, out)
			if name == "late" {
				require.Contains(t, out, "the call hung, so its fixture was closed")
			}
		})
	}
}

// TestReconnectIsPrinted: a connection that the machine made net/http give up costs no row, and the row says so.
func TestReconnectIsPrinted(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkBroken$/^case=redials$", "-test.benchtime=100x")
	require.NoError(t, err, out)
	rows, units := results(t, out)
	require.Len(t, rows, 1, out)
	n, ok := value(rows[0], "reconnects")
	require.True(t, ok, out)
	require.GreaterOrEqual(t, n, 1.0)
	require.True(t, units["reconnects"])
}

// results parses benchmark output as benchstat does.
func results(t *testing.T, output string) (rows []*benchfmt.Result, units map[string]bool) {
	t.Helper()
	units = map[string]bool{}
	r := benchfmt.NewReader(strings.NewReader(output), "output")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			rows = append(rows, rec.Clone())
		case *benchfmt.UnitMetadata:
			units[rec.OrigUnit] = true
		case *benchfmt.SyntaxError:
			t.Fatalf("%v in\n%s", rec, output)
		}
	}
	require.NoError(t, r.Err())
	return rows, units
}

func value(r *benchfmt.Result, unit string) (float64, bool) {
	for _, v := range r.Values {
		if v.Unit == unit || v.OrigUnit == unit {
			if v.OrigUnit == unit {
				return v.OrigValue, true
			}
			return v.Value, true
		}
	}
	return 0, false
}

func TestEveryFigureReachesTheOutput(t *testing.T) {
	for _, c := range []struct {
		reason, benchtime string
		present, absent   []string
	}{
		{"1 op carries no percentile", "1x", []string{"ns/op", "B/op", "allocs/op", "cpu-ns/op", "sent-B/op", "recv-B/op"}, []string{"p50-ns", "p95-ns", "p99-ns"}},
		{"20 ops carry a median", "20x", []string{"p50-ns"}, []string{"p95-ns", "p99-ns"}},
		{"999 ops carry p95", "999x", []string{"p50-ns", "p95-ns"}, []string{"p99-ns"}},
		{"1000 ops carry p99", "1000x", []string{"p50-ns", "p95-ns", "p99-ns"}, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := child(t, "-test.bench=^BenchmarkHarness$", "-test.benchtime="+c.benchtime)
			require.NoError(t, err, out)
			rows, units := results(t, out)
			require.Len(t, rows, 1, out)
			for _, unit := range c.present {
				_, ok := value(rows[0], unit)
				require.True(t, ok, "%s is missing in\n%s", unit, out)
			}
			for _, unit := range c.absent {
				_, ok := value(rows[0], unit)
				require.False(t, ok, "%s stands in\n%s", unit, out)
			}
			for _, v := range rows[0].Values {
				custom := !strings.Contains("sec/op B/op allocs/op", v.Unit)
				require.Equal(t, custom, units[v.OrigUnit] || units[v.Unit], "a Unit line for %q, exactly if testing doesn't know it", v.Unit)
			}
		})
	}
}

func TestHarnessAllocatesNothing(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkHarness$", "-test.benchtime=100000x")
	require.NoError(t, err, out)
	rows, _ := results(t, out)
	require.Len(t, rows, 1, out)
	allocs, ok := value(rows[0], "allocs/op")
	require.True(t, ok)
	require.Zero(t, allocs, out)
}

func TestWarmUpRunsTheMeasuredCalls(t *testing.T) {
	var calls atomic.Int64
	f := Start(t, stub(func(int64) error { calls.Add(1); return nil }), rpcbench.Config{})
	loop, round := oneCaller(f.Stack, rpcbench.Config{}, user(0)).ready(t, f)
	require.NoError(t, loop.Finish())
	require.Len(t, round, 1)
	require.Len(t, round[0], corpus.Round)
	require.EqualValues(t, warmRounds*corpus.Round, calls.Load())
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
	comment := b.String()[strings.LastIndex(b.String(), "\n#")+1:]
	for _, part := range []string{"go=go1.", "date=20", "json-engine=" + environ.JSONEngine(),
		"github.com/HdrHistogram/hdrhistogram-go@v", "github.com/go-playground/validator/v10@v", "go.uber.org/goleak@v"} {
		require.Contains(t, comment, part)
	}
}

// TestBenchstatMakesOneTable: results of two commits, with other versions and on another day, are compared by plain
// benchstat; results from another number of cores are not.
func TestBenchstatMakesOneTable(t *testing.T) {
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
	after := write("new.txt", comment.ReplaceAllString(out, "# date=2001-01-01 go=go1.99 commit=0123456789ab example.com/x@v9.9.9"))
	cores := write("cores.txt", regexp.MustCompile(`(?m)^cores: .*$`).ReplaceAllString(out, "cores: 999"))
	benchstat := func(files ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=../tools/go.mod", "benchstat"}, files...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	const compared = "vs base"
	require.Contains(t, benchstat(before, after), compared)
	require.NotContains(t, benchstat(before, cores), compared)
}
