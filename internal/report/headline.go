package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Sentences are the answer in words, of each stack that has a ratio: what the difference makes of a machine. They are
// made of verdicts and intervals alone, so that they say no more than the table: a number is told with its interval,
// and only if the line is decided. Of a sweep, and of more than three stacks, the table says it better.
func (s Summary) Sentences() (all []string) {
	stacks := s.Stacks()
	if s.Over != "" || len(stacks) > 3 {
		return nil
	}
	for _, stack := range stacks {
		if said := s.said(stack); said != "" {
			all = append(all, said)
		}
	}
	return all
}

// Service says where to go on from an answer about several callers: calls alone don't tell what they are of a service.
func (s Summary) Service() []string {
	several := func(a Answer) bool { return (a.AtRate() || a.Many()) && !a.routed() }
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

// whose says in a text whose CPU time is told: of servers elsewhere it is the client's alone.
func (s Summary) whose(text string) string {
	if s.Remote {
		return strings.ReplaceAll(text, "CPU", "client CPU")
	}
	return text
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
		of, whose := "", either(s.Remote, "the client of ", "")
		if a := l.Answer; a.Calls != "" || len(all) > 1 { // else the title stands above, and has the rate
			of = " (" + cmp.Or(a.Calls, a.Does) + ")"
		}
		return fmt.Sprintf("At %s calls a second%s %s%s%s.", thousands(l.Answer.Rate), of, whose, l.occupies(base),
			l.Answer.latency())
	})
	first(tailHeading, func(l Led) string {
		if !l.Answer.byTail() {
			return ""
		}
		return fmt.Sprintf("At %s calls a second over %s %s.", thousands(l.Answer.Rate), l.Answer.Link, l.tails(base))
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
	if said == nil && slices.ContainsFunc(all, Answer.byTail) {
		return fmt.Sprintf("Whether %s's p99 latency is lower than %s's is undecided.", label, base)
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
