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

	"github.com/rpcbench/rpcbench/internal/testkit/frozen"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

var (
	update = flag.Bool("update", false, "write the table in testdata that docs/method.md includes")
	freeze = flag.Bool("freeze", false, "write the processes of the calibrations that the arguments name")
)

const (
	frozenFile = "../../internal/verdict/testdata/processes.txt"

	frozenHead = `# What the rule of verdicts needs of every recorded process, by
#   go -C study test ./calibration -run TestFreeze -freeze results/FOLDER/calibration...
# An hour has a line with the folder of its records, and a revision if they are in the history only. A comparison has one
# with its name, contestant and base. A process has one, in order of time, and a repeat is 16 in a row: layout (0 where
# none is recorded), ns per call of base, of its copy and of the contestant, CPU ns per call of the same, the
# contestant's ratio to the base, the copy's, and the contestant's to the copy. All are medians over the process's
# blocks. Records of two arms are left out.
`
)

// fileOf is the text of the file.
func fileOf(all []frozen.Comparison) []byte {
	text, hour := bytes.NewBufferString(frozenHead), ""
	for _, f := range all {
		if f.Hour != hour {
			hour = f.Hour
			fmt.Fprintf(text, "\nhour %s %s\n", f.Hour, f.Origin)
		}
		fmt.Fprintf(text, "comparison %s %s\n", f.Experiment, f.Compared)
		for _, p := range f.Processes {
			fmt.Fprintln(text, frozen.Columns(p))
		}
	}
	return text.Bytes()
}

// thawed reads the file, which is of the tool, whose tests try the rule on it.
func thawed(t *testing.T) []frozen.Comparison {
	t.Helper()
	all, err := frozen.Read(frozenFile)
	require.NoError(t, err)
	return all
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
		own := func(f frozen.Comparison) bool { return f.Hour == found[0].Hour }
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
			require.Equal(t, []string{f.Origin, f.Experiment, f.Compared},
				[]string{was[i].Origin, was[i].Experiment, was[i].Compared}, folder)
			require.Len(t, was[i].Processes, len(f.Processes), "%s of %s", f.Experiment, folder)
			for j, p := range f.Processes {
				require.Equal(t, frozen.Columns(p), frozen.Columns(was[i].Processes[j]),
					"process %d of %s in %s is not what its record says: layout, ns of base, copy and contestant, CPU ns, "+
						"ratio, the copy's ratio, the contestant's to the copy", j+1, f.Experiment, folder)
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
	var layouts, oneBuild []frozen.Comparison
	for _, f := range thawed(t) {
		if filepath.Base(f.Hour) == "calibration" {
			layouts = append(layouts, f)
		} else {
			oneBuild = append(oneBuild, f)
		}
	}
	t.Log(figures(oneBuild))
	held := map[string][2]int{} // of intervals of gRPC to JSON: those that hold, and all
	for _, f := range oneBuild {
		repeats := f.Repeats(frozen.PerRepeat)
		if f.Experiment != "replication" && f.Experiment != "defaultprocs" || len(repeats) < 2 {
			continue
		}
		machine := "EPYC"
		if strings.Contains(f.Hour, "xeon") {
			machine = "Xeon"
		}
		if f.Hour == "2026-11-21-xeon-2vcpu" {
			machine = "bad hour"
		}
		_, hold := line(f, repeats)
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
func figures(all []frozen.Comparison) string {
	table := "| records | experiment | compared | GOMAXPROCS | repeats of 16 processes | mean ratio | SD of a repeat | " +
		"mean half-width | hold the others' mean | faster, slower, equal, undecided |\n" +
		"|---|---|---|---|---:|---:|---:|---:|---:|---:|\n"
	held, together := 0, 0
	for _, f := range all {
		repeats := f.Repeats(frozen.PerRepeat)
		if len(repeats) < 2 {
			continue
		}
		line, hold := line(f, repeats)
		table += line
		if !strings.HasPrefix(f.Experiment, "apart") {
			held, together = held+hold, together+len(repeats)
		}
	}
	return table + fmt.Sprintf("\nIn one process each, %d of %d intervals hold the mean of the other repeats.\n", held,
		together)
}

// line is a row of the table, and how many intervals hold the mean of the other repeats. Half-widths are percent of the
// ratio.
func line(f frozen.Comparison, repeats [][]verdict.Process) (line string, held int) {
	var results []verdict.Figure
	var logs, halves []float64
	verdicts := map[verdict.Verdict]int{}
	for _, repeat := range repeats {
		r := verdict.Decide(f.Plan(), repeat).Time
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
	if f.Plan().NeedsCores {
		procs = "default"
	}
	folder := strings.TrimSuffix(f.Hour, "/calibration")
	return fmt.Sprintf("| [%s](../study/results/%s) | %s | %s | %s | %d | %.4f | %.2f %% | %.2f %% | %d of %d | "+
		"%d, %d, %d, %d |\n", folder, f.Hour, f.Experiment, strings.ReplaceAll(f.Compared, " again", ""), procs, len(results),
		math.Exp(mean), 100*stats.StdDev(logs), 100*stats.Mean(halves), held, len(results),
		verdicts[verdict.Less], verdicts[verdict.More], verdicts[verdict.Same], verdicts[verdict.Undecided]), held
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
