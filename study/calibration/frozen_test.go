package calibration

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/versus"
)

const perRepeat = 16 // processes

var (
	update = flag.Bool("update", false, "write the tables in testdata that docs/method.md includes")
	freeze = flag.Bool("freeze", false, "write the processes of the calibrations that the arguments name, in testdata")
)

const (
	frozenFile = "testdata/processes.txt"

	frozenHead = `# What the rule of verdicts needs of every recorded process, by
#   go -C study test ./calibration -run TestFreeze -freeze results/FOLDER/calibration...
# An hour has a line with the folder of its records, and a revision if they are in the history only. A comparison has one
# with its name, contestant and base. A process has one, in order of time, and a repeat is 16 in a row: layout (0 where
# none is recorded), ns per call of base, of its copy and of the contestant, CPU ns per call of the same, the
# contestant's ratio to the base, the copy's, and the contestant's to the copy. All are medians over the process's
# blocks. Records of two arms are left out.
`
)

// A frozen comparison is what the rule needs of all processes that compared two stacks within an hour.
type frozen struct {
	hour       string // the folder of the records, below results
	origin     string // their day, machine and commit
	experiment string // of TestCalibration
	compared   string // contestant and base
	processes  []versus.Process
}

// repeats cuts the processes into comparisons of n in a row. What is left over at the end makes none.
func (f frozen) repeats(n int) [][]versus.Process {
	return slices.Collect(slices.Chunk(f.processes[:len(f.processes)/n*n], n))
}

func (f frozen) plan() versus.Plan {
	cores := f.experiment == "defaultprocs"
	return versus.Plan{AllCores: cores, OneCaller: cores}
}

// columns are the line of a process.
func columns(p versus.Process) string {
	return fmt.Sprintf("%d %.0f %.0f %.0f %.0f %.0f %.0f %.5f %.5f %.5f", p.Layout, p.Ns[0], p.Ns[1], p.Ns[2], p.CPUNs[0],
		p.CPUNs[1], p.CPUNs[2], p.Ratio, p.Copy, p.ToCopy)
}

// fileOf is the text of the file.
func fileOf(all []frozen) []byte {
	text, hour := bytes.NewBufferString(frozenHead), ""
	for _, f := range all {
		if f.hour != hour {
			hour = f.hour
			fmt.Fprintf(text, "\nhour %s %s\n", f.hour, f.origin)
		}
		fmt.Fprintf(text, "comparison %s %s\n", f.experiment, f.compared)
		for _, p := range f.processes {
			fmt.Fprintln(text, columns(p))
		}
	}
	return text.Bytes()
}

// thawed reads the file.
func thawed(t *testing.T) (all []frozen) {
	t.Helper()
	text, err := os.ReadFile(frozenFile)
	require.NoError(t, err)
	hour, origin := "", ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "hour":
			hour, origin = words[1], strings.Join(words[2:], " ")
		case words[0] == "comparison":
			all = append(all, frozen{hour, origin, words[1], strings.Join(words[2:], " "), nil})
		default:
			var p versus.Process
			_, err := fmt.Sscan(line, &p.Layout, &p.Ns[0], &p.Ns[1], &p.Ns[2], &p.CPUNs[0], &p.CPUNs[1], &p.CPUNs[2],
				&p.Ratio, &p.Copy, &p.ToCopy)
			require.NoError(t, err, line)
			require.Equal(t, strings.Join(words, " "), columns(p), "what is read is what was written")
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
	made := func(processes int) (c counts) {
		for _, f := range all {
			var logs []float64
			for _, p := range f.processes {
				logs = append(logs, math.Log(p.Ratio))
			}
			mean := math.Exp(stats.Mean(logs))
			for _, repeat := range f.repeats(processes) {
				count := func(n *int, times float64, counted ...versus.Verdict) {
					shifted := slices.Clone(repeat)
					for i := range shifted {
						shifted[i].Ratio *= times
					}
					if slices.Contains(counted, versus.Decide(f.plan(), shifted).Verdict) {
						*n++
					}
				}
				switch f.experiment {
				case "replication", "defaultprocs":
					c.all++
					count(&c.decided, 1, versus.Faster, versus.Slower)
					count(&c.wrong, 1, versus.Faster, versus.Equal)
					count(&c.falsely, 1/mean, versus.Faster, versus.Slower)
					count(&c.slower2, math.Exp(0.02)/mean, versus.Slower)
					count(&c.slower4, math.Exp(0.04)/mean, versus.Slower)
				case "same":
					c.copies++
					count(&c.called, 1, versus.Faster, versus.Slower)
				}
			}
		}
		return c
	}
	c, half := made(perRepeat), made(perRepeat/2)
	require.Equal(t, 271, c.all)
	require.GreaterOrEqual(t, c.decided, 234)
	require.Zero(t, c.wrong, "decided, but not as the whole hour")
	require.LessOrEqual(t, c.falsely, 4)
	require.Zero(t, c.called, "copies called different")
	table := "| decided | false, of no difference | slower, of 2 % | slower, of 4 % | copies called different |\n" +
		"|---:|---:|---:|---:|---:|\n"
	written(t, "rule", table+fmt.Sprintf("| %d of %d (%d of %d) | %d (%d) | %d (%d) | %d (%d) | %d of %d (%d of %d) |\n",
		c.decided, c.all, half.decided, half.all, c.falsely, half.falsely, c.slower2, half.slower2, c.slower4, half.slower4,
		c.called, c.copies, half.called, half.copies))
}

// TestFreeze: the file has what ProcessOf finds in the records that are still in the tree. With -freeze it is given
// those of the folders.
func TestFreeze(t *testing.T) {
	var folders []string
	for _, folder := range flag.Args() {
		folders = append(folders, filepath.Join("..", folder))
	}
	if !*freeze {
		var err error
		folders, err = filepath.Glob("../results/*/calibration")
		require.NoError(t, err)
		require.NotEmpty(t, folders)
	}
	all := thawed(t)
	for _, folder := range folders {
		found, err := calibration{dir: folder, plan: experiments()}.found()
		require.NoError(t, err)
		require.NotEmpty(t, found, "%s has no records", folder)
		own := func(f frozen) bool { return f.hour == found[0].hour }
		at := slices.IndexFunc(all, own)
		if *freeze {
			if at < 0 {
				at = len(all)
			}
			all = slices.Insert(slices.DeleteFunc(all, own), at, found...)
			continue
		}
		require.True(t, at >= 0 && at+len(found) <= len(all), "%s is not frozen, or not all of it", folder)
		was := all[at:]
		for i, f := range found {
			require.Equal(t, []string{f.origin, f.experiment, f.compared},
				[]string{was[i].origin, was[i].experiment, was[i].compared}, folder)
			require.Len(t, was[i].processes, len(f.processes), "%s of %s", f.experiment, folder)
			for j, p := range f.processes {
				require.Equal(t, columns(p), columns(was[i].processes[j]), "process %d of %s in %s is not what its record says: "+
					"layout, ns of base, copy and contestant, CPU ns, ratio, the copy's ratio, the contestant's to the copy",
					j+1, f.experiment, folder)
			}
		}
	}
	if *freeze {
		require.NoError(t, place(frozenFile, fileOf(all)))
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
		if f.hour == "2026-11-21-xeon-2vcpu" {
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
func (f frozen) line(repeats [][]versus.Process) (line string, held int) {
	var results []versus.Result
	var logs, halves []float64
	verdicts := map[versus.Verdict]int{}
	for _, repeat := range repeats {
		r := versus.Decide(f.plan(), repeat)
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
	folder := strings.TrimSuffix(f.hour, "/calibration")
	return fmt.Sprintf("| [%s](../study/results/%s) | %s | %s | %s | %d | %.4f | %.2f %% | %.2f %% | %d of %d | "+
		"%d, %d, %d, %d |\n", folder, f.hour, f.experiment, strings.ReplaceAll(f.compared, " again", ""), procs, len(results),
		math.Exp(mean), 100*stats.StdDev(logs), 100*stats.Mean(halves), held, len(results),
		verdicts[versus.Faster], verdicts[versus.Slower], verdicts[versus.Equal], verdicts[versus.Undecided]), held
}

// written compares a table with the file of that name in testdata, which docs/method.md includes.
func written(t *testing.T, name, table string) {
	t.Helper()
	file := "testdata/" + name + ".md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(table), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, table, string(text), "%s: if the new one is meant, go -C study test ./calibration -update "+
		"writes it, and go -C study generate ./... writes docs/method.md", file)
}
