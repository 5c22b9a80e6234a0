package versus

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"
)

const perRepeat = 16 // processes

var update = flag.Bool("update", false, "write the tables of docs/method.md")

// A frozen comparison is what the rule needs of all processes that compared two stacks within an hour.
type frozen struct {
	hour       string // the folder of the records
	experiment string // of TestCalibration
	compared   string // contestant and base
	processes  []Process
}

// repeats cuts the processes into comparisons of n in a row. What is left over at the end makes none.
func (f frozen) repeats(n int) [][]Process {
	return slices.Collect(slices.Chunk(f.processes[:len(f.processes)/n*n], n))
}

func (f frozen) plan() Plan {
	cores := f.experiment == "defaultprocs"
	return Plan{AllCores: cores, OneCaller: cores}
}

// thawed reads testdata/processes.txt, which internal/tools/freeze writes.
func thawed(t *testing.T) (all []frozen) {
	t.Helper()
	text, err := os.ReadFile("testdata/processes.txt")
	require.NoError(t, err)
	hour := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "hour":
			hour = words[1]
		case words[0] == "comparison":
			all = append(all, frozen{hour: hour, experiment: words[1], compared: strings.Join(words[2:], " ")})
		default:
			var p Process
			_, err := fmt.Sscan(line, &p.Layout, &p.Ns[0], &p.Ns[1], &p.Ns[2], &p.CPUNs[0], &p.CPUNs[1], &p.CPUNs[2],
				&p.Ratio, &p.Copy)
			require.NoError(t, err, line)
			last := &all[len(all)-1]
			last.processes = append(last.processes, p)
		}
	}
	return all
}

// TestRuleOnFrozenRecords makes the rule's table from what was recorded in nine hours on two machines. The table guards
// against slips, and serves whoever tries another rule. It is no evidence for the rule, whose numbers were chosen on
// these records: that takes a later hour.
func TestRuleOnFrozenRecords(t *testing.T) {
	type counts struct { // of repeats
		all, decided     int // of gRPC to JSON; decided are faster or slower
		wrong            int // of them, faster or equal: gRPC took longer in every hour
		falsely          int // of them, faster or slower if each hour's ratios are shifted so that their mean is 1
		slower2, slower4 int // of them, slower if the mean is exp(0.02), exp(0.04)
		copies, called   int // of a third copy of JSON, and those called different
	}
	all := thawed(t)
	made := func(decide func(Plan, []Process) Verdict, processes int) (c counts) {
		for _, f := range all {
			var logs []float64
			for _, p := range f.processes {
				logs = append(logs, math.Log(p.Ratio))
			}
			mean := math.Exp(stats.Mean(logs))
			for _, repeat := range f.repeats(processes) {
				count := func(n *int, times float64, counted ...Verdict) {
					shifted := slices.Clone(repeat)
					for i := range shifted {
						shifted[i].Ratio *= times
					}
					if slices.Contains(counted, decide(f.plan(), shifted)) {
						*n++
					}
				}
				switch f.experiment {
				case "replication", "defaultprocs":
					c.all++
					count(&c.decided, 1, Faster, Slower)
					count(&c.wrong, 1, Faster, Equal)
					count(&c.falsely, 1/mean, Faster, Slower)
					count(&c.slower2, math.Exp(0.02)/mean, Slower)
					count(&c.slower4, math.Exp(0.04)/mean, Slower)
				case "same":
					c.copies++
					count(&c.called, 1, Faster, Slower)
				}
			}
		}
		return c
	}
	table := "| rule | decided | false, of no difference | slower, of 2 % | slower, of 4 % | copies called different |\n" +
		"|---|---:|---:|---:|---:|---:|\n"
	row := func(rule string, decide func(Plan, []Process) Verdict) counts {
		c, half := made(decide, perRepeat), made(decide, perRepeat/2)
		table += fmt.Sprintf("| %s | %d of %d (%d of %d) | %d (%d) | %d (%d) | %d (%d) | %d of %d (%d of %d) |\n", rule,
			c.decided, c.all, half.decided, half.all, c.falsely, half.falsely, c.slower2, half.slower2, c.slower4, half.slower4,
			c.called, c.copies, half.called, half.copies)
		return c
	}
	row("before: all of a movement above 15 %, the widest of three sizes of batches", before)
	c := row("now", func(p Plan, all []Process) Verdict { return Decide(p, all).Verdict })
	require.Equal(t, 271, c.all)
	require.GreaterOrEqual(t, c.decided, 230)
	require.Zero(t, c.wrong, "decided, but not as the whole hour")
	require.LessOrEqual(t, c.falsely, 4)
	require.Zero(t, c.called, "copies called different")
	written(t, "rule", table)
}

// before is the rule that Decide took the place of. A base that moved by more than 15 % counted its whole movement as
// noise, and of three sizes of batches of processes in a row the widest interval was taken.
func before(_ Plan, all []Process) Verdict {
	const steady, level = 0.15, 0.95
	over := func(value func(Process) float64) (mean, half float64) {
		var logs, means []float64
		byLayout := map[int][]float64{}
		for _, p := range all {
			x := math.Log(value(p))
			logs, byLayout[p.Layout] = append(logs, x), append(byLayout[p.Layout], x)
		}
		mean, half = student(logs, level)
		for size := 2; len(logs)/size >= 4; size *= 2 {
			var batches []float64
			for batch := range slices.Chunk(logs[:len(logs)/size*size], size) {
				batches = append(batches, stats.Mean(batch))
			}
			_, wider := student(batches, level)
			half = max(half, wider)
		}
		if len(byLayout) > 1 {
			for _, own := range byLayout {
				means = append(means, stats.Mean(own))
			}
			_, ofLayouts := student(means, level)
			mean, half = stats.Mean(means), max(half, ofLayouts)
		}
		return mean, half
	}
	mean, half := over(func(p Process) float64 { return p.Ratio })
	again, halfAgain := over(func(p Process) float64 { return p.Copy })
	var bases []float64
	for _, p := range all {
		bases = append(bases, p.Ns[0])
	}
	floor := math.Exp(math.Abs(again)+halfAgain) - 1
	if m := moved(bases); m > steady {
		floor = max(floor, m)
	}
	return Result{Lo: math.Exp(mean - half), Hi: math.Exp(mean + half), CopyFloor: floor}.verdict()
}

// TestFrozenProcessesAreTheRecords: for records that are still in the tree, internal/tools/freeze computed what
// ProcessOf does.
func TestFrozenProcessesAreTheRecords(t *testing.T) {
	if _, err := os.Stat("../../results"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the module has no results")
	}
	checked := 0
	for _, f := range thawed(t) {
		found, err := repeatsIn(filepath.Join("../..", f.hour), f.experiment)
		require.NoError(t, err)
		if found == nil {
			continue // the records are in the repository's history
		}
		require.Len(t, f.processes, len(found), "%s of %s", f.experiment, f.hour)
		for i, p := range found {
			was := f.processes[i]
			require.Equal(t, p.Layout, was.Layout)
			require.InDelta(t, p.Ratio, was.Ratio, 1e-5)
			require.InDelta(t, p.Copy, was.Copy, 1e-5)
			require.InDeltaSlice(t, p.Ns[:], was.Ns[:], 1)
			require.InDeltaSlice(t, p.CPUNs[:], was.CPUNs[:], 1)
			checked++
		}
	}
	require.Positive(t, checked)
}

// TestFiguresOfRecords: a calibration's own table has the rows that its frozen processes make.
func TestFiguresOfRecords(t *testing.T) {
	if _, err := os.Stat("../../results"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the module has no results")
	}
	hours := map[string][]frozen{}
	for _, f := range thawed(t) {
		if _, err := os.Stat(filepath.Join("../..", f.hour)); err == nil && filepath.Base(f.hour) == "calibration" {
			hours[f.hour] = append(hours[f.hour], f)
		}
	}
	require.NotEmpty(t, hours)
	for hour, all := range hours {
		table, err := calibration{dir: "../../" + hour, plan: experiments()}.table()
		require.NoError(t, err)
		require.ElementsMatch(t, strings.Split(figures(all), "\n"), strings.Split(table, "\n"))
	}
}

// TestCalibrationTable: docs/method.md has the figures of the calibrations of several layouts, by the present rule. -v
// prints those of one build.
func TestCalibrationTable(t *testing.T) {
	var layouts, oneBuild []frozen
	for _, f := range thawed(t) {
		if filepath.Base(f.hour) == "calibration" {
			layouts = append(layouts, f)
		} else {
			oneBuild = append(oneBuild, f)
		}
	}
	t.Log(figures(oneBuild))
	held := map[string][2]int{} // of intervals of gRPC to JSON: those that hold, and all
	for _, f := range oneBuild {
		repeats := f.repeats(perRepeat)
		if f.experiment != "replication" && f.experiment != "defaultprocs" || len(repeats) < 2 {
			continue
		}
		machine := "EPYC"
		if strings.Contains(f.hour, "xeon") {
			machine = "Xeon"
		}
		if f.hour == "results/2026-11-21-xeon-2vcpu" {
			machine = "bad hour"
		}
		_, hold := f.line(repeats)
		held[machine] = [2]int{held[machine][0] + hold, held[machine][1] + len(repeats)}
	}
	older := "In older hours, of one build, it was"
	for i, machine := range []string{"Xeon", "bad hour", "EPYC"} {
		older += fmt.Sprintf("%s %d of %d %s", []string{"", ",", ", and"}[i], held[machine][0], held[machine][1],
			[]string{"on the Xeon", "in its bad hour", "on the EPYC.\n"}[i])
	}
	written(t, "calibration", figures(layouts)+older)
}

// figures is a table with a row for each comparison that was repeated.
func figures(all []frozen) string {
	table := "| records | experiment | compared | GOMAXPROCS | repeats of 16 processes | mean ratio | SD of a repeat | " +
		"mean half-width | hold the others' mean | faster, slower, equal, undecided |\n" +
		"|---|---|---|---|---:|---:|---:|---:|---:|---:|\n"
	held, together := 0, 0
	for _, f := range all {
		repeats := f.repeats(perRepeat)
		if len(repeats) < 2 {
			continue
		}
		line, hold := f.line(repeats)
		table += line
		if !strings.HasPrefix(f.experiment, "apart") {
			held, together = held+hold, together+len(repeats)
		}
	}
	return table + fmt.Sprintf("\nIn one process each, %d of %d intervals hold the mean of the other repeats.\n", held,
		together)
}

// line is a row of the table, and how many intervals hold the mean of the other repeats. Half-widths are percent of the
// ratio.
func (f frozen) line(repeats [][]Process) (line string, held int) {
	var results []Result
	var logs, halves []float64
	verdicts := map[Verdict]int{}
	for _, repeat := range repeats {
		r := Decide(f.plan(), repeat)
		verdicts[r.Verdict]++
		results, logs, halves = append(results, r), append(logs, math.Log(r.Ratio)), append(halves, math.Sqrt(r.Hi/r.Lo)-1)
	}
	mean, n := stats.Mean(logs), float64(len(results))
	for i, r := range results {
		if others := math.Exp((mean*n - logs[i]) / (n - 1)); r.Lo <= others && others <= r.Hi {
			held++
		}
	}
	procs := "1"
	if f.plan().AllCores {
		procs = "default"
	}
	folder := strings.TrimSuffix(strings.TrimPrefix(f.hour, "results/"), "/calibration")
	return fmt.Sprintf("| [%s](../%s) | %s | %s | %s | %d | %.4f | %.2f %% | %.2f %% | %d of %d | %d, %d, %d, %d |\n",
		folder, f.hour, f.experiment, strings.ReplaceAll(f.compared, " again", ""), procs, len(results), math.Exp(mean),
		100*stats.StdDev(logs), 100*stats.Mean(halves), held, len(results),
		verdicts[Faster], verdicts[Slower], verdicts[Equal], verdicts[Undecided]), held
}

// written compares a table with the one that docs/method.md has between comments of that name.
func written(t *testing.T, name, table string) {
	t.Helper()
	const path = "../../docs/method.md"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no place for %s", path, name)
	was, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no %s", path, end)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644))
		return
	}
	require.Equal(t,
		table, was, "%s says something else: if the new one is meant, go test ./internal/versus -update writes it", path)
}
