// Package verdict decides what processes have found of a stack and a base. [Decide] is a function of a plan and of
// these processes alone: it knows no flag, no clock and no file. Its answers have no sentences, which are made where
// they are printed.
package verdict

import "math"

// The numbers of the rule. docs/method.md says what they were chosen by. The study tries them on records.
const (
	// Fewest is how many processes a verdict takes at least.
	Fewest = 6

	// Margin is the difference that [Same] allows unless a plan says another, as a fraction.
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

	leastCompleted = 0.98 // share of the planned calls that a verdict needs

	// How far the calls under way may be from the callers who call again at once, and from which share of the machine that
	// other programs use on they may be twice as far: a stall at a window's edge is then in whole latencies.
	underWay, beside = 0.05, 0.02
)

// Verdict is what a figure says of a stack and the base, in a word.
type Verdict string

const (
	Less      Verdict = "less"      // the stack takes less than the base
	More      Verdict = "more"      // it takes more
	Same      Verdict = "same"      // the two differ by less than the margin
	Undecided Verdict = "undecided" // Reason says which condition fails
)

// Plan is what a comparison set out to do.
type Plan struct {
	Processes  int  // 0 is as many as there are
	First      int  // of them, after which what is decided needs no more; 0 is all
	NeedsCores bool // the question needs several cores
	OneCaller  bool // whose CPU time over wall time tells whether a process had them
	CPUs       int  // of the machine; 0 asks nothing of what other programs left of them
	Apart      bool // the server has a process of its own
	Callers    int  // how many call at a time; 0 asks nothing of the calls under way
	AtRate     bool // calls are planned, so CPU decides, and time is that of the plan
	Chosen     bool // the run chose the rate
	Routed     bool // calls cross a network with a router: at a rate p99 decides, CPU nothing, and no cores are asked for

	Margin float64 // of Same; 0 is the constant of that name
}

// Process is what one measuring process found: figures of the base, its copy and the stack, in this order. Blocks of
// different processes are never pooled.
type Process struct {
	Layout    int
	Ns, CPUNs [3]float64 // per call, medians over blocks; CPUNs is 0 if the system does not tell
	ServerNs  [3]float64 // the part of CPUNs that the server's own process had
	Time      Ratios     // per call
	CPU       Ratios     // the same of CPU time; 0 if the system does not tell
	Latencies [3]Latency
	InFlight  [3]float64 // calls at once, on average, by their latencies; 0 if the callers did not tell
	Most      [3]int64   // planned calls at once, at most, as the loop counted them; 0 if it did not
	Loads     [3]Load    // of windows
	Others    float64    // share of the machine that other programs used; 0 if the system does not tell
	LateNs    float64    // how late a router's packets left, 99th percentile; 0 without one
}

// Ratios are medians over the blocks of a process.
type Ratios struct {
	Copy, Ratio float64 // the copy's and the stack's to the base's
	ToCopy      float64 // the stack's to the copy's; 0 if the copy is what is compared
}

// Estimator names how a process's ratio is made: by what [Ratios.Estimate] says. Older results have none: theirs is the
// ratio to the base alone.
const Estimator = "geometric mean of the ratios to the base and to its copy"

// Estimate is the stack's ratio: the geometric mean of that to the base and that to its copy. Over processes that
// varies less than the ratio to the base alone: by an eighth in the records of docs/method.md. Where the copy is what
// is compared, it is the copy's ratio.
func (r Ratios) Estimate() float64 {
	if r.ToCopy > 0 {
		return math.Sqrt(r.Ratio * r.ToCopy)
	}
	return r.Ratio
}

// Latency has percentiles of single calls, in nanoseconds. One that fewer than ten calls exceed is 0.
type Latency struct{ P50, P95, P99, P999 float64 }

// Load is what surrounded the calls of an arm in its windows. A figure that nobody tells is 0.
type Load struct {
	Idle      float64 `json:"idle,omitzero"`              // share of the machine that nobody used
	Switches  float64 `json:"switches_per_call,omitzero"` // voluntary context switches of client and server
	Completed float64 `json:"completed,omitzero"`         // calls, of those that were due
	Skipped   float64 `json:"skipped,omitzero"`           // starts that were more than 50 ms late, of those that were due
	LateNs    float64 `json:"late_p99_ns,omitzero"`       // how late calls began, 99th percentile
}

// Answer is what a comparison found of a stack and the base. Shares are fractions, and times are nanoseconds per call.
type Answer struct {
	Processes Counts      `json:"processes"`
	Others    float64     `json:"other_programs,omitzero"` // mean share of the machine that they used
	Busy      bool        `json:"busy,omitzero"`           // they left too little for a verdict
	Unchecked []Unchecked `json:"unchecked,omitempty"`
	LateNs    float64     `json:"router_late_p99_ns,omitzero"` // mean of the processes': no latency is told better

	// Time is of what a call takes. At a planned rate it is missing: that time is the plan's, the same for both, and the
	// only verdict is of CPU. Over a network with a router it is then the 99th percentile of latencies.
	Time Figure `json:"time,omitzero"`

	// CPU is of the CPU time of a call, of client and server. It is missing where one core does all, since time is then
	// CPU time, where a process does not tell, and over a network with a router.
	CPU Figure `json:"cpu,omitzero"`

	BaseMeans   Means       `json:"base_means,omitzero"`
	StackMeans  Means       `json:"stack_means,omitzero"`
	BaseLoad    Load        `json:"base_load,omitzero"`
	StackLoad   Load        `json:"stack_load,omitzero"`
	Percentiles Percentiles `json:"percentiles,omitzero"`
}

// Counts are the processes of an answer.
type Counts struct {
	Planned    int `json:"planned"`
	Measured   int `json:"measured,omitzero"`       // 0 in older results
	Counted    int `json:"counted"`                 // that measured, and are not left out
	OneCore    int `json:"one_core,omitzero"`       // left out, since they had one core
	NoSecond   int `json:"no_second_core,omitzero"` // counted, though most had no second core
	Disturbed  int `json:"disturbed,omitzero"`      // to which other programs left too few cores
	Miscounted int `json:"miscounted,omitzero"`     // left out: their calls under way can't be those of the callers
}

// LeftOut is how many processes are left out, or would be if they were fewer.
func (c Counts) LeftOut() int { return c.Disturbed + c.OneCore + c.Miscounted }

// Unchecked is a condition that the processes don't tell.
type Unchecked string

const (
	UncheckedCores  Unchecked = "several cores"  // whether each process had them
	UncheckedOthers Unchecked = "other programs" // what they used
)

// Means are of a stack, over processes.
type Means struct {
	CPUNs       float64 `json:"cpu_ns,omitzero"`
	ServerCPUNs float64 `json:"server_cpu_ns,omitzero"` // the part of it that the server's own process had
	InFlight    float64 `json:"in_flight,omitzero"`     // calls at once
}

// Figure is one quantity of the stack to that of the base: time or CPU time. Ratio and all that goes with it are 0 if
// fewer than two processes have measured.
type Figure struct {
	Verdict   Verdict `json:"verdict"`         // "" of a figure that is missing
	Reason    Reason  `json:"reason,omitzero"` // of Undecided
	Ratio     float64 `json:"ratio,omitzero"`  // geometric mean over processes
	Lo        float64 `json:"lo,omitzero"`     // its confidence interval
	Hi        float64 `json:"hi,omitzero"`
	Level     float64 `json:"level,omitzero"`       // of the interval
	OnOneSide int     `json:"on_one_side,omitzero"` // processes on the ratio's side of 1
	Margin    float64 `json:"margin,omitzero"`      // of Same

	NoiseFloor  float64 `json:"noise_floor,omitzero"`  // what [Floor] makes of the next two
	CopyDiffers float64 `json:"copy_differs,omitzero"` // how far the interval of the base's copy reaches from 1
	BaseVaried  float64 `json:"base_varied,omitzero"`  // longest over shortest of the base, minus 1, without a tenth at either end

	BaseNs  float64   `json:"base_ns"`            // means over processes
	StackNs float64   `json:"stack_ns"`           //
	BasesNs []float64 `json:"bases_ns,omitempty"` // the base's in each process, in order of time
}

// There tells whether an answer has the figure.
func (f Figure) There() bool { return f.Verdict != "" }

// Floor is what a difference has to exceed: how far the base's copy differs from it, or what the machine may have made
// of a ratio while the base varied. Pairing takes most of that out, so a tenth of it counts.
func Floor(copyDiffers, baseVaried float64) float64 {
	return max(copyDiffers, math.Pow(1+baseVaried, Follows)-1)
}

// ByCPU tells whether the figure of CPU is the one that answers: where it is asked for, and where there is no other.
func (a Answer) ByCPU(asked bool) bool { return a.CPU.There() && (asked || !a.Time.There()) }

// Leading is the figure that answers.
func (a Answer) Leading(cpu bool) Figure {
	if a.ByCPU(cpu) {
		return a.CPU
	}
	return a.Time
}

// Kept tells whether both stacks completed as many of the planned calls as a verdict needs, if calls were planned.
func (a Answer) Kept() bool {
	completed := a.completed()
	return completed == 0 || completed >= leastCompleted
}

// completed is the share of the planned calls that the stack completed which completed fewer.
func (a Answer) completed() float64 { return min(a.BaseLoad.Completed, a.StackLoad.Completed) }

// Percentiles are of single calls. One that fewer than ten calls of each process exceed is 0.
type Percentiles struct {
	P50  Percentile `json:"p50,omitzero"`
	P95  Percentile `json:"p95,omitzero"`
	P99  Percentile `json:"p99,omitzero"`
	P999 Percentile `json:"p999,omitzero"`
}

// Percentile has the base's, its copy's and the stack's, geometric means over processes. Its ratio has an interval as
// that of times has.
type Percentile struct {
	BaseNs  float64 `json:"base_ns"`
	CopyNs  float64 `json:"copy_ns"`
	StackNs float64 `json:"stack_ns"`
	Ratio   float64 `json:"ratio"`
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
}

// Reason is why a figure is undecided: the first condition that fails, with its numbers.
type Reason struct {
	Kind       Kind    `json:"kind"`
	Processes  int     `json:"processes,omitzero"`  // so many
	Of         int     `json:"of,omitzero"`         // of so many
	OneCore    int     `json:"one_core,omitzero"`   // and so many are left out, since they had one core
	Miscounted int     `json:"miscounted,omitzero"` // and so many, since their calls under way were not the callers'
	Found      float64 `json:"found,omitzero"`
	Needed     float64 `json:"needed,omitzero"`
	Failed     string  `json:"failed,omitempty"` // why there were no more processes

	// What would decide, of the interval of a figure: about so many times the time would decide this ratio in half of the
	// cases, or a machine on which the base varies less. An interval of a percentile has none.
	Decides Remedy  `json:"decides,omitzero"`
	Times   int     `json:"times,omitzero"`
	Ratio   float64 `json:"ratio,omitzero"`
	Varied  float64 `json:"varied,omitzero"`
}

// Kind is the condition that fails. A result of an older release has a sentence in its place.
type Kind string

const (
	NotCompleted Kind = "calls not completed"          // Found is the share of the planned calls
	Disturbed    Kind = "processes disturbed"          // to Processes of Of fewer cores were left than Needed
	Crowded      Kind = "machine disturbed"            // Found cores were left on average, and Needed are needed
	TooFew       Kind = "too few processes"            // Processes of Of planned ones count, and Needed are needed
	TwoStates    Kind = "two states"                   // Processes of Of are on one side of 1, and ratios vary by Found
	IncludesOne  Kind = "interval includes 1"          //
	WithinFloor  Kind = "interval reaches noise floor" // Found is that floor
)

// Remedy is what would decide.
type Remedy string

const (
	MoreTime       Remedy = "more time"
	QuieterMachine Remedy = "a quieter machine"
	LowerRate      Remedy = "a lower rate"
	Nothing        Remedy = "nothing"
)
