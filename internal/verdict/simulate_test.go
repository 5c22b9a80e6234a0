package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// world is a simulated machine with two CPUs, one of which another program takes in spells, and a contestant whose true
// ratio is known. A slice takes 50 ms of the world's time.
type world struct {
	ratio, busy float64 // the contestant's ratio on the free machine, and beside the other program
	taken       float64 // share of the time in which the other program runs
	spell       float64 // how long it does then, on average, in seconds
	slice       float64 // standard deviation of a slice's time
	links       int     // of the source, whose ratios differ by 0.65 %
	drift       float64 // a process's speed to that of others: standard deviation
	blocks      int

	random *rand.Rand
	until  float64 // of the present spell or pause
	on     bool
	own    []float64 // of each link: what its ratio is away from the true one
}

func (w *world) begin(seed uint64) {
	w.random, w.until, w.own = rand.New(rand.NewPCG(seed, 1)), 0, nil
	for range w.links {
		w.own = append(w.own, 0.0065*w.random.NormFloat64())
	}
	w.on = w.random.Float64() < w.taken
	w.until = w.random.ExpFloat64() * w.length()
}

func (w *world) length() float64 {
	if w.on {
		return w.spell
	}
	return w.spell * (1 - w.taken) / w.taken
}

// pass lets time pass, and returns the share of it in which the other program ran.
func (w *world) pass(seconds float64) (share float64) {
	if w.taken == 0 {
		return 0
	}
	left := seconds
	for left > 0 {
		step := min(left, w.until)
		if w.on {
			share += step / seconds
		}
		left, w.until = left-step, w.until-step
		if w.until <= 0 {
			w.on = !w.on
			w.until = w.random.ExpFloat64() * w.length()
		}
	}
	return share
}

// process measures what the i-th process does.
func (w *world) process(i int) (p verdict.Process) {
	p.Layout = i % w.links
	w.pass(0.4)
	speed := math.Exp(w.drift * w.random.NormFloat64())
	var ratios, copies, toCopy []float64
	taken := 0.0
	for range w.blocks {
		var ns [3]float64
		for arm := range ns {
			share := w.pass(0.05)
			taken += share / 3 / float64(w.blocks)
			free, beside := 1.0, 1.2
			if arm == 2 {
				free, beside = w.ratio*math.Exp(w.own[p.Layout]), 1.2*w.busy*math.Exp(w.own[p.Layout])
			}
			ns[arm] = speed * (free + share*(beside-free)) * math.Exp(w.slice*w.random.NormFloat64())
		}
		ratios, copies, toCopy = append(ratios, ns[2]/ns[0]), append(copies, ns[1]/ns[0]), append(toCopy, ns[2]/ns[1])
		for arm := range ns {
			p.Ns[arm] += ns[arm] / float64(w.blocks)
		}
	}
	median := func(all []float64) float64 { return stats.Sample{Xs: all}.Quantile(0.5) }
	p.Time.Ratio, p.Time.Copy, p.Time.ToCopy = median(ratios), median(copies), median(toCopy)
	p.CPUNs = [3]float64{1.1 * p.Ns[0], 1.1 * p.Ns[1], 1.1 * p.Ns[2]}
	p.CPU, p.Others = p.Time, max(1e-4, taken/2)
	return p
}

// decided measures a plan as a campaign does: it stops at a first look that decides, else measures all, and then again,
// or goes on. first is of the planned processes, or of the first look that decided.
func (w *world) decided(plan verdict.Plan) (first, last verdict.Answer) {
	var all []verdict.Process
	for len(all) < plan.Processes {
		all = append(all, w.process(len(all)))
		if a := verdict.Decide(plan, all); plan.Enough(a, false) {
			return a, a
		}
	}
	first = verdict.Decide(plan, all)
	for last = first; last.Wanting(plan, last.Time) && len(all) < 2*plan.Processes; last = verdict.Decide(plan, all) {
		all = append(all, w.process(len(all)))
	}
	return first, last
}

// TestSpellsOfOthers simulates a program that takes one of two cores in spells. Its table has what the rule answers:
// without the spells the ratio is 1.374, within them 0.946, as on 2026-11-23.
func TestSpellsOfOthers(t *testing.T) {
	long(t)
	const runs = 200
	plan := verdict.Plan{Processes: 8, NeedsCores: true, OneCaller: true, CPUs: 2}
	table := "| a core is taken | in spells of | not disturbed | mean ratio of these | intervals that contain 1.374 |\n" +
		"|---:|---:|---:|---:|---:|\n"
	for _, c := range []struct {
		taken, spell float64
		holds        float64 // of a hundred intervals, at least
	}{{0, 1, 93}, {0.10, 0.2, 70}, {0.10, 2, 93}, {0.10, 20, 93}, {0.25, 0.2, 0}, {0.25, 2, 93}, {0.25, 20, 93},
		{0.50, 0.2, 0}, {0.50, 2, 0}, {0.50, 20, 93}} {
		w := world{ratio: 1.374, busy: 0.946, taken: c.taken, spell: c.spell, slice: 0.05, links: 8, blocks: 22}
		free, holds := 0, 0
		var logs []float64
		for run := range runs {
			w.begin(uint64(run))
			if _, r := w.decided(plan); !r.Busy {
				free, holds = free+1, holds+held(r.Time, w.ratio)
				logs = append(logs, math.Log(r.Time.Ratio))
			}
		}
		row := []string{"never", "–", fmt.Sprintf("%.0f %%", 100*float64(free)/runs), "–", "–"}
		if c.taken > 0 {
			row[0], row[1] = fmt.Sprintf("%.0f %%", 100*c.taken), fmt.Sprintf("%g s", c.spell)
		}
		if free >= runs/20 {
			share := 100 * float64(holds) / float64(free)
			row[3], row[4] = fmt.Sprintf("%.3f", math.Exp(stats.Mean(logs))), fmt.Sprintf("%.0f %%", share)
			require.GreaterOrEqual(t, share, c.holds, "%+v", c)
		}
		table += "| " + strings.Join(row, " | ") + " |\n"
	}
	written(t, "disturbed", table)
}

// TestGoingOn simulates comparisons that go on until they are decided, and makes a table of verdicts and coverage.
func TestGoingOn(t *testing.T) {
	long(t)
	const runs = 500
	table := "| machine | blocks, links | true ratio | decided at the first look | decided | false | " +
		"intervals that contain it | of those of the first look |\n|---|---|---:|---:|---:|---:|---:|---:|\n"
	all, holds, falsely := 0, 0, 0
	for _, m := range []struct {
		name         string
		slice, drift float64
	}{{"quiet", 0.027, 0.02}, {"restless", 0.05, 0.1}, {"noisy", 0.09, 0.12}} {
		for _, ratio := range []float64{1, 1.03, 1.10} {
			for _, w := range []world{{links: 8, blocks: 22}, {links: 1, blocks: 5}} {
				w.ratio, w.slice, w.drift = ratio, m.slice, m.drift
				first, last, wrong, hold, firstHold := 0, 0, 0, 0, 0
				for run := range runs {
					w.begin(uint64(run))
					plan := verdict.Plan{Processes: 8}
					if w.links == 1 { // as run has it
						plan.First = verdict.Fewest
					}
					early, late := w.decided(plan)
					at, r := early.Time, late.Time
					hold += held(r, ratio)
					if different(at) {
						first, firstHold = first+1, firstHold+held(at, ratio)
					}
					if different(r) {
						last++
						if ratio == 1 || r.Verdict == verdict.Less {
							wrong++
						}
					}
				}
				require.LessOrEqual(t, wrong, runs/200, "%+v", w)
				all, holds, falsely = all+runs, holds+hold, falsely+wrong
				ofFirst := "–"
				if first >= runs/20 {
					ofFirst = fmt.Sprintf("%.0f %%", 100*float64(firstHold)/float64(first))
				}
				table += fmt.Sprintf("| %s | %d, %d | %.2f | %.0f %% | %.0f %% | %d | %.1f %% | %s |\n", m.name, w.blocks, w.links,
					ratio, 100*float64(first)/runs, 100*float64(last)/runs, wrong, 100*float64(hold)/runs, ofFirst)
			}
		}
	}
	require.GreaterOrEqual(t, float64(holds)/float64(all), 0.94)
	written(t, "goingon", table+fmt.Sprintf("\nTogether %.1f %% of the %d intervals contain the true ratio, and %d "+
		"verdicts are false.\n", 100*float64(holds)/float64(all), all, falsely))
}

func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("thousands of comparisons are simulated")
	}
}

// different tells whether a difference was decided.
func different(r verdict.Figure) bool { return r.Verdict == verdict.Less || r.Verdict == verdict.More }

// held is 1 if the interval holds the ratio.
func held(r verdict.Figure, ratio float64) int {
	if r.Lo <= ratio && ratio <= r.Hi {
		return 1
	}
	return 0
}
