package pages

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
)

// reading is one measured figure. It bears a claim out if its interval lies between least and most.
type reading struct {
	value, lo, hi float64
	floor         float64 // the noise floor: by how much two of the same may differ
	least, most   float64
	void          bool // the page claims nothing of the figure
}

const unbounded = math.MaxFloat64

// exact is a reading of what is counted.
func exact(value float64) reading { return reading{value: value, lo: value, hi: value} }

// inNoise is whether the interval reaches into the noise floor.
func (r reading) inNoise() bool { return r.lo < 1+r.floor && r.hi > 1/(1+r.floor) && r.floor > 0 }

// verdict takes an interval that reaches into the noise floor for one that holds all of the floor: no difference is
// proved, as in the verdicts of the library.
func (r reading) verdict() string {
	lo, hi := r.lo, r.hi
	if floor := 1 + r.floor; r.inNoise() {
		lo, hi = min(lo, 1/floor), max(hi, floor)
	}
	switch {
	case lo >= r.least && hi <= r.most:
		return "holds"
	case lo > r.most && r.least >= 1, hi < r.least && r.most <= 1: // of a claim that one is greater, or less
		return "more than claimed"
	case hi < r.least || lo > r.most:
		return "does not hold"
	}
	return "undecided"
}

// figure is the value with its interval.
func (r reading) figure() string {
	if r.lo == r.hi {
		return fmt.Sprintf("%.2f", r.value)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r.value, r.lo, r.hi)
}

// said is the verdict with what makes a narrow interval prove nothing.
func (r reading) said() string {
	switch {
	case r.void:
		return "–"
	case r.inNoise():
		return fmt.Sprintf("%s, noise floor %.1f %%", r.verdict(), 100*r.floor)
	}
	return r.verdict()
}

// overall sums up the figures of a claim.
func overall(readings []reading) string {
	var decided []string
	open := false
	for _, r := range readings {
		if r.void {
			return "void"
		}
		if v := r.verdict(); v == "undecided" {
			open = true
		} else if !slices.Contains(decided, v) {
			decided = append(decided, v)
		}
	}
	switch {
	case len(decided) == 0:
		return "undecided"
	case len(decided) > 1:
		return "holds in part"
	case open:
		return decided[0] + " where it is decided"
	}
	return decided[0]
}

// rows reads the output of go test -bench.
func (b *block) rows(file string) (all []*benchfmt.Result) {
	rows := benchfmt.NewReader(strings.NewReader(b.read(file)), file)
	for rows.Scan() {
		if r, ok := rows.Result().(*benchfmt.Result); ok {
			all = append(all, r.Clone())
		}
	}
	b.err = cmp.Or(b.err, rows.Err())
	return all
}

// measured has all values of a unit, by the row's name without GOMAXPROCS.
func (b *block) measured(unit, file string) map[string][]float64 {
	all := map[string][]float64{}
	for _, r := range b.rows(file) {
		base, parts := r.Name.Parts()
		name := string(base)
		for _, p := range parts {
			if strings.Contains(string(p), "=") {
				name += string(p)
			}
		}
		for _, v := range r.Values {
			if v.OrigUnit == unit {
				all[name] = append(all[name], v.OrigValue)
			} else if v.Unit == unit {
				all[name] = append(all[name], v.Value)
			}
		}
	}
	return all
}

// summary has the median of a row's samples with a 95 % interval.
func (b *block) summary(from map[string][]float64, row string) benchmath.Summary {
	if len(from[row]) < 6 {
		b.fail("%s has fewer than the 6 samples that an interval needs", row)
		return benchmath.Summary{}
	}
	sample := benchmath.NewSample(from[row], &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95)
}

// medians compares two samples. They are not paired: their runs were made one after the other, or in random order, and
// the machine may have changed between. The interval is from the lower end of the one by the upper end of the other to
// the reverse, so it is wider than 95 %.
func (b *block) medians(from map[string][]float64, over, under string) reading {
	x, y := b.summary(from, over), b.summary(from, under)
	return reading{value: x.Center / y.Center, lo: x.Lo / y.Hi, hi: x.Hi / y.Lo}
}

// paired is the ratio of an answer, with its interval and its noise floor.
func paired(a report.Answer) reading {
	return reading{value: a.Ratio, lo: a.Lo, hi: a.Hi, floor: a.NoiseFloor()}
}

// inverse exchanges the two that a reading compares.
func inverse(r reading) reading {
	return reading{value: 1 / r.value, lo: 1 / r.hi, hi: 1 / r.lo, floor: r.floor}
}

// within is the reading with what is claimed: "about 3", "above 1", "below 1", "1 to 1.25", or "–" for nothing.
func (r reading) within(claimed string) (reading, error) {
	var n float64
	if claimed == "–" {
		r.void = true
	} else if _, err := fmt.Sscanf(claimed, "about %g", &n); err == nil {
		r.least, r.most = n/1.25, n*1.25
	} else if _, err := fmt.Sscanf(claimed, "above %g", &n); err == nil {
		r.least, r.most = n, unbounded
	} else if _, err := fmt.Sscanf(claimed, "below %g", &n); err == nil {
		r.most = n
	} else if _, err := fmt.Sscanf(claimed, "%g to %g", &r.least, &r.most); err != nil {
		return r, fmt.Errorf("%q is nothing that a claim can say", claimed)
	}
	return r, nil
}

// kinds say what the words of a figure mean, and which part of the evening has it.
var kinds = []struct {
	words *regexp.Regexp
	read  func(b *block, m []string) reading
}{
	{regexp.MustCompile(`^(.+), (gRPC to JSON|JSON to gRPC), (.+)$`), func(b *block, m []string) reading {
		a := b.titled(b.from[0]+"/workloads", m[3], grpc)
		f, base := a.Facts, a.BaseFacts
		r := inverse(paired(a)) // JSON's by gRPC's
		switch m[1] {
		case "bytes on the wire":
			r = exact((base.Sent + base.Received) / (f.Sent + f.Received))
		case "allocations":
			r = exact(base.Allocs / f.Allocs)
		case "allocated bytes":
			r = exact(base.AllocBytes / f.AllocBytes)
		case "calls per second":
			r = paired(a)
		case "p95":
			p := a.Percentiles.P95
			r = inverse(reading{value: p.Ratio, lo: p.Lo, hi: p.Hi, floor: a.NoiseFloor()})
		case "time":
		default:
			b.fail("%q is nothing that calls have", m[1])
		}
		if m[2] == "gRPC to JSON" {
			return inverse(r)
		}
		return r
	}},
	{regexp.MustCompile(`^time, vtprotobuf to protobuf, (.+)$`), func(b *block, m []string) reading {
		return paired(b.titled(b.from[0]+"/vt", m[1], "grpcprotobuf.vt"))
	}},
	{regexp.MustCompile("^time of a small call, `(.+)` to `httpjson`$"), func(b *block, m []string) reading {
		return paired(b.found(b.from[0], tiny, m[1]))
	}},
	{regexp.MustCompile("^time of a message, unary call to stream$"), func(b *block, _ []string) reading {
		return streamed(b.answer(b.from[0]+"/workloads", tiny, grpc), b.answer(b.from[0]+"/workloads", "stream", grpc))
	}},
	{regexp.MustCompile("^(marshal|unmarshal|bytes of) `(.+)`, `(.+)` to `(.+)`$"),
		func(b *block, m []string) reading {
			file := b.from[0] + "/codecs/rows.txt"
			row := func(codec, op string) string { return "Codec/codec=" + codec + "/msg=" + m[2] + "/op=" + op }
			if m[1] != "bytes of" {
				return b.medians(b.measured("ns/op", file), row(m[3], m[1]), row(m[4], m[1]))
			}
			sizes := b.measured("size-B", file)
			r := b.medians(sizes, row(m[3], "marshal"), row(m[4], "marshal"))
			return exact(r.value)
		}},
	{regexp.MustCompile("^time of `(.+)`, 50 callers, `(.+)` to `(.+)`$"), func(b *block, m []string) reading {
		row := func(stack string) string { return "Echo/stack=" + stack + "/msg=" + m[1] + "/callers=50/conns=20" }
		return b.medians(b.measured("ns/op", b.from[0]+"/servers/echo.txt"), row(m[2]), row(m[3]))
	}},
	{regexp.MustCompile("^time of a small call of `(.+)`, server `(.+)` to `(.+)`$"), func(b *block, m []string) reading {
		row := "Cross/client=" + m[1] + "/server="
		return b.medians(b.measured("ns/op", b.from[0]+"/servers/cross.txt"), row+m[2], row+m[3])
	}},
}

// titled returns what a run found of a stack at the workload of this title.
func (b *block) titled(dir, title, stack string) report.Answer {
	for _, a := range b.run(dir).Answers {
		if a.Does == title {
			return b.answer(dir, a.Workload, stack)
		}
	}
	return b.answer(dir, title, stack)
}

// streamed compares gRPC's unary call with its message on a stream. Both were compared with JSON's call.
func streamed(unary, stream report.Answer) reading {
	r := paired(quotient(unary, stream))
	r.floor = max(unary.NoiseFloor(), stream.NoiseFloor())
	return r
}

// reading measures a figure that the page words.
func (b *block) reading(figure, claimed string) reading {
	for _, k := range kinds {
		if m := k.words.FindStringSubmatch(figure); m != nil {
			r, err := k.read(b, m).within(claimed)
			b.err = cmp.Or(b.err, err)
			return r
		}
	}
	b.fail("no file has a figure like %q", figure)
	return reading{}
}

// cellsOf splits the rows of a table, without its two lines of head.
func cellsOf(table string) (head string, rows [][]string) {
	for i, row := range strings.Split(strings.TrimSpace(table), "\n") {
		if i < 2 {
			head += row + "\n"
		} else if strings.HasPrefix(row, "| ") {
			rows = append(rows, strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "| "), " |"), " | "))
		}
	}
	return head, rows
}

// readings keeps the words and the limits of each figure that stands in the page: its claim, the figure, what was
// measured, what is claimed, and the verdict.
func readings(b *block) string {
	head, rows := cellsOf(b.old)
	for _, row := range rows {
		if len(row) != 5 {
			b.fail("row %q has not five cells", row)
			return ""
		}
		r := b.reading(row[1], row[3])
		row[2], row[4] = r.figure(), r.said()
		head += "| " + strings.Join(row, " | ") + " |\n"
	}
	return head
}

// verdicts keeps the claims that stand in the page, and makes the last cell of each of its table of readings.
func verdicts(b *block) string {
	_, after, _ := strings.Cut(b.page, "<!-- begin readings")
	_, after, _ = strings.Cut(after, "\n")
	after, _, _ = strings.Cut(after, "<!-- end")
	of := map[string][]reading{}
	_, figures := cellsOf(after)
	for _, row := range figures {
		of[row[0]] = append(of[row[0]], b.reading(row[1], row[3]))
	}
	head, rows := cellsOf(b.old)
	count := map[string]int{}
	for _, row := range rows {
		if of[row[0]] == nil {
			b.fail("claim %s has no figure", row[0])
		}
		verdict := overall(of[row[0]])
		count[verdict]++
		row[len(row)-1] = "**" + verdict + "**"
		head += "| " + strings.Join(row, " | ") + " |\n"
	}
	if len(rows) != len(of) {
		b.fail("%d claims, and figures of %d", len(rows), len(of))
	}
	var counts []string
	for _, verdict := range slices.Sorted(maps.Keys(count)) {
		counts = append(counts, fmt.Sprintf("%s %d", verdict, count[verdict]))
	}
	return fmt.Sprintf("%s\nOf %d claims: %s.\n", head, len(rows), strings.Join(counts, ", "))
}
