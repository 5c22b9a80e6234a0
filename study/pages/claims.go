package pages

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// claimed is what a claim says of a figure: that it lies between least and most, or nothing.
type claimed struct {
	words       string // in parentheses
	least, most float64
	void        bool
}

func about(n float64) claimed { return claimed{fmt.Sprintf(" (≈%g)", n), n / 1.25, n * 1.25, false} }
func above(n float64) claimed { return claimed{fmt.Sprintf(" (>%g)", n), n, math.MaxFloat64, false} }
func below(n float64) claimed { return claimed{fmt.Sprintf(" (<%g)", n), 0, n, false} }
func nothing() claimed        { return claimed{void: true} }

func between(least, most float64) claimed {
	return claimed{fmt.Sprintf(" (%g–%g)", least, most), least, most, false}
}

// bears returns words that a figure bears out, such as "about half", as they are claimed.
func bears(words string, c claimed, figure float64) string {
	if figure < c.least || figure > c.most {
		fail("%q is%s, and the figure is %.2f", words, c.words, figure)
	}
	return words
}

// reading is one measured figure, and what is claimed of it. The figure bears the claim out if its interval lies within
// the limits.
type reading struct {
	value, lo, hi float64
	floor         float64 // the noise floor: by how much two of the same may differ
	claimed
}

// exact is a reading of what is counted.
func exact(value float64) reading { return reading{value: value, lo: value, hi: value} }

// paired is the ratio of an answer, with its interval and its noise floor.
func paired(a *comparison) reading {
	return reading{value: a.Ratio, lo: a.Lo, hi: a.Hi, floor: a.NoiseFloor}
}

// inverse exchanges the two that a reading compares.
func inverse(r reading) reading {
	return reading{value: 1 / r.value, lo: 1 / r.hi, hi: 1 / r.lo, floor: r.floor}
}

// apart compares two medians. They are not paired: the machine may have changed between their runs. The interval is
// from the lower end of the one by the upper end of the other to the reverse, so it is wider than 95%.
func apart(x, y benchmath.Summary) reading {
	return reading{value: x.Center / y.Center, lo: x.Lo / y.Hi, hi: x.Hi / y.Lo}
}

// inNoise is whether the interval reaches into the noise floor.
func (r reading) inNoise() bool { return r.floor > 0 && r.interval().InFloor() }

func (r reading) interval() verdict.Interval {
	return verdict.Interval{Lo: r.lo, Hi: r.hi, Floor: r.floor}
}

// verdict is by where the interval lies to what is claimed, as in the verdicts of the library.
func (r reading) verdict() string {
	switch place := r.interval().At(r.least, r.most); {
	case r.void:
		return "void"
	case place == verdict.Inside:
		return "holds"
	case place == verdict.Above && r.least >= 1, place == verdict.Below && r.most <= 1: // that one is greater, or less
		return "more than claimed"
	case place != verdict.Across:
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

// overall sums up the figures of a claim.
func overall(readings []reading) string {
	var decided []string
	open := false
	for _, r := range readings {
		switch v := r.verdict(); {
		case v == "void":
			return v
		case v == "undecided":
			open = true
		case !slices.Contains(decided, v):
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

// claims are the figures of claims. A template first names each figure, by a method of its kind, and then shows them
// with the verdict of their claim. Figures are read from one folder until In names another.
type claims struct {
	m     *maker
	home  report.Summary // of the page's folder: a figure says in what its own record differs
	dir   string
	rows  []compared
	shown map[int]bool // the claims whose figures the page shows
}

// compared are the figures of a claim that compare the same, each of another message or record.
type compared struct {
	claim    int
	words    string
	readings []reading
	cells    []string
}

func (m *maker) claims(dir string) *claims {
	return &claims{m: m, home: m.run(m.within(dir)[0]), dir: dir, shown: map[int]bool{}}
}

// In names the folder of the figures that follow.
func (c *claims) In(dir string) string {
	c.dir = dir
	return ""
}

// elsewhere says in what a record differs from the page's folder: Go, the machine, its CPUs and the day.
func (c *claims) elsewhere(s report.Summary) (said string) {
	for _, name := range []string{"go", "cpu", "cores", "date"} {
		is := noted(s, name)
		if is == "" || is == noted(c.home, name) {
			continue
		}
		switch name {
		case "go":
			is = strings.Replace(is, "go", "Go ", 1)
		case "cpu":
			is = strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(is, "-", " "), "(R)", ""), " Processor")
		case "cores":
			is += " CPUs"
		}
		said += ", " + is
	}
	return said
}

// add adds a figure that compares what the words say, of something in a record.
func (c *claims) add(claim int, words, of string, s report.Summary, r reading, said claimed) string {
	r.claimed = said
	row := slices.IndexFunc(c.rows, func(row compared) bool {
		return row.claim == claim && row.words == words && row.readings[0].claimed == said
	})
	if row < 0 {
		row, c.rows = len(c.rows), append(c.rows, compared{claim: claim, words: words})
	}
	figure := r.figure()
	if v := r.verdict(); v == "holds" || v == "more than claimed" {
		figure = "**" + figure + "**"
	}
	if r.inNoise() && r.verdict() == "undecided" {
		figure += "²"
	}
	c.rows[row].readings = append(c.rows[row].readings, r)
	c.rows[row].cells = append(c.rows[row].cells, of+c.elsewhere(s)+": "+figure)
	return ""
}

// Call compares what a call of one stack takes with that of the other. One of the two is the base of the run, or both
// were compared with it, whose ratios are then divided as independent figures.
func (c *claims) Call(claim int, what, work, over, under string, said claimed) string {
	found := func(stack string) (report.Summary, *comparison) {
		if s, a := c.m.first(c.dir, work, stack); a != nil && a.Ratio > 0 {
			return s, a
		}
		return report.Summary{}, nil
	}
	s, a := found(over)
	other, b := found(under)
	var r reading
	switch {
	case a != nil && s.Base == under:
		r = taken(what, a)
	case b != nil && other.Base == over:
		r, s, a = inverse(taken(what, b)), other, b
	case a != nil && b != nil && s.Base == other.Base && (what == "time" || what == "calls a second"):
		r = paired(quotient(a, b))
		r.floor = max(a.NoiseFloor, b.NoiseFloor)
		if what != "time" {
			r = inverse(r)
		}
	default:
		fail("%s has not compared the %s of %s and %s at %s", c.dir, what, over, under, work)
	}
	words := fmt.Sprintf("%s, %s/%s", what, report.Label(over), report.Label(under))
	return c.add(claim, words, listedAs(a.Answer), s, r, said)
}

// listedAs is the name of a workload of the list, or the title of another one.
func listedAs(a report.Answer) string {
	if _, err := workload.Find(a.Workload); err != nil {
		return a.Does
	}
	return code(a.Workload)
}

// taken is what a call of the stack takes of something, divided by what one of the base takes.
func taken(what string, a *comparison) reading {
	switch p := a.Percentiles; what {
	case "time":
		return paired(a)
	case "calls a second":
		return inverse(paired(a))
	case "p50":
		return reading{value: p.P50.Ratio, lo: p.P50.Lo, hi: p.P50.Hi, floor: a.NoiseFloor}
	case "p95":
		return reading{value: p.P95.Ratio, lo: p.P95.Lo, hi: p.P95.Hi, floor: a.NoiseFloor}
	case "p99":
		return reading{value: p.P99.Ratio, lo: p.P99.Lo, hi: p.P99.Hi, floor: a.NoiseFloor}
	case "bytes on the wire":
		return exact((a.Facts.Sent + a.Facts.Received) / (a.BaseFacts.Sent + a.BaseFacts.Received))
	case "allocations":
		return exact(a.Facts.Allocs / a.BaseFacts.Allocs)
	case "allocated bytes":
		return exact(a.Facts.AllocBytes / a.BaseFacts.AllocBytes)
	}
	fail("%q is nothing that calls have", what)
	return reading{}
}

// Message compares gRPC's unary call with its message on a stream. Both were compared with JSON's call.
func (c *claims) Message(claim int, said claimed) string {
	unary, stream := c.m.answer(c.dir, "small", "grpcprotobuf"), c.m.answer(c.dir, "stream", "grpcprotobuf")
	s, _ := c.m.first(c.dir, "stream", "grpcprotobuf")
	r := paired(quotient(unary, stream))
	r.floor = max(unary.NoiseFloor, stream.NoiseFloor)
	return c.add(claim, "time of a message, unary call/stream", code("small"), s, r, said)
}

// Connections compares a stack's calls a second at two workloads of a folder, which differ in their connections. The
// two were not paired, so the interval is the widest that the base's processes and both ratios allow.
func (c *claims) Connections(claim int, many, few, stack string, said claimed) string {
	limits := func(a *comparison) benchmath.Summary {
		if len(a.BasesNs) < 6 {
			fail("%s has fewer than 6 processes at %s", c.dir, a.Workload)
		}
		base := benchmath.AssumeNothing.Summary(benchmath.NewSample(a.BasesNs, &benchmath.DefaultThresholds), 0.95)
		return benchmath.Summary{Center: a.Paired(), Lo: base.Lo * a.Lo, Hi: base.Hi * a.Hi}
	}
	s, more := c.m.first(c.dir, many, stack)
	one := c.m.answer(c.dir, few, stack)
	if more == nil || more.OfCPU || one.OfCPU {
		fail("%s has no calls a second of %s at %s and %s", c.dir, stack, many, few)
	}
	words := fmt.Sprintf("calls a second, %s on more connections/fewer", report.Label(stack))
	of := fmt.Sprintf("%d callers, %d/%d", more.Callers, more.Facts.Connections, one.Facts.Connections)
	return c.add(claim, words, of, s, inverse(apart(limits(more), limits(one))), said)
}

// Codec compares the time of an op of one codec with that of the other, or the lengths of their bodies.
func (c *claims) Codec(claim int, op, message, over, under string, said claimed) string {
	file := c.dir + "/codecs/rows.txt"
	r := apart(c.m.codec(file, op, message, over), c.m.codec(file, op, message, under))
	if op == "size" {
		op, r = "bytes", exact(r.value)
	}
	return c.add(claim, fmt.Sprintf("%s, `%s`/`%s`", op, over, under), code(message), c.m.header(file), r, said)
}

// of are the figures of a claim.
func (c *claims) of(claim int) (all []reading) {
	for _, row := range c.rows {
		if row.claim == claim {
			all = append(all, row.readings...)
		}
	}
	return all
}

// Verdict sums up the figures of a claim.
func (c *claims) Verdict(claim int) string {
	if c.of(claim) == nil {
		fail("claim %d has no figure", claim)
	}
	return overall(c.of(claim))
}

// Here are all figures of a claim, with a line for each comparison: what is compared, what is claimed, and the figures.
func (c *claims) Here(claim int) string {
	var all []string
	for _, row := range c.rows {
		if row.claim == claim {
			all = append(all, row.words+row.readings[0].words+": "+strings.Join(row.cells, "; "))
		}
	}
	if all == nil {
		fail("claim %d has no figure", claim)
	}
	c.shown[claim] = true
	return strings.Join(all, "<br>")
}

// Count says how often each verdict is made, the most frequent one first, on a line each.
func (c *claims) Count() string {
	count, seen := map[string]int{}, map[int]bool{}
	for _, row := range c.rows {
		if !seen[row.claim] {
			seen[row.claim] = true
			count[overall(c.of(row.claim))]++
		}
	}
	often := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(count))), func(a, b string) int {
		return cmp.Compare(count[b], count[a])
	})
	for i, verdict := range often {
		often[i] = fmt.Sprintf("*%s* (%d)", verdict, count[verdict])
	}
	return strings.Join(often, ",\n")
}

// All fails unless the figures of each claim are shown.
func (c *claims) All() string {
	for _, row := range c.rows {
		if !c.shown[row.claim] {
			fail("claim %d has figures, which the page does not show", row.claim)
		}
	}
	return ""
}
