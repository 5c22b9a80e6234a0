package pages

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// The kinds of calls whose figures other days predict.
const (
	oneCore   = "one core"
	saturated = "saturated"
	atRate    = "at a rate"
	latency   = "latency"
)

// predicted is how many figures of a day lie in the intervals that the other days predict, and how wide these are.
type predicted struct {
	held, of int
	halves   []float64 // of the intervals, as ratios minus 1
}

// half is the median half-width.
func (p predicted) half() float64 {
	s := benchmath.NewSample(p.halves, &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(s, 0.95).Center
}

// question is one figure of comparisons that were made alike on machines of one processor.
type question struct {
	kind
	calls, processor string
	rate             float64
	connections      [2]int64
}

// day is a machine on a date: another kernel is another machine.
type day struct{ date, kernel string }

// foretold are the figures of a comparison that a day is asked for, by kind of calls.
func foretold(c comparison) map[string]verdict.Figure {
	all := map[string]verdict.Figure{}
	switch {
	case c.AtRate():
		all[atRate] = ofCPU(c)
	case c.Many():
		all[saturated] = ofTime(c)
	case !c.Apart && c.GOMAXPROCS == 1:
		all[oneCore] = ofTime(c)
	}
	if c.AtRate() || c.Many() {
		all[latency] = c.Waits(c.Percentiles.P50)
	}
	return all
}

// days are the estimates of each question by day. Of several runs of a day the middle one counts.
func (m *maker) days() map[question]map[day]verdict.Estimate {
	all := map[question]map[day][]verdict.Estimate{}
	for kind, comparisons := range m.recorded() {
		for _, c := range comparisons {
			if c.Others > verdict.BusyMachine || !c.Kept() {
				continue
			}
			on := day{noted(c.of, "date"), noted(c.of, "kernel")}
			for calls, f := range foretold(c) {
				e, ok := f.Estimate(c.Processes.Counted, c.of.Plan.Layouts < 2)
				q := question{kind, calls, noted(c.of, "cpu"), c.Rate, connections(c)}
				if !ok {
					continue
				}
				if all[q] == nil {
					all[q] = map[day][]verdict.Estimate{}
				}
				all[q][on] = append(all[q][on], e)
			}
		}
	}
	middle := map[question]map[day]verdict.Estimate{}
	for q, days := range all {
		middle[q] = map[day]verdict.Estimate{}
		for on, runs := range days {
			slices.SortFunc(runs, func(a, b verdict.Estimate) int {
				return int(math.Copysign(1, a.Ln-b.Ln))
			})
			middle[q][on] = runs[len(runs)/2]
		}
	}
	return middle
}

// otherDays leaves out each day of each question that has as many others as a mean takes, and asks whether they predict
// it: by kind of calls.
func (m *maker) otherDays() map[string]*predicted {
	all := map[string]*predicted{oneCore: {}, saturated: {}, atRate: {}, latency: {}}
	for q, days := range m.days() {
		if len(days) <= verdict.FewestRuns {
			continue
		}
		for left, own := range days {
			var others []verdict.Estimate
			for on, e := range days {
				if on != left {
					others = append(others, e)
				}
			}
			p, next := all[q.calls], verdict.Pool(others)
			if p.of++; math.Log(next.NextLo) <= own.Ln && own.Ln <= math.Log(next.NextHi) {
				p.held++
			}
			p.halves = append(p.halves, math.Sqrt(next.NextHi/next.NextLo)-1)
		}
	}
	return all
}

// predicts is a ledger's source: of days("kind of calls", "held"), "of" or "half-width".
func (m *maker) predicts(of []string) value {
	calls, what := of[0], of[1]
	p := m.otherDays()[calls]
	if p == nil {
		fail("days knows %s, %s, %s and %s", oneCore, saturated, atRate, latency)
	}
	switch what {
	case "held":
		return one(float64(p.held))
	case "of":
		return one(float64(p.of))
	case "half-width":
		return one(p.half())
	}
	fail("%s", fmt.Sprintf("days tells held, of and half-width, and not %s", what))
	return value{}
}
