package versus

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/timing"
)

const (
	// Fewest is how many processes an interval takes at least, FewestBlocks how many blocks a process needs for its median to be
	// worth a place among the others.
	Fewest       = 8
	FewestBlocks = 10

	// Steady is how far the base may move between the processes of a comparison that is decided. docs/method.md has the figures
	// that it was chosen by.
	Steady = 0.15
)

// Figures are what the processes of a comparison found of one arm.
type Figures struct {
	NsPerOp, CPUNsPerOp float64         // means of the processes' medians
	Moved               float64         // see moved
	Ratio               timing.Interval // to arm 0, made of one ratio per process; Blocks is how many processes had one
}

// Read makes an arm's figures of a record per process, in the order in which they ran: blocks of different processes are never
// pooled. Records without blocks are left out.
func Read(records []timing.Record, arm int, level float64) Figures {
	var ns, cpu, ratios []float64
	for _, r := range records {
		if len(r.Blocks) == 0 {
			continue
		}
		ns = append(ns, r.NsPerOp(arm))
		cpu = append(cpu, r.CPUNsPerOp(arm))
		if i, err := r.Ratio(arm, 0, 0.5); err == nil { // its median alone, of two blocks or more; none for the base itself
			ratios = append(ratios, i.Median)
		}
	}
	return Figures{NsPerOp: stats.Mean(ns), CPUNsPerOp: stats.Mean(cpu), Moved: moved(ns), Ratio: Interval(ratios, level)}
}

// Verdict is what the processes say of an arm, from the figures of the base and of the base's copy, whose interval is the noise floor.
func Verdict(base, again, arm Figures, margin float64) timing.Verdict {
	if base.Moved > Steady || min(again.Ratio.Blocks, arm.Ratio.Blocks) < Fewest {
		return timing.Undecided
	}
	return arm.Ratio.Verdict(again.Ratio.Floor(), margin)
}

// Interval is that of the mean log-ratio of processes, as ratios. The processes are given in the order in which they ran.
//
// Processes in a row share what the machine did meanwhile. Student's t interval takes their ratios as independent, and is then
// too narrow. Interval also makes the t interval of the means of two processes in a row, of four, and so on down to four means,
// and returns the widest: batch means, with the size of the batch chosen by the data (A. M. Law, Simulation Modeling and
// Analysis, 5th ed., section 9.5.3). The interval reaches from 0 to infinity for less than two processes.
func Interval(ratios []float64, level float64) timing.Interval {
	const fewestBatches = 4
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(r)
	}
	mean, half := student(logs, level)
	for size := 2; len(logs)/size >= fewestBatches; size *= 2 {
		var batches []float64
		for batch := range slices.Chunk(logs[:len(logs)/size*size], size) {
			batches = append(batches, stats.Mean(batch))
		}
		_, wider := student(batches, level)
		half = max(half, wider)
	}
	return timing.Interval{Median: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half), Level: level, Blocks: len(ratios)}
}

// student is Student's t interval of the mean of independent values: the mean and half the width.
func student(values []float64, level float64) (mean, half float64) {
	n := float64(len(values))
	if n < 2 {
		return stats.Mean(values), math.Inf(1)
	}
	return stats.Mean(values), stats.InvCDF(stats.TDist{V: n - 1})((1+level)/2) * stats.StdDev(values) / math.Sqrt(n)
}

// moved is how far the base's time per op moved between processes, as a fraction: the longest over the shortest, without a
// tenth of the processes at either end.
func moved(nsPerOp []float64) float64 {
	n := len(nsPerOp)
	if n == 0 {
		return 0
	}
	slices.Sort(nsPerOp)
	return nsPerOp[n-1-n/10]/nsPerOp[n/10] - 1
}
