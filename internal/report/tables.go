package report

import (
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

func does(a Answer) string  { return a.does() }
func label(a Answer) string { return Label(a.Stack) }

// Sizes is the table of a method's messages.
func (c Call) Sizes() *table.Table {
	return table.Fill(new(table.Table), c.Bodies,
		table.Words("stack", func(b Body) string { return Label(b.Stack) }),
		table.Words("codec", func(b Body) string { return b.Codec }),
		table.Figures("request, B", func(b Body) string { return table.Size(b.Request) }),
		table.Figures("reply, B", func(b Body) string { return table.Size(b.Reply) }),
		table.Figures("request with gzip, B", func(b Body) string { return table.Size(b.GzipRequest) }),
		table.Figures("reply with gzip, B", func(b Body) string { return table.Size(b.GzipReply) }),
		table.Figures("encoding, µs", func(b Body) string { return b.Encode.String() }),
		table.Figures("decoding, µs", func(b Body) string { return b.Decode.String() }))
}

// Handlers is the table of what handlers take of calls; nil if none was measured.
func (c Call) Handlers() *table.Table {
	handled := slices.DeleteFunc(slices.Clone(c.Bodies), func(b Body) bool { return b.Handler == nil })
	return some(table.Fill(new(table.Table), handled,
		table.Words("stack", func(b Body) string { return Label(b.Stack) }),
		table.Figures("CPU of a call, µs", func(b Body) string { return b.Handler.Call.String() }),
		table.Figures("of the handler alone, µs", func(b Body) string { return b.Handler.Handler.String() }),
		table.Figures("the handler", func(b Body) string { return b.Handler.String() }),
		table.Figures("the stack", func(b Body) string { return b.Handler.Stack() })))
}

// Latencies is the table of percentiles; nil if no calls were timed.
func (s Summary) Latencies() *table.Table {
	columns := []table.Of[Answer]{table.Words("workload", does), table.Words("stack", label)}
	for _, p := range []struct {
		name  string
		ratio bool
		of    func(Answer) verdict.Percentile
	}{
		{"p50", true, func(a Answer) verdict.Percentile { return a.Percentiles.P50 }},
		{"p95", false, func(a Answer) verdict.Percentile { return a.Percentiles.P95 }},
		{"p99", true, func(a Answer) verdict.Percentile { return a.Percentiles.P99 }},
		{"p99.9", false, func(a Answer) verdict.Percentile { return a.Percentiles.P999 }},
	} {
		columns = append(columns,
			table.Figures(p.name+" of "+Label(s.Base)+", µs", func(a Answer) string { return table.Micros(p.of(a).BaseNs) }),
			table.Figures(p.name+", µs", func(a Answer) string { return table.Micros(p.of(a).StackNs) }))
		if p.ratio {
			columns = append(columns, table.Figures("ratio (95% CI)", func(a Answer) string {
				return table.Sized(p.of(a).Ratio, p.of(a).Lo, p.of(a).Hi)
			}))
		}
	}
	columns = append(columns, table.Figures("in flight", func(a Answer) string {
		return flight(a.BaseMeans.InFlight) + ", " + flight(a.StackMeans.InFlight)
	}))
	timed := s.where(func(a Answer) bool { return a.Percentiles.P50.BaseNs > 0 })
	return some(table.Fill(new(table.Table), timed, columns...))
}

// where are the answers that something holds for.
func (s Summary) where(holds func(Answer) bool) []Answer {
	return slices.DeleteFunc(slices.Clone(s.Answers), func(a Answer) bool { return !holds(a) })
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
	both := func(of func(verdict.Load) string) func(Answer) string {
		return func(a Answer) string { return of(a.BaseLoad) + ", " + of(a.StackLoad) }
	}
	planned := func(of func(verdict.Load) string) func(Answer) string {
		return func(a Answer) string { return table.Known(a.StackLoad.Completed, both(of)(a)) }
	}
	return some(table.Fill(new(table.Table), s.where(func(a Answer) bool { return a.StackLoad != (verdict.Load{}) }),
		table.Words("workload", does), table.Words("stack", label),
		table.Figures("other programs used", func(a Answer) string { return others(a.Others) }),
		table.Figures("idle"+pair, both(func(l verdict.Load) string { return others(l.Idle) })),
		table.Figures("the servers' part of CPU, µs"+pair, func(a Answer) string {
			base, own := a.BaseMeans.ServerCPUNs, a.StackMeans.ServerCPUNs
			return table.Known(own, table.Micros(base)+", "+table.Micros(own))
		}),
		table.Figures("switches per call"+pair, both(func(l verdict.Load) string {
			return table.Known(l.Switches, fmt.Sprintf("%.2f", l.Switches))
		})),
		table.Figures("calls completed"+pair, planned(func(l verdict.Load) string { return table.Percent(l.Completed) })),
		table.Figures("starts skipped", planned(func(l verdict.Load) string { return table.Percent(l.Skipped) })),
		table.Figures("late by, p99", planned(func(l verdict.Load) string { return table.Micros(l.LateNs) + " µs" }))))
}

// counted is what was counted of a stack.
type counted struct {
	does, stack string
	apart       bool // the server had a process of its own
	*Counts
}

// Counts is the table of bytes and allocations; nil if nothing was counted. Allocations are of both sides, so that rows
// of one process and of two compare.
func (s Summary) Counts() *table.Table {
	var all []counted
	for _, a := range s.Answers {
		all = append(all, counted{a.Does, s.Base, a.Apart, a.BaseFacts}, counted{a.Does, a.Stack, a.Apart, a.Facts})
	}
	all = slices.DeleteFunc(all, func(c counted) bool { return c.Counts == nil })
	both := func(of func(*Counts) float64) func(counted) string {
		return func(c counted) string {
			if c.apart && c.ServerAllocs == 0 { // in older results the client's alone are known
				return table.Known(0, "")
			}
			return table.Size(of(c.Counts))
		}
	}
	server := func(of func(*Counts) float64, written func(float64) string) func(counted) string {
		return func(c counted) string {
			if of(c.Counts) == 0 {
				return "" // it shares the client's process, or is older
			}
			return written(of(c.Counts))
		}
	}
	return some(table.Fill(new(table.Table), all,
		table.Words("workload", func(c counted) string { return c.does }),
		table.Words("stack", func(c counted) string { return Label(c.stack) }),
		table.Figures("sent, B", func(c counted) string { return table.Size(c.Sent) }),
		table.Figures("received, B", func(c counted) string { return table.Size(c.Received) }),
		table.Figures("writes", func(c counted) string { return flight(c.Writes) }),
		table.Figures("reads", func(c counted) string { return flight(c.Reads) }),
		table.Figures("server's writes", server(func(f *Counts) float64 { return f.ServerWrites }, flight)),
		table.Figures("server's reads", server(func(f *Counts) float64 { return f.ServerReads }, flight)),
		table.Figures("allocations", both(func(f *Counts) float64 { return f.Allocs + f.ServerAllocs })),
		table.Figures("allocated, B", both(func(f *Counts) float64 { return f.AllocBytes + f.ServerAllocBytes })),
		table.Figures("server's allocations", server(func(f *Counts) float64 { return f.ServerAllocs }, table.Size)),
		table.Figures("allocated by the server, B",
			server(func(f *Counts) float64 { return f.ServerAllocBytes }, table.Size)),
		table.Figures("connections", func(c counted) string { return fmt.Sprint(c.Connections) })).Filled())
}

// Floors is the table of what the verdicts rest on.
func (s Summary) Floors() *table.Table {
	known := func(of func(Led) string) func(Led) string {
		return func(l Led) string { return table.Known(l.Figure.Ratio, of(l)) }
	}
	return table.Fill(new(table.Table), s.Timed(),
		table.Words("workload", func(l Led) string { return l.Answer.does() }),
		table.Words("stack", func(l Led) string { return Label(l.Answer.Stack) }),
		table.Figures("processes", func(l Led) string {
			return fmt.Sprintf("%d of %d", l.Answer.Processes.Counted, l.Answer.Processes.Planned)
		}),
		table.Figures("GOMAXPROCS", func(l Led) string { return fmt.Sprint(l.Answer.GOMAXPROCS) }),
		table.Figures("on one side of 1", known(func(l Led) string { return fmt.Sprint(l.Figure.OnOneSide) })),
		table.Figures(Label(s.Base)+" varied by", known(func(l Led) string { return table.Spread(l.Figure.BaseVaried) })),
		table.Figures("two copies differ by up to", known(func(l Led) string { return table.Spread(l.Figure.CopyDiffers) })),
		table.Figures("noise floor", known(func(l Led) string { return table.Spread(l.Figure.NoiseFloor) })),
		table.Figures("other programs used", func(l Led) string { return others(l.Answer.Others) }),
		table.Lines(Label(s.Base)+" over time", func(l Led) string { return points(l.Figure.BasesNs) }))
}
