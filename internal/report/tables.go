package report

import (
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report/table"
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

// Latencies is the table of percentiles; nil if no calls were timed.
func (s Summary) Latencies() *table.Table {
	columns := []table.Of[Answer]{table.Words("workload", does), table.Words("stack", label)}
	for _, p := range []struct {
		name  string
		ratio bool
		of    func(Answer) versus.Percentile
	}{
		{"p50", true, func(a Answer) versus.Percentile { return a.P50 }},
		{"p95", false, func(a Answer) versus.Percentile { return a.P95 }},
		{"p99", true, func(a Answer) versus.Percentile { return a.P99 }},
		{"p99.9", false, func(a Answer) versus.Percentile { return a.P999 }},
	} {
		columns = append(columns,
			table.Figures(p.name+" of "+Label(s.Base)+", µs", func(a Answer) string { return table.Micros(p.of(a).Base) }),
			table.Figures(p.name+", µs", func(a Answer) string { return table.Micros(p.of(a).Ns) }))
		if p.ratio {
			columns = append(columns, table.Figures("ratio (95 %)", func(a Answer) string {
				return table.Sized(p.of(a).Ratio, p.of(a).Lo, p.of(a).Hi)
			}))
		}
	}
	columns = append(columns, table.Figures("in flight", func(a Answer) string {
		return flight(a.BaseCalls) + ", " + flight(a.Calls)
	}))
	return some(table.Fill(new(table.Table), s.where(func(a Answer) bool { return a.P50.Base > 0 }), columns...))
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
	both := func(of func(versus.Load) string) func(Answer) string {
		return func(a Answer) string { return of(a.BaseLoad) + ", " + of(a.Load) }
	}
	planned := func(of func(versus.Load) string) func(Answer) string {
		return func(a Answer) string { return table.Known(a.Load.Reached, both(of)(a)) }
	}
	return some(table.Fill(new(table.Table), s.where(func(a Answer) bool { return a.Load != (versus.Load{}) }),
		table.Words("workload", does), table.Words("stack", label),
		table.Figures("other programs used", func(a Answer) string { return others(a.Others) }),
		table.Figures("idle"+pair, both(func(l versus.Load) string { return others(l.Free) })),
		table.Figures("the servers' part of CPU, µs"+pair, func(a Answer) string {
			r := a.line(s.cpu()).result
			return table.Known(r.Server, table.Micros(r.BaseServer)+", "+table.Micros(r.Server))
		}),
		table.Figures("switches per call"+pair, both(func(l versus.Load) string {
			return table.Known(l.Switches, fmt.Sprintf("%.2f", l.Switches))
		})),
		table.Figures("calls completed"+pair, planned(func(l versus.Load) string { return table.Percent(l.Reached) })),
		table.Figures("starts skipped", planned(func(l versus.Load) string { return table.Percent(l.Dropped) })),
		table.Figures("late by, p99", planned(func(l versus.Load) string { return table.Micros(l.LateNs) + " µs" }))))
}

// counted is what was counted of a stack.
type counted struct {
	does, stack string
	*workload.Facts
}

// Counts is the table of bytes and allocations; nil if nothing was counted.
func (s Summary) Counts() *table.Table {
	var all []counted
	for _, a := range s.Answers {
		all = append(all, counted{a.Does, s.Base, a.BaseFacts}, counted{a.Does, a.Stack, a.Facts})
	}
	all = slices.DeleteFunc(all, func(c counted) bool { return c.Facts == nil })
	server := func(of func(*workload.Facts) float64) func(counted) string {
		return func(c counted) string {
			if of(c.Facts) == 0 {
				return "" // it shares the client's process
			}
			return table.Size(of(c.Facts))
		}
	}
	return some(table.Fill(new(table.Table), all,
		table.Words("workload", func(c counted) string { return c.does }),
		table.Words("stack", func(c counted) string { return Label(c.stack) }),
		table.Figures("sent, B", func(c counted) string { return table.Size(c.Sent) }),
		table.Figures("received, B", func(c counted) string { return table.Size(c.Received) }),
		table.Figures("writes", func(c counted) string { return flight(c.Writes) }),
		table.Figures("reads", func(c counted) string { return flight(c.Reads) }),
		table.Figures("allocations", func(c counted) string { return table.Size(c.Allocs) }),
		table.Figures("allocated, B", func(c counted) string { return table.Size(c.AllocBytes) }),
		table.Figures("server's allocations", server(func(f *workload.Facts) float64 { return f.ServerAllocs })),
		table.Figures("allocated by the server, B", server(func(f *workload.Facts) float64 { return f.ServerAllocBytes })),
		table.Figures("connections", func(c counted) string { return fmt.Sprint(c.Connections) })).Filled())
}

// Floors is the table of what the verdicts rest on.
func (s Summary) Floors() *table.Table {
	known := func(of func(Answer) string) func(Answer) string {
		return func(a Answer) string { return table.Known(a.Ratio, of(a)) }
	}
	return table.Fill(new(table.Table), s.Answers,
		table.Words("workload", does), table.Words("stack", label),
		table.Figures("processes", func(a Answer) string { return fmt.Sprintf("%d of %d", a.Processes, a.Planned) }),
		table.Figures("GOMAXPROCS", func(a Answer) string { return fmt.Sprint(a.GOMAXPROCS) }),
		table.Figures("on one side of 1", known(func(a Answer) string { return fmt.Sprint(a.OnOneSide) })),
		table.Figures(Label(s.Base)+" varied by", known(func(a Answer) string { return table.Spread(a.Moved) })),
		table.Figures("two copies differ by up to", known(func(a Answer) string { return table.Spread(a.CopyFloor) })),
		table.Figures("noise floor", known(func(a Answer) string { return table.Spread(a.NoiseFloor()) })),
		table.Figures("other programs used", func(a Answer) string { return others(a.Others) }),
		table.Lines(Label(s.Base)+" over time", func(a Answer) string { return points(a.Bases) }))
}
