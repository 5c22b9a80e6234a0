package pages

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// TestRecords: each recorded run has pages that fit, and no sentence says more than its lines. Sweeps have a test of
// package report.
func TestRecords(t *testing.T) {
	records, sentences := 0, 0
	require.NoError(t, filepath.WalkDir("../results", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "summary.json" {
			return err
		}
		records++
		s, err := report.Read(filepath.Dir(path))
		require.NoError(t, err)
		for _, width := range []int{100, 60, 40} {
			var text strings.Builder
			require.NoError(t, s.Text(&text, width, false, width == 100))
			require.NotRegexp(t, `NaN|Inf|nil`, text.String(), path)
			for line := range strings.Lines(text.String()) {
				if len(strings.Fields(line)) > 1 { // a name of two stacks alone may be longer
					require.LessOrEqual(t, utf8.RuneCountInString(line), width+1, "%s\n%s", path, line)
				}
			}
		}
		require.NoError(t, s.HTML(io.Discard))
		if s.Over == "" {
			sentences += borne(t, s)
		}
		return nil
	}))
	require.Positive(t, records)
	require.Greater(t, sentences, 40)
}

// TestHoursThatDiffer: what study/results/README.md says of the two hours that falsified its rule is so.
func TestHoursThatDiffer(t *testing.T) {
	page, err := os.ReadFile("../results/README.md")
	require.NoError(t, err)
	said := regexp.MustCompile(`of (\d+) leading figures that\s+(\S+) and\s+(\S+)\s+share,\s+(\d+)\s+have`).
		FindStringSubmatch(string(page))
	require.NotNil(t, said)
	m := in("../..")
	before, after := folderOf(t, m, said[2]), folderOf(t, m, said[3])
	share, parted := 0, 0
	for part, a := range after {
		if b, both := before[part]; both {
			share++
			if a.Lo > b.Hi || b.Lo > a.Hi {
				parted++
			}
		}
	}
	require.Equal(t, []string{said[1], said[4]}, []string{strconv.Itoa(share), strconv.Itoa(parted)})
	require.Greater(t, parted, share/10, "no more than one of ten, so the hour may lead alone")
}

// TestParted: intervals are compared of two folders that one machine filled.
func TestParted(t *testing.T) {
	run := func(folder, machine string, lo, hi float64) repeat {
		return repeat{folder, machine, comparison{Figure: verdict.Figure{Ratio: (lo + hi) / 2, Lo: lo, Hi: hi}}}
	}
	for reason, c := range map[string]struct {
		kin              kin
		parted, repeated bool
	}{
		"one run":           {kin{run("a", "m", 0.8, 0.9)}, false, false},
		"intervals meet":    {kin{run("a", "m", 0.8, 0.9), run("b", "m", 0.9, 1)}, false, true},
		"intervals part":    {kin{run("a", "m", 0.8, 0.9), run("b", "m", 0.91, 1)}, true, true},
		"another machine":   {kin{run("a", "m", 0.8, 0.9), run("b", "n", 0.91, 1)}, false, false},
		"one folder":        {kin{run("a", "m", 0.8, 0.9), run("a", "m", 0.91, 1)}, false, false},
		"only the outer do": {kin{run("a", "m", 0.8, 0.9), run("b", "m", 0.9, 1), run("c", "m", 1, 1.1)}, true, true},
	} {
		parted, repeated := c.kin.parted()
		require.Equal(t, []bool{c.parted, c.repeated}, []bool{parted, repeated}, reason)
	}
}

// folderOf are the leading figures of a folder of results that have an interval, by part, workload and stack.
func folderOf(t *testing.T, m *maker, folder string) map[string]comparison {
	t.Helper()
	all := map[string]comparison{}
	runs, err := filepath.Glob(filepath.Join("../results", folder, "*", "summary.json"))
	require.NoError(t, err)
	require.NotEmpty(t, runs, folder)
	for _, run := range runs {
		part := filepath.Base(filepath.Dir(run))
		for _, a := range m.run("study/results/" + folder + "/" + part).Answers {
			if led := comparisonOf(a.Led()); led.Lo > 0 {
				all[part+" "+strings.Replace(a.Workload, "message.", "payload.", 1)+" "+a.Stack] = led
			}
		}
	}
	return all
}

var (
	sizedSaid = regexp.MustCompile(`(takes|serves) (\d+\.\d+) times [^(]*\((\d+\.\d+)–(\d+\.\d+)\)` +
		`(?:.*?: [\d.]+ .s (less|more)\.)?`)
	ofACPU = regexp.MustCompile(`At ([\d,]+) calls a second .*? takes (\d+\.\d+) of a CPU (less|more) than \S+ ` +
		`\((\d+\.\d+)–(\d+\.\d+)\)`)
)

// borne demands of each sentence of a run that is no sweep that its lines bear it out. It returns how many sentences
// there are.
func borne(t *testing.T, s report.Summary) int {
	t.Helper()
	said := s.Sentences()
	if len(said) == 0 {
		require.Greater(t, len(s.Stacks()), 3)
		return 0
	}
	text := func(numbers ...float64) (all []string) {
		for _, n := range numbers {
			all = append(all, fmt.Sprintf("%.2f", n))
		}
		return all
	}
	for i, stack := range s.Stacks() {
		var decided []verdict.Figure
		for _, a := range s.Of(stack) {
			for _, f := range []verdict.Figure{a.Time, a.CPU} {
				if f.Verdict == verdict.Less || f.Verdict == verdict.More || f.Verdict == verdict.Same {
					decided = append(decided, f)
				}
			}
		}
		require.Equal(t, len(decided) == 0, strings.HasPrefix(said[i], "Whether "), "%s: %v", said[i], decided)
		for _, m := range sizedSaid.FindAllStringSubmatch(said[i], -1) {
			require.True(t, slices.ContainsFunc(decided, func(f verdict.Figure) bool {
				if m[1] == "serves" {
					return slices.Equal(text(1/f.Ratio, 1/f.Hi, 1/f.Lo), m[2:5])
				}
				return slices.Equal(text(f.Ratio, f.Lo, f.Hi), m[2:5]) && (f.Verdict == verdict.Same) == (m[5] == "") &&
					(m[5] == "" || m[5] == string(f.Verdict))
			}), "%s: no line is so", said[i])
		}
		for _, m := range ofACPU.FindAllStringSubmatch(said[i], -1) {
			require.True(t, slices.ContainsFunc(s.Of(stack), func(a report.Answer) bool {
				cpus := func(ratio float64) float64 { return math.Abs(a.CPU.BaseNs*(ratio-1)) * a.Rate / 1e9 }
				ends := []float64{cpus(a.CPU.Lo), cpus(a.CPU.Hi)}
				slices.Sort(ends)
				return grouped(a.Rate) == m[1] && string(a.CPU.Verdict) == m[3] &&
					slices.Equal(text(cpus(a.CPU.Ratio), ends[0], ends[1]), []string{m[2], m[4], m[5]})
			}), "%s: no line is so", said[i])
		}
		left := ofACPU.ReplaceAllString(sizedSaid.ReplaceAllString(said[i], ""), "")
		require.NotRegexp(t, `times|of a CPU|\(–\)`, left, "a number without interval")
	}
	return len(said)
}
