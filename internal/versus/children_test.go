package versus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/rawtcp"
)

// TestMain is also the process that a Program starts.
func TestMain(m *testing.M) {
	if os.Getenv(Variable) == "" {
		goleak.VerifyTestMain(m)
	}
	if err := Serve(context.Background(), os.Stdin, os.Stdout, find); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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
		return inBlock(3, func() error { p, _ := os.FindProcess(os.Getpid()); _ = p.Kill(); select {} }), nil
	case "hangs":
		return inBlock(1, func() error { select {} }), nil
	}
	return rpcbench.Stack{}, errors.New("no stack is called " + name)
}

// inBlock is rawtcp, whose calls do what is said from the n-th block on: each block has a fixture of its own.
func inBlock(n int, do func() error) rpcbench.Stack {
	s := rawtcp.New()
	dial, fixtures := s.Dial, 0
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		fixtures++
		c, err := dial(config)
		if fixtures < n {
			return c, err
		}
		return &client{Client: c, call: func(int64, rpcbench.Call) error { return do() }}, err
	}
	return s
}

func self(t *testing.T) Program {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return Program{Path: path}
}

func spec(arms ...string) Spec {
	return Spec{Arms: arms, Slice: time.Millisecond, Blocks: 6, Seed: 3}
}

// apart runs each arm of a spec in a process of its own.
func apart(ctx context.Context, s Spec, p Program) (timing.Record, error) {
	return Run(ctx, s, slices.Repeat([]Program{p}, len(s.Arms))...)
}

func TestRun(t *testing.T) {
	record, err := Run(t.Context(), spec("httpjson", "httpjson", "rawtcp"), self(t))
	require.NoError(t, err)
	require.Equal(t, []string{"httpjson", "httpjson again", "rawtcp"}, record.Arms)
	require.Len(t, record.Blocks, 6)
	require.Equal(t, uint64(3), record.Seed)
	require.Equal(t, time.Millisecond, record.Length)
	_, err = record.Ratio(2, 0, 0.95)
	require.NoError(t, err)
}

func TestRunSetsGOMAXPROCS(t *testing.T) {
	for _, procs := range []int{1, 3} {
		s := spec("rawtcp", fmt.Sprintf("procs%d", procs))
		s.Procs = procs
		_, err := Run(t.Context(), s, self(t))
		require.NoError(t, err)
	}
	t.Setenv("GOMAXPROCS", "3")
	_, err := Run(t.Context(), spec("rawtcp", fmt.Sprintf("procs%d", runtime.NumCPU())), self(t))
	require.NoError(t, err, "0 is the default, whatever this process was told")
}

func TestApart(t *testing.T) {
	record, err := apart(t.Context(), spec("httpjson", "rawtcp"), self(t))
	require.NoError(t, err)
	require.Equal(t, []string{"httpjson", "rawtcp"}, record.Arms)
	require.Len(t, record.Blocks, 6)
	orders := map[int]bool{}
	for _, block := range record.Blocks {
		require.Len(t, block, 2)
		require.Equal(t, 1, block[0].Turn+block[1].Turn)
		orders[block[0].Turn] = true
		for _, s := range block {
			require.GreaterOrEqual(t, s.Wall, 2*time.Millisecond, "two slices")
			require.Positive(t, s.Ops)
		}
	}
	require.Len(t, orders, 2, "in random order")
	_, err = record.Ratio(1, 0, 0.95)
	require.NoError(t, err)
}

// Both slices of an arm in a process of its own count.
func TestSlicesOfAnArmApart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	script := filepath.Join(t.TempDir(), "child")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nread spec\nwhile read line; do echo '"+
		`{"blocks":[[[1,2,30,400,5,6],[0,1,10,100,1,1]]]}`+"'; done\n"), 0o700))
	record, err := apart(t.Context(), spec("a", "b"), Program{Path: script})
	require.NoError(t, err)
	require.Len(t, record.Blocks, 6)
	for _, s := range slices.Concat(record.Blocks...) {
		require.Equal(t, timing.Slice{Turn: s.Turn, Ops: 3, Wall: 40, CPU: 500, GC: 6, Lead: 7}, s)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		why     string
		program Program
		spec    Spec
		want    string
		blocks  int // that were measured before
	}{
		{"an unknown stack", self(t), spec("rawtcp", "httpjsno"), "no stack is called httpjsno", 0},
		{"nothing to compare with", self(t), spec("rawtcp"), "timing: got 1 of the two or more arms to compare", 0},
		{"a process that dies", self(t), spec("rawtcp", "dies"), "exit status 3", 0},
		{"a process that ends", self(t), spec("rawtcp", "leaves"), "rpcbench: measure: a child ended before its time", 0},
		{"a program that prints", self(t), spec("rawtcp", "talks"), "rpcbench: measure: a child printed something else than a block", 0},
		{"a call that fails", self(t), spec("rawtcp", "fails"), "the server died", 2},
		{"a process that is killed", self(t), spec("rawtcp", "killed"), "", 2},
		{"a program that is not there", Program{Path: "/nonexistent/rpcbench"}, spec("rawtcp", "rawtcp"), "/nonexistent/rpcbench: ", 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			record, err := Run(t.Context(), test.spec, test.program)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n")
			require.Len(t, record.Blocks, test.blocks, "what was measured before it is kept, and no more")
			if len(test.spec.Arms) > 1 {
				_, err = apart(t.Context(), test.spec, test.program)
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// TestAChildEndsWithItsInput: a parent that was killed closes the pipe, whatever it could still do.
func TestAChildEndsWithItsInput(t *testing.T) {
	for why, s := range map[string]Spec{
		"before its first block": spec("rawtcp", "rawtcp"),
		"amid a block":           {Arms: []string{"rawtcp", "rawtcp"}, Slice: time.Second}, // of four slices
	} {
		t.Run(why, func(t *testing.T) {
			c, err := self(t).start(t.Context(), s)
			require.NoError(t, err)
			if why == "amid a block" {
				_, err = io.WriteString(c.in, "\n")
				require.NoError(t, err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.end() }()
			select {
			case err := <-ended:
				if why == "amid a block" {
					require.Error(t, err, "it gives the block up")
				}
			case <-time.After(45 * time.Second):
				_ = c.Process.Kill()
				<-ended
				require.Fail(t, "an orphan goes on measuring")
			}
		})
	}
}

// TestInterruptedRun: no child outlives the context, whatever it is doing.
func TestInterruptedRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Run(ctx, spec("rawtcp", "hangs"), self(t))
	require.Error(t, err)
	require.Error(t, ctx.Err(), "it was the context that ended it")
}

func TestServeRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":    "rpcbench: measure: RPCBENCH_MEASURE is set, which is for children of rpcbench, but standard input has no specification: unexpected end of JSON input",
		"{\n": "rpcbench: measure: RPCBENCH_MEASURE is set, which is for children of rpcbench, but standard input has no specification: unexpected end of JSON input",
	} {
		var out bytes.Buffer
		require.EqualError(t, Serve(t.Context(), strings.NewReader(in), &out, find), want)
		require.Empty(t, out.String())
	}
}

// TestIntervalOfProcessesInARow: where neighbours in time share what the machine did, Student's t interval is too narrow, and
// the widest of the batches' holds the truth more often. Where nothing is shared it costs little width.
func TestIntervalOfProcessesInARow(t *testing.T) {
	const runs, processes, level = 2000, 16, 0.95
	for _, c := range []struct {
		why             string
		rho             float64 // autocorrelation of neighbours' log-ratios
		own, least      float64 // share of Student's t intervals that hold the truth, at most, and of Interval's, at least
		widest, noWider float64
	}{
		{"nothing is shared", 0, 0.96, 0.96, 1.6, 1.1},
		{"as in the bad hour of 2026-11-21", 0.4, 0.84, 0.92, 2, 1.1},
	} {
		random := rand.New(rand.NewPCG(1, 0))
		var own, held int
		var wider float64
		for range runs {
			ratios := make([]float64, processes)
			x := random.NormFloat64()
			for i := range ratios {
				ratios[i] = math.Exp(0.01 * x)
				x = c.rho*x + math.Sqrt(1-c.rho*c.rho)*random.NormFloat64()
			}
			student, widest := independent(ratios, level), Interval(ratios, level)
			require.InDelta(t, student.Median, widest.Median, 1e-12)
			require.LessOrEqual(t, widest.Lo, student.Lo+1e-12)
			require.GreaterOrEqual(t, widest.Hi, student.Hi-1e-12)
			holds := func(lo, hi float64) int {
				if lo <= 1 && 1 <= hi {
					return 1
				}
				return 0
			}
			own, held = own+holds(student.Lo, student.Hi), held+holds(widest.Lo, widest.Hi)
			wider += math.Log(widest.Hi/widest.Lo) / math.Log(student.Hi/student.Lo) / runs
		}
		t.Logf("%s: Student's t %.3f, batches %.3f, %.2f times as wide", c.why, float64(own)/runs, float64(held)/runs, wider)
		require.LessOrEqual(t, float64(own)/runs, c.own, c.why)
		require.GreaterOrEqual(t, float64(held)/runs, c.least, c.why)
		require.InDelta(t, (c.widest+c.noWider)/2, wider, (c.widest-c.noWider)/2, c.why)
	}
}

// independent is Student's t interval, as ratios.
func independent(ratios []float64, level float64) timing.Interval {
	var logs []float64
	for _, r := range ratios {
		logs = append(logs, math.Log(r))
	}
	mean, half := student(logs, level)
	return timing.Interval{Median: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half)}
}

// TestIntervalOfTheSource: a link is one sample. Where links differ, only the interval over layouts holds the source's ratio.
func TestIntervalOfTheSource(t *testing.T) {
	const runs, links, each = 500, 8, 2
	for _, c := range []struct {
		why             string
		between, within float64
		one, ofAll      float64 // share of intervals that hold the truth: without the layouts at most, with them at least
	}{
		{"links differ as measured on 2026-11-22", 0.0045, 0.0028, 0.85, 0.93},
		{"links are alike", 0, 0.0028, 1, 0.93},
	} {
		random := rand.New(rand.NewPCG(2, 0))
		var held, heldByOne int
		var between, within float64
		for range runs {
			var records, ofOne []timing.Record
			for layout := range links {
				own := c.between * random.NormFloat64()
				for range each {
					records = append(records, paired(math.Exp(own+c.within*random.NormFloat64()), layout+1))
				}
			}
			own := c.between * random.NormFloat64()
			for range links * each {
				ofOne = append(ofOne, paired(math.Exp(own+c.within*random.NormFloat64()), 1))
			}
			f, one := Read(records, 1, 0.95), Read(ofOne, 1, 0.95)
			require.Equal(t, links, f.Ratio.Blocks, "layouts")
			require.Equal(t, links*each, one.Ratio.Blocks, "processes")
			require.Zero(t, one.Between)
			between, within = between+f.Between*f.Between/runs, within+f.Within*f.Within/runs
			if f.Ratio.Lo <= 1 && 1 <= f.Ratio.Hi {
				held++
			}
			if one.Ratio.Lo <= 1 && 1 <= one.Ratio.Hi {
				heldByOne++
			}
		}
		t.Logf("%s: held by layouts %d, by one build %d of %d", c.why, held, heldByOne, runs)
		require.GreaterOrEqual(t, float64(held)/runs, c.ofAll, c.why)
		require.LessOrEqual(t, float64(heldByOne)/runs, c.one, c.why)
		require.InDelta(t, c.within, math.Sqrt(within), 0.0003, c.why)
		require.InDelta(t, c.between, math.Sqrt(between), 0.0012, c.why)
	}
}

// paired is a record of one block in which the second arm takes ratio times as long.
func paired(ratio float64, layout int) timing.Record {
	block := []timing.Slice{{Ops: 1, Wall: 1e9}, {Ops: 1, Wall: time.Duration(1e9 * ratio)}}
	return timing.Record{Arms: []string{"a", "b"}, Blocks: [][]timing.Slice{block, block}, Layout: layout}
}

// TestUnequalLayouts: an interrupted run leaves layouts with more processes and with fewer. Each layout counts once.
func TestUnequalLayouts(t *testing.T) {
	f := Read([]timing.Record{paired(1, 1), paired(1, 1), paired(1, 1), paired(1.1, 2), paired(1.21, 2), paired(1, 3)}, 1, 0.95)
	require.InDelta(t, 1.1/math.Pow(1.1, 0.5), f.Ratio.Median, 1e-9)
	require.Equal(t, 3, f.Ratio.Blocks)
	require.InDelta(t, math.Log(1.1)/math.Sqrt(2)/math.Sqrt(3), f.Within, 1e-9, "one pair differs, of three spare processes")
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		why  string
		ns   []float64
		want float64
	}{
		{"no process", nil, 0},
		{"one", []float64{30}, 0},
		{"eight, of which none is left out", []float64{30, 31, 30, 32, 30, 33, 30, 30}, 0.1},
		{"sixteen, without the extremes", []float64{20, 30, 30, 30, 30, 30, 30, 36, 30, 30, 30, 30, 30, 30, 30, 90}, 0.2},
	} {
		require.InDelta(t, c.want, moved(c.ns), 1e-9, c.why)
	}
}

func TestInterval(t *testing.T) {
	// Gosset's own data, Biometrika 6 (1908): the ten differences of hours of sleep, mean 1.58, of which R's t.test gives
	// the 95 % interval 0.7001142 to 2.4598858.
	differences := []float64{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}
	ratios := make([]float64, len(differences))
	for i, d := range differences {
		ratios[i] = math.Exp(d)
	}
	i := independent(ratios, 0.95)
	require.InDelta(t, 1.58, math.Log(i.Median), 1e-9)
	require.InDelta(t, 0.7001142, math.Log(i.Lo), 1e-6)
	require.InDelta(t, 2.4598858, math.Log(i.Hi), 1e-6)

	one := Interval([]float64{1.5}, 0.95)
	require.Equal(t, 1.5, one.Median)
	require.Zero(t, one.Lo, "one process says nothing of the next")
	require.True(t, math.IsInf(one.Hi, 1))
}
