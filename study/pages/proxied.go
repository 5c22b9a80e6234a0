package pages

import (
	"fmt"
	"math"
	"strconv"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
)

// passage is a stack's calls at a load, made in one way, in a file that study/proxied.sh wrote.
type passage struct{ load, way, stack string }

// The ways of study/proxied.sh: directly, through nginx with connections that stay open, and by nginx's defaults.
const (
	directBefore, directAfter = "direct-before", "direct-after"
	viaNginx, viaDefaults     = "nginx", "nginx-default"
)

var (
	loads    = []string{"2000", "saturated"}
	ofLoads  = map[string]string{"2000": "2,000 a second", "saturated": "saturated"}
	ofWays   = map[string]string{directBefore: "direct", viaNginx: "nginx, keep-alive", viaDefaults: "nginx, defaults"}
	proxying = []string{"httpjson", "grpcprotobuf"}
)

// center is the median of what a passage's processes measured.
func (p passage) center(m *maker, file, unit string) float64 {
	return m.summary(unit, file, fmt.Sprintf("Proxied/way=%s/load=%s/stack=%s", p.way, p.load, p.stack)).Center
}

// proxy is the proxy's CPU time for a call, 0 without one.
func (p passage) proxy(m *maker, file string) float64 {
	if p.way == directBefore || p.way == directAfter {
		return 0
	}
	return p.center(m, file, "proxy-cpu-ns/op")
}

// cpu is the CPU time of client, proxy and server for a call.
func (p passage) cpu(m *maker, file string) float64 {
	return p.center(m, file, "client-cpu-ns/op") + p.proxy(m, file) + p.center(m, file, "server-cpu-ns/op")
}

// passing is the CPU time of client, proxy and server for a call.
func (m *maker) passing(file, way, load, stack string) float64 {
	return passage{load, way, stack}.cpu(m, file)
}

// proxiedTable has a row for each load, way and stack in a file of study/proxied.sh.
func (m *maker) proxiedTable(of []string) string {
	file, t := of[0], new(table.Table)
	var all []passage
	for _, load := range loads {
		for _, way := range []string{directBefore, viaNginx, viaDefaults} {
			for _, stack := range proxying {
				all = append(all, passage{load, way, stack})
			}
		}
	}
	micros := func(unit string) func(passage) string {
		return func(p passage) string { return table.Micros(p.center(m, file, unit)) }
	}
	table.Fill(t, all,
		text("calls", func(p passage) string { return ofLoads[p.load] }),
		text("way", func(p passage) string { return ofWays[p.way] }),
		text("stack", func(p passage) string { return report.Label(p.stack) }),
		figure("CPU, client, µs", micros("client-cpu-ns/op")),
		figure("CPU, nginx, µs", func(p passage) string { return table.Micros(p.proxy(m, file)) }),
		figure("CPU, server, µs", micros("server-cpu-ns/op")),
		figure("median latency, µs", micros("p50-ns")),
		figure("p99, µs", micros("p99-ns")))
	return t.Markdown() + "\n" + m.measuredAt(file) + "."
}

// again is by how much the direct way's CPU time for a call differed after the others from before, as a share, at most.
func (m *maker) again(file string) (most float64) {
	for _, load := range loads {
		for _, stack := range proxying {
			ratio := m.passing(file, directAfter, load, stack) / m.passing(file, directBefore, load, stack)
			most = max(most, math.Abs(math.Log(ratio)))
		}
	}
	return math.Exp(most) - 1
}

// turns says whether nginx reverses the order of gRPC and JSON at a load, by the CPU time of all processes. A
// difference that is smaller than that of the direct way from itself decides nothing.
func (m *maker) turns(file, load string) string {
	noise := 1 + m.again(file)
	side := func(way, compared, alike string) (words string, decided, less bool) {
		ratio := m.passing(file, way, load, "grpcprotobuf") / m.passing(file, way, load, "httpjson")
		if ratio < noise && ratio > 1/noise {
			return "about as much" + alike, false, false
		}
		return more(ratio) + compared, true, ratio < 1
	}
	direct, sure, less := side(directBefore, " CPU than JSON", " CPU as JSON")
	through, sureToo, lessToo := side(viaNginx, "", "")
	order := "it uses " + map[bool]string{true: "less", false: "more"}[less] + " either way"
	switch {
	case !sure || !sureToo:
		order = "whether nginx changes the order is undecided"
	case less != lessToo:
		order = "nginx reverses the order"
	}
	return fmt.Sprintf("gRPC uses %s without nginx, and %s behind it: %s", direct, through, order)
}

// more is how much more or less a ratio is than 1, in percent.
func more(ratio float64) string {
	return changed(ratio) + map[bool]string{true: " less", false: " more"}[ratio < 1]
}

// poolsTable has the base of sweeps over connections, and its calls a second with those on the fewest. The two were not
// paired, so the interval is the widest that their processes allow.
func (m *maker) poolsTable(of []string) string {
	type row struct {
		report.Answer
		fewest report.Answer
	}
	var rows []row
	for _, dir := range of {
		s := m.run(dir)
		all := s.Of(s.Stacks()[0])
		for _, a := range all {
			rows = append(rows, row{a, all[0]})
		}
	}
	base := func(a report.Answer) benchmath.Summary {
		s := benchmath.AssumeNothing.Summary(benchmath.NewSample(a.Time.BasesNs, &benchmath.DefaultThresholds), 0.95)
		s.Center = a.Time.BaseNs // as in the calls a second
		return s
	}
	t := new(table.Table)
	table.Fill(t, rows,
		figure("callers", func(r row) string { return grouped(float64(r.Callers)) }),
		figure("connections", func(r row) string { return strconv.Itoa(r.Conns) }),
		figure("calls/s", func(r row) string { return grouped(1e9 / r.Time.BaseNs) }),
		figure("compared with one connection (95% CI)", func(r row) string {
			if r.Conns == r.fewest.Conns {
				return "–"
			}
			gained := inverse(apart(base(r.Answer), base(r.fewest)))
			return table.Sized(gained.value, gained.lo, gained.hi)
		}),
		figure("CPU, µs", func(r row) string { return table.Micros(r.CPU.BaseNs) }),
		figure("median latency, µs", func(r row) string { return table.Micros(r.Percentiles.P50.BaseNs) }),
		figure("p99, µs", func(r row) string { return table.Micros(r.Percentiles.P99.BaseNs) }))
	return t.Markdown() + "\n" + m.source(of...)
}
