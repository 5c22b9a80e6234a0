package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Sentences are the answer in words, of each stack that has a ratio: of a sweep where it takes less and where more, and
// else what the difference makes of a machine. They are made of verdicts and intervals alone, so that they say no more
// than the table: a number is told with its interval, and only if the line is decided. Of more than three stacks the
// table says it better.
func (s Summary) Sentences() (all []string) {
	stacks, say := s.Stacks(), s.swept
	if s.Over == "" {
		say = s.said
		if len(stacks) > 3 {
			return nil
		}
	}
	for _, stack := range stacks {
		if said := say(stack); said != "" {
			all = append(all, said)
		}
	}
	return all
}

// decided tells whether a sentence may rest on the figure: its verdict decides, and its interval bears the verdict out.
func (l Led) decided() bool {
	switch l.Verdict {
	case verdict.Less:
		return l.Kept() && 0 < l.Lo && l.Hi < 1
	case verdict.More:
		return l.Kept() && 1 < l.Lo
	case verdict.Same:
		return l.Kept() && 0 < l.Lo
	}
	return false
}

// sized tells whether a sentence may have the number.
func (l Led) sized() bool { return l.decided() && table.TellsSize(l.Lo, l.Hi) }

// takes is a sentence without an end about a figure that is decided.
func (l Led) takes(base string) string {
	of, much := "time", "as long"
	if l.OfCPU {
		of, much = "CPU", "as much CPU time"
	}
	switch {
	case l.sized():
		much = fmt.Sprintf("%s times %s as %s (%s)", table.Ratio(l.Ratio), much, base, table.Interval(l.Lo, l.Hi))
	case l.Verdict == verdict.Same:
		much += " as " + base
	default:
		much = fmt.Sprintf("%s %s than %s", l.Verdict, of, base)
	}
	return Label(l.Stack) + " takes " + much
}

// swept says what a sweep found of a stack: where it takes less and where more, and what is undecided. On one core time
// stands in for CPU time, so that a sweep over GOMAXPROCS has both: each is told by itself.
func (s Summary) swept(stack string) string {
	var said []string
	all := s.curve(stack)
	for _, cpu := range []bool{true, false} {
		if c := all.where(func(l Led) bool { return l.OfCPU == cpu }); len(c) > 0 {
			found := s.found(c, len(c) == len(all))
			if s.Remote {
				found = strings.ReplaceAll(found, "CPU", "client CPU")
			}
			said = append(append(said, found), s.crossings(c)...)
		}
	}
	if missed := all.where(func(l Led) bool { return !l.Kept() }); len(missed) > 0 {
		said = append(said, "Too few of the planned calls were completed"+s.at(missed)+", so there is no verdict.")
	}
	return strings.Join(said, " ")
}

// found is a sentence about a curve by one measure, which is all of the stack's or a part.
func (s Summary) found(c Curve, all bool) string {
	open := c.where(func(l Led) bool { return !l.decided() })
	if len(open) == len(c) {
		at := s.at(c)
		if all && len(c) > 1 {
			at = " at every value"
		}
		measure := map[bool]string{true: "CPU", false: "time"}[c[0].OfCPU]
		return fmt.Sprintf("Whether %s takes less %s than %s is undecided%s.", Label(c[0].Stack), measure, Label(s.Base), at)
	}
	var figures, parts []string
	for i, l := range c.told() {
		figure := l.takes(Label(s.Base))
		if i > 0 {
			figure = fmt.Sprintf("%s times (%s)", table.Ratio(l.Ratio), table.Interval(l.Lo, l.Hi))
		}
		figures = append(figures, figure+s.at(Curve{l}))
	}
	if figures != nil {
		parts = []string{listed(figures, ", and ")}
	}
	for _, v := range []verdict.Verdict{verdict.Less, verdict.Same, verdict.More} {
		unsized := c.where(func(l Led) bool { return l.Verdict == v && l.decided() && !l.sized() })
		if len(unsized) == 0 {
			continue
		}
		part := map[verdict.Verdict]string{verdict.Same: "as much"}[v]
		if parts == nil {
			part = unsized[0].takes(Label(s.Base))
		}
		parts = append(parts, cmp.Or(part, string(v))+s.at(unsized))
	}
	if open = open.where(func(l Led) bool { return l.Kept() }); len(open) > 0 {
		parts = append(parts, "undecided"+s.at(open))
	}
	return strings.Join(parts, "; ") + "."
}

// told are the values whose numbers a sentence has: the first and the last, those between whose verdict is neither's,
// and the highest and the lowest if their intervals lie beyond those of both. The rest is as a reader expects.
func (c Curve) told() Curve {
	c = c.where(Led.sized)
	if len(c) < 3 {
		return c
	}
	first, last := c[0], c[len(c)-1]
	highest := slices.MaxFunc(c, func(a, b Led) int { return cmp.Compare(a.Lo, b.Lo) })
	lowest := slices.MinFunc(c, func(a, b Led) int { return cmp.Compare(a.Hi, b.Hi) })
	return c.where(func(l Led) bool {
		return l.Value == first.Value || l.Value == last.Value || l.Verdict != first.Verdict && l.Verdict != last.Verdict ||
			l.Value == highest.Value && l.Lo > max(first.Hi, last.Hi) ||
			l.Value == lowest.Value && l.Hi < min(first.Lo, last.Lo)
	})
}

// at says at which values of the sweep.
func (s Summary) at(c Curve) string {
	var values, all []string
	for _, l := range c {
		if l.Value != Saturated {
			values = append(values, l.Value)
		}
	}
	if values != nil {
		all = []string{" at " + s.value(Answer{Value: listed(values, " and ")})}
	}
	if len(values) < len(c) {
		all = append(all, " when "+Saturated)
	}
	return strings.Join(all, " and")
}

// listed has something else before the last one.
func listed(all []string, last string) string {
	n := len(all) - 1
	return strings.TrimPrefix(strings.Join(all[:n], ", ")+last+all[n], map[bool]string{true: last}[n == 0])
}

// crossings has a sentence for each two decided values between which less turns into more, or more into less.
func (s Summary) crossings(c Curve) (all []string) {
	from := -1
	for i, l := range c {
		if !l.decided() || l.Verdict == verdict.Same {
			continue
		}
		if from >= 0 && c[from].Verdict != l.Verdict {
			all = append(all, s.crossing(c[from], l, i == from+1))
		}
		from = i
	}
	return all
}

// crossing tells the place only of neighbours, and of numbers.
func (s Summary) crossing(a, b Led, neighbours bool) string {
	from, to, place := a.Value, s.value(b.Answer), ""
	if b.Value == Saturated || s.Over == "GOMAXPROCS" {
		from = s.value(a.Answer)
	}
	if b.Value != Saturated && neighbours {
		place = crossed(a, b)
	}
	return fmt.Sprintf("%s's %s crosses %s's between %s and %s%s.", Label(a.Stack),
		map[bool]string{true: "CPU", false: "time"}[a.OfCPU], Label(s.Base), from, to, place)
}

// crossed is about where the ratio is 1, on a straight line from one value to the other, with logarithms of ratios over
// logarithms of values. Its interval is from the line through the lower ends of both intervals to that through the
// upper ends. It is nothing if that tells no size.
func crossed(a, b Led) string {
	place := func(from, to float64) float64 {
		along := math.Log(from) / (math.Log(from) - math.Log(to))
		return a.amount() * math.Pow(b.amount()/a.amount(), along)
	}
	two := func(at float64) string { // digits
		unit := math.Pow(10, math.Floor(math.Log10(at))-1)
		return strconv.FormatFloat(math.Round(at/unit)*unit, 'g', 10, 64)
	}
	lo, hi := place(a.Lo, b.Lo), place(a.Hi, b.Hi)
	if lo, hi = min(lo, hi), max(lo, hi); !table.TellsSize(lo, hi) {
		return ""
	}
	return fmt.Sprintf(", at about %s (%s–%s)", two(place(a.Ratio, b.Ratio)), two(lo), two(hi))
}

// said is about one stack: how many CPUs it takes more or less at the first planned rate that is decided, and how many
// calls it serves with the machine full. Without either it is the first answer that is decided.
func (s Summary) said(stack string) string {
	var said []string
	all, label, base := s.Of(stack), Label(stack), Label(s.Base)
	first := func(heading string, more func(line) string) {
		for _, a := range all {
			if l := a.line(heading); l.decided() {
				if text := more(l); text != "" {
					said = append(said, text)
					return
				}
			}
		}
	}
	first(s.cpu(), func(l line) string {
		if !l.AtRate() {
			return ""
		}
		whose := map[bool]string{true: "the client of "}[s.Remote]
		return fmt.Sprintf("At %s calls a second%s %s%s%s.", thousands(l.Rate), l.besides(), whose, l.occupies(base),
			l.latency())
	})
	first(rateHeading, func(l line) string {
		what := strings.Replace(l.Does, "saturated: ", "", 1)
		return fmt.Sprintf("With the machine full (%s) %s%s.", what, l.serves(base), l.latency())
	})
	for _, heading := range []string{timeHeading, s.cpu()} {
		if said == nil {
			first(heading, func(l line) string {
				text := l.takes(base) + " for " + l.Does
				if l.sized() && l.Verdict != verdict.Same {
					text += fmt.Sprintf(": %s %s", span(math.Abs(l.more)), l.Verdict)
				}
				return text + "."
			})
		}
	}
	if said == nil && slices.ContainsFunc(all, func(a Answer) bool { return a.Timed().Ratio > 0 }) {
		return fmt.Sprintf("Whether %s takes less %s than %s is undecided.", label, s.measure(), base)
	}
	return strings.Join(said, " ")
}

// besides is what a workload is beside its rate, in brackets, or "" if that is nothing.
func (a Answer) besides() string {
	parts := strings.Split(strings.Replace(a.Does, ", ordinary load", "", 1), ", ")
	parts = slices.DeleteFunc(parts, func(part string) bool { return strings.HasSuffix(part, " a second") })
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// occupies is takes in cores, of a line at a planned rate.
func (l line) occupies(base string) string {
	if !l.sized() || l.Verdict == verdict.Same {
		return l.takes(base)
	}
	cores := func(ratio float64) float64 { return math.Abs(1-ratio) * l.BaseNs * l.Rate / 1e9 }
	lo, hi := cores(l.Lo), cores(l.Hi)
	return fmt.Sprintf("%s uses %.2f of a core %s than %s (%.2f–%.2f)", Label(l.Stack), cores(l.Ratio), l.Verdict, base,
		min(lo, hi), max(lo, hi))
}

// latency is what a sentence adds about the median latency, or nothing if no call was timed.
func (a Answer) latency() string {
	switch f := a.Waits(a.Percentiles.P50); f.Verdict {
	case "":
		return ""
	case verdict.Less:
		return fmt.Sprintf("; its median latency is %.0f%% lower", 100*(1-f.Ratio))
	case verdict.More:
		return fmt.Sprintf("; its median latency is %.0f%% higher", 100*(f.Ratio-1))
	}
	return "; its median latency shows no clear difference"
}

// serves is takes in calls a second.
func (l line) serves(base string) string {
	many := "as many calls per second as " + base
	switch {
	case l.Verdict == verdict.Same:
	case l.sized():
		many = fmt.Sprintf("%s times %s (%s)", table.Ratio(l.Ratio), many, table.Interval(l.Lo, l.Hi))
	default:
		more := map[verdict.Verdict]string{verdict.Less: "fewer", verdict.More: "more"}[l.Verdict]
		many = more + " calls per second than " + base
	}
	return Label(l.Stack) + " serves " + many
}
