package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// longest is how long a comparison may take.
const longest = 10 * time.Minute

// comparing is how long the slowest comparison of a plan's one workload takes, about.
func comparing(p plan.Plan) (most time.Duration) {
	all := p.Campaign(nil, p.Likely())
	for i := range all.Comparisons {
		one := *all
		one.Comparisons = all.Comparisons[i : i+1]
		most = max(most, one.Whole())
	}
	return most
}

// likely is about how long a call of a plan's one workload takes, of its slowest stack.
func likely(p plan.Plan) time.Duration {
	return p.Sweep.Workloads[0].Likely(p.Traits(p.Compared...)...)
}

// waits says whether calls of a plan's one workload are counted in windows that are too long for them.
func waits(p plan.Plan) bool {
	w := p.Sweep.Workloads[0]
	return w.Windowed() && w.Rate == 0 && likely(p) > workload.MostCall
}

// fits says whether the comparisons of a plan's one workload can be measured in time. Over a router windows are as long
// as they are for other reasons.
func fits(p plan.Plan) bool {
	if p.Sweep.Workloads[0].Routed() {
		return !waits(p)
	}
	return likely(p) < 10*time.Millisecond || comparing(p) <= longest && !waits(p)
}

// checkSlow refuses calls that are so slow that one comparison would take more than ten minutes, or whose windows would
// be too long.
func (o options) checkSlow(p plan.Plan) error {
	for _, w := range p.Sweep.Workloads {
		p := of(p, w)
		if fits(p) {
			continue
		}
		what := "-wait " + w.Wait.String()
		switch {
		case w.Link != "":
			what = "-link " + string(w.Link)
		case w.Wait == 0:
			what = fmt.Sprintf("%d callers, %s", w.AtOnce(), cmp.Or(w.Payload, "small calls"))
		}
		if p.Sweep.Over != "" { // one of a list
			what = w.Title
		}
		why := fmt.Sprintf("windows of ten calls of each caller make this take %v, and ten minutes are the most",
			comparing(p).Round(time.Second))
		if waits(p) {
			why = fmt.Sprintf("a call would take %v, since others go first on its connection or over the link, and %v are "+
				"the most", likely(p).Round(100*time.Millisecond), workload.MostCall)
		}
		return shell.Wrong("run: %s: %s: give %s", what, why, o.less(p))
	}
	return nil
}

// less names changes of a plan's one workload, each of which makes it fit.
func (o options) less(p plan.Plan) string {
	w := p.Sweep.Workloads[0]
	var ways []string
	try := func(p plan.Plan, way string) bool {
		if !fits(p) {
			return false
		}
		ways = append(ways, way)
		return true
	}
	quick := p
	quick.Processes, quick.Time = verdict.Fewest, versus.FewestBlocks*versus.Turn*verdict.Fewest
	try(quick, fmt.Sprintf("-processes %d -time %v", quick.Processes, quick.Time))
	if o.workloads.Made.Workloads == nil { // flags can't change those that are named
		return strings.Join(append(ways, "another workload"), ", or ")
	}
	changed := func(change func(*workload.Planned)) plan.Plan {
		other := w
		change(&other)
		return of(p, other)
	}
	for n := w.Conns + 1; w.Conns > 0 && n <= w.AtOnce(); n++ {
		if try(changed(func(w *workload.Planned) { w.Conns = n }), fmt.Sprintf("-conns %d", n)) {
			break
		}
	}
	for _, wait := range []time.Duration{500, 200, 100, 50, 20, 10, 5, 2, 1} {
		wait *= time.Millisecond
		if wait < w.Wait && try(changed(func(w *workload.Planned) { w.Wait = wait }), "-wait "+wait.String()) {
			break
		}
	}
	for _, callers := range []int{500, 200, 100, 50, 20, 10, 5, 2, 1} {
		if callers < w.Callers && w.Conns <= callers &&
			try(changed(func(w *workload.Planned) { w.Callers = callers }), fmt.Sprintf("-callers %d", callers)) {
			break
		}
	}
	for _, link := range workload.Quicker(string(w.Link)) {
		if try(changed(func(w *workload.Planned) { w.Link = rpcbench.Link(link) }), "-link "+link) {
			break
		}
	}
	if w.Bytes() > 0 {
		ways = append(ways, "a smaller message")
	}
	if ways == nil {
		return "fewer callers, and a shorter -wait or a quicker -link"
	}
	return strings.Join(ways, ", or ")
}

func (o options) checkStreams(p plan.Plan) error {
	return p.CheckStreams("run", o.workloads, func(w workload.Planned) bool { return fits(of(p, w)) })
}

func (o options) checkFiles(p plan.Plan) error {
	return p.CheckFiles("run", o.workloads, environ.Files())
}

// of is a plan of one workload.
func of(p plan.Plan, w workload.Planned) plan.Plan {
	p.Sweep.Workloads = []workload.Planned{w}
	return p
}
