package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

func knownStacks() []rpcbench.Stack {
	base, other := rawtcp.New(), rawtcp.New()
	base.Name, other.Name = "base", "other"
	return []rpcbench.Stack{base, other}
}

// knownProgram is a program of others, whose stacks are the known ones.
func knownProgram() program {
	if os.Getenv(ofMethod) != "" {
		return programOf(nil, methodStacks())
	}
	return programOf(nil, knownStacks())
}

// knownNs is what a call takes in the i-th process of a comparison: of the base, of its copy and of the contestant. No
// two workloads are alike.
func knownNs(w workload.Workload, i int) [3]float64 {
	base, ratio, alternates := 200e3*(1+0.01*float64(i)), 2.0, []float64{1, -1}[i%2]
	if w.Bytes() > 0 {
		base, ratio = 4*base, 0.25
	}
	if w.Procs == 0 {
		ratio = 1.5
	}
	if w.Callers > 0 {
		ratio = float64(w.Callers) / 4
	}
	return [3]float64{base, base * 1.001, base * ratio * math.Exp(0.01*alternates)}
}

// knownFacts are what a call allocates if the server has a process of its own: the client's allocations and bytes, and
// the server's.
var knownFacts = map[string][4]float64{"base": {11, 1200, 33, 3400}, "other": {15, 1600, 37, 3800}}

// knownCounts are what a child counts: nobody has called anything. A payload that is none is refused as ever.
func knownCounts(stack string, w workload.Workload) (f workload.Facts, err error) {
	switch found, _ := knownProgram().Find(stack); {
	case w.Payload == "none":
		return w.CountCalls(context.Background(), found[0], 1)
	case w.Headers:
		return f, errNoHeaders
	case w.Structured() && stack == "other":
		return f, errNoEcho
	}
	f = workload.Facts{Calls: 1000, Sent: 41 + float64(w.Bytes()), Received: 53, Writes: 1, Reads: 1, Allocs: 20,
		AllocBytes: 2000, Connections: int64(max(1, w.Conns)), Handled: 1}
	if known := knownFacts[stack]; w.Apart {
		f.Allocs, f.AllocBytes, f.ServerAllocs, f.ServerAllocBytes = known[0], known[1], known[2], known[3]
	}
	return f, nil
}

var (
	errNoHeaders = fmt.Errorf("base: dial: the protocol has no headers: %w", errors.ErrUnsupported)
	errNoEcho    = fmt.Errorf("other: echo: %w", errors.ErrUnsupported)
)

// question is what a child is asked, whatever its job.
type question struct {
	versus.Spec
	Stack string `json:"stack"` // that is counted
}

// knownAnswer is what a child answers. What real children do of their question is for the tests of
// internal/compare/versus. The largest payloads fail, the third process of new connections does, and that of streams is
// killed once. The stacks have no headers, and of messages the base alone has
// echo.
func knownAnswer(before []testkit.Question[question], q testkit.Question[question], round int) (any, error) {
	spec := q.Spec.Spec
	switch differs := os.Getenv(ofMethod) == allDiffer; {
	case q.Does == child.Profiles:
		return knownExplained(spec.Arms, int64(round)), nil
	case q.Does == child.Counts && differs:
		return countsOf(spec.Workload, q.Spec.Stack), nil
	case q.Does == child.Counts:
		return knownCounts(q.Spec.Stack, spec.Workload)
	case differs:
		return differing(before, spec, round), nil
	}
	i, took, halved := 0, time.Duration(0), false
	for _, q := range before {
		halved = halved || len(q.Spec.Arms) == 3 && q.Spec.Workload.Rate == 2*spec.Workload.Rate
		if q.Spec.Workload == spec.Workload {
			i++
		}
	}
	switch w := spec.Workload; {
	case w.Stream && i == 2: // which is measured again, by another process
		self, err := os.FindProcess(os.Getpid())
		return nil, cmp.Or(err, self.Kill())
	case w.NewConn && i >= 2:
		return nil, errors.New("the server is gone")
	case w.Payload == "100kB":
		return nil, errors.New("too large")
	case w.Headers:
		return nil, errNoHeaders
	case w.Structured():
		return nil, errNoEcho
	}
	r, known := timing.Record{Arms: spec.Arms, Blocks: make([][]timing.Slice, 1)}, knownNs(spec.Workload, i)
	for turn, ns := range known[:len(spec.Arms)] {
		took = 100 * time.Duration(ns)
		r.Blocks[0] = append(r.Blocks[0], timing.Slice{Turn: turn, Ops: 100, Wall: took, CPU: took, Busy: took,
			Idle: took}) // others used nothing
		r.Latencies = append(r.Latencies, timing.Latency{Calls: 100 * int64(round), P50: took / 200, P95: took / 100,
			P99: took / 50, Sum: took * time.Duration(round*underWay(spec.Workload))})
		if w := spec.Workload; w.Rate > 0 {
			r.Latencies[turn].Planned = r.Latencies[turn].Calls
			if w.Callers == 9 && len(spec.Arms) == 3 && !halved { // who complete half of the calls, until half are planned
				r.Latencies[turn].Planned *= 2
			}
		}
	}
	return r, nil
}

// underWay is how many calls of a workload a known process has under way: of seven callers with a connection each, too
// few.
func underWay(w workload.Workload) int {
	if w.Conns == 7 {
		return 1
	}
	return w.AtOnce()
}

// outside is the command as a process of its own, with the known stacks. Of its children, the first alone answers.
func outside(t *testing.T, args ...string) (cmd *exec.Cmd, children string) {
	t.Helper()
	testkit.Alone(t)
	cmd, children = testkit.Again(t, asMain+"=1", args...), testkit.Children(t, 1)
	cmd.Env = append(cmd.Env, testkit.Variable+"="+children)
	return cmd, children
}

// TestRunOfKnownFigures: what run measures, and how its answers are ordered. Where each figure comes out is for
// TestEachFigureIsInItsPlace.
func TestRunOfKnownFigures(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	children, all := testkit.Children(t, 0), environ.Procs()
	t.Setenv(testkit.Variable, children)
	var stdout bytes.Buffer
	require.NoError(t, knownProgram().run(t.Context(), []string{"run", "-workloads",
		"small,bytes-10kB,small-apart", "-seed", "5", "-out", out, "other"}, &stdout, io.Discard))
	said, log := stdout.String(), questions(testkit.Asked[question](children))
	for _, line := range []string{"1 Name=small Procs=1", "1 Name=bytes-10kB Payload=10kB Procs=1",
		fmt.Sprint(all, " Name=small-apart Apart=true")} {
		require.Contains(t, log, "6 time 25ms base,base,other GOMAXPROCS="+line+"\n")
	}
	require.Equal(t, 3+6, strings.Count(log, "\n"), "and nothing else but counts")
	seeds := map[uint64]int{} // each of the six processes that decide has its own, at each workload the same
	for _, q := range testkit.Asked[question](children) {
		if len(q.Spec.Arms) == 3 {
			seeds[q.Spec.Seed]++
		}
	}
	require.Equal(t, map[uint64]int{5: 3, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3}, seeds, "seeds of orders and plans")

	s, err := report.Read(out)
	require.NoError(t, err)
	require.Equal(t, "base", s.Base)
	require.EqualValues(t, 5, s.Plan.Seed, "the seed that was given")
	require.Contains(t, s.Raw, "\n# base=base seed=5 processes=8 layouts=0 ", "what bench.txt says of the run")
	require.Regexp(t, `(?s)\n  a small call, one core .*\n  10 kB of bytes .*\n  one small call at a time`, said,
		"in the order of the plan")
	require.FileExists(t, filepath.Join(out, "report.html"))
	requireCounted(t, read(t, filepath.Join(out, "report.md")), read(t, filepath.Join(out, "summary.json")))
	require.Len(t, s.Answers, 3)
	for i, name := range []string{"small", "bytes-10kB", "small-apart"} {
		a := s.Answers[i]
		require.Equal(t, name, a.Workload)
		require.Equal(t, "other", a.Stack)
		require.Equal(t, report.ByTime, a.Leads, "one caller waits")
		require.Equal(t, []int{1, 1, all}[i], a.GOMAXPROCS)
		require.InEpsilon(t, []float64{2, 0.25, 1.5}[i]/math.Sqrt(1.001), a.Time.Ratio, 1e-5, "to the base and to its copy")
	}
}

// requireCounted looks knownFacts up by their names, on the page and in the summary.
func requireCounted(t *testing.T, page, summary string) {
	t.Helper()
	_, table, _ := strings.Cut(page, "## On the wire, and in memory")
	table, _, _ = strings.Cut(table, "\n## ")
	var columns []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if columns == nil && len(cells) > 1 {
			columns = cells
		}
		if !strings.HasPrefix(line, "| one small call at a time | ") {
			continue
		}
		known := knownFacts[cells[1]]
		for name, want := range map[string]float64{
			"allocations": known[0] + known[2], "server's allocations": known[2],
			"allocated, B": known[1] + known[3], "allocated by the server, B": known[3],
		} {
			require.Equal(t, fmt.Sprint(want), cells[slices.Index(columns, name)], "%s of %s", name, cells[1])
		}
	}
	for stack, known := range knownFacts {
		require.Contains(t, table, "| one small call at a time | "+stack+" | ")
		require.Regexp(t, fmt.Sprintf(`"allocs": %v,\s+"alloc_bytes": %v,\s+"connections": 1,\s+"server_allocs": %v,\s+`+
			`"server_alloc_bytes": %v[,\s]`, known[0], known[1], known[2], known[3]), summary, stack)
	}
}

// TestOrdinaryLoad: the rate of an ordinary load is looked for with the base alone, with the GOMAXPROCS that is then
// measured, and what was found is measured and told. A call of the base takes 200 µs of CPU, and a quarter of each core
// is free for it.
func TestOrdinaryLoad(t *testing.T) {
	out, children := filepath.Join(t.TempDir(), "out"), testkit.Children(t, 0)
	t.Setenv(testkit.Variable, children)
	procs := map[string]int{"small-load": environ.Procs(), "small-load-one-core": 1}
	var stdout bytes.Buffer
	require.NoError(t, knownProgram().run(t.Context(), []string{"run", "-workloads", "small-load,small-load-one-core",
		"-out", out, "other"}, &stdout, io.Discard))
	s, err := report.Read(out)
	require.NoError(t, err)
	rates, asked := map[string]float64{}, map[string]int{}
	for _, a := range s.Answers {
		rates[a.Workload] = a.Rate
		require.InDelta(t, 0, math.Log(a.Rate/(1250*environ.Cores())), math.Log(1.6),
			"%s: %v is 1, 2 or 5 of a decimal", a.Workload, a.Rate)
		require.Contains(t, stdout.String(), ", "+thousands(a.Rate)+"/s")
	}
	require.Len(t, rates, len(procs))
	for _, q := range testkit.Asked[question](children) {
		arms, name := strings.Join(q.Spec.Arms, ",")+q.Spec.Stack, q.Spec.Workload.Name
		asked[name+" "+arms]++
		if arms == "base,base" || arms == "base,base,other" {
			require.Equal(t, procs[name], q.GOMAXPROCS, "GOMAXPROCS of a process of %s that measures %s", arms, name)
		}
		if len(q.Spec.Arms) == 3 {
			require.Equal(t, rates[name], q.Spec.Workload.Rate, "the rate that is measured, of %s", name)
		}
	}
	want := map[string]int{}
	for name := range procs {
		looks := 2
		if rates[name] == 2000 { // at which the first look is
			looks = 1
		}
		for arms, n := range map[string]int{"base,base": looks, "base,base,other": 6, "base": 1, "other": 1} {
			want[name+" "+arms] = n
		}
	}
	require.Equal(t, want, asked, "processes by what they were asked")
}

// firstAnswer: what somebody sees who types rpcbench run fits the terminal, whatever its width. It says where the
// report is, and no figure is broken. Colours are for who has not turned them off.
func firstAnswer(t *testing.T, out string) {
	t.Setenv("TERM", "xterm")
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	s, err := report.Read(out)
	require.NoError(t, err)
	for _, columns := range []int{100, 80, 60, 40} {
		t.Setenv("NO_COLOR", map[bool]string{true: "1"}[columns == 80])
		side, shown := testkit.Terminal(t, columns)
		told := make(chan string)
		go func() {
			text, _ := io.ReadAll(shown) // the error is that of a terminal that nobody has open any more
			told <- strings.ReplaceAll(string(text), "\r\n", "\n")
		}()
		require.NoError(t, s.Text(side, shell.Width(side), shell.Colours(side), false))
		require.NoError(t, side.Close())
		text := <-told
		require.Equal(t, columns != 80, colour.MatchString(text), columns)
		text = colour.ReplaceAllString(text, "")
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if columns == 100 {
			require.LessOrEqual(t, len(lines), 25)
		}
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), columns, text)
		}
		require.Contains(t, text, "\nCPU per call, client and server", columns)
		require.Contains(t, text, "\nMedian latency\n", columns)
		require.Len(t, regexp.MustCompile(`\d\.\d\d\s+\((\d\.\d\d–\d\.\d\d|–)\)`).FindAllString(text, -1), 5, text)
	}
}

// garbage is what ops of tests leave: a slice goes on until it is collected.
var garbage []byte

// methodStacks are the known stacks, of a method of one's own. Its requests and replies differ in size, from each other
// and from sample to sample; gzip shrinks the replies alone. The codec of other takes 0.5 ms longer to decode a reply.
func methodStacks() (all []rpcbench.Stack) {
	request := func(bytes int) *rpcbench.User { return &rpcbench.User{Avatar: rpcbench.SampleUser(0, bytes).Avatar} }
	reply := func(letters int) *rpcbench.User { return &rpcbench.User{Name: strings.Repeat("a", letters)} }
	for _, name := range []string{"base", "other"} {
		s := httpjson.Of(rpcbench.Method[rpcbench.User, rpcbench.User]{Name: "test.v1.Users/Get",
			Requests: []*rpcbench.User{request(900), request(2100)}, Replies: []*rpcbench.User{reply(10), reply(140)},
			Key:   func(u *rpcbench.User) uint64 { return uint64(len(u.Avatar)) },
			Equal: func(want, got *rpcbench.User) bool { return want.Name == got.Name }})
		if name == "other" {
			s = testkit.WithMessages(s, func(_, replies *rpcbench.Messages) {
				decode := replies.Decode
				replies.Decode = func(data []byte) error {
					garbage = make([]byte, 1<<18)
					for began := time.Now(); time.Since(began) < 500*time.Microsecond; {
					}
					return decode(data)
				}
			})
		}
		s.Name = name
		all = append(all, s)
	}
	return all
}

// TestEndedFromOutside: a run keeps what was measured, however it ends, and leaves no process.
func TestEndedFromOutside(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	for signal, status := range map[syscall.Signal]int{syscall.SIGINT: 1, syscall.SIGTERM: 1, syscall.SIGKILL: -1} {
		t.Run(signal.String(), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			cmd, _ := outside(t, "run", "-max", "1.05", "-workloads", "small", "-out", out, "other")
			bin, children := t.TempDir(), testkit.Children(t, 2) // the first is asked which protocol it speaks
			require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(linker), 0o700))
			cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+bin, testkit.Variable+"="+children)
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			begin(t, cmd, syscall.SIGINT, false)
			require.Eventually(t, func() bool {
				text, _ := os.ReadFile(filepath.Join(out, "summary.json"))
				return strings.Contains(string(text), "\"counted\": 1\n")
			}, time.Minute, 20*time.Millisecond, "the first process")
			require.NoError(t, cmd.Process.Signal(signal))
			require.Equal(t, status, finished(t, cmd))
			for _, q := range testkit.Asked[question](children) {
				p, err := os.FindProcess(q.PID)
				require.NoError(t, err)
				ended := func() bool { return p.Signal(syscall.Signal(0)) != nil }
				require.Eventually(t, ended, 30*time.Second, 10*time.Millisecond, "process %d goes on", q.PID)
			}
			if status < 0 {
				stdout, _, err := typed(t, "report", out)
				require.NoError(t, err, stdout)
			}
			for _, page := range []string{"report.html", "report.md"} {
				require.Contains(t, read(t, filepath.Join(out, page)), "1 of 8 planned processes measured each workload", page)
			}
			s, err := report.Read(out)
			require.NoError(t, err)
			a := s.Answers[0]
			require.Equal(t, verdict.Counts{Planned: 8, Measured: 1, Counted: 1}, a.Processes)
			require.InEpsilon(t, 200e3, a.Time.BaseNs, 1e-6)
			require.Equal(t, verdict.Undecided, a.Time.Verdict)
			if status > 0 {
				require.Contains(t, s.Warnings, "interrupted")
				require.Contains(t, stdout.String(), "1 of 8 processes count")
				require.NotContains(t, stdout.String(), "gate: ", "an interrupted run is not judged")
			}
			require.Contains(t, s.Raw, "/stack=other")
		})
	}
}

// TestBrokenPipe: a pipe that nobody reads ends a run, and all else is done by then. It does so whether the signal of
// such a pipe is ignored, as some parents leave it, or not.
func TestBrokenPipe(t *testing.T) {
	testkit.Alone(t)
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	for _, test := range []struct {
		stream            string
		ignored, measured bool
	}{{"output", false, true}, {"output", true, true}, {"progress", false, false}, {"progress", true, false}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			nobody, pipe, err := os.Pipe()
			require.NoError(t, err)
			require.NoError(t, nobody.Close())
			defer pipe.Close()
			out, temporary := filepath.Join(t.TempDir(), "out"), t.TempDir()
			cmd := testkit.Again(t, asMain+"=1", "run", "-workloads", "small", "-out", out, "other")
			cmd.Env = append(cmd.Env, testkit.Variable+"="+testkit.Children(t, 0), "TMPDIR="+temporary)
			if cmd.Stdout = pipe; test.stream == "progress" {
				cmd.Stdout, cmd.Stderr = nil, pipe
			}
			begin(t, cmd, syscall.SIGPIPE, test.ignored)
			require.NotZero(t, finished(t, cmd))
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			require.Empty(t, left)
			if !test.measured {
				require.NoDirExists(t, out, "its first line ended it")
				return
			}
			s, err := report.Read(out)
			require.NoError(t, err)
			require.Equal(t, verdict.Fewest, s.Answers[0].Processes.Counted)
			require.FileExists(t, filepath.Join(out, "report.html"))
		})
	}
}

// begin starts a program with a signal ignored or not, whatever this process has inherited.
func begin(t *testing.T, cmd *exec.Cmd, s os.Signal, ignored bool) {
	t.Helper()
	defer signal.Reset(s)
	if ignored {
		signal.Ignore(s)
	} else {
		caught := make(chan os.Signal, 1) // what is caught is the default in a new program
		signal.Notify(caught, s)
		defer signal.Stop(caught)
	}
	require.NoError(t, cmd.Start())
}

// finished waits for the end of a program, a minute at most, and returns its exit status.
func finished(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	require.True(t, late.Stop(), "it did not end")
	return cmd.ProcessState.ExitCode()
}
