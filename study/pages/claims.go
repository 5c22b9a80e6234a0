package pages

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
)

// claimed is what a claim says of a figure: that it lies between least and most, or nothing.
type claimed struct {
	words       string
	least, most float64
	void        bool
}

func about(n float64) claimed { return claimed{fmt.Sprintf("about %g", n), n / 1.25, n * 1.25, false} }
func above(n float64) claimed { return claimed{fmt.Sprintf("above %g", n), n, math.MaxFloat64, false} }
func below(n float64) claimed { return claimed{fmt.Sprintf("below %g", n), 0, n, false} }
func nothing() claimed        { return claimed{words: "–", void: true} }

func between(least, most float64) claimed {
	return claimed{fmt.Sprintf("%g to %g", least, most), least, most, false}
}

// bears returns words that a figure bears out, such as "about half", as they are claimed.
func bears(words string, c claimed, figure float64) string {
	if figure < c.least || figure > c.most {
		fail("%q is %s, and the figure is %.2f", words, c.words, figure)
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
func paired(a *report.Led) reading {
	return reading{value: a.Ratio, lo: a.Lo, hi: a.Hi, floor: a.NoiseFloor}
}

// inverse exchanges the two that a reading compares.
func inverse(r reading) reading {
	return reading{value: 1 / r.value, lo: 1 / r.hi, hi: 1 / r.lo, floor: r.floor}
}

// apart compares two medians. They are not paired: the machine may have changed between their runs. The interval is
// from the lower end of the one by the upper end of the other to the reverse, so it is wider than 95 %.
func apart(x, y benchmath.Summary) reading {
	return reading{value: x.Center / y.Center, lo: x.Lo / y.Hi, hi: x.Hi / y.Lo}
}

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
	case r.void:
		return "void"
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

// claims are the figures of claims, read from one folder. A template first names each figure, by a method of its kind,
// and then shows the verdicts and the table.
type claims struct {
	m     *maker
	dir   string
	table *table.Table
	of    map[int][]reading
	shown map[int]string // the verdicts
}

func (m *maker) claims(dir string) *claims {
	t := table.New(5, "claim", "figure", "here", "claimed", "verdict")
	t.Columns[0].Words, t.Columns[2].Words = false, false
	return &claims{m: m, dir: dir, table: t, of: map[int][]reading{}, shown: map[int]string{}}
}

func (c *claims) add(claim int, words string, r reading, said claimed) string {
	r.claimed = said
	c.of[claim] = append(c.of[claim], r)
	c.table.Add(fmt.Sprint(claim), words, r.figure(), said.words, r.said())
	return ""
}

// Call compares what a call of one stack takes with that of the other. One of the two is the base of the run.
func (c *claims) Call(claim int, what, work, over, under string, said claimed) string {
	base, stack := c.m.run(c.dir+"/workloads").Base, over
	if over == base {
		stack = under
	} else if under != base {
		fail("neither %s nor %s is the base, %s", over, under, base)
	}
	a := c.m.answer(c.dir, work, stack)
	var r reading
	switch p := a.Percentiles.P95; what {
	case "time":
		r = paired(a)
	case "calls per second":
		r = inverse(paired(a))
	case "p95":
		r = reading{value: p.Ratio, lo: p.Lo, hi: p.Hi, floor: a.NoiseFloor}
	case "bytes on the wire":
		r = exact((a.Facts.Sent + a.Facts.Received) / (a.BaseFacts.Sent + a.BaseFacts.Received))
	case "allocations":
		r = exact(a.Facts.Allocs / a.BaseFacts.Allocs)
	case "allocated bytes":
		r = exact(a.Facts.AllocBytes / a.BaseFacts.AllocBytes)
	default:
		fail("%q is nothing that calls have", what)
	}
	if over == base {
		r = inverse(r)
	}
	words := fmt.Sprintf("%s, %s to %s, %s", what, report.Label(over), report.Label(under), a.Does)
	return c.add(claim, words, r, said)
}

// VT compares the time of gRPC's call with vtprotobuf's code with that without.
func (c *claims) VT(claim int, work string, said claimed) string {
	a := c.m.answer(c.dir+"/vt", work, "grpcprotobuf.vt")
	return c.add(claim, "time, vtprotobuf to protobuf, "+a.Does, paired(a), said)
}

// Message compares gRPC's unary call with its message on a stream. Both were compared with JSON's call.
func (c *claims) Message(claim int, said claimed) string {
	unary, stream := c.m.answer(c.dir, "small", "grpcprotobuf"), c.m.answer(c.dir, "stream", "grpcprotobuf")
	r := paired(quotient(unary, stream))
	r.floor = max(unary.NoiseFloor, stream.NoiseFloor)
	return c.add(claim, "time of a message, unary call to stream", r, said)
}

// Codec compares the time of an op of one codec with that of the other, or the lengths of their bodies.
func (c *claims) Codec(claim int, op, message, over, under string, said claimed) string {
	file := c.dir + "/codecs/rows.txt"
	r := apart(c.m.codec(file, op, message, over), c.m.codec(file, op, message, under))
	if op == "size" {
		op, r = "bytes of", exact(r.value)
	}
	return c.pair(claim, fmt.Sprintf("%s `%s`,", op, message), over, under, r, said)
}

// Echo compares the times of an echoed message, with 50 callers.
func (c *claims) Echo(claim int, message, over, under string, said claimed) string {
	row := "Echo/stack=%s/msg=" + message + "/callers=50/conns=20"
	return c.rows(claim, "time of `"+message+"`, 50 callers,", "/servers/echo.txt", row, over, under, said)
}

// Server compares the times of small calls of one client to two servers.
func (c *claims) Server(claim int, client, over, under string, said claimed) string {
	row := "Cross/client=" + client + "/server=%s"
	return c.rows(claim, "time of a small call of `"+client+"`, server", "/servers/cross.txt", row, over, under, said)
}

func (c *claims) rows(claim int, words, file, row, over, under string, said claimed) string {
	median := func(name string) benchmath.Summary {
		return c.m.summary("ns/op", c.dir+file, fmt.Sprintf(row, name))
	}
	return c.pair(claim, words, over, under, apart(median(over), median(under)), said)
}

func (c *claims) pair(claim int, words, over, under string, r reading, said claimed) string {
	return c.add(claim, fmt.Sprintf("%s `%s` to `%s`", words, over, under), r, said)
}

// Verdict sums up the figures of a claim.
func (c *claims) Verdict(claim int) string {
	if c.of[claim] == nil {
		fail("claim %d has no figure", claim)
	}
	c.shown[claim] = overall(c.of[claim])
	return c.shown[claim]
}

// Count says how often each verdict was shown. Each claim with a figure must have been shown.
func (c *claims) Count() string {
	if len(c.shown) != len(c.of) {
		fail("%d claims have a verdict, and %d have figures", len(c.shown), len(c.of))
	}
	count := map[string]int{}
	for _, verdict := range c.shown {
		count[verdict]++
	}
	var counts []string
	for _, verdict := range slices.Sorted(maps.Keys(count)) {
		counts = append(counts, fmt.Sprintf("%s %d", verdict, count[verdict]))
	}
	return fmt.Sprintf("Of %d claims: %s.", len(c.shown), strings.Join(counts, ", "))
}

// Figures is the table of all figures.
func (c *claims) Figures() string {
	return strings.TrimSpace(c.table.Markdown())
}
