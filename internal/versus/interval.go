package versus

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/timing"
)

const (
	// Fewest is how many processes or layouts an interval takes at least, FewestBlocks how many blocks a process
	// needs for its median to be worth a place among the others.
	Fewest       = 8
	FewestBlocks = 10

	// Steady is how far the base may move between processes before the movement counts as noise. docs/method.md has the
	// figures that it was chosen by.
	Steady = 0.15
)

// Figures are what the processes of a comparison found of one arm.
type Figures struct {
	NsPerOp, CPUNsPerOp float64         // means of the processes' medians
	Moved               float64         // see moved
	Ratio               timing.Interval // to arm 0; Blocks is the number of processes, or of layouts if there are two or more
	Between, Within     float64         // standard deviations between layouts, and between processes of one, as fractions
}

// Read makes an arm's figures of a record per process, in the order in which they ran: blocks of different processes
// are never pooled. Records without blocks are left out.
func Read(records []timing.Record, arm int, level float64) Figures {
	var ns, cpu, ratios []float64
	byLayout := map[int][]float64{}
	for _, r := range records {
		if len(r.Blocks) == 0 {
			continue
		}
		ns = append(ns, r.NsPerOp(arm))
		cpu = append(cpu, r.CPUNsPerOp(arm))
		if i, err := r.Ratio(arm, 0, 0.5); err == nil { // its median alone, of two blocks or more; none for the base itself
			ratios = append(ratios, i.Median)
			byLayout[r.Layout] = append(byLayout[r.Layout], math.Log(i.Median))
		}
	}
	f := Figures{NsPerOp: stats.Mean(ns), CPUNsPerOp: stats.Mean(cpu), Moved: moved(ns), Ratio: Interval(ratios, level)}
	if len(byLayout) > 1 {
		f.layouts(byLayout)
	}
	return f
}

// layouts makes the interval one of the source, from the log-ratios of each layout's processes. A link is one sample
// of where functions lie, and its processes share it. So a layout counts once, by its mean. The interval is Student's
// of these means, or that of the processes where it is wider, since neighbours in time share the machine's moods.
//
// The variance of the means is that between layouts and a share of that within them: H. Scheffé, The Analysis of
// Variance, section 7.2, here with unequal numbers, as an interrupted run leaves them.
func (f *Figures) layouts(logs map[int][]float64) {
	var means []float64
	var squares, processes, shares float64
	for _, own := range logs {
		means = append(means, stats.Mean(own))
		processes += float64(len(own))
		shares += 1 / float64(len(own))
		for _, x := range own {
			squares += (x - stats.Mean(own)) * (x - stats.Mean(own))
		}
	}
	n := float64(len(means))
	within := squares / max(1, processes-n) // 0 if no layout has two processes
	f.Within, f.Between = math.Sqrt(within), math.Sqrt(max(0, stats.Variance(means)-within*shares/n))
	mean, half := student(means, f.Ratio.Level)
	half = max(half, math.Log(f.Ratio.Hi/f.Ratio.Lo)/2)
	f.Ratio = timing.Interval{
		Median: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half), Level: f.Ratio.Level, Blocks: len(means),
	}
}

// Verdict is what the processes say of an arm, from the figures of the base and of the base's copy, whose interval is
// the noise floor. Where the machine moves, so may the ratio, and no interval of these minutes covers that: a base that
// moved by more than [Steady] raises the floor to its movement. fewest is how many processes or layouts it takes:
// [Fewest], unless a first answer is asked for.
func Verdict(base, again, arm Figures, margin float64, fewest int) timing.Verdict {
	if min(again.Ratio.Blocks, arm.Ratio.Blocks) < fewest {
		return timing.Undecided
	}
	return arm.Ratio.Verdict(NoiseFloor(again.Ratio.Floor(), base.Moved), margin)
}

// NoiseFloor is the floor of the base's copy, or the movement of the base where that counts.
func NoiseFloor(floor, moved float64) float64 {
	if moved > Steady {
		return max(floor, moved)
	}
	return floor
}

// Interval is that of the mean log-ratio of processes, as ratios. The processes are given in the order in which they
// ran.
//
// Processes in a row share what the machine did meanwhile. Student's t interval takes their ratios as independent,
// and is then too narrow. Interval also makes the t interval of the means of two processes in a row, of four, and so
// on down to four means, and returns the widest: batch means, with the size of the batch chosen by the data (A. M.
// Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3). The interval reaches from 0 to infinity for less
// than two processes.
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

// moved is how far the base's time per op moved between processes, as a fraction: the longest over the shortest,
// without a tenth of the processes at either end.
func moved(nsPerOp []float64) float64 {
	n := len(nsPerOp)
	if n == 0 {
		return 0
	}
	slices.Sort(nsPerOp)
	return nsPerOp[n-1-n/10]/nsPerOp[n/10] - 1
}
