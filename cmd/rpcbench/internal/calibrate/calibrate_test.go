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
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// TestMain is also the process that measures.
func TestMain(m *testing.M) {
	if os.Getenv(versus.Variable) != "" {
		if err := versus.Serve(context.Background(), os.Stdin, os.Stdout, Find); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestFindRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"httpjsno":              `unknown stack "httpjsno": the stacks are `,
		"httpjson+work=1us":     `nothing can be injected as "httpjson+work=1us", only grpcprotobuf+work=500ns`,
		"grpcprotobuf+work=1":   `nothing can be injected as "grpcprotobuf+work=1", only grpcprotobuf+work=500ns`,
		"grpcprotobuf+work=-1s": `nothing can be injected`,
		"grpcprotobuf+sleep=1s": `unknown stack "grpcprotobuf+sleep=1s"`,
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
		_, err := f.Client.CreateUser(t.Context(), corpus.Sample(i, 0))
		require.NoError(t, err)
	}
	require.Equal(t, int64(10), n.Load()-before)
}

func TestPlan(t *testing.T) {
	ids, takes := map[string]bool{}, time.Duration(0)
	all, again := tasks(whole(t)), tasks(whole(t))
	for i, task := range all {
		takes += task.takes()
		require.False(t, ids[task.id], "two tasks %s", task.id)
		ids[task.id] = true
		for _, name := range task.spec.Arms {
			_, err := Find(name)
			require.NoError(t, err)
		}
		if strings.HasPrefix(task.id, "apart") {
			require.Len(t, task.layouts, 3)
			require.Equal(t, strings.HasPrefix(task.id, "apart-same"), task.layouts[0] == task.layouts[1], task.id)
		} else {
			require.Len(t, task.layouts, 1, task.id)
		}
		if i%processes > 0 {
			name, _, _ := strings.Cut(task.id, "/")
			require.True(t, strings.HasPrefix(all[i-1].id, name+"/"), "processes of a repeat run in a row")
		}
		require.Equal(t, task, again[i], "an interrupted calibration goes on in the same order")
	}
	require.Less(t, takes, 150*time.Minute, "what the help promises")
	require.Greater(t, takes, 2*time.Hour)
	some, err := Plan("same", "replication")
	require.NoError(t, err)
	require.Len(t, some, 2)
	_, err = Plan("nothing")
	require.ErrorContains(t, err, `rpcbench: calibrate: no experiment "nothing", only replication, defaultprocs, `)
}

func self(t *testing.T) []versus.Program {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return slices.Repeat([]versus.Program{{Path: path}}, Layouts)
}

func whole(t testing.TB) []Experiment {
	t.Helper()
	plan, err := Plan()
	require.NoError(t, err)
	return plan
}

func small(name string, arms ...string) Experiment {
	return Experiment{name, versus.Spec{Arms: arms, Procs: 1, Slice: time.Millisecond, Blocks: 1}, 1, 3, 1, false}
}

func ran(shown *[]string) func(string, time.Duration, time.Duration) {
	return func(what string, _, _ time.Duration) {
		if what != "" {
			*shown = append(*shown, what)
		}
	}
}

func TestRunGoesOnWhereItStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	plan := []Experiment{small("a", "rawtcp", "rawtcp")}
	var shown []string
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, dir, plan, self(t), func(what string, _, _ time.Duration) {
		if shown = append(shown, what); len(shown) == 2 {
			cancel()
		}
	})
	require.EqualError(t, err, "rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
	path := filepath.Join(dir, RecordsFile)
	entries, _, err := read(path)
	require.NoError(t, err)
	require.Len(t, entries, 2, "where, and the first process")

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
	entries, _, err = read(path)
	require.NoError(t, err)
	seeds := map[uint64]bool{}
	for _, e := range entries {
		if e.Record != nil {
			require.Len(t, e.Record.Blocks, 1)
			seeds[e.Record.Seed] = true
		}
	}
	require.Len(t, seeds, 3)

	shown = nil
	require.NoError(t, Run(t.Context(), dir, plan, self(t), ran(&shown)))
	require.Empty(t, shown, "nothing is left to do")
}

func TestRunTriesFailedTasksAgain(t *testing.T) {
	dir := t.TempDir()
	plan := []Experiment{small("bad", "rawtcp", "httpjsno"), small("good", "rawtcp", "rawtcp")}
	var shown []string
	err := Run(t.Context(), dir, plan, self(t), ran(&shown))
	require.ErrorContains(t, err, `rpcbench: calibrate: bad/`)
	require.ErrorContains(t, err, `unknown stack "httpjsno"`)
	require.ErrorContains(t, err, ": the same command tries again what failed")
	require.NotContains(t, err.Error(), "\n")
	require.Len(t, shown, 2*3, "the others are measured all the same")

	shown, plan[0].Spec.Arms = nil, []string{"rawtcp", "httpjson"}
	require.NoError(t, Run(t.Context(), dir, plan, self(t), ran(&shown)))
	require.Len(t, shown, 3)
	require.Contains(t, shown, "bad/0")
}

func TestRecordsOfAnotherMachine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, RecordsFile)
	plan := []Experiment{small("a", "rawtcp", "rawtcp")}
	require.NoError(t, Run(t.Context(), dir, plan, self(t), func(string, time.Duration, time.Duration) {}))
	own, err := os.ReadFile(path)
	require.NoError(t, err)
	for why, name := range map[string]string{"another program": "program", "another Go": "go", "another machine": "cores"} {
		t.Run(why, func(t *testing.T) {
			others := regexp.MustCompile(`"`+name+`=[^"]+"`).ReplaceAll(own, []byte(`"`+name+`=0"`))
			require.NotEqual(t, own, others)
			others = append(others, "unfinished"...)
			require.NoError(t, os.WriteFile(path, others, 0o644))
			err := Run(t.Context(), dir, plan, self(t), nil)
			require.EqualError(t, err, "rpcbench: calibrate: "+path+" was made on another machine or by another program: name another folder with -out")
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, others, now, "it is not written to")
		})
	}
	require.Equal(t, lasting([]string{"date=a", "go=1", "commit=x"}), lasting([]string{"date=b", "go=1", "commit=y"}))
}

func TestUnreadableRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), RecordsFile)
	require.NoError(t, os.WriteFile(path, []byte("{}\nnonsense\n{}\n"), 0o644))
	_, _, err := read(path)
	require.ErrorContains(t, err, path+":2 is no record")
	require.ErrorContains(t, err, "delete the line to measure its task again")
	err = Run(t.Context(), filepath.Dir(path), nil, self(t), nil)
	require.ErrorContains(t, err, ":2 is no record", "and it is not written to")
}

// synthetic is a whole calibration of a machine with known ratios: copies are equal, grpcprotobuf takes 5 % longer, and each
// microsecond of work one microsecond.
func synthetic(t testing.TB) (entries []Entry) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 0))
	entries = append(entries, Entry{Environment: []string{"date=2020-01-01", "go=go1.1"}})
	for _, task := range tasks(whole(t)) {
		record := timing.Record{Length: task.spec.Slice, Arms: task.spec.Arms, Layout: task.layouts[0] + 1}
		for range task.spec.Blocks {
			speed := math.Exp(0.02 * r.NormFloat64())
			var block []timing.Slice
			for _, name := range task.spec.Arms {
				ns := 30_000.0
				if name == "grpcprotobuf" && task.spec.Arms[0] == "httpjson" {
					ns *= 1.05
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

func table(t *testing.T, entries []Entry) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, figures(&out, entries))
	require.NotContains(t, out.String(), "NaN")
	return out.String()
}

func TestFigures(t *testing.T) {
	entries := synthetic(t)
	entries = append(entries, Entry{Task: "same/9999", Record: entries[1].Record}, Entry{Task: "nonsense", Record: entries[1].Record})
	text := table(t, entries)
	for _, line := range []string{
		`# date=2020-01-01 go=go1\.1`,
		`replication +grpcprotobuf to httpjson +1 +30 +0 +1\.(049|050)\d +0\.\d\d % +(2[789]|30) of 30, .* 0, 30, 0, 0$`,
		`defaultprocs +grpcprotobuf to httpjson +default +30 +0 .*`,
		`same +httpjson to httpjson +1 +30 +0 +(1\.000|0\.999)\d .* 0, 0, 30, 0$`,
		`work-600ns +grpcprotobuf\+work=600ns to grpcprotobuf +1 +10 +0 +1\.0(19|20)\d .* 0, 10, 0, 0$`,
	} {
		require.Regexp(t, "(?m)^"+line, text)
	}
	require.NotContains(t, table(t, entries[:processes]), "httpjson", "a calibration that has just begun")
}

// A ratio that is another an hour later is found out, and so is a machine that moved.
func TestDrift(t *testing.T) {
	line := func(change func(process int, block []timing.Slice)) string {
		entries := synthetic(t)
		for _, e := range entries {
			if name, process, _ := strings.Cut(e.Task, "/"); name == "replication" {
				n, _ := strconv.Atoi(process)
				for _, block := range e.Record.Blocks {
					change(n, block)
				}
			}
		}
		return regexp.MustCompile(`(?m)^replication .*`).FindString(table(t, entries))
	}
	held := func(line string) int {
		k, err := strconv.Atoi(regexp.MustCompile(`(\d+) of \d+,`).FindStringSubmatch(line)[1])
		require.NoError(t, err)
		return k
	}
	require.Greater(t, held(line(func(int, []timing.Slice) {})), 26)
	require.Less(t, held(line(func(process int, block []timing.Slice) {
		block[2].Wall = time.Duration(float64(block[2].Wall) * (1 + 0.05*float64(process)/480))
	})), 15, "intervals that hold the others' mean")
	require.Regexp(t, ` 30 +30$`, line(func(process int, block []timing.Slice) {
		for i := range block {
			block[i].Wall *= time.Duration(1 + process%2)
		}
	}), "every repeat is undecided")
}

// Records that are not what the plan asks for.
func TestRecordsOfAnotherPlan(t *testing.T) {
	for why, change := range map[string]func(*timing.Record){
		"an arm is missing":        func(r *timing.Record) { r.Arms = r.Arms[1:] },
		"no block is there":        func(r *timing.Record) { r.Blocks = nil },
		"a slice is missing":       func(r *timing.Record) { r.Blocks[7] = r.Blocks[7][1:] },
		"a slice has no operation": func(r *timing.Record) { r.Blocks[7][1].Ops = 0 },
		"a slice took less":        func(r *timing.Record) { r.Blocks[7][1].Wall = -1 },
	} {
		entries := synthetic(t)
		change(entries[1].Record)
		require.ErrorContains(t, figures(io.Discard, entries),
			"rpcbench: calibrate: the record of "+entries[1].Task+" is not what the plan asks for: delete its line to measure it again", why)
	}
}

func TestShare(t *testing.T) {
	// Limits as R's binom.test gives them.
	for want, k := range map[string][2]int{
		"0 of 10, 0.0 % (0.0–30.8)":        {0, 10},
		"3 of 10, 30.0 % (6.7–65.2)":       {3, 10},
		"10 of 10, 100.0 % (69.2–100.0)":   {10, 10},
		"58 of 60, 96.7 % (88.5–99.6)":     {58, 60},
		"200 of 200, 100.0 % (98.2–100.0)": {200, 200},
	} {
		require.Equal(t, want, share(k[0], k[1]))
	}
}
