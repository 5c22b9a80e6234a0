package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aclements/go-moremath/mathx"

	"github.com/rpcbench/rpcbench/cli/internal/builds"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const pool = 24 // links of this source that the experiments draw from

// experiment is a comparison that is made again and again, each time as versus makes it.
type experiment struct {
	name string
	comparison
	repeats int
}

// experiments are all, or those of these names: about two hours on one machine.
func experiments(only ...string) (plan []experiment, err error) {
	const (
		processes = 16
		blocks    = 12 // of a process, fewer than versus has by default: so intervals are wider, and no less honest

		json, grpc = "httpjson", "grpcprotobuf"
	)
	var known []string
	add := func(name string, procs, layouts, repeats int, base, contestant string) {
		known = append(known, name)
		if len(only) == 0 || slices.Contains(only, name) {
			plan = append(plan, experiment{name, comparison{
				base: base, contestants: []string{contestant}, time: processes * blocks * versus.Turn, processes: processes, layouts: layouts,
				procs: procs, margin: 100 * versus.Margin, fewest: versus.Fewest, apart: strings.HasPrefix(name, "apart"),
			}, repeats})
		}
	}
	add("replication", 1, 8, 30, json, grpc)
	add("defaultprocs", 0, 8, 30, json, grpc)
	add("onebuild", 1, 1, 30, json, grpc)
	add("same", 1, 8, 30, json, json)
	for _, work := range []string{"150ns", "300ns", "600ns"} {
		add("work-"+work, 1, 8, 10, grpc, grpc+"+work="+work)
	}
	add("apart", 1, 8, 10, json, grpc)
	add("apart-same", 1, 1, 20, json, json)
	add("apart-layouts", 1, 8, 20, json, json)
	add("apart-work-1us", 1, 8, 10, grpc, grpc+"+work=1us")
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, wrong("calibrate: no experiment %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return plan, nil
}

func calibrateCommand(p program, stdout, stderr io.Writer) command {
	return command{
		name: "calibrate", does: "Measure how far versus is to be trusted on this machine, in about two hours",
		example: "rpcbench calibrate -out results/today -only replication",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			out := f.String("out", "", "`folder` for records and figures; a calibration that was interrupted goes on")
			only := f.String("only", "", "`experiments`, separated by commas; all unless given")
			read := f.Bool("read", false, "measure nothing, read the records that are there")
			return func(ctx context.Context, _ []string) error {
				if *out == "" {
					return wrong("calibrate: -out names the folder for what is measured")
				}
				plan, err := experiments(strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })...)
				if err != nil {
					return err
				}
				if !*read {
					err = p.calibrateHere(ctx, *out, plan, progress(stderr))
				}
				return cmp.Or(err, figures(*out, stdout)) // of what there is
			}
		},
	}
}

// calibrateHere links this source, the same layouts in each session, and measures.
func (p program) calibrateHere(ctx context.Context, dir string, plan []experiment, show show) error {
	folder, err := builds.Open(ctx, p.main)
	if err != nil {
		return fmt.Errorf("rpcbench: calibrate: no layouts can be linked: %w", err)
	}
	var seeds []uint64
	for i := range pool {
		seeds = append(seeds, uint64(i+1))
	}
	show("linking", pool*time.Second, pool*time.Second)
	programs, _, err := folder.Link(ctx, "", seeds...)
	if err == nil {
		err = calibrate(ctx, dir, plan, programs, show)
	}
	return errors.Join(err, folder.Remove())
}

// calibrate measures the repeats that dir has no file of yet. Repeats come in random order, the same each time, so
// that experiments share a bad hour of the machine. A repeat that fails leaves no file and does not stop the others;
// the next session tries again.
func calibrate(ctx context.Context, dir string, plan []experiment, programs []versus.Program, show show) error {
	binary, err := os.ReadFile(programs[0].Path)
	if err != nil {
		return err
	}
	program := fmt.Sprintf("program=%.6x", sha256.Sum256(binary)) // records of two programs are not mixed
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	type repeat struct {
		comparison
		path  string
		takes time.Duration
	}
	var all []repeat
	var left time.Duration
	for _, e := range plan {
		for i := range e.repeats {
			r := repeat{comparison: e.comparison, path: e.path(dir, i)}
			r.notes, r.seed, r.out = []string{program}, uint64(i*e.processes), r.path+".part"
			random := rand.New(rand.NewPCG(2, uint64(i)))
			own := slices.Clone(programs)
			random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
			r.programs = map[string][]versus.Program{"": own[:min(e.layouts, len(own))]}
			r.takes = time.Duration(r.processes) * r.comparison.takes(&group{arms: r.arms(r.contestants[0])})
			left += r.takes
			all = append(all, r)
		}
	}
	random := rand.New(rand.NewPCG(1, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	defer show("", 0, 0)
	var failed []string
	whole := left
	for _, r := range all {
		show(filepath.Base(r.path), left, whole)
		left -= r.takes
		there, _, err := readRecords(r.path)
		if err == nil {
			if own := append(environ.List(), program); !slices.Equal(lasting(there), lasting(own)) {
				return fmt.Errorf("rpcbench: calibrate: %s was made on another machine or by another program: name another folder with -out", r.path)
			}
			continue
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		_ = os.Remove(r.out) // of a session that was interrupted
		_, err = r.measure(ctx, func(string, time.Duration, time.Duration) {})
		if ctx.Err() != nil {
			return errors.New("rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
		}
		if err = cmp.Or(err, os.Rename(r.out, r.path)); err != nil {
			failed = append(failed, filepath.Base(r.path)+": "+err.Error())
		}
	}
	if failed != nil {
		return fmt.Errorf("rpcbench: calibrate: %s: the same command tries again what failed", strings.Join(failed, "; "))
	}
	return nil
}

func (e experiment) path(dir string, repeat int) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%02d.jsonl", e.name, repeat))
}

// lasting leaves out what may differ between the sessions of one calibration.
func lasting(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(s string) bool {
		return strings.HasPrefix(s, "date=") || strings.HasPrefix(s, "commit=")
	})
}

// readRecords reads what comparison.measure has written: the environment and the records.
func readRecords(path string) (env []string, all []timing.Record, err error) {
	const bad = "rpcbench: calibrate: %s:%d is %s (%w): delete the file to measure its repeat again"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		var k kept
		n++
		if err := json.Unmarshal(line, &k); err != nil {
			return nil, nil, fmt.Errorf(bad, path, n, "no record", err)
		}
		if n == 1 {
			env = k.Environment
		}
		if k.Record == nil {
			continue
		}
		for arm := 1; arm < 3; arm++ {
			if _, err := k.Record.Ratio(arm, 0, 0.5); err != nil {
				return nil, nil, fmt.Errorf(bad, path, n, "not of a base, its copy and a contestant", err)
			}
		}
		all = append(all, *k.Record)
	}
	return env, all, nil
}

// figures writes a table to figures.txt in dir and to w. The table has a line per experiment, and answers three
// questions. How often is a verdict false: those of "same" that are faster or slower. How small a difference is
// found: the verdicts "slower" on a copy with work. Does an interval hold what it says: "hold the others' mean".
func figures(dir string, w io.Writer) error {
	plan, _ := experiments() // only a name can be wrong
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	shown := map[string]bool{}
	var lines []string
	for _, e := range plan {
		var repeats [][]timing.Record
		for i := range e.repeats {
			there, records, err := readRecords(e.path(dir, i))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if env := strings.Join(there, " "); !shown[env] {
				fmt.Fprintln(t, "#", env)
				shown[env] = true
			}
			if len(records) == e.processes {
				repeats = append(repeats, records)
			}
		}
		if len(repeats) > 1 {
			lines = append(lines, e.line(repeats))
		}
	}
	if len(shown) == 0 {
		return fmt.Errorf("rpcbench: calibrate: %s has no records", dir)
	}
	fmt.Fprintln(t, "experiment\tcompared\tGOMAXPROCS\tlayouts\trepeats of 16 processes\tthe base moved\tmean ratio\tmean half-width\t"+
		"hold the others' mean\tfaster, slower, equal, undecided")
	for _, line := range lines {
		fmt.Fprintln(t, line)
	}
	_ = t.Flush()
	_, err := w.Write(text.Bytes())
	return cmp.Or(err, os.WriteFile(filepath.Join(dir, "figures.txt"), text.Bytes(), 0o644))
}

// line is an experiment's, of all repeats, also of those whose base moved.
func (e experiment) line(repeats [][]timing.Record) string {
	var intervals []timing.Interval
	verdicts := map[timing.Verdict]int{}
	sum, width, held, moved := 0.0, 0.0, 0, 0
	for _, own := range repeats {
		r := e.result(&group{arms: e.arms(e.contestants[0]), records: own}, 0.95)
		if r.base.Moved > versus.Steady {
			moved++
		}
		verdicts[r.verdict]++
		intervals = append(intervals, r.arm.Ratio)
		sum += math.Log(r.arm.Ratio.Median)
		width += 50 * (r.arm.Ratio.Hi - r.arm.Ratio.Lo)
	}
	n := len(intervals)
	for _, i := range intervals {
		if others := math.Exp((sum - math.Log(i.Median)) / float64(n-1)); i.Lo <= others && others <= i.Hi {
			held++
		}
	}
	return fmt.Sprintf("%s\t%s to %s\t%s\t%d\t%d\t%d\t%.4f\t%.2f %%\t%s\t%d, %d, %d, %d", e.name, e.contestants[0], e.base,
		versus.Procs(e.procs), e.layouts, n, moved, math.Exp(sum/float64(n)), width/float64(n), share(held, n),
		verdicts[timing.Faster], verdicts[timing.Slower], verdicts[timing.Equal], verdicts[timing.Undecided])
}

// share is k of n in percent with the limits of its 95 % interval: C. J. Clopper and E. S. Pearson, Biometrika 26
// (1934).
func share(k, n int) string {
	// percent is the share at which k or more of n have that probability.
	percent := func(k int, tail float64) float64 {
		const steps = 1e9
		return 100 / steps * float64(sort.Search(steps, func(i int) bool {
			return k == 0 || k <= n && mathx.BetaInc(float64(i)/steps, float64(k), float64(n-k+1)) >= tail
		}))
	}
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f–%.1f)", k, n, 100*float64(k)/float64(n), percent(k, 0.025), percent(k+1, 0.975))
}
