package count

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
)

// Counts of one caller gate exactly. What varies between equal builds does not count.
func TestGateOfCounts(t *testing.T) {
	base := report.Counts{Calls: 1000, Allocs: 20, Sent: 200, Received: 100, Writes: 1, AllocBytes: 3000,
		ServerAllocs: 30, ServerWrites: 1, Handled: 1}
	for _, test := range []struct {
		why, workload string
		max           float64
		change        func(*report.Counts)
		over, grown   string
	}{
		{"an allocation more", "small", 1.02, func(f *report.Counts) { f.Allocs += 1.04 },
			"allocations 21.04 (base 20.00)", ""},
		{"less than half an allocation", "small", 1.02, func(f *report.Counts) { f.Allocs += 0.45 }, "", ""},
		{"less than half an allocation where nothing may grow", "small", 1, func(f *report.Counts) { f.Allocs += 0.45 },
			"", ""},
		{"half an allocation where nothing may grow", "small", 1, func(f *report.Counts) { f.Allocs += 0.5 },
			"allocations 20.50 (base 20.00)", ""},
		{"two allocations that the gate allows", "small", 1.1, func(f *report.Counts) { f.Allocs += 2 }, "",
			"allocations 22.00 (base 20.00)"},
		{"as many allocations of more bytes", "small", 1, func(f *report.Counts) { f.AllocBytes *= 2 }, "", ""},
		{"more bytes sent", "small", 1.02, func(f *report.Counts) { f.Sent += 5 }, "bytes sent 205.00 (base 200.00)", ""},
		{"bytes that the gate allows, beside others", "small", 1.02,
			func(f *report.Counts) { f.Sent, f.Writes = f.Sent+3, 2 }, "writes 2.00 (base 1.00)",
			"bytes sent 203.00 (base 200.00)"},
		{"more bytes received", "small", 1.02, func(f *report.Counts) { f.Received += 3 },
			"bytes received 103.00 (base 100.00)", ""},
		{"a write more in fifty", "small", 1, func(f *report.Counts) { f.Writes = 1.03 }, "", ""},
		{"fewer of all", "small", 1, func(f *report.Counts) { *f = report.Counts{Calls: 1, Handled: 1} }, "", ""},
		{"a server's 500 allocations", "small-apart", 1, func(f *report.Counts) { f.ServerAllocs += 500 },
			"the server's allocations 530.00 (base 30.00)", ""},
		{"a server's allocation", "small-apart", 1, func(f *report.Counts) { f.ServerAllocs++ },
			"the server's allocations 31.00 (base 30.00)", ""},
		{"a server's allocation that the gate allows", "small-apart", 1.05, func(f *report.Counts) { f.ServerAllocs++ }, "",
			"the server's allocations 31.00 (base 30.00)"},
		{"a server's write", "small-apart", 1, func(f *report.Counts) { f.ServerWrites++ },
			"the server's writes 2.00 (base 1.00)", ""},
		{"a server's write in one process", "small", 1, func(f *report.Counts) { f.ServerWrites++ },
			"the server's writes 2.00 (base 1.00)", ""},
		{"less than three quarters of an allocation of two processes", "small-apart", 1,
			func(f *report.Counts) { f.Allocs, f.ServerAllocs = f.Allocs+0.7, f.ServerAllocs+0.7 }, "", ""},
		{"writes that share a packet now and then", "small-apart", 1,
			func(f *report.Counts) { f.Writes, f.ServerWrites = 1.85, 1.85 }, "", ""},
		{"a hundredth of a handshake", "cold-tls", 1, func(f *report.Counts) { f.Sent += 3 }, "", ""},
		{"more than a fiftieth of a handshake", "cold-tls", 1, func(f *report.Counts) { f.Sent += 5 },
			"bytes sent 205.00 (base 200.00)", ""},
		{"a hundredth of a large message", "bytes-100kB", 1, func(f *report.Counts) { f.Allocs += 2.9 }, "", ""},
		{"more than a seventh of a large message's", "bytes-100kB", 1, func(f *report.Counts) { f.Allocs += 3.1 },
			"allocations 23.10 (base 20.00)", ""},
		{"three objects of each of twenty calls", "small", 1, func(f *report.Counts) { f.Calls, f.Allocs = 20, 22.9 }, "",
			""},
		{"more than that", "small", 1, func(f *report.Counts) { f.Calls, f.Allocs = 20, 23.1 },
			"allocations 23.10 (base 20.00)", ""},
		{"callers who share a connection", "small-load", 1, func(f *report.Counts) { f.Sent *= 2 }, "", ""},
		{"four calls over a link", "cold-4g", 1, func(f *report.Counts) { f.Allocs *= 2 }, "", ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			own := base
			test.change(&own)
			lines, over := gate(test.max).lines([]report.Answer{{Workload: test.workload, Does: "it", Stack: "x",
				BaseFacts: &base, Facts: &own}, {Workload: "small"}}, workload.All())
			require.Equal(t, test.over, strings.TrimPrefix(strings.Join(over, ";"), "it, x: "))
			require.Contains(t, lines[0], "gate: it, x: allocations ")
			grown := strings.TrimPrefix(strings.Join(lines[1:len(lines)-1], ";"),
				fmt.Sprintf("gate: it, x has grown within %v: ", test.max))
			require.Equal(t, test.grown, grown)
			require.Contains(t, lines[len(lines)-1], "was not counted")
		})
	}
}

// TestUncounted: a server that counts no calls tells nothing of whether they are made, and the gate says so.
func TestUncounted(t *testing.T) {
	base, own := report.Counts{Calls: 1000, Handled: 1}, report.Counts{Calls: 1000}
	answer := report.Answer{Workload: "small", Does: "it", Stack: "x", BaseFacts: &base, Facts: &own}
	lines, over := gate(1).lines([]report.Answer{answer}, workload.All())
	require.Empty(t, over)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "gate: it, x: its server counts no calls, so nothing tells whether each is made")
}

// TestGateThatSeesNothing: a gate fails if all that it could judge was skipped, also if nobody has chosen it.
func TestGateThatSeesNothing(t *testing.T) {
	counts := report.Counts{Calls: 1000, Handled: 1}
	of := func(names ...string) (s report.Summary) {
		for _, name := range names {
			s.Answers = append(s.Answers, report.Answer{Workload: name, Does: name, Stack: "x", BaseFacts: &counts,
				Facts: &counts})
		}
		return s
	}
	_, err := gate(1).judge(of("small-load", "cold-4g"), workload.All(), false, []string{"skipped: small, x"})
	require.ErrorContains(t, err, "the gate has no figure of one caller without a link: all such workloads were skipped")
	_, err = gate(1).judge(of("small-load", "small-apart"), workload.All(), false, []string{"skipped: small, x"})
	require.NoError(t, err)
}

// Several counts of one build are within what the gate takes for noise, however low it is.
func TestEqualBuildsCountTheSame(t *testing.T) {
	if strings.Contains(environ.Build(), "-race") {
		t.Skip("the race detector drops objects from pools at random")
	}
	for _, of := range []string{"small", "small-apart", "cold-tls"} {
		w, err := workload.In(workload.All(), of)
		require.NoError(t, err)
		for _, name := range []string{"httpjson", "grpcprotobuf"} {
			var all []*report.Counts
			for range 3 {
				f, err := versus.Count(t.Context(), name+"@HEAD", w.Workload, versus.Program{})
				require.NoError(t, err)
				require.EqualValues(t, 1, f.Handled, "by the server, of each call")
				all = append(all, (*report.Counts)(&f))
			}
			for i, f := range all {
				_, over := gate(1).lines([]report.Answer{{Workload: of, BaseFacts: all[(i+1)%3], Facts: f}}, workload.All())
				require.Empty(t, over, "%s, %s", of, name)
			}
		}
	}
}
