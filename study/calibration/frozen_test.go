package calibration

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit/frozen"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

var (
	update = flag.Bool("update", false, "write the tables in testdata that docs/method.md cites")
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

// TestCalibrationTable: docs/method.md links the figures of the calibrations of several layouts, by the present rule.
// -v prints those of one build.
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
	written(t, "calibration", figures(layouts))
}

// TestCoverage: docs/method.md cites rows for each kind of hour, with the number of repeats whose interval contains the
// mean of the other repeats. Of hours of one build, only the comparisons of gRPC with JSON count.
func TestCoverage(t *testing.T) {
	table := "| hour | layouts | intervals that contain the mean of the others |\n|---|---|---:|\n"
	for _, row := range []struct{ hour, layouts, pattern string }{
		{"Intel Xeon, quiet, Go 1.26", "several", `^2026-11-23-xeon-2vcpu/calibration`},
		{"AMD EPYC, beside compilers, Go 1.26", "several", `^2026-11-23-epyc-2vcpu/calibration (replication|same)`},
		{"AMD EPYC, slow, Go 1.27", "several", `^2026-11-24-epyc-2vcpu-evening/calibration`},
		{"Intel Xeon, five hours, Go 1.26", "one",
			`^2026-11-(21-xeon-2vcpu-\w+|22-xeon-2vcpu(-\w+)?) (replication|defaultprocs)`},
		{"Intel Xeon, a bad hour, Go 1.26", "one", `^2026-11-21-xeon-2vcpu (replication|defaultprocs)`},
		{"AMD EPYC, noisy, Go 1.26", "one", `^2026-11-22-epyc-2vcpu (replication|defaultprocs)`},
		{"a process for each stack, as builds have: AMD EPYC, Go 1.26", "several",
			`^2026-11-23-epyc-2vcpu/calibration apart`},
	} {
		held, all := 0, 0
		for _, f := range thawed(t) {
			repeats := f.Repeats(frozen.PerRepeat)
			if regexp.MustCompile(row.pattern).MatchString(f.Hour+" "+f.Experiment) && len(repeats) > 1 {
				_, hold := line(f, repeats)
				held, all = held+hold, all+len(repeats)
			}
		}
		table += fmt.Sprintf("| %s | %s | %d of %d |\n", row.hour, row.layouts, held, all)
	}
	written(t, "coverage", table)
}

// figures is a table with a row for each comparison that was repeated.
func figures(all []frozen.Comparison) string {
	table := "| records | experiment | compared | GOMAXPROCS | repeats of 16 processes | mean ratio | SD of a repeat | " +
		"mean half-width | contain the mean of the others | less, more, same, undecided |\n" +
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
	return table + fmt.Sprintf("\nIn one process each, %d of %d intervals contain the mean of the other repeats.\n", held,
		together)
}

// line is a row of the table, and how many intervals contain the mean of the other repeats. Half-widths are percent of
// the ratio.
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
	return fmt.Sprintf("| [%s](results/%s) | %s | %s | %s | %d | %.4f | %.2f %% | %.2f %% | %d of %d | "+
		"%d, %d, %d, %d |\n", folder, f.Hour, f.Experiment, strings.ReplaceAll(f.Compared, " again", ""), procs, len(results),
		math.Exp(mean), 100*stats.StdDev(logs), 100*stats.Mean(halves), held, len(results),
		verdicts[verdict.Less], verdicts[verdict.More], verdicts[verdict.Same], verdicts[verdict.Undecided]), held
}

// written compares a table with the file of that name in testdata, which a page has.
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
		"writes it, and go -C study generate ./... writes the pages", file)
}
