package calibrate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// TestMain is also the process that measures.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "measure" {
		if err := replicate.Serve(context.Background(), os.Stdin, os.Stdout, Find); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestFindRefuses(t *testing.T) {
	const injected = ", only grpcprotobuf+work=500ns or grpcprotobuf+garbage=8192"
	for name, want := range map[string]string{
		"httpjsno":                  `unknown stack "httpjsno", did you mean "httpjson"?`,
		"httpjson+work=1us":         `nothing can be injected as "httpjson+work=1us"` + injected,
		"grpcprotobuf+work=1":       `nothing can be injected as "grpcprotobuf+work=1"` + injected,
		"grpcprotobuf+work=-1us":    injected,
		"grpcprotobuf+garbage=much": injected,
		"grpcprotobuf+sleep=1us":    injected,
		"grpcprotobuf+":             injected,
	} {
		_, err := Find(name)
		require.ErrorContains(t, err, want, name)
	}
	s, err := Find("httpjson")
	require.NoError(t, err)
	require.Equal(t, "httpjson", s.Name)
}

// What is injected runs in the handler, once per call.
func TestInjectionRunsOncePerCall(t *testing.T) {
	var n atomic.Int64
	f, err := rpcbench.Start(t.Context(), injectedInto("x", func() { n.Add(1) }), rpcbench.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	before := n.Load()
	for i := range 10 {
		_, err := f.Client.CreateUser(t.Context(), users.Sample(i, 0))
		require.NoError(t, err)
	}
	require.Equal(t, int64(10), n.Load()-before)
}

func TestPlan(t *testing.T) {
	ids := map[string]bool{}
	var takes time.Duration
	for _, task := range tasks(Plan()) {
		require.False(t, ids[task.id], "two tasks %s", task.id)
		ids[task.id] = true
		takes += task.takes()
		for _, name := range append(task.exp.Spec.Arms, task.exp.Spec.Idle...) {
			_, err := Find(name)
			require.NoError(t, err)
		}
	}
	require.Less(t, takes, 100*time.Minute)
	some, err := Only(Plan(), Kept, Same)
	require.NoError(t, err)
	require.Len(t, some, 2)
	_, err = Only(Plan(), "nothing")
	require.ErrorContains(t, err, `rpcbench: calibrate: no experiment "nothing", only replication, defaultprocs, `)
	same := 0
	for _, e := range Plan() {
		if e.Spec.Procs == 1 && len(e.Spec.Arms) > 1 && e.Spec.Arms[base] == e.Spec.Arms[again] {
			same += e.Processes
		}
	}
	require.GreaterOrEqual(t, same, 200, "comparisons of a stack with itself")
	require.GreaterOrEqual(t, Plan()[0].Processes/replicate.Fewest, 60, "repeats of a replicated comparison")

	first, second := tasks(Plan()), tasks(Plan())
	for i := range first {
		require.Equal(t, first[i].id, second[i].id, "an interrupted calibration goes on in the same order")
	}
	require.False(t, slices.IsSortedFunc(first, func(a, b task) int { return strings.Compare(a.id, b.id) }))
}

func self(t *testing.T) replicate.Command {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return replicate.Command{path, "measure"}
}

func small(name string, processes int, arms ...string) Experiment {
	return Experiment{Name: name, Processes: processes, Spec: replicate.Spec{Arms: arms, Procs: 1, Slice: time.Millisecond, Blocks: 6}}
}

func ran(shown *[]string) func(string, time.Duration, time.Duration) {
	return func(what string, done, total time.Duration) { *shown = append(*shown, what) }
}

func TestRunGoesOnWhereItStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	plan := []Experiment{small("a", 2, "rawtcp", "rawtcp"), {Name: "b", Processes: 1, Apart: true, Spec: small("", 0, "rawtcp", "httpjson").Spec}}
	var shown []string
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, dir, plan, self(t), func(what string, done, total time.Duration) {
		if shown = append(shown, what); len(shown) == 2 {
			cancel()
		}
	})
	require.EqualError(t, err, "rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
	path := filepath.Join(dir, RecordsFile)
	entries, err := Read(path)
	require.NoError(t, err)
	require.Len(t, entries, 2, "where, and the first task")

	// What a crash may leave behind.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"task":"a/1","record":{"arms":["raw` + strings.Repeat("w", 1<<16))
	require.NoError(t, err)
	require.NoError(t, file.Close())

	first := shown[0]
	shown = nil
	require.NoError(t, Run(t.Context(), dir, plan, self(t), ran(&shown)))
	require.Len(t, shown, 2)
	require.NotContains(t, shown, first)
	entries, err = Read(path)
	require.NoError(t, err)
	found := byExperiment(entries)
	require.Len(t, found["a"], 2)
	require.Len(t, found["a"][0].Blocks, 6)
	require.NotEqual(t, found["a"][0].Seed, found["a"][1].Seed)

	shown = nil
	require.NoError(t, Run(t.Context(), dir, plan, self(t), ran(&shown)))
	require.Empty(t, shown, "nothing is left to do")
}

func TestRunTriesFailedTasksAgain(t *testing.T) {
	dir := t.TempDir()
	plan := []Experiment{small("bad", 1, "rawtcp", "httpjsno"), small("good", 1, "rawtcp", "rawtcp")}
	var shown []string
	err := Run(t.Context(), dir, plan, self(t), ran(&shown))
	require.EqualError(t, err, "rpcbench: calibrate: failed, see "+filepath.Join(dir, RecordsFile)+": bad/0: the same command tries them again")
	require.Len(t, shown, 2, "the others are measured all the same")
	entries, err := Read(filepath.Join(dir, RecordsFile))
	require.NoError(t, err)
	kept := slices.IndexFunc(entries, func(e Entry) bool { return e.Task == "bad/0" })
	require.Contains(t, entries[kept].Error, "httpjsno")

	shown, plan[0].Spec.Arms = nil, []string{"rawtcp", "httpjson"}
	require.NoError(t, Run(t.Context(), dir, plan, self(t), ran(&shown)))
	require.Equal(t, []string{"bad/0"}, shown)
}

func TestRecordsOfAnotherMachine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, RecordsFile)
	require.NoError(t, os.WriteFile(path, []byte(`{"environment":["date=2020-01-01","go=go1.1"]}`+"\n"), 0o644))
	err := Run(t.Context(), dir, nil, self(t), nil)
	require.EqualError(t, err, "rpcbench: calibrate: "+path+" was made on another machine or by another program: name another folder with --out")
	require.Equal(t, lasting([]string{"date=a", "go=1", "commit=x"}), lasting([]string{"date=b", "go=1", "commit=y"}))
}

func TestUnreadableRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), RecordsFile)
	require.NoError(t, os.WriteFile(path, []byte("{}\nnonsense\n{}\n"), 0o644))
	_, err := Read(path)
	require.ErrorContains(t, err, path+":2 is no record")
	require.ErrorContains(t, err, "delete the line to measure its task again")
	err = Run(t.Context(), filepath.Dir(path), nil, self(t), nil)
	require.ErrorContains(t, err, ":2 is no record", "and it is not written to")
}

// synthetic is a whole calibration of a machine with known ratios: copies are equal, grpcprotobuf takes 5 % longer, each
// microsecond of work one microsecond, garbage 10 %, and half of that in slices of 400 ms.
func synthetic() (entries []Entry) {
	r := rand.New(rand.NewPCG(5, 0))
	entries = append(entries, Entry{Environment: []string{"date=2020-01-01", "go=go1.1"}})
	for _, task := range tasks(Plan()) {
		record := timing.Record{Length: task.exp.Spec.Slice}
		for _, name := range task.exp.Spec.Arms {
			for slices.Contains(record.Arms, name) {
				name += versus.Again
			}
			record.Arms = append(record.Arms, name)
		}
		for range task.exp.Spec.Blocks {
			speed := math.Exp(0.05 * r.NormFloat64())
			var block []timing.Slice
			for _, name := range task.exp.Spec.Arms {
				ns := 30_000.0
				switch name {
				case grpcStack:
					ns *= 1.05
				case litter(litterBytes):
					ns *= 1.10
					if task.exp.Spec.Slice > 100*time.Millisecond {
						ns *= 0.95
					}
				}
				if _, work, ok := strings.Cut(name, "work="); ok {
					d, _ := time.ParseDuration(work)
					ns += float64(d)
				}
				ns *= speed * (1 + 0.01*r.NormFloat64())
				block = append(block, timing.Slice{Ops: 1000, Wall: time.Duration(1000 * ns)})
			}
			record.Blocks = append(record.Blocks, block)
		}
		entries = append(entries, Entry{Task: task.id, Record: &record})
	}
	return entries
}

func TestFigures(t *testing.T) {
	entries := synthetic()
	entries = append(entries, Entry{Task: "same/99", Record: entries[1].Record, Error: "died"}, Entry{Task: "nonsense", Record: entries[1].Record})
	var out bytes.Buffer
	require.NoError(t, Figures(&out, entries))
	text := out.String()
	for _, line := range []string{
		`# date=2020-01-01 go=go1\.1`,
		`same +24 .* \d of 24, .*`,
		`told apart in 12s or less, GOMAXPROCS=1, fixtures replaced: \d+ of 528, [2-7]\.\d % .*`,
		`2µs +6\.\d\d % +(19[5-9]\d|20[0-4]\d) ± \d+ ns +24 of 24, 100\.0 % .* 3 of 3 +100\.0 % .*`,
		`0\.50 % +1\.00[45]\d .* 5 of 5, .*`,
		`told apart in 12s, GOMAXPROCS=1, fixtures replaced: \d of 48, .*`,
		`25ms +12 +1\.(10|09)\d\d .* 12 +1\.(10|09)\d\d \(\S+\) +(1\.00|0\.99).*`,
		`400ms +12 +1\.04\d\d .* 12 +1\.04\d\d \(\S+\) +(1\.00|0\.99).*`,
		`httpjson and its copy +8 +60 +0 +(1\.000|0\.999)\d .*`,
		`grpcprotobuf to httpjson +16 +30 +0 +1\.(050|049)\d +0\.\d\d .* 0, 30, 0, 0 +0`,
		`grpcprotobuf to httpjson, default GOMAXPROCS +16 +30 +0 .*`,
		`30 +16 +(29|30)\d\d\d +1\.0(5|4).*`,
	} {
		require.Regexp(t, "(?m)^"+line, text)
	}
	require.NotContains(t, text, "NaN")

	out.Reset()
	require.NoError(t, Figures(&out, entries[:2]), "a calibration that has just begun")
	require.NotContains(t, out.String(), "NaN")
}

// Repeats are of processes that follow each other, so a comparison that means something else an hour later is found out.
func TestDriftBetweenRepeatsLosesCoverage(t *testing.T) {
	line := func(drift float64) string {
		entries := synthetic()
		n := 0.0
		for _, e := range entries {
			if strings.HasPrefix(e.Task, Replication+"/") {
				for _, block := range e.Record.Blocks {
					block[first].Wall = time.Duration(float64(block[first].Wall) * math.Exp(drift*n/480))
				}
				n++
			}
		}
		var out bytes.Buffer
		require.NoError(t, Figures(&out, entries))
		return regexp.MustCompile(`(?m)^grpcprotobuf to httpjson +8 .*`).FindString(out.String())
	}
	held := regexp.MustCompile(`(\d+) of 60`)
	require.Regexp(t, ` 5\d of 60|60 of 60`, line(0))
	k, err := strconv.Atoi(held.FindStringSubmatch(line(0.05))[1])
	require.NoError(t, err)
	require.Less(t, k, 30)
}

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Plots(dir, nil))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files, "nothing was measured")
	require.NoError(t, Plots(dir, synthetic()))
	for _, name := range []string{"procs.svg", "coverage.svg", "same.svg", "sensitivity.svg"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(data), "<svg")
		require.Greater(t, len(data), 5000, "with something in it")
	}
	require.ErrorContains(t, Plots(filepath.Join(dir, "nowhere"), synthetic()), "rpcbench: calibrate: procs.svg")
}

// Two of each, since one record says nothing of its spread. Some are of a machine so slow that little is within 12 s.
func TestRecordsOfAnotherPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	spoil := map[string]func(*timing.Record){
		"nothing is wrong":         func(*timing.Record) {},
		"fine: a block is missing": func(r *timing.Record) { r.Blocks = r.Blocks[1:] },
		"an arm is missing":        func(r *timing.Record) { r.Arms = r.Arms[1:] },
		"too few for an interval":  func(r *timing.Record) { r.Blocks = r.Blocks[:5] },
		"no block is there":        func(r *timing.Record) { r.Blocks = nil },
		"a slice is missing":       func(r *timing.Record) { r.Blocks[7] = r.Blocks[7][1:] },
		"a slice has no operation": func(r *timing.Record) { r.Blocks[7][1].Ops = 0 },
		"a slice took no time":     func(r *timing.Record) { r.Blocks[7][1].Wall = 0 },
		"a slice took less":        func(r *timing.Record) { r.Blocks[7][1].Wall = -1 },
	}
	for i, e := range Plan() {
		for why, change := range spoil {
			var entries []Entry
			for range 2 {
				r := timing.Record{Arms: slices.Clone(e.Spec.Arms)}
				for range e.Spec.Blocks {
					var block []timing.Slice
					for range r.Arms {
						block = append(block, timing.Slice{Ops: 1, Wall: time.Duration(i%3)*time.Second + time.Duration(1e7+random.IntN(1000))})
					}
					r.Blocks = append(r.Blocks, block)
				}
				change(&r)
				entries = append(entries, Entry{Task: e.Name + "/0", Record: &r})
			}
			for what, err := range map[string]error{"figures": Figures(io.Discard, entries), "plots": Plots(t.TempDir(), entries)} {
				if why == "nothing is wrong" || strings.HasPrefix(why, "fine: ") {
					require.NoError(t, err, "%s: %s", e.Name, what)
				} else {
					require.EqualError(t, err, "rpcbench: calibrate: the record of "+e.Name+"/0 is not what the plan asks for: delete its line to measure it again", why)
				}
			}
			entries[0].Error, entries[1].Error = "died", "died"
			require.NoError(t, Figures(io.Discard, entries), "what a failed process left is not looked at")
		}
	}
}

func TestPerCollection(t *testing.T) {
	slice := func(turn, ops, collections int) timing.Slice {
		return timing.Slice{Turn: turn, Ops: ops, GC: collections}
	}
	require.Equal(t, "200, 220", perCollection([]timing.Record{
		{Blocks: [][]timing.Slice{{slice(2, 880, 4), slice(1, 800, 4), slice(0, 1, 1)}}}, // the copy after garbage, the base after the copy
		{Blocks: [][]timing.Slice{{slice(0, 1, 1), slice(2, 400, 2), slice(1, 1, 1)}}},   // what was before the base is in another block
	}))
	require.Equal(t, "–", perCollection([]timing.Record{{Blocks: [][]timing.Slice{{slice(2, 880, 0), slice(1, 800, 0), slice(0, 1, 0)}}}}))
}

func TestShare(t *testing.T) {
	// Limits as R's binom.test gives them.
	for want, k := range map[string][2]int{
		"–":                                {0, 0},
		"0 of 10, 0.0 % (0.0–30.8)":        {0, 10},
		"3 of 10, 30.0 % (6.7–65.2)":       {3, 10},
		"10 of 10, 100.0 % (69.2–100.0)":   {10, 10},
		"10 of 200, 5.0 % (2.4–9.0)":       {10, 200},
		"58 of 60, 96.7 % (88.5–99.6)":     {58, 60},
		"200 of 200, 100.0 % (98.2–100.0)": {200, 200},
	} {
		require.Equal(t, want, share(k[0], k[1]))
	}
}

func TestBetween(t *testing.T) {
	// R's t.test(extra ~ group, data = sleep): -3.3654832 to 0.2054832, difference -1.58, 17.776 degrees of freedom.
	exp := func(v ...float64) []float64 {
		for i := range v {
			v[i] = math.Exp(v[i])
		}
		return v
	}
	i := between(exp(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0), exp(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4))
	require.InDelta(t, -1.58, math.Log(i.Median), 1e-9)
	require.InDelta(t, -3.3654832, math.Log(i.Lo), 1e-4)
	require.InDelta(t, 0.2054832, math.Log(i.Hi), 1e-4)
}

func TestWithin(t *testing.T) {
	r := timing.Record{Blocks: slices.Repeat([][]timing.Slice{{{Wall: 1}, {Wall: 100}, {Wall: 2}}}, 10)}
	require.Len(t, within(r, 2, 0, 9).Blocks, 3, "the arm between the two is not counted")
	require.Len(t, within(r, 2, 0, 30).Blocks, 10)
	require.Len(t, r.Blocks, 10, "the record is left as it was")
}

func TestUsualReadingIsOfContiguousRuns(t *testing.T) {
	var blocks [][]timing.Slice
	for i := range 12 {
		blocks = append(blocks, []timing.Slice{{Ops: 1, Wall: time.Duration(i)}})
	}
	require.Equal(t, []float64{0.5, 2.5, 4.5, 6.5, 8.5, 10.5}, runs(blocks, 0).Values)
}
