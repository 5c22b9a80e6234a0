package pages

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report/table"
)

// addition is what a small call can have besides, and where that was measured: as a workload of rows.txt, beside
// another, or for each base as a stack beside it.
type addition struct {
	what            string
	workload, plain string
	stacks          map[string]string // by their base
}

var additions = []addition{
	{what: "a deadline", workload: "deadline", plain: "small"},
	{what: "token, trace and user agent in headers", workload: "headers", plain: "small"},
	{what: "five middlewares or interceptors", stacks: both("chain")},
	{what: "OpenTelemetry, not sampled", stacks: both("otel.unsampled")},
	{what: "OpenTelemetry, sampled", stacks: both("otel")},
	{what: "gzip", stacks: both("gzip")},
	{what: "TLS 1.3, on an open connection", workload: "tls", plain: "small"},
	{what: "a new connection for each call", workload: "cold", plain: "small"},
	{what: "a new TLS connection for each call", workload: "cold-tls", plain: "small"},
	{what: "HTTP/2 in place of HTTP/1.1", stacks: map[string]string{"httpjson": "httpjson.h2c"}},
}

// both are the variants of JSON and gRPC with one name.
func both(variant string) map[string]string {
	return map[string]string{"httpjson": "httpjson." + variant, "grpcprotobuf": "grpcprotobuf." + variant}
}

// price is what something adds to the CPU time of a call.
type price struct {
	micro, ratio float64
	clear        bool // whether a difference is decided, or rare among rows without one
}

// priced is the price of an addition for a base, in a folder of the part price. A base that can't have it has none.
func (m *maker) priced(dir, base string, a addition) (p price, has bool) {
	if stack := a.stacks[base]; stack != "" {
		run := path.Join(dir, map[string]string{"httpjson": "json", "grpcprotobuf": "grpc"}[base])
		f := ofCPU(m.led(run, "small", stack))
		return price{f.BaseNs * (f.Ratio - 1) / 1000, f.Ratio, decides(f)}, true
	} else if a.stacks != nil {
		return price{}, false
	}
	file := path.Join(dir, "rows.txt")
	sample := func(workload string) *benchmath.Sample {
		row := "Call/workload=" + workload + "/stack=" + base
		m.summary("cpu-ns/op", file, row) // which fails if there are too few
		return benchmath.NewSample(m.measured("cpu-ns/op", file)[row], &benchmath.DefaultThresholds)
	}
	plain, with := sample(a.plain), sample(a.workload)
	x, y := median(plain), median(with)
	c := benchmath.AssumeNothing.Compare(plain, with)
	return price{(y - x) / 1000, y / x, c.P < c.Alpha}, true
}

// median is that of a sample.
func median(s *benchmath.Sample) float64 { return benchmath.AssumeNothing.Summary(s, 0.95).Center }

// priceTable is what is added to a small call on one core, in CPU time and in percent, for JSON and gRPC. It takes the
// folder of the part price.
func (m *maker) priceTable(of []string) string {
	cell := func(base string, shown func(price) string) func(addition) string {
		return func(a addition) string {
			p, has := m.priced(m.path(of[0]), base, a)
			switch {
			case !has:
				return "–"
			case !p.clear:
				return unclear
			}
			return shown(p)
		}
	}
	micros := func(p price) string { return strings.Replace(fmt.Sprintf("%+.1f", p.micro), "-", "−", 1) }
	percent := func(p price) string { return signed(p.ratio) }
	t := new(table.Table)
	table.Fill(t, additions,
		table.Words("what a call has besides", func(a addition) string { return a.what }),
		table.Figures("JSON, µs", cell("httpjson", micros)), table.Figures("JSON", cell("httpjson", percent)),
		table.Figures("gRPC, µs", cell("grpcprotobuf", micros)), table.Figures("gRPC", cell("grpcprotobuf", percent)))
	return t.Markdown()
}
