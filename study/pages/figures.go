package pages

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
)

// grouped is a whole number with a comma before its thousands.
func grouped(value float64) string { return written(value, 0) }

var (
	numeric = regexp.MustCompile(`[-+]?\d[\d,]*(?:\.\d+)?`)
	procs   = regexp.MustCompile(`-\d+$`) // in the name of a row
)

// figure returns the nth number of a file's line, from 1 on, of those behind the text that finds the line.
func (m *maker) figure(file string, nth int, place ...string) float64 {
	_, after := m.line(file, place)
	numbers := numeric.FindAllString(after, -1)
	if nth < 1 || nth > len(numbers) {
		fail("%s has no number %d behind %q: %s", file, nth, place, after)
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(numbers[nth-1], ",", ""), 64)
	if err != nil {
		fail("%s: %w", file, err)
	}
	return value
}

// line returns the first line of a file that begins with the last part of a place, or else contains it, below lines of
// the parts before, and what follows the part in that line.
func (m *maker) line(file string, place []string) (line, after string) {
	text, at := m.read(file), 0
	for _, part := range place {
		i := strings.Index("\n"+text[at:], "\n"+part)
		if i < 0 {
			i = strings.Index(text[at:], part)
		}
		if i < 0 {
			fail("%s has no line of %q", file, place)
		}
		at += i + len(part)
	}
	begin := strings.LastIndex(text[:at], "\n") + 1
	line, _, _ = strings.Cut(text[begin:], "\n")
	return line, line[at-begin:]
}

// measured has all values of a unit in a file of rows of go test -bench, by the row's name without GOMAXPROCS.
func (m *maker) measured(unit, file string) map[string][]float64 {
	key := unit + " " + file
	if m.rows[key] != nil {
		return m.rows[key]
	}
	all := map[string][]float64{}
	rows := benchfmt.NewReader(strings.NewReader(m.read(file)), file)
	for rows.Scan() {
		r, ok := rows.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name := procs.ReplaceAllString(string(r.Name), "")
		for _, v := range r.Values {
			if v.Unit == unit || v.OrigUnit == unit { // ns/op is the latter
				all[name] = append(all[name], cmp.Or(v.OrigValue, v.Value))
			}
		}
	}
	if err := rows.Err(); err != nil {
		fail("%w", err)
	}
	m.rows[key] = all
	return all
}

// header is the environment that a file of rows begins with: a comment for each name=value and each library, or in
// older files one comment with all. A file without one has none.
func (m *maker) header(file string) (s report.Summary) {
	before, _, _ := strings.Cut(m.read(file), "\nBenchmark")
	_, comments, _ := strings.Cut("\n"+before, "\n# date=")
	for line := range strings.SplitSeq("# date="+comments, "\n") {
		setting, ok := strings.CutPrefix(line, "# ")
		if comments == "" || !ok || strings.Contains(setting, ": ") { // which tells of something else, such as a codec
			break
		}
		s.Environment = append(s.Environment, strings.Fields(strings.TrimPrefix(setting, "library="))...)
	}
	return s
}

// summary has the median of a row's samples with a 95 % interval.
func (m *maker) summary(unit, file, row string) benchmath.Summary {
	values := m.measured(unit, file)[row]
	if len(values) < 6 {
		fail("%s: %s has fewer than the 6 samples that an interval needs", file, row)
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
}

// codec has the median of what an op of a codec takes, in nanoseconds, and its interval. The op "size" is the length of
// the body.
func (m *maker) codec(file, op, message, codec string) benchmath.Summary {
	row := "Codec/codec=" + codec + "/msg=" + message + "/op="
	if op == "size" {
		return m.summary("size-B", file, row+"marshal")
	}
	return m.summary("ns/op", file, row+op)
}
