package versus

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
)

// The numbers of the rule. docs/method.md says what they were chosen by. The study tries them on
// records.
const (
	// Fewest is how many processes a verdict takes at least.
	Fewest = 6

	// FewestBlocks is how many blocks of slices a process measures at least. Of windows it measures fewer, as
	// workload.Workload.Blocks says.
	FewestBlocks = 5

	// Margin is the difference that verdicts of equal allow unless a plan says another, as a fraction.
	Margin = 0.02

	// BusyMachine is the share of the machine that others may use before a result says so.
	BusyMachine = 0.10

	// Follows is how far a ratio follows the machine's speed, at most: its elasticity.
	Follows = 0.1

	level       = 0.95   // of each interval by itself
	ofLayouts   = 0.0065 // standard deviation of a ratio over layouts of one source
	away        = 1.35   // standard deviations of a process that a decided ratio lies from 1
	severalCore = 1.05   // CPU time over wall time of a process that had several cores

	// How many cores other programs may take of those that a process needs, and of those of all that count on average. An
	// idle machine takes a little itself.
	short, shortOnAverage = 0.2, 0.08
)

// Verdict is the result of a comparison in a word.
type Verdict string

const (
	Faster    Verdict = "faster"    // the contestant takes less time than the base
	Slower    Verdict = "slower"    // the contestant takes more time than the base
	Equal     Verdict = "equal"     // the two differ by less than the margin
	Undecided Verdict = "undecided" // Reason says which condition fails
)

// Process is what one measuring process found: figures of the base, its copy and the contestant, in this order. Blocks
// of different processes are never pooled.
type Process struct {
	Layout    int
	Ns, CPUNs [3]float64 // per call, medians over blocks; CPUNs is 0 if the system does not tell
	ServerNs  [3]float64 // the part of CPUNs that the server's own process had
	Ratios               // of time
	CPU       Ratios     // of CPU time; 0 if the system does not tell
	Latencies [3]timing.Latency
	InFlight  [3]float64 // calls at once, on average; 0 if the callers did not tell
	Loads     [3]Load    // of windows
	Others    float64    // share of the machine that other programs used; 0 if the system does not tell
}

// Ratios are medians over the blocks of a process.
type Ratios struct {
	Copy, Ratio float64 // the copy's and the contestant's to the base's
	ToCopy      float64 // the contestant's to the copy's; 0 if the copy is what is compared
}

// Estimator names how a process's ratio is made: by what [Ratios.Estimate] says. Older results have none: theirs is the
// ratio to the base alone.
const Estimator = "geometric mean of the ratios to the base and to its copy"

// Estimate is the contestant's ratio: the geometric mean of that to the base and that to its copy. Over processes
// that varies less than the ratio to the base alone: by an eighth in the records of docs/method.md. Where the copy is
// what is compared, it is the copy's ratio.
func (r Ratios) Estimate() float64 {
	if r.ToCopy > 0 {
		return math.Sqrt(r.Ratio * r.ToCopy)
	}
	return r.Ratio
}

// Load is what surrounded the calls of an arm in its windows. A figure that nobody tells is 0.
type Load struct {
	Free     float64 `json:"free,omitzero"`     // share of the machine that nobody used
	Switches float64 `json:"switches,omitzero"` // voluntary context switches per call, of client and server
	Reached  float64 `json:"reached,omitzero"`  // calls that were completed, of those that were due
	Dropped  float64 `json:"dropped,omitzero"`  // starts that were more than 50 ms late and dropped, of those that were due
	LateNs   float64 `json:"late_ns,omitzero"`  // 99th percentile of how late calls began
}

// leastReached is the share of the planned calls that has to be completed for a verdict.
const leastReached = 0.98

// Kept tells whether both stacks completed as many of the planned calls as a verdict needs, if calls were planned.
func (r Result) Kept() bool {
	reached := min(r.BaseLoad.Reached, r.Load.Reached)
	return reached == 0 || reached >= leastReached
}

// byCPU is a process by its CPU time, without what is of single calls.
func (p Process) byCPU() Process {
	return Process{Layout: p.Layout, Ns: p.CPUNs, CPUNs: p.CPUNs, ServerNs: p.ServerNs, Ratios: p.CPU, Others: p.Others,
		Loads: p.Loads}
}

// ProcessOf reads a record. The contestant is the last arm, which is the copy if nothing else is compared.
func ProcessOf(r timing.Record) (p Process, err error) {
	last, others := len(r.Arms)-1, 0.0
	if last < 1 {
		return p, fmt.Errorf("rpcbench: a record of %d arms compares nothing", len(r.Arms))
	}
	p.Layout, p.Others = r.Layout, r.Others
	if p.Copy, err = r.Ratio(1, 0); err == nil {
		p.Ratio, err = r.Ratio(last, 0)
	}
	if last > 1 && err == nil {
		p.ToCopy, err = r.Ratio(last, 1)
	}
	if err != nil {
		return p, err
	}
	p.CPU = Ratios{Copy: r.CPURatio(1, 0), Ratio: r.CPURatio(last, 0)}
	if last > 1 {
		p.CPU.ToCopy = r.CPURatio(last, 1)
	}
	for i, arm := range []int{0, 1, last} {
		p.Ns[i], p.CPUNs[i], p.ServerNs[i] = r.NsPerOp(arm), r.CPUNsPerOp(arm), r.ServerNsPerOp(arm)
		if arm < len(r.Latencies) {
			p.Latencies[i] = r.Latencies[arm]
			wall := 0.0
			for _, block := range r.Blocks {
				wall += float64(block[arm].Wall)
			}
			p.InFlight[i] = float64(p.Latencies[i].Sum) / wall
		}
		load, l := r.Load(arm), p.Latencies[i]
		p.Loads[i] = Load{Free: load.Free, Switches: load.Switches}
		if l.Planned > 0 {
			n := float64(l.Planned)
			p.Loads[i].Reached, p.Loads[i].Dropped = float64(l.Calls)/n, float64(l.Dropped)/n
			p.Loads[i].LateNs = float64(l.Late)
		}
		if others += load.Others / 3; i == 2 && others > 0 {
			p.Others = others // of the windows alone
		}
	}
	if p.Loads[0].Reached > 0 && p.CPU.Ratio == 0 {
		return p, fmt.Errorf("rpcbench: a rate compares CPU time, and not all of it is told: %w", errors.ErrUnsupported)
	}
	return p, nil
}

// Plan is what a comparison set out to do.
type Plan struct {
	Processes int  // 0 is as many as there are
	AllCores  bool // the question needs several cores
	OneCaller bool // whose CPU time tells whether a process had them: see [workload.Workload.TellsCores]
	CPUs      int  // of the machine; 0 asks nothing of what other programs left of them
	Apart     bool // the server has a process of its own

	Margin float64 // of Equal; 0 is the constant of that name
}

// Result is what a comparison found of a contestant against the base. Ratio and all that goes with it are 0 if fewer
// than two processes have measured. Times are in nanoseconds per call, shares and floors are fractions.
type Result struct {
	Ratio       float64   `json:"ratio,omitempty"` // geometric mean over processes
	Lo          float64   `json:"lo,omitempty"`    // its confidence interval
	Hi          float64   `json:"hi,omitempty"`
	Level       float64   `json:"level,omitempty"`          // of the interval
	Planned     int       `json:"planned"`                  // processes
	Processes   int       `json:"processes"`                // that measured, and count
	OnOneSide   int       `json:"on_one_side"`              // of them, on the ratio's side of 1
	OneCore     int       `json:"one_core,omitempty"`       // processes that are left out, since they had one core
	NoSecond    int       `json:"no_second_core,omitempty"` // processes that count, though most had no second core
	Disturbed   int       `json:"disturbed,omitempty"`      // processes that other programs left too few cores
	Busy        bool      `json:"busy,omitempty"`           // too many of them, or too little was left on average: there is no verdict
	Times       int       `json:"-"`                        // as long would decide, about; 0 if no time would
	CopyFloor   float64   `json:"copy_floor"`               // how far the interval of the base's copy reaches from 1
	Moved       float64   `json:"moved"`                    // longest over shortest time of the base, less 1, without a tenth at either end
	Others      float64   `json:"others,omitempty"`         // mean share of the machine that other programs used
	Verdict     Verdict   `json:"verdict"`
	Reason      string    `json:"reason,omitempty"` // of no verdict: the first condition that fails, and what would mend it
	Margin      float64   `json:"margin,omitzero"`  // of Equal
	Unchecked   []string  `json:"unchecked,omitempty"`
	BaseNs      float64   `json:"base_ns"` // means over processes
	BaseCPUNs   float64   `json:"base_cpu_ns"`
	Ns          float64   `json:"ns"`
	CPUNs       float64   `json:"cpu_ns"`
	BaseServer  float64   `json:"base_server_cpu_ns,omitzero"` // the part of CPU time that the server's own process had
	Server      float64   `json:"server_cpu_ns,omitzero"`
	Bases       []float64 `json:"bases,omitempty"`     // time of the base in each process, in order of time
	BaseCalls   float64   `json:"base_calls,omitzero"` // in flight, on average
	Calls       float64   `json:"calls_in_flight,omitzero"`
	BaseLoad    Load      `json:"base_load,omitzero"`
	Load        Load      `json:"load,omitzero"`
	Percentiles `json:"percentiles,omitzero"`

	// CPU is the result by CPU time, with a floor and a verdict of its own: its Ns are CPU time. It is nil where one core
	// does all, since that time is CPU time, and where a process does not tell.
	CPU *Result `json:"cpu,omitempty"`
}

// Percentiles are of single calls. One that fewer than ten calls of each process exceed is 0.
type Percentiles struct {
	P50, P95, P99 Percentile
	P999          Percentile `json:",omitzero"` // none in older results
}

// Percentile has the base's, its copy's and the contestant's, in nanoseconds: geometric means over processes. Its ratio
// has an interval as that of times has.
type Percentile struct {
	Base  float64 `json:"base"`
	Copy  float64 `json:"copy"`
	Ns    float64 `json:"ns"`
	Ratio float64 `json:"ratio"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// NoiseFloor is what a difference has to exceed: how far the base's copy differs from it, or what the movement of the
// machine may have made of a ratio. Pairing takes most of a movement out, so a tenth of it counts.
func (r Result) NoiseFloor() float64 {
	return max(r.CopyFloor, math.Pow(1+r.Moved, Follows)-1)
}

// Decide makes the result of a comparison from its processes, in the order in which they ran. At a rate it is of CPU
// time.
func Decide(plan Plan, all []Process) Result {
	kept, without := plan.kept(all)
	if len(kept) > 0 && kept[0].Loads[0].Reached > 0 { // the plan's time is the same for all
		for i, p := range kept {
			kept[i] = p.byCPU()
			kept[i].Latencies, kept[i].InFlight = p.Latencies, p.InFlight
		}
		return decide(plan, all, kept)
	}
	r := decide(plan, all, kept)
	r.NoSecond = without
	if silent := func(p Process) bool { return p.CPU.Ratio == 0 }; plan.AllCores && !slices.ContainsFunc(kept, silent) {
		var byCPU []Process
		for _, p := range kept {
			byCPU = append(byCPU, p.byCPU())
		}
		cpu := decide(plan, all, byCPU)
		r.CPU = &cpu
	}
	return r
}

// decide makes the result of the processes that are kept of all.
func decide(plan Plan, all, kept []Process) Result {
	r := Result{Planned: max(plan.Processes, len(all)), Verdict: Undecided}
	r.Processes, r.Unchecked = len(kept), unchecked(plan, kept)
	for _, p := range all {
		if plan.Disturbed(p) {
			r.Disturbed++
		}
	}
	if r.Disturbed == 0 {
		r.OneCore = len(all) - len(kept)
	}
	if r.Processes > 0 {
		r.means(kept)
	}
	if !plan.AllCores {
		r.Others = 0 // one core was enough, and others may have the rest
	}
	left := float64(plan.CPUs) * (1 - r.Others)
	switch needed := plan.needed(len(all)); {
	case r.Disturbed > 0 && len(kept) == len(all):
		r.Busy = true
		r.Reason = fmt.Sprintf("disturbed: in %d of %d processes other programs left less than %.1f cores, "+
			"so the ratio was measured on a busy machine", r.Disturbed, len(all), plan.needs()-short)
	case plan.AllCores && plan.CPUs > 0 && r.Others > 0 && left < plan.needs()-shortOnAverage:
		r.Busy = true
		r.Reason = fmt.Sprintf("disturbed: other programs left %.2f cores on average, so the ratio was measured on a "+
			"busy machine",
			left)
	case r.Processes < needed && r.OneCore > 0:
		r.Reason = fmt.Sprintf("%d processes count, and a verdict needs %d; %d had one core only", r.Processes, needed,
			r.OneCore)
	case r.Processes < needed:
		r.Reason = fmt.Sprintf("%d of %d processes count, and a verdict needs %d", r.Processes, r.Planned, needed)
	}
	if !r.Kept() {
		r.Reason = fmt.Sprintf("%.0f %% of the planned calls were completed, and a verdict needs %.0f %%: give a lower -rate",
			100*min(r.BaseLoad.Reached, r.Load.Reached), 100*leastReached)
	}
	if r.Processes < 2 {
		return r // one process has no interval
	}
	r.Level = level
	over := func(value func(Process) float64) (mean, half float64) { return interval(kept, value) }
	mean, ofProcesses := over(func(p Process) float64 { return p.Estimate() })
	least := 0.0 // what layouts make of a ratio, of which one build says nothing. A copy has the same
	if first := kept[0]; first.ToCopy > 0 && !slices.ContainsFunc(kept, func(p Process) bool {
		return p.Layout != first.Layout
	}) {
		least = ofLayouts * stats.InvCDF(stats.StdNormal)((1+level)/2)
	}
	half := math.Hypot(ofProcesses, least)
	r.Ratio, r.Lo, r.Hi = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half)
	again, halfAgain := over(func(p Process) float64 { return p.Copy })
	r.CopyFloor = max(least, math.Exp(math.Abs(again)+halfAgain)-1)
	var logs []float64
	for _, p := range kept {
		if logs = append(logs, math.Log(p.Estimate())); (p.Estimate() > 1) == (r.Ratio > 1) {
			r.OnOneSide++
		}
	}
	r.percentiles(over, least)
	if r.Reason != "" {
		return r
	}
	r.Margin = cmp.Or(plan.Margin, Margin)
	r.Verdict = r.verdict()
	if spread := stats.StdDev(logs); r.Verdict != Equal && r.Verdict != Undecided && math.Abs(mean) < away*spread {
		r.Verdict = Undecided
		r.Reason = fmt.Sprintf("%d of %d processes lie on one side of 1, but their ratios vary by %s: "+
			"the machine may have had two states", r.OnOneSide, r.Processes, percent(spread))
	}
	if r.Verdict == Undecided && r.Reason == "" {
		r.wanting(mean, ofProcesses, again, halfAgain, least)
	}
	return r
}

// verdict decides by the interval and the noise floor. A difference may be smaller than the margin. Exchanging base and
// contestant exchanges faster and slower, and changes nothing else.
func (r Result) verdict() Verdict {
	floor := r.NoiseFloor()
	switch {
	case r.Hi < 1/(1+floor):
		return Faster
	case r.Lo > 1+floor:
		return Slower
	case floor <= r.Margin && r.Lo >= 1/(1+r.Margin) && r.Hi <= 1+r.Margin:
		return Equal
	}
	return Undecided
}

// Waits is the result of a percentile of single calls. Its verdict is made as that of the result is, with the copy's
// own percentile in the noise floor. Where the result could have none, it has none.
func (r Result) Waits(p Percentile) Result {
	of := Result{Ratio: p.Ratio, Lo: p.Lo, Hi: p.Hi, BaseNs: p.Base, Ns: p.Ns, Margin: cmp.Or(r.Margin, Margin),
		Moved: r.Moved, Processes: r.Processes, Planned: r.Planned, Verdict: Undecided}
	if p.Base > 0 && p.Copy > 0 {
		of.CopyFloor = max(p.Copy/p.Base, p.Base/p.Copy) - 1
	}
	switch {
	case p.Ratio == 0:
		return Result{}
	case r.Busy || !r.Kept() || r.Processes < Fewest:
		of.Reason = r.Reason
	default:
		if of.Verdict = of.verdict(); of.Verdict == Undecided {
			of.Reason = of.open()
		}
	}
	return of
}

// Inverse is the result of calls a second, of a result of the time that they take.
func (r Result) Inverse() Result {
	if r.Ratio > 0 {
		r.Ratio, r.Lo, r.Hi = 1/r.Ratio, 1/r.Hi, 1/r.Lo
	}
	r.Verdict = cmp.Or(map[Verdict]Verdict{Faster: Slower, Slower: Faster}[r.Verdict], r.Verdict)
	return r
}

// open says why an interval decides nothing.
func (r Result) open() string {
	if r.Lo > 1 || r.Hi < 1 {
		return fmt.Sprintf("the interval reaches into the noise floor of %s", percent(r.NoiseFloor()))
	}
	return "the interval includes 1"
}

// wanting says why the interval decides nothing, and how much longer measuring would do: widths go with one over the
// root of the time.
func (r *Result) wanting(mean, half, again, halfAgain, least float64) {
	said := r.open()
	decides := func(moved float64) (times int) { // 0 if a hundred times as long is too short
		for times := 2; times <= 100; times++ {
			root := math.Sqrt(float64(times))
			half := math.Hypot(half/root, least)
			longer := Result{Lo: math.Exp(mean - half), Hi: math.Exp(mean + half), Moved: moved, Margin: r.Margin,
				CopyFloor: max(least, math.Exp((math.Abs(again)+halfAgain)/root)-1)}
			if longer.verdict() != Undecided {
				return times
			}
		}
		return 0
	}
	r.Times = decides(r.Moved)
	switch {
	case r.Times > 0:
		r.Reason = fmt.Sprintf("%s: about %d times -time would decide %.2f in half of the cases", said, r.Times, r.Ratio)
	case decides(0) > 0:
		r.Reason = fmt.Sprintf("%s, and the base's own time varied by %s: measure on a quieter "+
			"machine", said, percent(r.Moved))
	default:
		r.Reason = said + ": no time would decide so small a difference"
	}
}

func percent(share float64) string {
	switch {
	case share < 0.1:
		return fmt.Sprintf("%.1f %%", 100*share)
	case share > 1: // which tells no size
		return "more than 100 %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
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
	return p.AllCores && one.Others > 0 && float64(p.CPUs)*(1-one.Others) < p.needs()-short
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
	if !p.AllCores || !p.OneCaller {
		return kept, 0
	}
	several := slices.DeleteFunc(slices.Clone(kept), one)
	if without = len(kept) - len(several); without > len(several) {
		return kept, without
	}
	return several, 0
}

// unchecked names the conditions that the records don't tell.
func unchecked(plan Plan, all []Process) (said []string) {
	without := func(what string, value func(Process) float64) {
		if plan.AllCores && slices.ContainsFunc(all, func(p Process) bool { return value(p) == 0 }) {
			said = append(said, what)
		}
	}
	without("whether each process had several cores: CPU time is not recorded", func(p Process) float64 {
		return p.CPUNs[0]
	})
	without("what other programs used: their share is not recorded", func(p Process) float64 { return p.Others })
	return said
}

func (r *Result) means(all []Process) {
	n := float64(len(all))
	for _, p := range all {
		r.BaseNs, r.BaseCPUNs = r.BaseNs+p.Ns[0]/n, r.BaseCPUNs+p.CPUNs[0]/n
		r.Ns, r.CPUNs = r.Ns+p.Ns[2]/n, r.CPUNs+p.CPUNs[2]/n
		r.BaseServer, r.Server = r.BaseServer+p.ServerNs[0]/n, r.Server+p.ServerNs[2]/n
		r.BaseCalls, r.Calls, r.Others = r.BaseCalls+p.InFlight[0]/n, r.Calls+p.InFlight[2]/n, r.Others+p.Others/n
		r.Bases = append(r.Bases, p.Ns[0])
		r.BaseLoad.add(p.Loads[0], n)
		r.Load.add(p.Loads[2], n)
	}
	r.Moved = moved(r.Bases)
}

// add adds an n-th of another.
func (l *Load) add(o Load, n float64) {
	l.Free, l.Switches, l.Reached = l.Free+o.Free/n, l.Switches+o.Switches/n, l.Reached+o.Reached/n
	l.Dropped, l.LateNs = l.Dropped+o.Dropped/n, l.LateNs+o.LateNs/n
}

func (r *Result) percentiles(over func(func(Process) float64) (mean, half float64), least float64) {
	for _, q := range []struct {
		to *Percentile
		of func(timing.Latency) float64
	}{
		{&r.P50, func(l timing.Latency) float64 { return float64(l.P50) }},
		{&r.P95, func(l timing.Latency) float64 { return float64(l.P95) }},
		{&r.P99, func(l timing.Latency) float64 { return float64(l.P99) }},
		{&r.P999, func(l timing.Latency) float64 { return float64(l.P999) }},
	} {
		mean := func(arm int) float64 {
			mean, _ := over(func(p Process) float64 { return q.of(p.Latencies[arm]) })
			return math.Exp(mean)
		}
		ratio, half := over(func(p Process) float64 {
			own, base, again := q.of(p.Latencies[2]), q.of(p.Latencies[0]), q.of(p.Latencies[1])
			if p.ToCopy == 0 { // the copy is what is compared
				return own / base
			}
			return Ratios{Ratio: own / base, ToCopy: own / again}.Estimate()
		})
		half = math.Hypot(half, least)
		all := Percentile{mean(0), mean(1), mean(2), math.Exp(ratio), math.Exp(ratio - half), math.Exp(ratio + half)}
		if all.Base > 0 && all.Copy > 0 && all.Ns > 0 {
			*q.to = all // else some process had too few calls beyond it
		}
	}
}

// interval returns the mean of the logarithms of a value over processes, and half the width of its confidence
// interval: Student's.
//
// A link of the source is one sample of where functions lie, and its processes share it. So each layout counts once, by
// its mean, and the interval holds for the source. Where the interval of the processes is wider, that is taken. The
// processes of one build say nothing of other layouts.
func interval(all []Process, value func(Process) float64) (mean, half float64) {
	var logs, means []float64
	byLayout := map[int][]float64{}
	for _, p := range all {
		x := math.Log(value(p))
		logs, byLayout[p.Layout] = append(logs, x), append(byLayout[p.Layout], x)
	}
	if len(byLayout) < 2 {
		return student(logs)
	}
	for _, own := range byLayout {
		means = append(means, stats.Mean(own))
	}
	slices.Sort(means) // a map has no order, and sums depend on it
	_, ofProcesses := student(logs)
	mean, half = student(means)
	return mean, max(half, ofProcesses)
}

// student returns the mean of independent values, and half the width of its t interval: infinite for one value.
func student(values []float64) (mean, half float64) {
	mean = stats.Mean(values)
	width := math.Inf(1)
	if n := len(values); n > 1 {
		width = quantile(n-1) * stats.StdDev(values) / math.Sqrt(float64(n))
	}
	return mean, ((mean + width) - (mean - width)) / 2 // rounded as stats.MeanCI has it, for the tables of the tests
}

var quantiles sync.Map // of Student's t at level, by degrees of freedom

// quantile looks Student's t up, since to find it takes longer than everything else in a verdict.
func quantile(freedom int) float64 {
	t, ok := quantiles.Load(freedom)
	if !ok {
		t = -stats.InvCDF(stats.TDist{V: float64(freedom)})((1 - level) / 2)
		quantiles.Store(freedom, t)
	}
	return t.(float64)
}

// moved is how far the base's time per op moved between processes: the longest over the shortest, less 1, without a
// tenth of the processes at either end.
func moved(nsPerOp []float64) float64 {
	sorted := slices.Sorted(slices.Values(nsPerOp))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[n-1-n/10]/sorted[n/10] - 1
}

// Said is the verdict with what belongs behind it: what was measured where that is not all, and what others used.
func (r Result) Said() string {
	said := []string{string(r.Verdict)}
	if r.Reason != "" {
		said[0] += ": " + r.Reason
	}
	if r.Verdict == Equal && r.Margin > 0 {
		said[0] += fmt.Sprintf(" within %.3g %%", 100*r.Margin)
	}
	switch {
	case r.Processes == 0:
		return "not measured"
	case r.Verdict == Undecided:
	case r.Disturbed > 0:
		said = append(said, fmt.Sprintf("all %d processes that count; %d left out, as other programs left them too few cores",
			r.Processes, r.Disturbed))
	case r.OneCore > 0:
		said = append(said, fmt.Sprintf("all %d processes that count; %d left out that had one core", r.Processes, r.OneCore))
	case r.Processes < r.Planned:
		said = append(said, fmt.Sprintf("%d of %d processes", r.Processes, r.Planned))
	}
	if r.NoSecond > 0 {
		said = append(said, fmt.Sprintf("%d of %d had no second core to themselves", r.NoSecond, r.Processes))
	}
	if r.Others > BusyMachine && !r.Busy {
		said = append(said, fmt.Sprintf("other programs used %.0f %% of the machine, and the size is another on an "+
			"idle one", 100*r.Others))
	}
	return strings.Join(said, "; ")
}

// Wanting tells whether up to twice as many processes may lead to a verdict, or to one of as many as were planned that
// had the machine.
func (r Result) Wanting(plan Plan) bool {
	return r.left() > 0 && (r.Busy || r.Processes < plan.Processes) || r.Verdict == Undecided && 0 < r.Times && r.Times < 4
}

// left is how many processes are left out, or would be if they were fewer.
func (r Result) left() int { return r.Disturbed + r.OneCore }
