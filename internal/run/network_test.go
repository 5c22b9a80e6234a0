package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/report"
)

// What TCP did is told for a thousand calls of the base and of the stack, and what the router did of its whole time.
func TestCrossed(t *testing.T) {
	none := (*crossed)(nil).of(nil)
	require.Nil(t, none, "without a network")
	c := &crossed{}
	c.add(timing.Record{Latencies: []timing.Latency{{Calls: 1}}})
	require.Nil(t, c.of(nil), "on loopback")
	for range 2 {
		c.add(timing.Record{Latencies: []timing.Latency{{Calls: 1000}, {Calls: 1}, {Calls: 4000}},
			TCP: []tcp.Counters{{Sent: 2000, Again: 30, Fast: 1, Probes: 20, Timeouts: 5}, {},
				{Sent: 8000, Again: 60, Fast: 50}},
			Router: &tcp.Router{Packets: 10_000, Lost: 90, Full: 2, CPU: time.Second, Span: 5 * time.Second,
				Late: 100 * time.Microsecond}})
	}
	require.Equal(t, &report.Network{Settings: "tcp_rto_min_us=5000", Base: report.TCP{Sent: 2000, Again: 30, Fast: 1,
		Probes: 20, Timeouts: 5}, Stack: report.TCP{Sent: 2000, Again: 15, Fast: 12.5},
		Router: report.Router{Packets: 20_000, Lost: 180, Full: 4, Cores: 0.2, LateNs: 100_000}},
		c.of(tcp.Settings{"tcp_rto_min_us": "5000"}))
}
