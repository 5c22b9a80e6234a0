// Package calibration measures for hours how far verdicts hold, and tries the rule of verdicts on what was recorded.
package calibration

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/testkit/frozen"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

var (
	long      = flag.Bool("long", false, "link this program anew")
	calibrate = flag.String("calibrate", "", "`folder` for TestCalibration's records, as seen from the module's root")
	repeats   = flag.Int("repeats", 0, "of each experiment of TestCalibration at most; as many as planned unless given")
	only      = flag.String("only", "", "`experiments` of TestCalibration, separated by commas; all unless given")
)

// TestMain is also the process that a Program starts.
func TestMain(m *testing.M) {
	jobs := map[string]child.Job{child.Measures: versus.Measuring()}
	switch done, err := child.Serve(os.Stdin, os.Stdout, find, jobs); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

func find(name string) (rpcbench.Stack, error) {
	switch name {
	case "httpjson":
		return httpjson.New(), nil
	case "rawtcp":
		return rawtcp.New(), nil
	}
	return gRPC(name)
}

// TestCalibration measures for hours how far verdicts hold on this machine. Interrupted, the same command goes on. The
// table of what is there is printed, and written to figures.txt.
func TestCalibration(t *testing.T) {
	if *calibrate == "" {
		t.Skip("-calibrate names no folder")
	}
	if _, limited := t.Deadline(); limited {
		t.Fatal("a calibration takes hours: add -timeout 0")
	}
	c := calibration{dir: *calibrate, plan: experiments(), log: t.Log}
	if !filepath.IsAbs(c.dir) {
		c.dir = filepath.Join("..", c.dir)
	}
	for name := range strings.FieldsFuncSeq(*only, func(r rune) bool { return r == ',' }) {
		if !slices.ContainsFunc(c.plan, func(e experiment) bool { return e.name == name }) {
			t.Fatalf("-only: no experiment is called %q: calibrate_test.go lists them", name)
		}
		c.only = append(c.only, name)
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if c.programs, err = link(ctx, t.TempDir(), 24); err == nil {
		err = c.run(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// link makes n programs of this test, which differ in where functions lie: the same n each time.
func link(ctx context.Context, dir string, n int) (programs []versus.Program, err error) {
	for layout := 1; layout <= n; layout++ {
		p := versus.Program{Path: filepath.Join(dir, fmt.Sprint("program", layout)), Layout: layout}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", p.Path, fmt.Sprintf("-ldflags=-randlayout=%d", layout))
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that go ends the linker
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("no layout can be linked: %w: %s", err, bytes.TrimSpace(said))
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// An experiment is a comparison that is made again and again.
type experiment struct {
	name, base, contestant     string
	procs, layouts             int
	repeats, processes, blocks int // processes of a repeat, blocks of a process
	slice                      time.Duration
}

func experiments() (all []experiment) {
	const json, grpc = "httpjson", "grpcprotobuf"
	add := func(name string, procs, layouts, repeats int, base, contestant string) {
		all = append(all, experiment{name, base, contestant, procs, layouts, repeats, frozen.PerRepeat, 12, versus.Slice})
	}
	add("replication", 1, 8, 30, json, grpc)
	add("defaultprocs", 0, 8, 30, json, grpc)
	add("onebuild", 1, 1, 30, json, grpc)
	add("same", 1, 8, 30, json, json)
	add("work-1600ns", 1, 8, 30, grpc, grpc+"+work=1600ns") // about a twentieth of a small call
	add("apart", 1, 8, 10, json, grpc)
	add("apart-same", 1, 1, 20, json, json)
	add("apart-layouts", 1, 8, 20, json, json)
	add("apart-work-1us", 1, 8, 10, grpc, grpc+"+work=1us")
	return all
}

type repeat struct {
	experiment
	index int
	path  string // of its records
}

type calibration struct {
	dir      string
	plan     []experiment
	only     []string         // names; nil is all
	programs []versus.Program // links of one source
	log      func(...any)
}

// run measures the repeats that have no file, in random order, the same each time: so all experiments share a bad hour
// of the machine. One that fails leaves no file, and the others go on. Nothing is measured beside files that can't be
// read or that another program or machine made.
func (c calibration) run(ctx context.Context) (failed error) {
	binary, err := os.ReadFile(c.programs[0].Path)
	env := append(environ.List(), fmt.Sprintf("program=%.6x", sha256.Sum256(binary)))
	if err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return err
	}
	var all, missing []repeat
	for _, e := range c.plan {
		for i := range min(e.repeats, cmp.Or(*repeats, e.repeats)) {
			all = append(all, repeat{e, i, filepath.Join(c.dir, fmt.Sprintf("%s.%02d.jsonl", e.name, i))})
		}
	}
	random := rand.New(rand.NewPCG(1, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, r := range all {
		there, found, err := recorded(r.path)
		other, own := without(there, env), without(env, there)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, r)
		case err != nil || len(found) != r.processes:
			err = cmp.Or(err, fmt.Errorf("%s has %d processes of %d", r.path, len(found), r.processes))
			return fmt.Errorf("%w: delete the file to measure its repeat again", err)
		case other+own != "":
			return fmt.Errorf("%s is of another program or machine (%s, here %s): name another folder", r.path, other, own)
		}
	}
	missing = slices.DeleteFunc(missing, func(r repeat) bool { return c.only != nil && !slices.Contains(c.only, r.name) })
	for i, r := range missing {
		c.log(filepath.Base(r.path)+",", i+1, "of", len(missing))
		lines, err := c.measure(ctx, r, env)
		if ctx.Err() != nil {
			failed = errors.New("interrupted: the same command goes on where this one stopped")
			break
		}
		if err == nil {
			err = place(r.path, lines)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w: the same command tries again", filepath.Base(r.path), err))
		}
	}
	found, err := c.found()
	table := figures(found)
	if c.log("\n" + table); err == nil {
		err = place(filepath.Join(c.dir, "figures.txt"), []byte(table))
	}
	return cmp.Or(failed, err)
}

// without says what only the first of two environments has, of what lasts for a whole calibration.
func without(env, other []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(env), func(s string) bool {
		return slices.Contains(other, s) || strings.HasPrefix(s, "date=") || strings.HasPrefix(s, "commit=")
	}), " ")
}

// noted is a line of a file of records: the first has the environment, the others what a process measured.
type noted struct {
	Environment []string       `json:"environment,omitempty"`
	Contestant  string         `json:"contestant,omitempty"`
	Record      *timing.Record `json:"record,omitempty"`
}

func recorded(path string) (env []string, found []verdict.Process, err error) {
	data, err := os.ReadFile(path)
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var l noted
		var p verdict.Process
		if err = json.Unmarshal(line, &l); err == nil && l.Record != nil {
			p, err = versus.ProcessOf(*l.Record)
			found = append(found, p)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d is no record: %w", path, n, err)
		}
		env = append(env, l.Environment...)
	}
	return env, found, err
}

// repeatsIn has the processes of an experiment's files, and the environment of the last one.
func repeatsIn(dir, experiment string) (env []string, all []verdict.Process, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, experiment+".*.jsonl"))
	for i := 0; i < len(paths) && err == nil; i++ {
		var found []verdict.Process
		env, found, err = recorded(paths[i])
		all = append(all, found...)
	}
	return env, all, err
}

// measure returns the lines of a repeat's file. A repeat draws its layouts from all programs.
func (c calibration) measure(ctx context.Context, r repeat, env []string) ([]byte, error) {
	var text bytes.Buffer
	lines, links, random := json.NewEncoder(&text), slices.Clone(c.programs), rand.New(rand.NewPCG(2, uint64(r.index)))
	random.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
	err := lines.Encode(noted{Environment: env})
	one := &versus.Comparison{Base: links[:min(r.layouts, len(links))], Spec: versus.Spec{Slice: r.slice, Blocks: r.blocks,
		Arms: []string{r.base, r.base, r.contestant}, Procs: r.procs, Seed: uint64(r.index * r.processes)}}
	if strings.HasPrefix(r.name, "apart") {
		one.Other = one.Base
	}
	all := versus.Campaign{Plan: verdict.Plan{Processes: r.processes}, Comparisons: []*versus.Comparison{one},
		Most: 1, // nothing goes on
		Seed: uint64(r.index), Kept: func(_ *versus.Comparison, record timing.Record) error {
			return lines.Encode(noted{Contestant: r.contestant, Record: &record})
		}}
	if err == nil {
		err = all.Run(ctx)
	}
	if err == nil && one.Left != "" {
		err = errors.New(one.Left)
	}
	return text.Bytes(), err
}

// place writes a file beside its place and renames it, so that no half of one is left there.
func place(name string, data []byte) error {
	err := os.WriteFile(name+".part", data, 0o644)
	if err == nil {
		err = os.Rename(name+".part", name)
	}
	return err
}

// found has all repeats that dir has a file of, by experiment.
func (c calibration) found() (all []frozen.Comparison, err error) {
	hour, origin := strings.TrimPrefix(filepath.ToSlash(c.dir), "../results/"), ""
	for _, e := range c.plan {
		env, processes, err := repeatsIn(c.dir, e.name)
		if err != nil {
			return nil, err
		}
		if origin == "" {
			origin = strings.Join(slices.DeleteFunc(env, func(s string) bool {
				key, _, _ := strings.Cut(s, "=")
				return !slices.Contains([]string{"date", "go", "commit", "cpu", "kernel"}, key)
			}), " ")
		}
		if len(processes) > 0 {
			all = append(all, frozen.Comparison{Hour: hour, Origin: origin, Experiment: e.name,
				Compared: e.contestant + " to " + e.base, Processes: processes})
		}
	}
	slices.SortFunc(all, func(a, b frozen.Comparison) int { return strings.Compare(a.Experiment, b.Experiment) })
	return all, nil
}

// gRPC returns grpcprotobuf, or a copy whose handlers are busy for that long: grpcprotobuf+work=300ns.
func gRPC(name string) (rpcbench.Stack, error) {
	s := grpcprotobuf.New()
	amount, ok := strings.CutPrefix(name, s.Name+"+work=")
	d, err := time.ParseDuration(amount)
	switch {
	case name == s.Name:
		return s, nil
	case !ok || err != nil:
		return rpcbench.Stack{}, errors.New("no stack is called " + name)
	}
	const rounds = 10_000
	took := time.Hour // the shortest of a hundred: what the rounds take undisturbed
	for range 100 {
		start := time.Now()
		work(rounds)
		took = min(took, time.Since(start))
	}
	n := int(rounds * float64(d) / float64(took))
	return injected(s, name, func() { work(n) }), nil
}

func injected(s rpcbench.Stack, name string, do func()) rpcbench.Stack {
	s.Name = name
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return grpcapi.OwnServer(config, grpc.UnaryInterceptor(
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				do()
				return handle(ctx, request)
			})), nil
	}
	return s
}

// work runs a generator of random numbers, which touches no memory.
//
//go:noinline
func work(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x) // or a compiler might leave it all out
}

func TestInjectedWorkRunsOncePerCall(t *testing.T) {
	for _, e := range experiments() {
		s, err := find(e.contestant)
		require.NoError(t, err)
		require.Equal(t, e.contestant, s.Name)
	}
	var n atomic.Int64
	f, err := rpcbench.Start(t.Context(), injected(grpcprotobuf.New(), "x", func() { n.Add(1) }), rpcbench.Config{})
	require.NoError(t, err)
	before := n.Load()
	_, err = testkit.As[rpcbench.Users](t, f).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	require.EqualValues(t, 1, n.Load()-before)
	require.NoError(t, f.Close())
}

func TestCalibrationGoesOn(t *testing.T) {
	testkit.Alone(t)
	const slice = time.Millisecond
	self, err := os.Executable()
	require.NoError(t, err)
	tiny := experiment{"tiny", "rawtcp", "httpjson", 1, 1, 2, 3, 2, slice}
	bad := experiment{"bad", "rawtcp", "httpjsno", 1, 1, 1, 3, 2, slice}
	var begun []string
	measured := func() []string { return slices.DeleteFunc(begun, func(s string) bool { return s[0] == '\n' }) }
	c := calibration{filepath.Join(t.TempDir(), "new"), []experiment{tiny, bad}, []string{"tiny"},
		[]versus.Program{{Path: self}}, nil}
	ctx, cancel := context.WithCancel(t.Context())
	c.log = func(said ...any) {
		if begun = append(begun, fmt.Sprint(said...)); len(begun) == 2 {
			cancel()
		}
	}
	require.EqualError(t, c.run(ctx), "interrupted: the same command goes on where this one stopped")
	first, _, _ := strings.Cut(begun[0], ",")
	first = filepath.Join(c.dir, first)
	was, err := os.ReadFile(first)
	require.NoError(t, err)
	begun, c.only = nil, nil
	require.ErrorContains(t, c.run(t.Context()), "bad.00.jsonl: no stack is called httpjsno: the same command tries again")
	require.Len(t, measured(), 2, "the other repeat, and what failed")
	now, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, string(was), string(now), "a repeat that was measured stays as it is")
	files, err := filepath.Glob(c.dir + "/*")
	require.NoError(t, err)
	require.Len(t, files, 3, "two repeats and the table")
	for why, changed := range map[string]struct{ from, to, want string }{
		"another program":   {`"program=[^"]+"`, `"program=0"`, " is of another program or machine (program=0, here "},
		"another machine":   {`"cores=[^"]+"`, `"cores=0"`, " is of another program or machine (cores=0, here "},
		"an unknown record": {`"blocks":\[`, `"blocks":[[],`, ":2 is no record: "},
		"no record at all":  {`\n.*\n`, "\nnonsense\n", ":2 is no record: "},
		"a process less":    {`.*\n$`, "", " has 2 processes of 3: delete the file to measure its repeat again"},
	} {
		t.Run(why, func(t *testing.T) {
			data := regexp.MustCompile(changed.from).ReplaceAll(was, []byte(changed.to))
			require.NoError(t, os.WriteFile(first, data, 0o600))
			begun = nil
			require.ErrorContains(t, c.run(t.Context()), first+changed.want)
			require.Empty(t, begun, "nothing is measured")
		})
	}
}

func TestLinksHaveLayoutsOfTheirOwn(t *testing.T) {
	if !*long {
		t.Skip("links two programs: -long")
	}
	programs, err := link(t.Context(), t.TempDir(), 2)
	require.NoError(t, err)
	one, err := os.ReadFile(programs[0].Path)
	require.NoError(t, err)
	other, err := os.ReadFile(programs[1].Path)
	require.NoError(t, err)
	require.False(t, bytes.Equal(one, other), "layouts %d and %d are the same", programs[0].Layout, programs[1].Layout)
}
