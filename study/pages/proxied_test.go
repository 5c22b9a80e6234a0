package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// passages writes what study/proxied.sh does: the CPU time of client, proxy and server for a call of gRPC, in µs, by
// way, and of JSON twice as much through nginx. Other figures are made of these.
func passages(t *testing.T, root string, grpc map[string]int) {
	t.Helper()
	rows := "# date=2026-11-28\n# go=go1.27.4\n# cpu=A-Machine\n# cores=2\n# nginx=1.22.1\n"
	for way, µs := range grpc {
		for _, load := range loads {
			for i, stack := range proxying {
				cpu := []int{60, µs}[i]
				if i == 0 && strings.HasPrefix(way, viaNginx) {
					cpu = 120
				}
				row := fmt.Sprintf("BenchmarkProxied/way=%s/load=%s/stack=%s-2 1000 %d client-cpu-ns/op %d server-cpu-ns/op",
					way, load, stack, cpu*500, cpu*300)
				if strings.HasPrefix(way, viaNginx) {
					row += fmt.Sprintf(" %d proxy-cpu-ns/op", cpu*200)
				}
				row += fmt.Sprintf(" %d p50-ns %d p99-ns\n", cpu*7000, cpu*9000)
				rows += strings.Repeat(row, 6)
			}
		}
	}
	write(t, root, "proxied/rows.txt", rows)
}

// TestProxied: the table has the figures of each passage, and the words are what the figures say.
func TestProxied(t *testing.T) {
	root := record(t)
	for _, c := range []struct {
		name                          string
		direct, again, kept, defaults int // µs of gRPC, beside JSON's 60 directly and 120 through nginx
		want                          string
	}{
		{"the order stays", 90, 91, 200, 300, "gRPC uses 50% more CPU than JSON without nginx, and 67% more " +
			"behind it: it uses more either way"},
		{"the order turns", 90, 91, 90, 300, "gRPC uses 50% more CPU than JSON without nginx, and 25% less " +
			"behind it: nginx reverses the order"},
		{"the direct way differs from itself as much", 70, 90, 60, 300, "gRPC uses about as much CPU as JSON without " +
			"nginx, and 50% less behind it: whether nginx changes the order is undecided"},
	} {
		t.Run(c.name, func(t *testing.T) {
			passages(t, root, map[string]int{directBefore: c.direct, directAfter: c.again,
				viaNginx: c.kept, viaDefaults: c.defaults})
			require.Contains(t, filled(t, root, `turns "proxied/rows.txt" "2000"`), c.want)
		})
	}
	passages(t, root, map[string]int{directBefore: 100, directAfter: 110, viaNginx: 200, viaDefaults: 300})
	require.Equal(t, "0.10", filled(t, root, `again "proxied/rows.txt" | printf "%.2f"`))
	require.Equal(t, "0.2", filled(t, root,
		`over (passing "proxied/rows.txt" "nginx" "saturated" "grpcprotobuf") 1e6 | printf "%.1f"`))
	made := filled(t, root, `table "proxied" "proxied/rows.txt"`)
	require.Contains(t, made, "| 2,000 a second | direct | gRPC | 50.0 | – | 30.0 | 700 | 900 |\n")
	require.Contains(t, made, "| saturated | nginx, keep-alive | JSON | 60.0 | 24.0 | 36.0 | 840 | 1080 |\n")
	require.Contains(t, made, "\nGOMAXPROCS 2 on [A Machine, 2 virtual cores, go1.27.4, 2026-11-28](")
}

// TestPools: calls a second on more connections are those of the base, beside its own on one.
func TestPools(t *testing.T) {
	root := record(t)
	again(t, root, "rates", "pools", func(s *report.Summary) {
		s.Over, s.Answers = "connections", []report.Answer{s.Answers[0], s.Answers[0]}
		for i := range s.Answers {
			a := &s.Answers[i]
			a.Callers, a.Conns = 1000, []int{1, 4}[i]
			ns := []float64{50_000, 25_000}[i]
			a.Time = verdict.Figure{Ratio: 1, Lo: 1, Hi: 1, BaseNs: ns, BasesNs: []float64{ns, ns, ns, ns, ns, ns}}
			a.CPU.BaseNs = ns
			a.Percentiles.P50 = verdict.Percentile{BaseNs: 10 * ns, StackNs: ns}
			a.Percentiles.P99 = verdict.Percentile{BaseNs: 20 * ns, StackNs: ns}
		}
	})
	made := filled(t, root, `table "pools" "pools"`)
	require.Contains(t, made, "| 1,000 | 1 | 20,000 | – | 50.0 | 500 | 1000 |\n")
	require.Contains(t, made, "| 1,000 | 4 | 40,000 | 2.00 (2.00–2.00) | 25.0 | 250 | 500 |\n")
}
