package pages

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

var claimLine = regexp.MustCompile(`^(\d+) (\S+) "([^"]+): ([^":]+)" = (.+)$`)

// readClaims reads study/figures/claimed.txt. The first figure's record is the one that those of others differ from.
func (m *maker) readClaims() map[int]*claim {
	all, home := map[int]*claim{}, report.Summary{}
	for i, text := range strings.Split(strings.TrimSuffix(m.read(claimed), "\n"), "\n") {
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := try(func() {
			of := claimLine.FindStringSubmatch(text)
			if of == nil {
				fail(`it isn't a number, limits, "what: at what" = a source`)
			}
			v := m.eval(&ledger{}, parse(of[5])[0])
			if home.Environment == nil {
				home = v.from
			}
			nth := int(number(of[1]))
			if all[nth] == nil {
				all[nth] = new(claim)
			}
			r := reading{value: v.all[0], lo: cmp.Or(v.lo, v.all[0]), hi: cmp.Or(v.hi, v.all[0]), limits: limitsOf(of[2])}
			if v.figures != nil {
				r.floor = v.figures[0].NoiseFloor
			}
			all[nth].readings = append(all[nth].readings, r)
			all[nth].line(of[3]+r.words, of[4]+elsewhere(v.from, home)+": "+r.String())
		}); err != nil {
			fail("%s:%d: %w", claimed, i+1, err)
		}
	}
	return all
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

var claimRow = regexp.MustCompile(`^\| (\d+) \|.*\|$`)

// claimsTable writes the last two columns of the page's own table: the figures of each claim, and its verdict.
func (m *maker) claimsTable(body string) string {
	all := m.readClaims()
	m.counted = map[string]int{}
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for i, line := range lines {
		row := claimRow.FindStringSubmatch(line)
		switch {
		case row == nil && i < 2: // the names of columns
			continue
		case row == nil:
			fail("%q is no row of a claim: it begins with its number", line)
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
