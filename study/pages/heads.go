package pages

import (
	"fmt"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// quantity is what tables show of an answer. Its head and its cell stand together here, once for all tables.
type quantity struct {
	head string
	cell func(a comparison) string
}

var heads = map[string]quantity{
	"JSON":  {"JSON, µs", func(a comparison) string { return table.Micros(a.BaseNs) }},
	"CPU":   {"CPU, gRPC / JSON (95% CI)", func(a comparison) string { return decided(of(a, "CPU")) }},
	"time":  {"time, gRPC / JSON (95% CI)", func(a comparison) string { return decided(of(a, "time")) }},
	"p50":   {"p50, gRPC / JSON", func(a comparison) string { return waited(a, a.Percentiles.P50) }},
	"p99":   {"p99, gRPC / JSON", func(a comparison) string { return waited(a, a.Percentiles.P99) }},
	"calls": {"calls/s, gRPC / JSON", answered},
	"median": {"median latency, gRPC / JSON (95% CI)", func(a comparison) string {
		return decided(of(a, "median"))
	}},
	"calls of JSON": {"calls/s: JSON", func(a comparison) string { return served(a, a.Time.BaseNs) }},
	"calls of gRPC": {"calls/s: gRPC", func(a comparison) string { return served(a, comparisonOf(a.Timed()).Paired()) }},
	"switches of JSON": {"switches: JSON", func(a comparison) string {
		return fmt.Sprintf("%.1f", a.BaseLoad.Switches)
	}},
	"switches of gRPC": {"switches: gRPC", func(a comparison) string {
		return fmt.Sprintf("%.1f", a.StackLoad.Switches)
	}},
	"writes of gRPC": {"writes: gRPC", func(a comparison) string { return fmt.Sprintf("%.2f", a.Facts.Writes) }},
}

// of is an answer by one of its amounts.
func of(a comparison, name string) comparison {
	_, a.Figure = found(a, name)
	return a
}

// served is how many calls a second callers made who call again at once, by a call's time. A planned rate is the same
// for both.
func served(a comparison, ns float64) string {
	if !a.Time.There() {
		return ""
	}
	return grouped(perSecond(ns))
}

// shows is the column of a quantity.
func shows[T any](name string, led func(T) comparison) table.Of[T] {
	q, known := heads[name]
	if !known {
		fail("no quantity is called %q", name)
	}
	return figure(q.head, func(row T) string { return q.cell(led(row)) })
}

// itself is the answer of a row that is one.
func itself(a comparison) comparison { return a }

// coresTable has a row for each run of the same workload, by how many CPUs it had.
func (m *maker) coresTable(of []string) string {
	type row struct {
		cpus string
		comparison
	}
	var rows []row
	for _, dir := range of[1:] {
		rows = append(rows, row{cpus(m.run(dir)), *m.led(dir, of[0], "grpcprotobuf")})
	}
	led := func(r row) comparison { return r.comparison }
	t := table.Fill(new(table.Table), rows, figure("CPUs", func(r row) string { return r.cpus }),
		shows("calls of JSON", led), shows("time", led), shows("CPU", led), shows("median", led))
	return t.Markdown() + "\n" + m.where(of[len(of)-1]) + "."
}

// waited is the ratio of a percentile, but where client and server take turns on one core: no caller of a service
// waits so.
func waited(a comparison, p verdict.Percentile) string {
	if p.Ratio == 0 || processes(a)*a.GOMAXPROCS == 1 {
		return ""
	}
	return table.Ratio(p.Ratio)
}
