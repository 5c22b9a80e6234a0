package pages

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// limits are what a claim says of a figure: that it lies between least and most, or nothing.
type limits struct {
	words       string // in parentheses
	least, most float64
	void        bool
}

// limitsOf reads limits: 1–1.25, >1, <1, ≈3 for a quarter around it, or void.
func limitsOf(text string) limits {
	words := " (" + text + ")"
	switch lo, hi, between := strings.Cut(text, "–"); {
	case text == "void":
		return limits{void: true}
	case between:
		return limits{words, number(lo), number(hi), false}
	case strings.HasPrefix(text, ">"):
		return limits{words, number(text[1:]), math.MaxFloat64, false}
	case strings.HasPrefix(text, "<"):
		return limits{words, 0, number(text[1:]), false}
	}
	n := number(strings.TrimPrefix(text, "≈"))
	return limits{words, n / 1.25, n * 1.25, false}
}

// reading is one measured figure, and what is claimed of it. The figure bears the claim out if its interval lies within
// the limits.
type reading struct {
	value, lo, hi float64
	floor         float64 // the noise floor: by how much two of the same may differ
	limits
}

// exact is a reading of what is counted.
func exact(value float64) reading { return reading{value: value, lo: value, hi: value} }

// compared is a reading of a ratio, with its interval and its noise floor.
func compared(f verdict.Figure) reading {
	return reading{value: f.Ratio, lo: f.Lo, hi: f.Hi, floor: f.NoiseFloor}
}

// unpaired is a reading of the quotient of two medians.
func unpaired(v value) reading { return reading{value: v.all[0], lo: v.lo, hi: v.hi} }

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

// String is the value with its interval, bold where it bears the claim out, and marked where it is in the noise.
func (r reading) String() string {
	said := fmt.Sprintf("%.2f (%.2f–%.2f)", r.value, r.lo, r.hi)
	if r.lo == r.hi {
		said = fmt.Sprintf("%.2f", r.value)
	}
	switch v := r.verdict(); {
	case v == "holds" || v == "more than claimed":
		return "**" + said + "**"
	case v == "undecided" && r.floor > 0 && r.interval().InFloor():
		return said + "²"
	}
	return said
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

// claim is what was found of one: its figures, and a line for each thing that they compare.
type claim struct {
	readings []reading
	lines    []string
}

// readClaims reads study/figures/claimed.txt. Each line is a number of a claim, what is compared, the two that are
// compared as over/under, the limits, a folder or a file of codecs' rows, and the workloads or messages.
func (m *maker) readClaims() (all map[int]*claim, home report.Summary) {
	all = map[int]*claim{}
	for i, text := range strings.Split(strings.TrimSuffix(m.read(claimed), "\n"), "\n") {
		of := strings.Fields(text)
		if len(of) == 0 || strings.HasPrefix(text, "#") {
			continue
		}
		if err := try(func() {
			if len(of) < 6 {
				fail("a claim has a number, what, over/under, limits, a folder and workloads")
			}
			nth, dir := int(number(of[0])), m.path(of[4])
			if home.Base == "" {
				home = m.run(m.within(dir)[0])
			}
			if all[nth] == nil {
				all[nth] = new(claim)
			}
			over, under, _ := strings.Cut(of[2], "/")
			said := limitsOf(of[3])
			var what string
			var cells []string
			for _, at := range of[5:] {
				f := m.finding(of[1], dir, at, over, under)
				f.limits = said
				all[nth].readings = append(all[nth].readings, f.reading)
				cells, what = append(cells, f.of+elsewhere(f.from, home)+": "+f.String()), f.what
			}
			all[nth].line(what+said.words, strings.Join(cells, "; "))
		}); err != nil {
			fail("%s:%d: %w", claimed, i+1, err)
		}
	}
	return all, home
}

// line adds what is compared, and its figures, to the line that compares the same.
func (c *claim) line(what, cells string) {
	for i, line := range c.lines {
		if strings.HasPrefix(line, what+": ") {
			c.lines[i] += "; " + cells
			return
		}
	}
	c.lines = append(c.lines, what+": "+cells)
}

// elsewhere says in what a record differs from another: Go, the machine, its CPUs and the day.
func elsewhere(s, home report.Summary) (said string) {
	for _, name := range []string{"go", "cpu", "cores", "date"} {
		is := noted(s, name)
		if is == "" || is == noted(home, name) {
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

// finding is a reading with what it compares, what it is of, and the record.
type finding struct {
	reading
	what, of string
	from     report.Summary
}

// finding compares two stacks at a workload, two codecs with a message, or what a kind of its own is of.
func (m *maker) finding(what, dir, at, over, under string) (f finding) {
	pair := report.Label(over) + "/" + report.Label(under)
	switch what {
	case "marshal", "unmarshal", "size":
		return m.ofCodecs(what, dir, at, over, under)
	case "message": // gRPC's unary call with its message on a stream; both were compared with JSON's call
		unary, stream := m.led(dir, at, over), m.led(dir, under, over)
		f = finding{compared(verdict.Quotient(ofTime(unary), ofTime(stream))), "time of a message, unary call/stream",
			code(at), stream.of}
	case "connections": // calls a second of one stack at two workloads, under the one with fewer connections
		many, few := m.led(dir, at, over), m.led(dir, under, over)
		f = finding{unpaired(apart(calls(few), calls(many))),
			"calls a second, " + report.Label(over) + " on more connections/fewer", "", many.of}
		f.of = fmt.Sprintf("%d callers, %d/%d", many.Callers, many.Facts.Connections, few.Facts.Connections)
	case "bytes", "allocations", "allocated":
		c, inverse := m.between(dir, at, over, under)
		own, base := c.counts(1), c.counts(0)
		n := map[string]float64{"bytes": (own.Sent + own.Received) / (base.Sent + base.Received),
			"allocations": own.Allocs / base.Allocs, "allocated": own.AllocBytes / base.AllocBytes}[what]
		if inverse {
			n = 1 / n
		}
		words := map[string]string{"bytes": "bytes on the wire", "allocations": what, "allocated": "allocated bytes"}[what]
		f = finding{exact(n), words + ", " + pair, listedAs(c.Answer), c.of}
	default:
		f = m.ofStacks(what, dir, at, over, under)
		f.what = strings.Replace(what, "calls", "calls a second", 1) + ", " + pair
	}
	return f
}

// between is the comparison of two stacks of which one is the base, and whether that is the first one.
func (m *maker) between(dir, at, over, under string) (c comparison, inverse bool) {
	if c := m.find(dir, at, over); c != nil && c.of.Base == under {
		return *c, false
	}
	if c := m.find(dir, at, under); c != nil && c.of.Base == over {
		return *c, true
	}
	fail("%s has not compared %s and %s at %s", dir, over, under, at)
	return c, false
}

// ofStacks compares two stacks by a quantity. Either one of them is the base, or both were compared with it.
func (m *maker) ofStacks(what, dir, at, over, under string) finding {
	q := quantityOf(strings.Replace(what, "p50", "median", 1))
	a, b := m.find(dir, at, over), m.find(dir, at, under)
	if a != nil && b != nil && a.of.Base == b.of.Base {
		return finding{reading: compared(verdict.Quotient(q.figure(*a), q.figure(*b))), of: listedAs(a.Answer), from: a.of}
	}
	c, inverse := m.between(dir, at, over, under)
	figure := q.figure(c)
	if inverse {
		figure = figure.Inverse()
	}
	if figure.Ratio == 0 {
		fail("%s has no %s of %s and %s at %s", dir, what, over, under, at)
	}
	return finding{reading: compared(figure), of: listedAs(c.Answer), from: c.of}
}

// ofCodecs compares the time of an op of one codec with that of the other, or the lengths of their bodies.
func (m *maker) ofCodecs(op, file, message, over, under string) finding {
	r := unpaired(apart(m.codec(file, op, message, over), m.codec(file, op, message, under)))
	if op == "size" {
		op, r = "bytes", exact(r.value)
	}
	return finding{r, fmt.Sprintf("%s, `%s`/`%s`", op, over, under), code(message), m.header(file)}
}

// listedAs is the name of a workload of the list, or the title of another one.
func listedAs(a report.Answer) string {
	if _, err := workload.Find(a.Workload); err != nil {
		return a.Does
	}
	return code(a.Workload)
}

// bases are the times of the base's calls in the processes of a comparison, with their interval.
func bases(c comparison) benchmath.Summary {
	f := ofTime(c)
	if len(f.BasesNs) < verdict.Fewest {
		fail("%s has fewer than %d processes", c.Workload, verdict.Fewest)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(f.BasesNs, &benchmath.DefaultThresholds), 0.95)
	s.Center = f.BaseNs // as in the calls a second
	return s
}

// calls are the times of the stack's calls. Two of one stack are not paired, so the interval is the widest that the
// base's processes and the ratio allow.
func calls(c comparison) benchmath.Summary {
	s, f := bases(c), ofTime(c)
	return benchmath.Summary{Center: f.BaseNs * f.Ratio, Lo: s.Lo * f.Lo, Hi: s.Hi * f.Hi}
}

var claimRow = regexp.MustCompile(`^\| (\d+) \|.*\|$`)

// claimsTable writes the last two columns of the page's own table: the figures of each claim, and its verdict.
func (m *maker) claimsTable(body string) string {
	all, _ := m.readClaims()
	m.counted = map[string]int{}
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for i, line := range lines {
		row := claimRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		nth, _ := strconv.Atoi(row[1])
		cells := strings.Split(line, " | ")
		if len(cells) != 5 {
			fail("claim %d has %d columns, and the table has 5", nth, len(cells))
		}
		if all[nth] == nil {
			fail("claim %d has no figure in %s", nth, claimed)
		}
		said := overall(all[nth].readings)
		m.counted[said]++
		lines[i] = strings.Join(append(cells[:3], strings.Join(all[nth].lines, "<br>"), "**"+said+"** |"), " | ")
		delete(all, nth)
	}
	for nth := range maps.Keys(all) {
		fail("%s has figures of claim %d, which the page doesn't have", claimed, nth)
	}
	return strings.Join(lines, "\n")
}

// claims is how many claims have a verdict.
func (m *maker) claims(said string) float64 {
	if m.counted[said] == 0 {
		fail("no claim is called %q here", said)
	}
	return float64(m.counted[said])
}

// String is the quotient of two medians with its interval.
func (v value) String() string { return table.Sized(v.all[0], v.lo, v.hi) }
