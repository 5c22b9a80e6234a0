package verdict

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// quantity is what a figure is of.
type quantity struct {
	ns     func(Process) [3]float64
	ratios func(Process) Ratios
}

var (
	ofTime = quantity{func(p Process) [3]float64 { return p.Ns }, func(p Process) Ratios { return p.Time }}
	ofCPU  = quantity{func(p Process) [3]float64 { return p.CPUNs }, func(p Process) Ratios { return p.CPU }}
	ofTail = quantity{Process.tails, Process.tail}
)

// tails are the 99th percentiles of a process.
func (p Process) tails() (all [3]float64) {
	for arm, l := range p.Latencies {
		all[arm] = l.P99
	}
	return all
}

// tail has their ratios.
func (p Process) tail() (r Ratios) {
	base, again, own := p.Latencies[0].P99, p.Latencies[1].P99, p.Latencies[2].P99
	r.Copy, r.Ratio = again/base, own/base
	if p.Time.ToCopy > 0 {
		r.ToCopy = own / again
	}
	return r
}

// told tells whether all processes know the 99th percentile of each arm.
func (p Process) told() bool {
	tails := p.tails()
	return slices.Min(tails[:]) > 0
}

// Decide makes the answer of a comparison from its processes, in the order in which they ran.
func Decide(plan Plan, processes []Process) Answer {
	all := len(processes)
	processes = slices.DeleteFunc(slices.Clone(processes), func(p Process) bool { return !plan.Obeys(p) })
	kept, without := plan.kept(processes)
	a := Answer{Processes: Counts{Planned: max(plan.Processes, all), Measured: all, Counted: len(kept),
		Miscounted: all - len(processes)}, Unchecked: unchecked(plan, kept)}
	for _, p := range processes {
		if plan.Disturbed(p) {
			a.Processes.Disturbed++
		}
	}
	if a.Processes.Disturbed == 0 {
		a.Processes.OneCore = len(processes) - len(kept)
	}
	a.means(kept)
	a.LateNs = late(kept)
	for _, m := range []*Means{&a.BaseMeans, &a.StackMeans} {
		if plan.Routed { // the router's part is in it
			m.CPUNs, m.ServerCPUNs = 0, 0
		}
	}
	if !plan.NeedsCores {
		a.Others = 0 // one core was enough, and others may have the rest
	}
	fails := a.fails(plan, len(processes))
	silent := func(p Process) bool { return p.CPU.Ratio == 0 }
	if plan.AtRate && plan.Routed {
		if a.Percentiles = ofTail.percentiles(kept); !slices.ContainsFunc(kept, func(p Process) bool { return !p.told() }) {
			a.Time = ofTail.figure(plan, kept, fails)
		}
		return a
	}
	if plan.AtRate {
		a.CPU, a.Percentiles = ofCPU.figure(plan, kept, fails), ofCPU.percentiles(kept)
		return a
	}
	a.Processes.NoSecond = without
	a.Time, a.Percentiles = ofTime.figure(plan, kept, fails), ofTime.percentiles(kept)
	if plan.NeedsCores && !plan.Routed && !slices.ContainsFunc(kept, silent) {
		a.CPU = ofCPU.figure(plan, kept, fails)
	}
	return a
}

// fails is the first condition of a verdict that fails before any figure is looked at, of all processes.
func (a *Answer) fails(plan Plan, all int) Reason {
	n, left := a.Processes, float64(plan.CPUs)*(1-a.Others)
	disturbed := n.Disturbed > 0 && n.Counted == all
	crowded := plan.NeedsCores && !plan.Routed && plan.CPUs > 0 && a.Others > 0 && left < plan.needs()-shortOnAverage
	a.Busy = disturbed || crowded
	needed := plan.needed(all)
	for _, c := range []struct {
		fails bool
		Reason
	}{
		{!a.Kept(), Reason{Kind: NotCompleted, Found: a.completed(), Needed: leastCompleted, Decides: plan.lighter()}},
		{disturbed, Reason{Kind: Disturbed, Processes: n.Disturbed, Of: all, Needed: plan.needs() - short}},
		{crowded, Reason{Kind: Crowded, Found: left, Needed: plan.needs() - shortOnAverage}},
		{n.Counted < needed, Reason{Kind: TooFew, Processes: n.Counted, Of: n.Planned, OneCore: n.OneCore,
			Miscounted: n.Miscounted, Needed: float64(needed)}},
	} {
		if c.fails {
			return c.Reason
		}
	}
	return Reason{}
}

// lighter is what lets calls be completed as planned.
func (p Plan) lighter() Remedy {
	if p.Chosen {
		return QuieterMachine
	}
	return LowerRate
}

// ends are what an interval and a noise floor are made of, in logarithms of ratios.
type ends struct {
	mean, half       float64 // of the stack's ratio over processes
	again, halfAgain float64 // of the copy's
	least            float64 // what layouts make of any ratio
	late             float64 // how late a router was, in multiples of the base
}

// after is a figure with these ends after so many times the time: widths go with one over the root of it.
func (e ends) after(times int, baseVaried, margin float64) Figure {
	root := math.Sqrt(float64(times))
	half := math.Hypot(e.half/root, e.least)
	f := Figure{Lo: math.Exp(e.mean - half), Hi: math.Exp(e.mean + half), BaseVaried: baseVaried, Margin: margin,
		CopyDiffers: max(e.least, e.late, math.Exp((math.Abs(e.again)+e.halfAgain)/root)-1)}
	f.NoiseFloor = Floor(f.CopyDiffers, f.BaseVaried)
	return f
}

// figure makes a figure of the processes that count. Where a condition fails already, it has no verdict.
func (q quantity) figure(plan Plan, kept []Process, fails Reason) Figure {
	base, stack, bases := 0.0, 0.0, []float64(nil)
	for _, p := range kept {
		ns, n := q.ns(p), float64(len(kept))
		base, stack, bases = base+ns[0]/n, stack+ns[2]/n, append(bases, ns[0])
	}
	f, e := Figure{BaseVaried: varied(bases)}, ends{}
	if len(kept) > 1 { // one process has no interval
		e.mean, e.half = interval(kept, q.estimate)
		e.again, e.halfAgain = interval(kept, func(p Process) float64 { return q.ratios(p).Copy })
		e.least = q.least(kept)
		e.late = late(kept) / (base * float64(plan.sharing()))
		f = e.after(1, f.BaseVaried, 0)
		f.Ratio, f.Level = math.Exp(e.mean), level
	}
	f.BaseNs, f.StackNs, f.BasesNs, f.Verdict, f.Reason = base, stack, bases, Undecided, fails
	var logs []float64
	for _, p := range kept {
		one := q.estimate(p)
		if logs = append(logs, math.Log(one)); f.Ratio > 0 && (one > 1) == (f.Ratio > 1) {
			f.OnOneSide++
		}
	}
	if fails != (Reason{}) || f.Ratio == 0 {
		return f
	}
	f.Margin = cmp.Or(plan.Margin, Margin)
	f.Verdict = f.decided()
	switch spread := stats.StdDev(logs); {
	case f.Verdict == Undecided:
		f.Reason = e.whyUndecided(f)
	case f.Verdict != Same && math.Abs(e.mean) < away*spread:
		f.Verdict = Undecided
		f.Reason = Reason{Kind: TwoStates, Processes: f.OnOneSide, Of: len(kept), Found: spread}
	}
	return f
}

// sharing is how many calls share the time that a figure has of each: those of callers who call again at once.
func (p Plan) sharing() int {
	if p.AtRate {
		return 1
	}
	return max(1, p.Callers)
}

// late is how late a router's packets left, on average over processes.
func late(kept []Process) (ns float64) {
	for _, p := range kept {
		ns += p.LateNs / float64(len(kept))
	}
	return ns
}

func (q quantity) estimate(p Process) float64 { return q.ratios(p).Estimate() }

// least is what layouts make of a ratio, of which one build says nothing. A copy has the same layout.
func (q quantity) least(kept []Process) float64 {
	first := kept[0]
	if q.ratios(first).ToCopy == 0 || slices.ContainsFunc(kept, func(p Process) bool { return p.Layout != first.Layout }) {
		return 0
	}
	return layoutHalf()
}

// layoutHalf is half the width of the interval of what a layout makes of a ratio.
func layoutHalf() float64 { return ofLayouts * stats.InvCDF(stats.StdNormal)((1+level)/2) }

// Interval is the figure's, with its noise floor.
func (f Figure) Interval() Interval { return Interval{f.Lo, f.Hi, f.NoiseFloor} }

func (f Figure) decided() Verdict { return f.Interval().Verdict(f.Margin) }

// whyUndecided says why an interval decides nothing.
func (f Figure) whyUndecided() Reason {
	if f.Interval().ExcludesOne() {
		return Reason{Kind: WithinFloor, Found: f.NoiseFloor}
	}
	return Reason{Kind: IncludesOne}
}

// whyUndecided says why the interval decides nothing, and what would.
func (e ends) whyUndecided(f Figure) Reason {
	decides := func(baseVaried float64) (times int) { // 0 if a hundred times as long is too short
		for times := 2; times <= 100; times++ {
			if e.after(times, baseVaried, f.Margin).decided() != Undecided {
				return times
			}
		}
		return 0
	}
	r := f.whyUndecided()
	switch r.Times = decides(f.BaseVaried); {
	case r.Times > 0:
		r.Decides, r.Ratio = MoreTime, f.Ratio
	case decides(0) > 0:
		r.Decides, r.Varied = QuieterMachine, f.BaseVaried
	default:
		r.Decides = Nothing
	}
	return r
}

// Waits is the figure of a percentile of single calls. Its verdict is made as that of other figures is, with the copy's
// own percentile in the noise floor. Where the answer could have no verdict, it has none.
func (a Answer) Waits(p Percentile) Figure {
	of := a.Leading(false)
	f := Figure{Ratio: p.Ratio, Lo: p.Lo, Hi: p.Hi, BaseNs: p.BaseNs, StackNs: p.StackNs,
		Margin: cmp.Or(of.Margin, Margin), BaseVaried: of.BaseVaried, Verdict: Undecided}
	if p.BaseNs > 0 && p.CopyNs > 0 {
		f.CopyDiffers = max(max(p.CopyNs/p.BaseNs, p.BaseNs/p.CopyNs)-1, a.LateNs/p.BaseNs)
	}
	f.NoiseFloor = Floor(f.CopyDiffers, f.BaseVaried)
	switch {
	case p.Ratio == 0:
		return Figure{}
	case !a.decides():
		f.Reason = of.Reason
	default:
		f = f.judged()
	}
	return f
}

// OfRounds compares what a stack takes with what the base takes, by a pair of values for each round, in which both were
// measured anew. The base's rounds are its copies: the second one of the first, the fourth one of the third, and so on.
func OfRounds(base, stack []float64) Figure {
	f, copies := inRounds(base, stack), []float64(nil)
	for i := 1; i < len(base); i += 2 {
		copies = append(copies, math.Log(base[i]/base[i-1]))
	}
	if len(base) < Fewest {
		return f
	}
	again, halfAgain := Student(copies)
	f.CopyDiffers = math.Exp(math.Abs(again)+halfAgain) - 1
	f.NoiseFloor = Floor(f.CopyDiffers, f.BaseVaried)
	return f.judged()
}

// inRounds is the figure of values in pairs, without a verdict.
func inRounds(base, stack []float64) Figure {
	var ratios []float64
	for i := range base {
		ratios = append(ratios, math.Log(stack[i]/base[i]))
	}
	f := Figure{Margin: Margin, BaseVaried: varied(base), Verdict: Undecided, Reason: Reason{Kind: TooFew,
		Processes: len(base), Of: len(base), Needed: Fewest}}
	if len(base) > 1 {
		mean, half := Student(ratios)
		f.Ratio, f.Lo, f.Hi, f.Level = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half), level
	}
	return f
}

// judged is the figure with the verdict of its interval, and why it has none.
func (f Figure) judged() Figure {
	if f.Verdict, f.Reason = f.decided(), (Reason{}); f.Verdict == Undecided {
		f.Reason = f.whyUndecided()
	}
	return f
}

// Step compares what the base and the stack take at one workload with what they take at another, by a figure of both
// answers. Where one of the answers could have no verdict, the steps have none. Both are the zero figure if one answer
// lacks the figure.
func Step(from, to Answer, of func(Answer) Figure) (base, stack Figure) {
	if !of(from).There() || !of(to).There() {
		return Figure{}, Figure{}
	}
	base, stack = step(of(from), of(to))
	for _, a := range []Answer{from, to} {
		if !a.decides() {
			base.Verdict, base.Reason = Undecided, of(a).Reason
			stack.Verdict, stack.Reason = base.Verdict, base.Reason
		}
	}
	return base, stack
}

// decides tells whether figures of the answer may decide something.
func (a Answer) decides() bool { return !a.Busy && a.Kept() && a.Processes.Counted >= Fewest }

// step is Step of two figures. The base's values are in pairs of processes that ran one soon after the other. The
// stack's ratio is that of the base times the quotient of its own ratios, as independent figures, so its interval is
// the wider one. The noise floor is the larger one of the two.
func step(from, to Figure) (base, stack Figure) {
	n := min(len(from.BasesNs), len(to.BasesNs))
	base = inRounds(from.BasesNs[:n], to.BasesNs[:n])
	base.NoiseFloor = max(from.NoiseFloor, to.NoiseFloor)
	stack = base
	stack.Ratio, stack.Lo, stack.Hi = 0, 0, 0
	if base.Ratio > 0 && from.Ratio > 0 && to.Ratio > 0 {
		squares := 0.0
		for _, f := range []Figure{base, from, to} {
			squares += math.Pow(math.Log(f.Hi/f.Lo)/2, 2)
		}
		half := math.Sqrt(squares)
		stack.Ratio = base.Ratio * to.Ratio / from.Ratio
		stack.Lo, stack.Hi = stack.Ratio*math.Exp(-half), stack.Ratio*math.Exp(half)
	}
	if n < Fewest {
		return base, stack
	}
	if stack.Ratio > 0 {
		stack = stack.judged()
	}
	return base.judged(), stack
}

// Quotient compares two stacks by their figures of one quantity, each to the same base. The two are taken as
// independent, so the interval is wider than if the stacks had been measured in pairs, and the noise floor is the
// larger one. Without both it is a figure without a ratio.
func Quotient(stack, other Figure) (f Figure) {
	if stack.Ratio == 0 || other.Ratio == 0 {
		return Figure{Verdict: Undecided}
	}
	half := math.Hypot(math.Log(stack.Hi/stack.Lo)/2, math.Log(other.Hi/other.Lo)/2)
	f.Ratio, f.BaseNs, f.StackNs = stack.Ratio/other.Ratio, other.StackNs, stack.StackNs
	f.Lo, f.Hi = f.Ratio*math.Exp(-half), f.Ratio*math.Exp(half)
	f.NoiseFloor, f.Margin = max(stack.NoiseFloor, other.NoiseFloor), max(stack.Margin, other.Margin)
	return f.judged()
}

// Inverse is the figure of calls a second, of a figure of the time that they take.
func (f Figure) Inverse() Figure {
	if f.Ratio > 0 {
		f.Ratio, f.Lo, f.Hi = 1/f.Ratio, 1/f.Hi, 1/f.Lo
	}
	f.Verdict = cmp.Or(map[Verdict]Verdict{Less: More, More: Less}[f.Verdict], f.Verdict)
	return f
}

// Wanting tells whether up to twice as many processes may lead to a verdict of the figure, or to one of as many as were
// planned that had the machine.
func (a Answer) Wanting(plan Plan, f Figure) bool {
	c := a.Processes
	return c.LeftOut() > 0 && (a.Busy || c.Counted < plan.Processes) ||
		f.Verdict == Undecided && 0 < f.Reason.Times && f.Reason.Times < 4
}

// Enough tells whether a first look at so many processes as the plan says has decided the leading figure. With one that
// is left out it has not: a verdict takes Fewest, and a plan's first look has no more.
func (p Plan) Enough(a Answer, cpu bool) bool {
	return p.First > 0 && a.Processes.Measured == p.First && a.Leading(cpu).Verdict != Undecided
}

// needed is how many of the planned processes a verdict takes; of all, if none are planned.
func (p Plan) needed(all int) int { return max(Fewest, (3*cmp.Or(p.Processes, all)+3)/4) }

// needs is how many cores a process needs: two, or three where a server apart has four or more CPUs.
func (p Plan) needs() float64 {
	if p.Apart && p.CPUs >= 4 {
		return 3
	}
	return float64(min(2, p.CPUs))
}

// Disturbed tells whether other programs left a process too few cores, where that is known.
func (p Plan) Disturbed(one Process) bool {
	return p.NeedsCores && !p.Routed && one.Others > 0 && float64(p.CPUs)*(1-one.Others) < p.needs()-short
}

// kept leaves out processes that had too few cores: a call then waits for other things. Where nobody tells what other
// programs used, the CPU time of a single caller over wall time does. All count where too many would be left out, since
// the rest were then hardly free either. without is how many of those that count had no second core.
func (p Plan) kept(all []Process) (kept []Process, without int) {
	kept = slices.DeleteFunc(slices.Clone(all), p.Disturbed)
	if left := len(all) - len(kept); left > len(kept) || left > 0 && len(kept) < p.needed(len(all)) {
		return slices.Clone(all), 0
	}
	one := func(o Process) bool {
		return o.CPUNs[0] > 0 && o.Others == 0 && min(o.CPUNs[0]/o.Ns[0], o.CPUNs[1]/o.Ns[1]) < severalCore
	}
	if !p.NeedsCores || !p.OneCaller {
		return kept, 0
	}
	several := slices.DeleteFunc(slices.Clone(kept), one)
	if without = len(kept) - len(several); without > len(several) {
		return kept, without
	}
	return several, 0
}

// Obeys tells whether a process has measured the calls of the callers and no others, by Little's law. Of callers who
// call again at once, as many calls are under way as there are callers, on average. Of planned calls, no more are at
// any time, and no more are completed than were planned, but for those that a window's edges leave. What is not told is
// not asked.
func (p Plan) Obeys(one Process) bool {
	allowed := underWay
	if one.Others >= beside {
		allowed *= 2
	}
	for arm, inFlight := range one.InFlight {
		switch most := one.Most[arm]; {
		case p.Callers == 0:
		case p.AtRate:
			if most > int64(p.Callers) || one.Loads[arm].Completed > 1+underWay {
				return false
			}
		case inFlight > 0 && math.Abs(inFlight/float64(p.Callers)-1) > allowed:
			return false
		}
	}
	return true
}

// unchecked names the conditions that the records don't tell.
func unchecked(plan Plan, all []Process) (conditions []Unchecked) {
	without := func(what Unchecked, value func(Process) float64) {
		if plan.NeedsCores && slices.ContainsFunc(all, func(p Process) bool { return value(p) == 0 }) {
			conditions = append(conditions, what)
		}
	}
	without(UncheckedCores, func(p Process) float64 { return p.CPUNs[0] })
	without(UncheckedOthers, func(p Process) float64 { return p.Others })
	return conditions
}
