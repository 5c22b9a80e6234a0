package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Network is what is known of a network with a router between clients and servers: what its TCP did for calls of the
// base and of the stack, and what the router did.
type Network struct {
	Settings string `json:"settings"` // of the namespaces' TCP, as name=value
	Base     TCP    `json:"base_tcp"`
	Stack    TCP    `json:"stack_tcp"`
	Router   Router `json:"router"`
}

// TCP is what TCP did for a thousand calls, on both sides: new segments, and those sent again; fast retransmissions,
// tail loss probes, and timeouts of the retransmission timer.
type TCP struct {
	Sent     float64 `json:"sent_per_1000"`
	Again    float64 `json:"again_per_1000"`
	Fast     float64 `json:"fast_retransmissions_per_1000"`
	Probes   float64 `json:"loss_probes_per_1000"`
	Timeouts float64 `json:"timeouts_per_1000"`
}

// Router is what routers did in all processes.
type Router struct {
	Packets int64   `json:"packets"`
	Lost    int64   `json:"lost"`        // as the link says
	Full    int64   `json:"queue_full"`  // lost since the queue was full
	Cores   float64 `json:"cores"`       // that a router used, on average
	LateNs  float64 `json:"late_p99_ns"` // how late packets left, the 99th percentile of the process where it is highest
}

// routed tells whether the calls of an answer crossed such a network.
func (a Answer) routed() bool { return a.Network != nil }

// byTail tells whether the 99th percentile of latencies decides.
func (a Answer) byTail() bool { return a.routed() && a.AtRate() }

// P99 is the figure of the 99th percentile of latencies: the one that decides where it leads.
func (a Answer) P99() verdict.Figure {
	if !a.byTail() {
		return a.Waits(a.Percentiles.P99)
	}
	f := a.Time
	f.BaseNs = a.Percentiles.P99.BaseNs // a geometric mean, as the other percentiles are
	return f
}

// routed tells whether calls of the run crossed such a network.
func (s Summary) routed() bool { return slices.ContainsFunc(s.Answers, Answer.routed) }

// tails is takes in the 99th percentile.
func (l Led) tails(base string) string {
	p99, f := fmt.Sprintf("%s's p99 latency", Label(l.Answer.Stack)), l.Figure
	percent := func(ratio float64) float64 { return 100 * (1 - ratio) }
	switch {
	case f.Verdict == verdict.Same:
		return p99 + " is that of " + base
	case !l.sized():
		return fmt.Sprintf("%s is %s than %s's", p99, either(f.Verdict == verdict.Less, "lower", "higher"), base)
	case f.Verdict == verdict.Less:
		return fmt.Sprintf("%s is %.0f%% lower than %s's (%.0f–%.0f%%)", p99, percent(f.Ratio), base, percent(f.Hi),
			percent(f.Lo))
	case f.Ratio < 2:
		return fmt.Sprintf("%s is %.0f%% higher than %s's (%.0f–%.0f%%)", p99, -percent(f.Ratio), base, -percent(f.Lo),
			-percent(f.Hi))
	}
	return fmt.Sprintf("%s is %s times %s's (%s)", p99, table.Ratio(f.Ratio), base, table.Interval(f.Lo, f.Hi))
}

// Networks says of what a network was made. It is empty of a run on loopback, and of emulated links.
func (s Summary) Networks() (all []string) {
	for _, a := range s.Answers {
		if !a.routed() {
			continue
		}
		r := a.Network.Router
		said := fmt.Sprintf("Network %s: two namespaces with a router between them, and the kernel's TCP (%s).", a.Link,
			a.Network.Settings)
		if !slices.Contains(all, said) {
			all = append(all, said)
		}
		said = fmt.Sprintf("%s: of %s packets the router dropped %s%s; they left late by up to %s (p99), and it used %.2f "+
			"of a core.", joined(", ", a.Does, Label(a.Stack)), thousands(float64(r.Packets)), thousands(float64(r.Lost)),
			either(r.Full > 0, fmt.Sprintf(" for its loss and %s for a full queue", thousands(float64(r.Full))), ""),
			span(r.LateNs), r.Cores)
		all = append(all, said)
	}
	return all
}

// sender is what TCP did for a stack at a workload.
type sender struct {
	does, stack string
	TCP
}

// Senders is the table of what TCP did; nil if no calls crossed a network with a router.
func (s Summary) Senders() *table.Table {
	var all []sender
	for _, a := range s.where(Answer.routed) {
		all = append(all, sender{a.does(), s.Base, a.Network.Base}, sender{a.does(), a.Stack, a.Network.Stack})
	}
	figure := func(name string, of func(TCP) float64) table.Of[sender] {
		return table.Figures(name, func(one sender) string { return fmt.Sprintf("%.1f", of(one.TCP)) })
	}
	return some(table.Fill(new(table.Table), all,
		table.Words("workload", func(one sender) string { return one.does }),
		table.Words("TCP per 1,000 calls", func(one sender) string { return Label(one.stack) }),
		figure("segments", func(t TCP) float64 { return t.Sent }),
		figure("sent again", func(t TCP) float64 { return t.Again }),
		figure("fast", func(t TCP) float64 { return t.Fast }),
		figure("loss probes", func(t TCP) float64 { return t.Probes }),
		figure("timeouts", func(t TCP) float64 { return t.Timeouts })))
}

// Emulated are the links of a run that were emulated.
func (s Summary) Emulated() string {
	var all []string
	for _, a := range s.Answers {
		if a.Link != "" && strings.Count(a.Link, "/") < 2 && !slices.Contains(all, a.Link) {
			all = append(all, a.Link)
		}
	}
	return strings.Join(all, ", ")
}
