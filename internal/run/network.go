package run

import (
	"context"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report"
)

// overRouter is how long each stack is measured by default where a router loses packets: each process has a window of
// four seconds.
const overRouter = 32 * time.Second

// routed is the first workload of a plan whose link is routed, and false if there is none.
func routed(p plan.Plan) (w workload.Workload, is bool) {
	for _, planned := range p.Sweep.Workloads {
		if planned.Routed() {
			return planned.Workload, true
		}
	}
	return w, false
}

// tryNetwork makes the network of a plan that has one.
func tryNetwork(ctx context.Context, p plan.Plan) (tcp.Settings, error) {
	w, is := routed(p)
	if !is {
		return nil, nil
	}
	link, _ := w.Linked()
	settings, err := network.Check(ctx, link, tcp.Present())
	if err != nil {
		err = fmt.Errorf("run: %w", err)
	}
	return settings, err
}

// crossed is what was found of a comparison's network: of the base, its copy and the stack.
type crossed struct {
	tcp    [3]tcp.Counters
	calls  [3]int64
	router tcp.Router
}

// add adds what a process found, if there was a network.
func (c *crossed) add(r timing.Record) {
	if r.Router == nil {
		return
	}
	for arm := range min(len(c.tcp), len(r.TCP), len(r.Latencies)) {
		c.tcp[arm].Add(r.TCP[arm])
		c.calls[arm] += r.Latencies[arm].Calls
	}
	c.router.Add(*r.Router)
}

// of is what a report has of it; nil if there was none.
func (c *crossed) of(settings tcp.Settings) *report.Network {
	if c == nil || c.router.Packets == 0 {
		return nil
	}
	per := func(arm int) (t report.TCP) {
		did, n := c.tcp[arm], float64(c.calls[arm])/1000
		if n > 0 {
			t = report.TCP{Sent: float64(did.Sent) / n, Again: float64(did.Again) / n, Fast: float64(did.Fast) / n,
				Probes: float64(did.Probes) / n, Timeouts: float64(did.Timeouts) / n}
		}
		return t
	}
	return &report.Network{Settings: settings.String(), Base: per(0), Stack: per(2),
		Router: report.Router{Packets: c.router.Packets, Lost: c.router.Lost, Full: c.router.Full,
			Cores: c.router.CPU.Seconds() / c.router.Span.Seconds(), LateNs: float64(c.router.Late)}}
}

// per is what TCP did for a call of an arm in a process, over a network; else 0.
func per(r timing.Record, arm int, of func(tcp.Counters) int64) float64 {
	if arm >= len(r.TCP) || arm >= len(r.Latencies) || r.Latencies[arm].Calls == 0 {
		return 0
	}
	return float64(of(r.TCP[arm])) / float64(r.Latencies[arm].Calls)
}

// cross keeps what a process found of a comparison's network.
func (f *findings) cross(one *versus.Comparison, r timing.Record) {
	if f.crossed == nil {
		f.crossed = map[*versus.Comparison]*crossed{}
	}
	if f.crossed[one] == nil {
		f.crossed[one] = &crossed{}
	}
	f.crossed[one].add(r)
}
