package pages

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// pricedRecords are made-up records of the part price: rows that are steady but for headers, and stacks.
func pricedRecords(t *testing.T) *maker {
	root := t.TempDir()
	rows := new(strings.Builder)
	for base, scale := range map[string]float64{"httpjson": 1, "grpcprotobuf": 2} {
		for workload, micros := range map[string]float64{"small": 10, "deadline": 12, "headers": 10, "tls": 9, "cold": 60,
			"cold-tls": 200} {
			for i := range 10 {
				fmt.Fprintf(rows, "BenchmarkCall/workload=%s/stack=%s 100 %f cpu-ns/op\n", workload, base,
					1000*scale*(micros+0.01*float64(i)))
			}
		}
	}
	write(t, root, "price/rows.txt", rows.String())
	for dir, base := range map[string]string{"json": "httpjson", "grpc": "grpcprotobuf"} {
		s := report.Summary{Release: report.Release, Base: base}
		for name, ratio := range map[string]float64{".chain": 1.1, ".otel": 1.5, ".otel.unsampled": 1, ".gzip": 3,
			".h2c": 2} {
			a := report.Answer{Workload: "small", Stack: base + name, Leads: report.ByTime}
			a.GOMAXPROCS, a.Processes.Counted = 1, 8
			a.Time = verdict.Figure{Ratio: ratio, Lo: ratio, Hi: ratio, Verdict: verdict.More, BaseNs: 10_000}
			if ratio == 1 {
				a.Time.Verdict = verdict.Undecided
			}
			s.Answers = append(s.Answers, a)
		}
		data, err := json.Marshal(s)
		require.NoError(t, err)
		write(t, root, "price/"+dir+"/summary.json", string(data))
		write(t, root, "price/"+dir+"/bench.txt", "")
	}
	return in(root)
}

func TestPrices(t *testing.T) {
	const unclear = " no clear difference |"
	m := pricedRecords(t)
	made := m.table("price", "price")
	for _, row := range []string{
		"| a deadline | +2.0 | +20% | +4.0 | +20% |",
		"| token, trace and user agent in headers |" + unclear + unclear + unclear + unclear,
		"| five middlewares or interceptors | +1.0 | +10% | +1.0 | +10% |",
		"| OpenTelemetry, not sampled |" + unclear + unclear + unclear + unclear,
		"| TLS 1.3, on an open connection | −1.0 | −10% | −2.0 | −10% |",
		"| HTTP/2 in place of HTTP/1.1 | +10.0 | +100% | – | – |",
	} {
		require.Contains(t, made, row)
	}
	write(t, m.root, "few/rows.txt", "BenchmarkCall/workload=small/stack=httpjson 1 5 cpu-ns/op\n")
	require.PanicsWithError(t, "few/rows.txt: Call/workload=small/stack=httpjson has fewer than the 6 samples that an "+
		"interval needs", func() { m.priced("few", "httpjson", additions[0]) })
}
