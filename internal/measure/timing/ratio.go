package timing

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Ratio returns how many times as long an arm takes as a base, both given by their index in Arms: the median over
// blocks of the ratio of their times per operation. A stall spoils single blocks, which a median leaves out.
func (r Record) Ratio(arm, base int) (float64, error) {
	ratios, err := r.Ratios(arm, base)
	slices.Sort(ratios)
	return median(ratios), err
}

// Ratios returns the ratio of each block.
func (r Record) Ratios(arm, base int) ([]float64, error) {
	if arm == base || max(arm, base) >= len(r.Arms) {
		return nil, fmt.Errorf("timing: arm %d and base %d have to be two of the %d recorded", arm, base, len(r.Arms))
	}
	if len(r.Blocks) == 0 {
		return nil, errors.New("timing: no block was recorded")
	}
	ratios := make([]float64, len(r.Blocks))
	for i, block := range r.Blocks {
		if len(block) != len(r.Arms) {
			return nil, fmt.Errorf("timing: block %d has %d slices for %d arms, leave it out", i, len(block), len(r.Arms))
		}
		a, b := block[arm], block[base]
		if min(a.Ops, b.Ops) <= 0 || min(a.Wall, b.Wall) <= 0 {
			return nil, fmt.Errorf("timing: block %d has a slice without operations or time, leave it out", i)
		}
		ratios[i] = a.nsPerOp() / b.nsPerOp()
	}
	return ratios, nil
}

// CPURatio is Ratio for the CPU time of the process. It returns 0 if the system does not tell.
func (r Record) CPURatio(arm, base int) float64 {
	ratios := make([]float64, len(r.Blocks))
	for i, block := range r.Blocks {
		if min(block[arm].CPU, block[base].CPU) <= 0 {
			return 0
		}
		ratios[i] = block[arm].cpuNsPerOp() / block[base].cpuNsPerOp()
	}
	slices.Sort(ratios)
	return median(ratios)
}

// NsPerOp returns the median over blocks of an arm's nanoseconds per operation, NaN without blocks. It gives a sense of
// size. Compare arms by Ratio, which the machine's drift does not touch.
func (r Record) NsPerOp(arm int) float64 { return r.median(arm, Slice.nsPerOp) }

// CPUNsPerOp is NsPerOp for the CPU time of the process. It returns 0 if the system does not tell.
func (r Record) CPUNsPerOp(arm int) float64 {
	return r.median(arm, Slice.cpuNsPerOp)
}

// ServerNsPerOp is CPUNsPerOp for the server's own process. It returns 0 if there is none.
func (r Record) ServerNsPerOp(arm int) float64 {
	return r.median(arm, func(s Slice) float64 { return float64(s.Server) / float64(s.Ops) })
}

// Load is what surrounded the operations in the windows of an arm. A figure is 0 if the system does not tell.
type Load struct {
	Free, Others float64 // shares of the machine: that nobody used, and that other programs used
	Switches     float64 // voluntary context switches per operation
}

// Load adds up the windows of an arm. What others used is never 0 where the system tells.
func (r Record) Load(arm int) Load {
	var sum Slice
	for _, block := range r.Blocks {
		sum.Add(block[arm])
	}
	all := float64(sum.Busy + sum.Idle)
	if all <= 0 {
		return Load{Switches: float64(sum.Switches) / float64(sum.Ops)}
	}
	return Load{Free: float64(sum.Idle) / all, Others: max(1e-4, float64(sum.Busy-sum.CPU)/all),
		Switches: float64(sum.Switches) / float64(sum.Ops)}
}

func (r Record) median(arm int, value func(Slice) float64) float64 {
	values := make([]float64, len(r.Blocks))
	for i, block := range r.Blocks {
		values[i] = value(block[arm])
	}
	slices.Sort(values)
	return median(values)
}

func (s Slice) nsPerOp() float64    { return float64(s.Wall) / float64(s.Ops) }
func (s Slice) cpuNsPerOp() float64 { return float64(s.CPU) / float64(s.Ops) }

func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
