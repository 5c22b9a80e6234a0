package report

import (
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench/internal/table"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// Results is the table of ratios and verdicts. What is to be said of a verdict is a note below it.
func (s Summary) Results() *table.Table {
	stack := "stack"
	if all := s.Stacks(); len(all) == 1 {
		stack = Label(all[0])
	}
	t := table.New(1, "situation", "ratio (95 %)", "verdict", "saved per call, µs", Label(s.Base)+", µs", stack+", µs",
		"servers' part, µs", "noise floor", "GOMAXPROCS")
	t.Columns[2].Words, t.Columns[2].Class = true, true
	for _, a := range s.Lines() {
		ratio, saved, floor, servers := "–", "–", "–", ""
		if a.Ratio > 0 {
			ratio, saved, floor = sized(a.Ratio, a.Lo, a.Hi), signed(-a.Micro()), percent(a.NoiseFloor())
		}
		if a.Server > 0 && a.CPU == nil {
			servers = micro(a.BaseServer) + ", " + micro(a.Server)
		}
		if len(s.Stacks()) > 1 {
			a.Does += ", " + Label(a.Stack)
		}
		t.Add(a.Does, ratio, t.Noted(string(a.Verdict), a.reasons()...), saved, micro(a.BaseNs), micro(a.Paired()),
			servers, floor, fmt.Sprint(a.GOMAXPROCS))
	}
	return t.Filled()
}

// reasons are what is to be said of a verdict.
func (a Answer) reasons() (all []string) {
	for part := range strings.SplitSeq(a.Said(), "; ") {
		if part = strings.TrimPrefix(part, "undecided: "); part != string(a.Verdict) {
			all = append(all, part)
		}
	}
	if but := a.But(); but != "" {
		all = append(all, but)
	}
	return all
}

// Sizes is the table of a method's messages.
func (c Call) Sizes() *table.Table {
	t := table.New(2, "stack", "codec", "request, B", "reply, B", "request with gzip, B",
		"reply with gzip, B", "encoding, µs", "decoding, µs")
	for _, b := range c.Bodies {
		t.Add(Label(b.Stack), b.Codec, size(b.Request), size(b.Reply), size(b.GzipRequest), size(b.GzipReply),
			b.Encode.String(), b.Decode.String())
	}
	return t
}

// Latencies is the table of percentiles; nil if no calls were timed.
func (s Summary) Latencies() *table.Table {
	base := Label(s.Base)
	t := table.New(2, "workload", "stack", "p50 of "+base+", µs", "p50, µs", "ratio (95 %)",
		"p95 of "+base+", µs", "p95, µs", "p99 of "+base+", µs", "p99, µs", "ratio (95 %)", "p99.9 of "+base+", µs",
		"p99.9, µs", "in flight")
	for _, a := range s.BySize() {
		if a.P50.Base > 0 {
			t.Add(a.Does, Label(a.Stack), micro(a.P50.Base), micro(a.P50.Ns), times(a.P50), micro(a.P95.Base), micro(a.P95.Ns),
				micro(a.P99.Base), micro(a.P99.Ns), times(a.P99), micro(a.P999.Base), micro(a.P999.Ns),
				flight(a.BaseCalls)+", "+flight(a.Calls))
		}
	}
	return some(t)
}

// some is a table that has rows.
func some(t *table.Table) *table.Table {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// Loads is the table of what surrounded the calls; nil where nobody knows.
func (s Summary) Loads() *table.Table {
	pair := ", with " + Label(s.Base) + " and the stack"
	t := table.New(2, "workload", "stack", "others used", "nobody used"+pair, "switches per call"+pair,
		"calls completed"+pair, "starts dropped", "begun late by, p99", "CPU of callers that call nothing, µs")
	for _, a := range s.BySize() {
		if a.Load == (versus.Load{}) {
			continue
		}
		both := func(of func(versus.Load) string) string { return of(a.BaseLoad) + ", " + of(a.Load) }
		reached, dropped, late := "–", "–", "–"
		if a.Load.Reached > 0 {
			reached = both(func(l versus.Load) string { return percent(l.Reached) })
			dropped = both(func(l versus.Load) string { return percent(l.Dropped) })
			late = both(func(l versus.Load) string { return micro(l.LateNs) + " µs" })
		}
		t.Add(a.Does, Label(a.Stack), others(a.Others),
			both(func(l versus.Load) string { return dash(l.Free, percent(l.Free)) }),
			both(func(l versus.Load) string { return dash(l.Switches, fmt.Sprintf("%.2f", l.Switches)) }),
			reached, dropped, late, micro(a.IdleNs))
	}
	return some(t)
}

// Counts is the table of bytes and allocations; nil if nothing was counted.
func (s Summary) Counts() *table.Table {
	t := table.New(2, "workload", "stack", "sent, B", "received, B", "writes", "reads", "allocations",
		"allocated, B", "connections")
	add := func(does, stack string, f *workload.Facts) {
		if f != nil {
			t.Add(does, Label(stack), size(f.Sent), size(f.Received), flight(f.Writes), flight(f.Reads), size(f.Allocs),
				size(f.AllocBytes), fmt.Sprint(f.Connections))
		}
	}
	for _, a := range s.BySize() {
		add(a.Does, s.Base, a.BaseFacts)
		add(a.Does, a.Stack, a.Facts)
	}
	return some(t)
}

// Floors is the table of what the verdicts rest on.
func (s Summary) Floors() *table.Table {
	t := table.New(2, "workload", "stack", "processes", "on one side of 1", "base moved by", "copy differs by up to",
		"noise floor", "others used", "base over time")
	t.Columns[8].Words, t.Columns[8].Line = true, true
	for _, a := range s.BySize() {
		side, moved, apart, floor := "–", "–", "–", "–"
		if a.Ratio > 0 {
			side, moved, apart, floor = fmt.Sprint(a.OnOneSide), percent(a.Moved), percent(a.CopyFloor), percent(a.NoiseFloor())
		}
		t.Add(a.Does, Label(a.Stack), fmt.Sprintf("%d of %d", a.Processes, a.Planned), side, moved, apart, floor,
			others(a.Others), points(a.Bases))
	}
	return t
}

func size(n float64) string { return fmt.Sprintf("%.0f", n) }
