package versus

import (
	"errors"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

const (
	// Slice is the length of a slice, Turn about what a slice takes with all around it. docs/method.md says what longer
	// slices change.
	Slice = 25 * time.Millisecond
	Turn  = 45 * time.Millisecond

	// FewestBlocks is how many blocks of slices a process measures at least. Of windows it measures fewer, as
	// workload.Workload.Blocks says.
	FewestBlocks = 5
)

// ProcessOf reads a record. The contestant is the last arm, which is the copy if nothing else is compared.
func ProcessOf(r timing.Record) (p verdict.Process, err error) {
	last, others := len(r.Arms)-1, 0.0
	if last < 1 {
		return p, fmt.Errorf("a record of %d arms compares nothing", len(r.Arms))
	}
	p.Layout, p.Others = r.Layout, r.Others
	if r.Router != nil {
		p.LateNs = float64(r.Router.Late)
	}
	if p.Time.Copy, err = r.Ratio(1, 0); err == nil {
		p.Time.Ratio, err = r.Ratio(last, 0)
	}
	if last > 1 && err == nil {
		p.Time.ToCopy, err = r.Ratio(last, 1)
	}
	if err != nil {
		return p, err
	}
	p.CPU = verdict.Ratios{Copy: r.CPURatio(1, 0), Ratio: r.CPURatio(last, 0)}
	if last > 1 {
		p.CPU.ToCopy = r.CPURatio(last, 1)
	}
	for i, arm := range []int{0, 1, last} {
		p.Ns[i], p.CPUNs[i], p.ServerNs[i] = r.NsPerOp(arm), r.CPUNsPerOp(arm), r.ServerNsPerOp(arm)
		load, l := r.Load(arm), timing.Latency{}
		p.Loads[i] = verdict.Load{Idle: load.Free, Switches: load.Switches}
		if arm < len(r.Latencies) {
			l = r.Latencies[arm]
			p.Latencies[i] = verdict.Latency{P50: float64(l.P50), P95: float64(l.P95), P99: float64(l.P99),
				P999: float64(l.P999)}
			wall := 0.0
			for _, block := range r.Blocks {
				wall += float64(block[arm].Wall)
			}
			p.InFlight[i], p.Most[i] = float64(l.Sum)/wall, l.Most
		}
		if l.Planned > 0 {
			n := float64(l.Planned)
			p.Loads[i].Completed, p.Loads[i].Skipped = float64(l.Calls)/n, float64(l.Skipped)/n
			p.Loads[i].LateNs = float64(l.Late)
		}
		if others += load.Others / 3; i == 2 && others > 0 {
			p.Others = others // of the windows alone
		}
	}
	if p.Loads[0].Completed > 0 && p.CPU.Ratio == 0 {
		return p, fmt.Errorf("a rate compares CPU time, and not all of it is told: %w", errors.ErrUnsupported)
	}
	return p, nil
}
