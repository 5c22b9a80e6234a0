package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

func TestFindRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"httpjsno":              `unknown stack "httpjsno": rpcbench list names them`,
		"httpjson+work=1us":     `nothing can be injected as "httpjson+work=1us", only grpcprotobuf+work=500ns`,
		"grpcprotobuf+work=1":   `nothing can be injected as "grpcprotobuf+work=1", only grpcprotobuf+work=500ns`,
		"grpcprotobuf+work=-1s": `nothing can be injected`,
		"grpcprotobuf+sleep=1s": `unknown stack "grpcprotobuf+sleep=1s"`,
	} {
		_, err := ours().measured(name)
		require.ErrorContains(t, err, want, name)
	}
	s, err := ours().measured("httpjson")
	require.NoError(t, err)
	require.Equal(t, "httpjson", s.Name)
}

// What is injected runs in the handler, once per call.
func TestInjectionRunsOncePerCall(t *testing.T) {
	var n atomic.Int64
	f, err := rpcbench.Start(t.Context(), injectedInto(grpcprotobuf.New(), "x", func() { n.Add(1) }), rpcbench.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	before := n.Load()
	for i := range 10 {
		_, err := f.Client.CreateUser(t.Context(), corpus.Sample(i, 0))
		require.NoError(t, err)
	}
	require.Equal(t, int64(10), n.Load()-before)
}

func TestExperiments(t *testing.T) {
	plan, err := experiments()
	require.NoError(t, err)
	var takes time.Duration
	for _, e := range plan {
		for _, name := range e.arms(e.contestants[0]) {
			_, err := ours().measured(name)
			require.NoError(t, err)
		}
		g := &group{arms: e.arms(e.contestants[0])}
		require.GreaterOrEqual(t, e.blocks(g), versus.FewestBlocks)
		takes += time.Duration(e.repeats*e.processes) * e.takes(g)
	}
	require.InDelta(t, 2, takes.Hours(), 0.3, "what the help promises")
	some, err := experiments("same", "replication")
	require.NoError(t, err)
	require.Len(t, some, 2)
}

// small is an experiment of three processes at a time.
func small(name, base, contestant string) experiment {
	c := comparison{base: base, contestants: []string{contestant}, processes: 3, layouts: 1, procs: 1, time: 3 * 2 * versus.Turn, fewest: 3}
	return experiment{name, c, 2}
}

func programs(t *testing.T) []versus.Program {
	t.Helper()
	return []versus.Program{self()}
}

func TestCalibrationGoesOnWhereItStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("a dozen processes")
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	plan := []experiment{small("a", "rawtcp", "httpjson")}
	var shown []string
	tell := func(what string, _, _ time.Duration) {
		if what != "" {
			shown = append(shown, what)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := calibrate(ctx, dir, plan, programs(t), func(what string, left, all time.Duration) {
		if tell(what, left, all); len(shown) == 2 {
			cancel()
		}
	})
	require.EqualError(t, err, "rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
	first, err := os.ReadFile(filepath.Join(dir, shown[0]))
	require.NoError(t, err)

	require.NoError(t, calibrate(t.Context(), dir, plan, programs(t), tell))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "both repeats, and nothing of the interrupted session")
	seeds := map[uint64]bool{}
	for _, file := range files {
		_, records, err := readRecords(filepath.Join(dir, file.Name()))
		require.NoError(t, err)
		require.Len(t, records, 3)
		for _, record := range records {
			seeds[record.Seed] = true
		}
	}
	require.Len(t, seeds, 6)
	again, err := os.ReadFile(filepath.Join(dir, shown[0]))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
}

func TestCalibrationTriesFailedRepeatsAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a dozen processes")
	}
	dir := t.TempDir()
	plan := []experiment{small("bad", "rawtcp", "httpjsno"), small("good", "rawtcp", "rawtcp")}
	err := calibrate(t.Context(), dir, plan, programs(t), func(string, time.Duration, time.Duration) {})
	require.ErrorContains(t, err, `rpcbench: calibrate: bad.0`)
	require.ErrorContains(t, err, `unknown stack "httpjsno"`)
	require.ErrorContains(t, err, ": the same command tries again what failed")
	require.NotContains(t, err.Error(), "\n")
	good, err := filepath.Glob(filepath.Join(dir, "good.*.jsonl"))
	require.NoError(t, err)
	require.Len(t, good, 2, "the others are measured all the same")

	plan[0].contestants = []string{"httpjson"}
	require.NoError(t, calibrate(t.Context(), dir, plan, programs(t), func(string, time.Duration, time.Duration) {}))
	bad, err := filepath.Glob(filepath.Join(dir, "bad.*.jsonl"))
	require.NoError(t, err)
	require.Len(t, bad, 2)
}

func TestRecordsOfAnotherMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("a dozen processes")
	}
	dir := t.TempDir()
	plan := []experiment{small("a", "rawtcp", "rawtcp")}
	none := func(string, time.Duration, time.Duration) {}
	require.NoError(t, calibrate(t.Context(), dir, plan, programs(t), none))
	path := plan[0].path(dir, 0)
	own, err := os.ReadFile(path)
	require.NoError(t, err)
	for why, name := range map[string]string{"another program": "program", "another Go": "go", "another machine": "cores"} {
		t.Run(why, func(t *testing.T) {
			others := regexp.MustCompile(`"`+name+`=[^"]+"`).ReplaceAll(own, []byte(`"`+name+`=0"`))
			require.NotEqual(t, own, others)
			require.NoError(t, os.WriteFile(path, others, 0o600))
			err := calibrate(t.Context(), dir, plan, programs(t), none)
			require.EqualError(t, err, "rpcbench: calibrate: "+path+" was made on another machine or by another program: name another folder with -out")
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, others, now, "it is not written to")
		})
	}
	require.Equal(t, lasting([]string{"date=a", "go=1", "commit=x"}), lasting([]string{"date=b", "go=1", "commit=y"}))
}

// synthetic writes a whole calibration of a machine with known ratios: copies are equal, grpcprotobuf takes 5 % longer, and each
// microsecond of work one microsecond. change may alter a block of a repeat of "replication".
func synthetic(t testing.TB, change func(repeat int, block []timing.Slice)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := rand.New(rand.NewPCG(5, 0))
	plan, err := experiments()
	require.NoError(t, err)
	for _, e := range plan {
		for i := range e.repeats {
			var text bytes.Buffer
			lines := json.NewEncoder(&text)
			require.NoError(t, lines.Encode(kept{Environment: []string{"date=2020-01-01", "go=go1.1"}}))
			arms := e.arms(e.contestants[0])
			for process := range e.processes {
				record := timing.Record{Arms: arms, Layout: process%e.layouts + 1}
				for range 12 {
					speed := math.Exp(0.02 * r.NormFloat64())
					var block []timing.Slice
					for _, name := range arms {
						ns := 30_000.0
						if name == "grpcprotobuf" && arms[0] == "httpjson" {
							ns *= 1.05
						}
						if _, work, ok := strings.Cut(name, "work="); ok {
							d, _ := time.ParseDuration(work)
							ns += float64(d)
						}
						ns *= speed * (1 + 0.01*r.NormFloat64())
						block = append(block, timing.Slice{Ops: 1000, Wall: time.Duration(1000 * ns)})
					}
					if change != nil && e.name == "replication" {
						change(i*e.processes+process, block)
					}
					record.Blocks = append(record.Blocks, block)
				}
				require.NoError(t, lines.Encode(kept{Contestant: arms[2], Record: &record}))
			}
			require.NoError(t, os.WriteFile(e.path(dir, i), text.Bytes(), 0o600))
		}
	}
	return dir
}

func table(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, figures(dir, &out))
	require.NotContains(t, out.String(), "NaN")
	written, err := os.ReadFile(filepath.Join(dir, "figures.txt"))
	require.NoError(t, err)
	require.Equal(t, out.String(), string(written))
	return out.String()
}

func TestFigures(t *testing.T) {
	dir := synthetic(t, nil)
	text := table(t, dir)
	for _, line := range []string{
		`# date=2020-01-01 go=go1\.1`,
		`replication +grpcprotobuf to httpjson +1 +8 +30 +0 +1\.(049|050)\d +0\.\d\d % +(2[789]|30) of 30, .* 0, 30, 0, 0$`,
		`defaultprocs +grpcprotobuf to httpjson +default +8 +30 +0 .*`,
		`same +httpjson to httpjson +1 +8 +30 +0 +(1\.000|0\.999)\d .* 0, 0, 30, 0$`,
		`work-600ns +grpcprotobuf\+work=600ns to grpcprotobuf +1 +8 +10 +0 +1\.0(19|20)\d .* 0, 10, 0, 0$`,
		`apart-work-1us +grpcprotobuf\+work=1us to grpcprotobuf +1 +8 +10 +0 +1\.03\d\d .* 0, 10, 0, 0$`,
	} {
		require.Regexp(t, "(?m)^"+line, text)
	}
	begun := t.TempDir()
	_, _, err := typed(t, "calibrate", "-read", "-out", begun)
	require.EqualError(t, err, "rpcbench: calibrate: "+begun+" has no records")
	require.NoError(t, os.Rename(filepath.Join(dir, "same.00.jsonl"), filepath.Join(begun, "same.00.jsonl")))
	stdout, _, err := typed(t, "calibrate", "-read", "-out", begun)
	require.NoError(t, err)
	require.NotContains(t, stdout, "httpjson to", "a calibration that has just begun")
}

// A ratio that is another an hour later is found out, and so is a machine that moved.
func TestDrift(t *testing.T) {
	line := func(change func(process int, block []timing.Slice)) string {
		return regexp.MustCompile(`(?m)^replication .*`).FindString(table(t, synthetic(t, change)))
	}
	held := func(line string) int {
		k, err := strconv.Atoi(regexp.MustCompile(`(\d+) of \d+,`).FindStringSubmatch(line)[1])
		require.NoError(t, err)
		return k
	}
	require.Greater(t, held(line(nil)), 26)
	require.Less(t, held(line(func(process int, block []timing.Slice) {
		block[2].Wall = time.Duration(float64(block[2].Wall) * (1 + 0.05*float64(process)/480))
	})), 15, "intervals that hold the others' mean")
	require.Regexp(t, ` 30 +30 .* 0, 0, 0, 30$`, line(func(process int, block []timing.Slice) {
		for i := range block {
			block[i].Wall *= time.Duration(1 + process%2)
		}
	}), "5 % are less than the base moved by")
}

// A file that is not what measure writes is named, with its line.
func TestUnreadableRecords(t *testing.T) {
	dir := synthetic(t, nil)
	plan, err := experiments("same")
	require.NoError(t, err)
	path := plan[0].path(dir, 3)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	var k kept
	require.NoError(t, json.Unmarshal(lines[2], &k))
	for why, change := range map[string]func(*timing.Record){
		"an arm is missing":        func(r *timing.Record) { r.Arms = r.Arms[1:] },
		"no block is there":        func(r *timing.Record) { r.Blocks = nil },
		"a slice is missing":       func(r *timing.Record) { r.Blocks[7] = r.Blocks[7][1:] },
		"a slice has no operation": func(r *timing.Record) { r.Blocks[7][1].Ops = 0 },
		"a slice took less":        func(r *timing.Record) { r.Blocks[7][1].Wall = -1 },
	} {
		var own kept
		require.NoError(t, json.Unmarshal(lines[2], &own))
		change(own.Record)
		line, err := json.Marshal(own)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.Join(slices.Concat(lines[:2], [][]byte{line, []byte("\n")}, lines[3:]), nil), 0o600))
		require.ErrorContains(t, figures(dir, new(bytes.Buffer)), fmt.Sprintf("%s:3 is not of a base, its copy and a contestant", path), why)
	}
	require.NoError(t, os.WriteFile(path, []byte("{}\nnonsense\n{}\n"), 0o600))
	require.ErrorContains(t, figures(dir, new(bytes.Buffer)), path+":2 is no record")
}

// Whatever is in a file of records, reading it is an error that names the file, or gives a record for each line that has one.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}", "{}\n", "{}\n{\n", "null\n", "[]\n", "{}{}\n", "{\"record\":{}}\n",
		"{\"record\":{\"arms\":[\"a\",\"b\",\"c\"],\"blocks\":[[[0,1,1,1,0,0],[0,1,1,1,0,0],[0,1,1,1,0,0]]]}}\n",
		"{\"record\":{\"arms\":[\"a\"],\"blocks\":[[[0,0,0,0,0]]]}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		_, records, err := readRecords(path)
		if err != nil {
			require.ErrorContains(t, err, path+":")
			return
		}
		for _, record := range records {
			_, err := record.Ratio(2, 0, 0.5)
			require.NoError(t, err)
		}
	})
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
