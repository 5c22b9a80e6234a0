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

// Service says where to go on from an answer about several callers: calls alone don't tell what they are of a service.
func (s Summary) Service() []string {
	several := func(a Answer) bool { return a.AtRate() || a.Many() }
	if s.Over != "" || s.Remote || len(s.Sentences()) == 0 || !slices.ContainsFunc(s.Answers, several) {
		return nil
	}
	return []string{"rpcbench bound says what share of your service RPCs are."}
}

// decided tells whether a sentence may rest on the figure: its verdict decides, and its interval bears the verdict out.
func (l Led) decided() bool {
	f := l.Figure
	bears := map[verdict.Verdict]bool{verdict.Less: f.Hi < 1, verdict.More: f.Lo > 1, verdict.Same: true}[f.Verdict]
	return bears && f.Lo > 0 && l.Answer.Kept()
}

// sized tells whether a sentence may have the number.
func (l Led) sized() bool { return l.decided() && table.TellsSize(l.Figure.Lo, l.Figure.Hi) }

// takes is a sentence without an end about a figure that is decided.
func (l Led) takes(base string) string {
	of, much, f := "time", "as long", l.Figure
	if l.OfCPU {
		of, much = "CPU", "as much CPU time"
	}
	switch {
	case l.sized():
		much = fmt.Sprintf("%s times %s as %s (%s)", table.Ratio(f.Ratio), much, base, table.Interval(f.Lo, f.Hi))
	case f.Verdict == verdict.Same:
		much += " as " + base
	default:
		much = fmt.Sprintf("%s %s than %s", f.Verdict, of, base)
	}
	return Label(l.Answer.Stack) + " takes " + much
}

// swept says what a sweep found of a stack: where it takes less and where more, and what is undecided. On one core time
// stands in for CPU time, so that a sweep over GOMAXPROCS has both: each is told by itself.
func (s Summary) swept(stack string) string {
	var said []string
	all := s.curve(stack)
	for _, cpu := range []bool{true, false} {
		if c := all.where(func(l Led) bool { return l.OfCPU == cpu }); len(c) > 0 {
			said = append(append(said, s.whose(s.found(c, len(c) == len(all)))), s.crossings(c)...)
		}
	}
	if missed := all.where(func(l Led) bool { return !l.Answer.Kept() }); len(missed) > 0 {
		said = append(said, "Too few of the planned calls were completed"+s.at(missed)+", so there is no verdict.")
	}
	return strings.Join(said, " ")
}

// whose says in a text whose CPU time is told: of servers elsewhere it is the client's alone.
func (s Summary) whose(text string) string {
	if s.Remote {
		return strings.ReplaceAll(text, "CPU", "client CPU")
	}
	return text
}

// found is a sentence about a curve by one measure, which is all of the stack's or a part.
func (s Summary) found(c Curve, all bool) string {
	open := c.where(func(l Led) bool { return !l.decided() })
	if len(open) == len(c) {
		at := s.at(c)
		if all && len(c) > 1 {
			at = " at every value"
		}
		stack, measure := Label(c[0].Answer.Stack), map[bool]string{true: "CPU", false: "time"}[c[0].OfCPU]
		return fmt.Sprintf("Whether %s takes less %s than %s is undecided%s.", stack, measure, Label(s.Base), at)
	}
	var figures, parts []string
	for i, l := range c.told() {
		figure := l.takes(Label(s.Base))
		if i > 0 {
			figure = fmt.Sprintf("%s times (%s)", table.Ratio(l.Figure.Ratio), table.Interval(l.Figure.Lo, l.Figure.Hi))
		}
		figures = append(figures, figure+s.at(Curve{l}))
	}
	if figures != nil {
		parts = []string{listed(figures, ", and ")}
	}
	for _, v := range []verdict.Verdict{verdict.Less, verdict.Same, verdict.More} {
		unsized := c.where(func(l Led) bool { return l.Figure.Verdict == v && l.decided() && !l.sized() })
		if len(unsized) == 0 {
			continue
		}
		part := map[verdict.Verdict]string{verdict.Same: "as much"}[v]
		if parts == nil {
			part = unsized[0].takes(Label(s.Base))
		}
		parts = append(parts, cmp.Or(part, string(v))+s.at(unsized))
	}
	if open = open.where(func(l Led) bool { return l.Answer.Kept() }); len(open) > 0 {
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
	highest := slices.MaxFunc(c, func(a, b Led) int { return cmp.Compare(a.Figure.Lo, b.Figure.Lo) })
	lowest := slices.MinFunc(c, func(a, b Led) int { return cmp.Compare(a.Figure.Hi, b.Figure.Hi) })
	return c.where(func(l Led) bool {
		at := func(o Led) bool { return l.Answer.Value == o.Answer.Value }
		like := func(o Led) bool { return l.Figure.Verdict == o.Figure.Verdict }
		return at(first) || at(last) || !like(first) && !like(last) ||
			at(highest) && l.Figure.Lo > max(first.Figure.Hi, last.Figure.Hi) ||
			at(lowest) && l.Figure.Hi < min(first.Figure.Lo, last.Figure.Lo)
	})
}

// at says at which values of the sweep.
func (s Summary) at(c Curve) string {
	var values, all []string
	for _, l := range c {
		if l.Answer.Value != Saturated {
			values = append(values, l.Answer.Value)
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
		if !l.decided() || l.Figure.Verdict == verdict.Same {
			continue
		}
		if from >= 0 && c[from].Figure.Verdict != l.Figure.Verdict {
			all = append(all, s.crossing(c[from], l, i == from+1))
		}
		from = i
	}
	return all
}

// crossing tells the place only of neighbours, and of numbers.
func (s Summary) crossing(a, b Led, neighbours bool) string {
	from, to, place := a.Answer.Value, s.value(b.Answer), ""
	if b.Answer.Value == Saturated || s.Over == "GOMAXPROCS" {
		from = s.value(a.Answer)
	}
	if b.Answer.Value != Saturated && neighbours {
		place = crossed(a, b)
	}
	return fmt.Sprintf("%s's %s crosses %s's between %s and %s%s.", Label(a.Answer.Stack),
		map[bool]string{true: "CPU", false: "time"}[a.OfCPU], Label(s.Base), from, to, place)
}

// crossed is about where the ratio is 1, on a straight line from one value to the other, with logarithms of ratios over
// logarithms of values. Its interval is from the line through the lower ends of both intervals to that through the
// upper ends. It is nothing if that tells no size.
func crossed(a, b Led) string {
	place := func(from, to float64) float64 {
		along := math.Log(from) / (math.Log(from) - math.Log(to))
		return a.Answer.amount() * math.Pow(b.Answer.amount()/a.Answer.amount(), along)
	}
	said := func(at float64) string { return strconv.FormatFloat(two(at), 'g', 10, 64) }
	lo, hi := place(a.Figure.Lo, b.Figure.Lo), place(a.Figure.Hi, b.Figure.Hi)
	if lo, hi = min(lo, hi), max(lo, hi); !table.TellsSize(lo, hi) {
		return ""
	}
	return fmt.Sprintf(", at about %s (%s–%s)", said(place(a.Figure.Ratio, b.Figure.Ratio)), said(lo), said(hi))
}

// said is about one stack: how many CPUs it takes more or less at the first planned rate that is decided, and how many
// calls it serves with the machine full. Without either it is the first answer that is decided.
func (s Summary) said(stack string) string {
	var said []string
	all, label, base := s.Of(stack), Label(stack), Label(s.Base)
	first := func(heading string, more func(Led) string) {
		for _, a := range all {
			if l := a.line(heading).led; l.decided() {
				if text := more(l); text != "" {
					said = append(said, text)
					return
				}
			}
		}
	}
	first(s.cpu(), func(l Led) string {
		if !l.Answer.AtRate() {
			return ""
		}
		of, whose := "", map[bool]string{true: "the client of "}[s.Remote]
		if a := l.Answer; a.Calls != "" || len(all) > 1 { // else the title stands above, and has the rate
			of = " (" + cmp.Or(a.Calls, a.Does) + ")"
		}
		return fmt.Sprintf("At %s calls a second%s %s%s%s.", thousands(l.Answer.Rate), of, whose, l.occupies(base),
			l.Answer.latency())
	})
	first(rateHeading, func(l Led) string {
		return fmt.Sprintf("With the machine full (%s) %s%s.", l.Answer.does(), l.serves(base), l.Answer.latency())
	})
	for _, heading := range []string{timeHeading, s.cpu()} {
		if said == nil {
			first(heading, func(l Led) string {
				text := s.whose(l.takes(base)) + " for " + l.Answer.Does
				if l.sized() && l.Figure.Verdict != verdict.Same {
					text += fmt.Sprintf(": %s %s", span(math.Abs(1000*l.Micro())), l.Figure.Verdict)
				}
				return text + "."
			})
		}
	}
	if said == nil && slices.ContainsFunc(all, func(a Answer) bool { return a.Timed().Figure.Ratio > 0 }) {
		return fmt.Sprintf("Whether %s takes less %s than %s is undecided.", label, s.whose(s.measure()), base)
	}
	return strings.Join(said, " ")
}

// occupies is takes in cores, of a planned rate.
func (l Led) occupies(base string) string {
	f := l.Figure
	if !l.sized() || f.Verdict == verdict.Same {
		return l.takes(base)
	}
	cores := func(ratio float64) float64 { return math.Abs(1-ratio) * f.BaseNs * l.Answer.Rate / 1e9 }
	lo, hi := cores(f.Lo), cores(f.Hi)
	return fmt.Sprintf("%s uses %.2f of a core %s than %s (%.2f–%.2f)", Label(l.Answer.Stack), cores(f.Ratio), f.Verdict,
		base, min(lo, hi), max(lo, hi))
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
func (l Led) serves(base string) string {
	many, f := "as many calls per second as "+base, l.Figure
	more := map[verdict.Verdict]string{verdict.Less: "fewer", verdict.More: "more"}[f.Verdict]
	switch percent := func(ratio float64) float64 { return 100 * math.Abs(ratio-1) }; {
	case f.Verdict == verdict.Same:
	case !l.sized():
		many = more + " calls per second than " + base
	case f.Ratio < 2:
		lo, hi := percent(f.Lo), percent(f.Hi)
		many = fmt.Sprintf("%.0f%% %s calls per second than %s (%.0f–%.0f%%)", percent(f.Ratio), more, base, min(lo, hi),
			max(lo, hi))
	default:
		many = fmt.Sprintf("%s times %s (%s)", table.Ratio(f.Ratio), many, table.Interval(f.Lo, f.Hi))
	}
	return Label(l.Answer.Stack) + " serves " + many
}
