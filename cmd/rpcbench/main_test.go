package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
)

// TestMain is also the process that the commands start.
func TestMain(m *testing.M) {
	if os.Getenv(versus.Variable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// typed runs the command as main does, without a terminal.
func typed(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), err
}

func TestBadInputIsOneLine(t *testing.T) {
	empty := t.TempDir()
	for _, test := range []struct {
		why, args, want string
	}{
		{"no such command", "verses", `rpcbench: no command "verses": rpcbench -h lists them`},
		{"no such flag", "versus --bass httpjson", "rpcbench: versus: flag provided but not defined: -bass: rpcbench versus -h shows its flags"},
		{"no such stack", "versus httpjsno", `rpcbench: unknown stack "httpjsno": the stacks are grpcprotobuf, `},
		{"a flag after a stack", "versus httpxml -time 10s", "rpcbench: versus: -time comes after httpxml: flags come first"},
		{"no such base", "versus --base httpjsno httpxml", `rpcbench: unknown stack "httpjsno"`},
		{"fewer than two stacks", "versus httpjson", "rpcbench: versus: nothing to compare with httpjson: name another stack"},
		{"a stack named twice", "versus httpxml httpxml", "rpcbench: versus: httpxml is named twice: once is enough"},
		{"too few processes", "versus --processes 7 httpxml", "rpcbench: versus: 7 processes are too few for an interval: -processes 8 or more"},
		{"no process", "versus --processes 0 httpxml", "rpcbench: versus: 0 processes are too few"},
		{"too few layouts", "versus -layouts 4 httpxml", "rpcbench: versus: 4 layouts for 16 processes: give 0, or -layouts from 8 to 16"},
		{"more layouts than processes", "versus -layouts 17 httpxml", "rpcbench: versus: 17 layouts for 16 processes"},
		{"no build after the sign", "versus httpxml@ httpjson", "rpcbench: versus: httpxml@ names no build"},
		{"no such stack of a build", "versus httpjsno@HEAD~1 httpjson", `rpcbench: unknown stack "httpjsno"`},
		{"one build alone", "versus httpjson@HEAD", "rpcbench: versus: nothing to compare with httpjson@HEAD: name another stack"},
		{"a negative GOMAXPROCS", "versus -gomaxprocs -1 httpxml", fmt.Sprintf("rpcbench: versus: -gomaxprocs -1 on a machine of %d cores", runtime.NumCPU())},
		{"more than the cores", "versus -gomaxprocs 4096 httpxml", "use 1, or 0 for the default"},
		{"no margin", "versus --margin 0 httpxml", "rpcbench: versus: a margin of 0 % leaves nothing equal: use 2 or so"},
		{"no time", "versus --time 1s httpxml", "rpcbench: versus: 1s over 16 processes leave less than 10 turns of 45ms in each: give -time 7.2s or more"},
		{"no folder for a run", "run", "rpcbench: run: -out names the folder for what is measured"},
		{"no such stack of a run", "run -out x httpjsno", `rpcbench: unknown stack "httpjsno"`},
		{"a run of the base", "run -out x httpjson", "rpcbench: run: nothing to compare with httpjson: name another stack"},
		{"no such workload", "run -out x -workloads tiny", `rpcbench: unknown workload "tiny": rpcbench list names them`},
		{"a run without a build after the sign", "run -out x httpxml@", "rpcbench: run: httpxml@ names no build"},
		{"a report of nothing", "report", "rpcbench: report: name one folder of rpcbench run, or one file of go test -bench"},
		{"a report of two", "report x y", "rpcbench: report: name one folder"},
		{"an explanation of nothing", "explain", "rpcbench: explain: name a stack of rpcbench list, or a profile of go test -bench -profiles"},
		{"neither stack nor profile", "explain httpjsno", `rpcbench: explain: "httpjsno" is neither a profile nor a stack`},
		{"a picture in no folder", "explain -svg /nosuch/f httpjson", "rpcbench: explain: -svg /nosuch/f: open /nosuch/f.part: "},
		{"no such workload to explain", "explain -workload tiny httpjson", `rpcbench: unknown workload "tiny": rpcbench list names them`},
		{"too short to explain", "explain -time 1s httpjson", "rpcbench: explain: -time 1s is too short: give 4s or more"},
		{"a picture that is there", "explain -svg main.go httpjson", "rpcbench: explain: -svg main.go: there is such a file already: name another"},
		{"more than the cores to explain", "explain -gomaxprocs 4096 httpjson", "rpcbench: explain: -gomaxprocs 4096 on a machine of"},
		{"no folder", "calibrate", "rpcbench: calibrate: -out names the folder for what is measured"},
		{"no such experiment", "calibrate --out x --only fiant", `rpcbench: calibrate: no experiment "fiant", only replication, `},
		{"nothing to read", "calibrate --read --out " + empty, "rpcbench: calibrate: " + empty + " has no records"},
	} {
		t.Run(test.why, func(t *testing.T) {
			stdout, stderr, err := typed(t, strings.Fields(test.args)...)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, test.why != "nothing to read", errors.As(err, new(wrongUse)), "exit status 2 is for the command line")
			require.Empty(t, stdout)
			require.Empty(t, stderr, "main prints the error")
		})
	}
}

func TestVersus(t *testing.T) {
	if testing.Short() {
		t.Skip("eight processes")
	}
	out := filepath.Join(t.TempDir(), "records")
	stdout, stderr, err := typed(t, "versus", "-o", out, "-time", "4s", "--processes", "8", "-layouts", "0", "-seed", "7", "rawtcp", "httpjson")
	require.NoError(t, err)
	require.Empty(t, stderr, "no progress but on a terminal")
	require.Regexp(t, `^# date=\S+ go=`, stdout)
	require.Regexp(t, `(?m)^# GOMAXPROCS=1 processes=8 layouts=0 time=4s seed=7 slices=25ms$`, stdout)
	require.Regexp(t, `(?m)^httpjson +\d+ +\d+ +1 +base, moved by \d+ %$`, stdout)
	require.Regexp(t, `(?m)^rawtcp +\d+ +\d+ +\d\.\d{4} +\d\.\d{4}–\d\.\d{4} +\d+\.\d\d % +(faster|slower|equal|undecided)$`, stdout)
	require.Regexp(t, `(?m)^rawtcp (takes 0\.\d\d times as long as httpjson \(0\.\d\d–0\.\d\d\): \d+\.\d µs less CPU per call|is undecided: .*)\.$`, stdout)
	require.Len(t, regexp.MustCompile(`(?m)^[a-z]`).FindAllString(stdout, -1), 4, "a heading, the base, the contestant, a sentence")
	file, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, 1+8, strings.Count(string(file), "\n"), "what was asked for, and each process")
	var last kept
	require.NoError(t, json.Unmarshal(file[bytes.LastIndexByte(file[:len(file)-1], '\n'):], &last))
	require.Equal(t, "rawtcp", last.Contestant)
	require.Len(t, last.Record.Arms, 3)
	_, _, err = typed(t, "versus", "-o", out, "rawtcp")
	require.EqualError(t, err, "rpcbench: versus: -o "+out+": there is such a file already: name another")
}

// What the processes have measured before one died is printed, and what is missing is said.
func TestIncompleteGroups(t *testing.T) {
	record := timing.Record{Arms: []string{"httpjson", "httpjson again", "rawtcp"}}
	for range 10 {
		record.Blocks = append(record.Blocks, []timing.Slice{{Ops: 10, Wall: 1000}, {Ops: 10, Wall: 1000}, {Ops: 10, Wall: 500}})
	}
	for _, test := range []struct {
		why     string
		records int
		base    string
		want    string
	}{
		{"none", 0, `(?m)^stack .*\nrawtcp +not measured$`, `(?m)^rawtcp +not measured\n\n$`},
		{"too few for an interval", 3, `(?m)^httpjson +100 +0 +1 +base, moved by \d+ %$`, `(?m)^rawtcp +50 +0 +incomplete: 3 of 16 processes\n\n$`},
		{"enough for an interval", 9, `(?m)^httpjson +100 +0 +1 +base, moved by \d+ %$`,
			`(?m)^rawtcp +50 +0 +0\.5000 +0\.5000–0\.5000 +0\.00 % +faster, incomplete: 9 of 16 processes$`},
		{"all", 16, `(?m)^httpjson +100 +0 +1 +base, moved by \d+ %$`, `(?m)^rawtcp +50 +0 +0\.5000 +0\.5000–0\.5000 +0\.00 % +faster$`},
		{"the sentence", 16, `(?m)^rawtcp takes 0\.50 times as long as httpjson \(0\.50–0\.50\): 0\.1 µs less per call\.$`, ``},
	} {
		t.Run(test.why, func(t *testing.T) {
			g := group{arms: []string{"httpjson", "httpjson", "rawtcp"}, records: slices.Repeat([]timing.Record{record}, test.records)}
			var out bytes.Buffer
			c := comparison{base: "httpjson", fewest: versus.Fewest, contestants: []string{"rawtcp"}, processes: 16, margin: 2, time: time.Second}
			require.NoError(t, c.print(&out, []*group{&g}))
			require.Regexp(t, test.base, out.String())
			require.Regexp(t, test.want, out.String())
		})
	}
}

// TestUndecidedWhenTheBaseMoves: a comparison during which the machine changed has no verdict, and says why.
func TestUndecidedWhenTheBaseMoves(t *testing.T) {
	for _, c := range []struct {
		why    string
		slower int // processes in which the machine was slower, by a third
		less   time.Duration
		want   string
	}{
		{"a steady machine", 0, 8, `(?m)^rawtcp .* faster$`},
		{"one process met something", 1, 8, `(?m)^rawtcp .* faster$`},
		{"the machine was slower for some time", 4, 8, `(?m)^rawtcp is undecided: it takes 0\.88 times as long as httpjson ` +
			`\(0\.88–0\.88\), and the base moved by 33 % meanwhile\. Try again on a quiet machine\.$`},
		{"slower for some time, which is less than the difference", 4, 2, `(?m)^rawtcp .* faster$`},
	} {
		g := group{arms: []string{"httpjson", "httpjson", "rawtcp"}}
		for i := range 16 {
			takes := time.Duration(30_000)
			if i < c.slower {
				takes = 40_000
			}
			record := timing.Record{Arms: g.arms}
			for range 10 {
				record.Blocks = append(record.Blocks, []timing.Slice{{Ops: 1, Wall: takes}, {Ops: 1, Wall: takes}, {Ops: 1, Wall: takes - takes/c.less}})
			}
			g.records = append(g.records, record)
		}
		var out bytes.Buffer
		comparison := comparison{base: "httpjson", fewest: versus.Fewest, contestants: []string{"rawtcp"}, processes: 16, margin: 2, time: time.Second}
		require.NoError(t, comparison.print(&out, []*group{&g}))
		require.Regexp(t, c.want, out.String(), c.why)
	}
}

// TestVerdictsLieOutsideTheNoiseFloor: a difference that the base has from its own copy too is no verdict.
func TestVerdictsLieOutsideTheNoiseFloor(t *testing.T) {
	for _, c := range []struct {
		why  string
		copy time.Duration // of a call of the base's copy, where the base takes 30 µs and the contestant 1 % more
		want string
	}{
		{"a copy like the base", 30_000, "slower"},
		{"a copy that takes half a percent more", 30_150, "slower"},
		{"a copy that differs as much as the contestant", 30_300, "equal"},
		{"a copy that differs by more than the margin", 31_500, "undecided"},
	} {
		record := timing.Record{Arms: []string{"httpjson", "httpjson again", "rawtcp"}}
		for range 10 {
			record.Blocks = append(record.Blocks, []timing.Slice{{Ops: 1, Wall: 30_000}, {Ops: 1, Wall: c.copy}, {Ops: 1, Wall: 30_300}})
		}
		g := group{arms: []string{"httpjson", "httpjson", "rawtcp"}, records: slices.Repeat([]timing.Record{record}, 16)}
		var out bytes.Buffer
		comparison := comparison{base: "httpjson", fewest: versus.Fewest, contestants: []string{"rawtcp"}, processes: 16, margin: 2, time: time.Second}
		require.NoError(t, comparison.print(&out, []*group{&g}))
		require.Regexp(t, `(?m)^rawtcp .* `+c.want+`$`, out.String(), c.why)
	}
}

// The intervals of all contestants hold together: each is wider than one alone would be.
func TestIntervalsAreSimultaneous(t *testing.T) {
	var g group
	g.arms = []string{"httpjson", "httpjson", "rawtcp"}
	var ratios []float64
	for i := range 8 {
		ratio := 1.1 + 0.01*float64(i)
		ratios = append(ratios, ratio)
		g.records = append(g.records, timing.Record{
			Arms:   []string{"httpjson", "httpjson again", "rawtcp"},
			Blocks: slices.Repeat([][]timing.Slice{{{Ops: 1, Wall: 1e6}, {Ops: 1, Wall: 1e6}, {Ops: 1, Wall: time.Duration(1e6 * ratio)}}}, 10),
		})
	}
	for _, contestants := range [][]string{{"rawtcp"}, {"rawtcp", "httpxml", "connectrpc"}} {
		var out bytes.Buffer
		c := comparison{base: "httpjson", fewest: versus.Fewest, contestants: contestants, processes: 8, margin: 2}
		require.NoError(t, c.print(&out, []*group{&g}))
		i := versus.Interval(ratios, 1-0.05/float64(len(contestants)))
		require.Contains(t, out.String(), fmt.Sprintf("%.4f–%.4f", i.Lo, i.Hi))
	}
}

// A process that fails ends its group; the others go on, and what there is is printed.
func TestFailedGroups(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the children are a shell script")
	}
	block := func(stack string, takes time.Duration) string {
		line, err := json.Marshal(timing.Record{
			Arms:   []string{"httpjson", "httpjson again", stack},
			Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1000}, {Ops: 1, Wall: 1000}, {Ops: 1, Wall: takes}}},
		})
		require.NoError(t, err)
		return string(line)
	}
	script := filepath.Join(t.TempDir(), "children")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nread spec\ncase $spec in *rawtcp*) for i in 1 2; do read line; echo '"+block("rawtcp", 500)+
		"'; done; read line; echo it died >&2; exit 1;; esac\nwhile read line; do echo '"+block("httpxml", 3000)+"'; done\n"), 0o700))
	var out bytes.Buffer
	c := comparison{base: "httpjson", fewest: versus.Fewest, contestants: []string{"httpxml", "rawtcp"}, processes: 8, margin: 2, time: 4 * time.Second}
	c.programs = map[string][]versus.Program{"": {{Path: script}}}
	groups, err := c.run(t.Context(), func(string, time.Duration, time.Duration) {}, func(*group, *timing.Record) error { return nil })
	require.EqualError(t, err, "it died")
	require.NoError(t, c.print(&out, groups))
	require.Regexp(t, `(?m)^httpxml +3000 +0 +3\.0000 .* slower$`, out.String())
	require.Regexp(t, `(?m)^rawtcp +not measured$`, out.String())
}

func TestProgressIsForTerminals(t *testing.T) {
	var out bytes.Buffer
	progress(&out)("x", time.Second, 2*time.Second)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	progress(file)("x", time.Second, 2*time.Second)
	require.Empty(t, out.String())
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.NoError(t, file.Close())
}

// list names whatever can be typed, and version what a bug report needs.
func TestListAndVersion(t *testing.T) {
	stdout, _, err := typed(t, "list")
	require.NoError(t, err)
	for _, s := range stacks.All() {
		require.Regexp(t, "(?m)^  "+regexp.QuoteMeta(s.Name)+" +HTTP ", stdout)
	}
	for _, w := range workload.All() {
		require.Regexp(t, "(?m)^  "+w.Name+" +"+regexp.QuoteMeta(w.Does), stdout)
	}
	require.Regexp(t, `(?m)^  goccy +github.com/goccy/go-json$`, stdout)
	stdout, _, err = typed(t, "version")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^go=go1\.\d+`, stdout)
	require.Regexp(t, `(?m)^google.golang.org/grpc@v1\.\d+`, stdout)
}

// The manual is the package comment: its examples run, up to the point where they would measure, and it names every flag.
func TestManual(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ParseComments)
	require.NoError(t, err)
	manual := (*ast.File)(file).Doc.Text()
	_, examples, ok := strings.Cut(manual, "Examples:")
	require.True(t, ok)
	n := 0
	for line := range strings.Lines(examples) {
		if args := strings.Fields(line); len(args) > 0 {
			n++
			_, _, err := typed(t, slices.Insert(args[1:], 1, "-time", "1s")...)
			require.ErrorContains(t, err, "1s over 16 processes leave less than", "the last of the checks: %s", line)
		}
	}
	require.Equal(t, 3, n)
	for _, command := range []string{"run", "report", "versus", "calibrate", "serve", "list", "version"} {
		help, _, err := typed(t, command, "-h")
		require.NoError(t, err)
		require.Contains(t, help, "example: rpcbench "+command)
		for _, flag := range regexp.MustCompile(`(?m)^  -[a-z]+`).FindAllString(help, -1) {
			require.Contains(t, manual, strings.TrimSpace(flag))
		}
	}
}
