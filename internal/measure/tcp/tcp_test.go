package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPairs(t *testing.T) {
	const text = "Ip: Forwarding InReceives\nIp: 1 7\n" +
		"Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 120 3\n" +
		"TcpExt: TCPLossProbes\nTcpExt: 5\n"
	for _, c := range []struct {
		reason, of string
		want       map[string]int64
	}{
		{"values stand below their names", "Tcp", map[string]int64{"Tcp.RtoAlgorithm": 1, "Tcp.OutSegs": 120,
			"Tcp.RetransSegs": 3}},
		{"a longer prefix is another one", "TcpExt", map[string]int64{"TcpExt.TCPLossProbes": 5}},
		{"none", "Udp", map[string]int64{}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			found := map[string]int64{}
			pairs(text, c.of, found)
			require.Equal(t, c.want, found)
		})
	}
}

func TestSettings(t *testing.T) {
	s := Settings{"tcp_rto_min_us": "5000", "tcp_congestion_control": "cubic", "other": "1"}
	require.Equal(t, "tcp_congestion_control=cubic tcp_rto_min_us=5000", s.String())
}

func TestCounters(t *testing.T) {
	c := Counters{10, 5, 2, 3, 1}
	c.Sub(Counters{1, 2, 1, 1, 1})
	c.Add(Counters{Timeouts: 4})
	require.Equal(t, Counters{9, 3, 1, 2, 4}, c)
}
