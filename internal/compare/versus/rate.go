package versus

import (
	"context"
	"math"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Measure measures a process, as Run does.
type Measure func(context.Context, Spec, ...Program) (timing.Record, error)

// Ordinary finds the rate at which the first arm of spec takes about a quarter of the machine: an ordinary load. It is
// 1, 2 or 5 times a power of ten, and at least workload.LeastRate. The error wraps errors.ErrUnsupported if the system
// does not tell the CPU time.
//
// A call takes less CPU time the more calls there are. So a rate that a first look asks for is looked at as well, if it
// is another.
func Ordinary(ctx context.Context, measure Measure, spec Spec, program Program) (rate float64, err error) {
	spec.Arms, spec.Blocks = []string{spec.Arms[0], spec.Arms[0]}, 1
	most := spec.Workload.MostRate()
	rate = min(2000, most)
	for look := 0; look == 0 || look == 1 && rate != spec.Workload.Rate; look++ {
		spec.Workload.Rate = rate
		record, err := measure(ctx, spec, program)
		if err != nil {
			return 0, err
		}
		p, err := ProcessOf(record)
		if err != nil {
			return 0, err
		}
		if done := p.Loads[0].Completed; 0 < done && done < few { // a handler takes time of which no field tells
			most = min(most, max(workload.LeastRate, 0.8*rate*done))
		}
		rate = nearest(environ.Cores()/4*2e9/(p.CPUNs[0]+p.CPUNs[1]), most)
	}
	return rate, nil
}

// Likely is about what Ordinary will find.
func Likely(w workload.Workload) float64 {
	const call, perByte = 100e-6, 100e-9 // CPU seconds at such a load
	w.Rate = workload.LeastRate
	return nearest(environ.Cores()/4/(call+perByte*float64(w.Size())), w.MostRate())
}

// LookTakes is how long Ordinary takes at most, about.
func LookTakes(w workload.Workload) time.Duration {
	one := Comparison{Spec: Spec{Arms: make([]string, 2), Blocks: 1, Workload: w}}
	return 2 * one.takes()
}

// nearest returns the number of 1, 2 or 5 times a power of ten that is the fewest times as large or small as a rate, of
// those that are no more than the most that callers can make.
func nearest(rate, most float64) (found float64) {
	for ten := 100.0; ten <= most; ten *= 10 {
		for _, next := range []float64{ten, 2 * ten, 5 * ten} {
			far := func(x float64) float64 { return math.Abs(math.Log(x / rate)) }
			if next >= workload.LeastRate && next <= most && (found == 0 || far(next) < far(found)) {
				found = next
			}
		}
	}
	return found
}
