package network

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// A router loses its share of packets on both ways, and those for which its queue has no place.
func TestRouter(t *testing.T) {
	const packets, size = 1000, 100
	for _, c := range []struct {
		reason      string
		link        tap.Link
		least, most int // that arrive, of each way
		lost, full  bool
	}{
		{"half of them lost", tap.Link{Loss: 0.5}, 400, 600, true, false},
		{"none lost", tap.Link{}, packets, packets, false, false},
		{"a tenth of a second of the rate has 1,250 bytes", tap.Link{Rate: 1e5}, 1, 200, false, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			clients, servers := pair(t), pair(t)
			r := newRouter(routing{Link: c.link, Seed: 1}, clients[1], servers[1])
			ended := make(chan error, 1)
			go func() { ended <- r.run(t.Context()) }()
			for i, way := range [][2]int{{clients[0], servers[0]}, {servers[0], clients[0]}} {
				for range packets {
					_, err := unix.Write(way[0], make([]byte, size))
					require.NoError(t, err)
				}
				require.Eventually(t, func() bool { return r.did().Packets == int64(i+1)*packets }, 10*time.Second,
					time.Millisecond)
				came := 0
				for last := time.Now(); time.Since(last) < 300*time.Millisecond; {
					if _, err := unix.Read(way[1], make([]byte, size)); err == nil {
						came, last = came+1, time.Now()
					}
				}
				require.GreaterOrEqual(t, came, c.least)
				require.LessOrEqual(t, came, c.most)
			}
			r.stop.Store(true)
			require.NoError(t, <-ended)
			did := r.did()
			require.Equal(t, []bool{c.lost, c.full}, []bool{did.Lost > 0, did.Full > 0}, "%+v", did)
		})
	}
}

// pair are two ends, of which the first one waits to write, and does not wait to read.
func pair(t *testing.T) [2]int {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	for _, end := range ends {
		require.NoError(t, unix.SetsockoptInt(end, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20))
		t.Cleanup(func() { _ = unix.Close(end) })
	}
	require.NoError(t, unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}))
	return ends
}
