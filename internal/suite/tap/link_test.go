package tap_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// paced takes a microsecond for every byte.
var paced = tap.Link{RTT: 100 * ms, Rate: 8e6}

// Time in a bubble stands still until all wait, so that these tests compare times for equality.

// linked returns the ends of an emulated connection over net.Pipe, which takes no time, and closes them at the test's
// end. A goroutine that stayed would fail the bubble.
func linked(t *testing.T, link tap.Link) (client, server net.Conn) {
	t.Helper()
	inner, server := net.Pipe()
	client = link.Shared()(inner)
	t.Cleanup(func() {
		_, _ = server.Close(), client.Close()
		time.Sleep(time.Hour)
	})
	return client, server
}

// dialled is linked, past the time that dialling costs.
func dialled(t *testing.T, link tap.Link) (client, server net.Conn) {
	t.Helper()
	client, server = linked(t, link)
	time.Sleep(time.Hour)
	return client, server
}

// after calls f and returns how long it took.
func after(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func echo(server net.Conn) { _, _ = io.Copy(server, server) }

func TestLinkRoundTrip(t *testing.T) {
	for _, c := range []struct {
		reason string
		link   tap.Link
		want   time.Duration
	}{
		{"nothing but the RTT", tap.Link{RTT: 100 * ms}, 100 * ms},
		{"and the rate, each way", paced, 100*ms + 1*us + 1*us},
		{"an odd RTT is not rounded", tap.Link{RTT: 3}, 3},
		{"the zero value takes no time", tap.Link{}, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := dialled(t, c.link)
				go echo(server)
				for range 3 {
					assert.Equal(t, c.want, after(func() {
						write(t, client, "x")
						assert.Equal(t, "x", read(t, client, 1))
					}))
					time.Sleep(c.link.RTT / 3)
				}
			})
		})
	}
}

func TestLinkDial(t *testing.T) {
	for _, c := range []struct {
		reason        string
		wait          time.Duration // before the first write
		served, heard time.Duration // after dialling
	}{
		{"written at once, it leaves when the SYN is answered", 0, 151 * ms, 202 * ms},
		{"written meanwhile, likewise", 99 * ms, 151 * ms, 202 * ms},
		{"written later", 130 * ms, 181 * ms, 232 * ms},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				client, server := linked(t, paced)
				time.Sleep(c.wait)
				assert.Zero(t, after(func() { write(t, client, strings.Repeat("x", 1000)) }), "Write is not held up")
				read(t, server, 1000)
				assert.Equal(t, c.served, time.Since(began))
				write(t, server, strings.Repeat("x", 1000))
				read(t, client, 1000)
				assert.Equal(t, c.heard, time.Since(began))
			})
		})
	}
}

// 100 kB don't come in one piece when the last byte has come, nor the first packet late.
func TestLinkPayload(t *testing.T) {
	const size = 100_000
	for _, direction := range []string{"up", "down"} {
		t.Run(direction, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to := dialled(t, paced)
				if direction == "down" {
					from, to = to, from
				}
				began := time.Now()
				go func() { _, _ = from.Write(make([]byte, size)) }()
				p := make([]byte, size)
				for got := 0; got < size; {
					n, err := to.Read(p)
					require.NoError(t, err)
					got += n
					require.LessOrEqual(t, n, 1500, "a packet at a time")
					require.Equal(t, 50*ms+time.Duration(got)*us, time.Since(began), "after %d bytes", got)
				}
			})
		})
	}
}

// A fast link is busy all the while, even if more is under way than waits for it.
func TestLinkKeepsBusy(t *testing.T) {
	const size = 10_000_000
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, tap.Link{RTT: 200 * ms, Rate: 80e6}) // 1 MB under way
		for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() { _, _ = ends[0].Write(make([]byte, size)) }()
			assert.Equal(t, 100*ms+time.Second, after(func() { read(t, ends[1], size) }))
		}
	})
}

func TestLinkKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		began := time.Now()
		write(t, client, strings.Repeat("a", 1000))
		time.Sleep(400 * us)
		write(t, client, strings.Repeat("b", 500))
		time.Sleep(5 * ms)
		write(t, client, "c")
		read(t, server, 1000)
		assert.Equal(t, 51*ms, time.Since(began))
		assert.Equal(t, strings.Repeat("b", 500), read(t, server, 500))
		assert.Equal(t, 51*ms+500*us, time.Since(began), "it waits for the first")
		read(t, server, 1)
		assert.Equal(t, 55*ms+401*us, time.Since(began), "nobody is before it; it doesn't make up for idleness either")
	})
}

// shared returns the ends of connections over one link, past the time that dialling costs, and closes them at the
// test's end.
func shared(t *testing.T, link tap.Link, n int) (clients, servers []net.Conn) {
	t.Helper()
	wrap := link.Shared()
	for range n {
		inner, server := net.Pipe()
		clients, servers = append(clients, wrap(inner)), append(servers, server)
	}
	t.Cleanup(func() {
		for i := range clients {
			_, _ = servers[i].Close(), clients[i].Close()
		}
		time.Sleep(time.Hour)
	})
	time.Sleep(time.Hour)
	return clients, servers
}

// A link carries as many bytes a second, each way at a time, however many connections share it.
func TestLinkIsOneForAllConnections(t *testing.T) {
	const size = 3_000_000
	for _, n := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			clients, servers := shared(t, paced, n)
			took := make(chan time.Duration)
			carry := func(from, to net.Conn) {
				go func() { _, _ = from.Write(make([]byte, size/n)) }()
				go func() { took <- after(func() { read(t, to, size/n) }) }()
			}
			for i := range clients {
				carry(clients[i], servers[i])
				carry(servers[i], clients[i])
			}
			longest := time.Duration(0)
			for range 2 * n {
				longest = max(longest, <-took)
			}
			assert.Equal(t, 50*ms+size*us, longest, "%d connections", n)
		})
	}
}

// What one connection does, or doesn't, the others don't feel but for the bytes that it has sent.
func TestLinkConnectionsAreApart(t *testing.T) {
	t.Run("a server that doesn't read fills its own queue alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clients, servers := shared(t, tap.Link{RTT: 100 * ms, Rate: 8e9}, 2)
			go func() { _, _ = clients[0].Write(make([]byte, 10_000_000)) }()
			time.Sleep(time.Hour)
			assert.Equal(t, 50*ms+1, after(func() {
				write(t, clients[1], "x")
				read(t, servers[1], 1)
			}))
		})
	})
	t.Run("nor does a client that doesn't read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clients, servers := shared(t, tap.Link{RTT: 100 * ms, Rate: 8e9}, 2)
			go func() { _, _ = servers[0].Write(make([]byte, 10_000_000)) }()
			time.Sleep(time.Hour)
			assert.Equal(t, 50*ms+1, after(func() {
				write(t, servers[1], "x")
				read(t, clients[1], 1)
			}))
		})
	})
	t.Run("what waits for its own SYN holds up no other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			wrap := paced.Shared()
			dial := func() (client, server net.Conn) {
				inner, server := net.Pipe()
				client = wrap(inner)
				t.Cleanup(func() {
					_, _ = server.Close(), client.Close()
					time.Sleep(time.Hour)
				})
				return client, server
			}
			client, server := dial()
			time.Sleep(time.Hour)
			late, its := dial()
			began := time.Now()
			write(t, late, strings.Repeat("x", 3000)) // leaves in 100 ms
			write(t, client, "x")
			read(t, server, 1)
			assert.Equal(t, 50*ms+us, time.Since(began))
			time.Sleep(100*ms - 500*us - time.Since(began))
			write(t, client, strings.Repeat("x", 1000)) // which the link sends until half a millisecond beyond
			read(t, its, 3000)
			assert.Equal(t, 150*ms+500*us+3000*us, time.Since(began), "then it has its turn")
			read(t, server, 1000)
		})
	})
}

func TestLinkWriteBlocks(t *testing.T) {
	const taken = (4<<20/1500 + 2) * 1500 // the buffer, and a packet on its way in and one on its way out
	link := tap.Link{Rate: 8e6}
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, link)
		go func() { _, _ = io.Copy(io.Discard, server) }()
		assert.Zero(t, after(func() { write(t, client, strings.Repeat("x", taken)) }))
		assert.Equal(t, 1500*us, after(func() { write(t, client, "x") }), "until a packet has left")
	})
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, link)
		sent := random(5_000_000)
		require.NoError(t, client.SetDeadline(time.Now().Add(time.Second)))
		var n int
		var err error
		assert.Equal(t, time.Second, after(func() { n, err = client.Write(sent) }), "the server doesn't read")
		assert.True(t, isTimeout(err), "got %v", err)
		assert.Equal(t, taken, n)
		require.NoError(t, client.SetWriteDeadline(time.Time{}))
		rest := start(func() (string, error) {
			_, err := client.Write(sent[n:])
			return "", err
		})
		assert.Equal(t, string(sent), read(t, server, len(sent)), "every byte that Write has said it took, once")
		assert.Equal(t, result{}, <-rest)
	})
}

func TestLinkCloseDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client, server := linked(t, paced)
		sent := string(random(3000))
		write(t, client, sent)
		require.NoError(t, client.Close())
		assert.Zero(t, time.Since(began), "it doesn't wait")
		assert.Equal(t, sent[:1500], read(t, server, 1500))
		assert.Equal(t, 151*ms+500*us, time.Since(began))
		rest, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, sent[1500:], string(rest))
		assert.Equal(t, 153*ms, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		require.NoError(t, client.Close())
		assert.Equal(t, 50*ms, after(func() {
			_, err := server.Read(make([]byte, 1))
			assert.Equal(t, io.EOF, err)
		}), "an end alone takes its time too")
	})
}

// What Close leaves behind ends of its own accord; dialled's cleanup would wait for it for ever.
func TestLinkCloseIsBounded(t *testing.T) {
	for _, c := range []struct {
		reason string
		server func(net.Conn) error
		ends   time.Duration
	}{
		{"a server that doesn't read", func(net.Conn) error { return nil }, time.Minute},
		{"a server that has closed: the first packet finds out", net.Conn.Close, 51*ms + 500*us},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, server := net.Pipe()
				closed := make(chan time.Time, 2)
				client := paced.Shared()(closeConn{inner, closed})
				time.Sleep(time.Hour)
				write(t, client, strings.Repeat("x", 60_000))
				began := time.Now()
				require.NoError(t, client.Close())
				require.NoError(t, c.server(server))
				assert.Equal(t, c.ends, (<-closed).Sub(began))
				time.Sleep(time.Hour) // until nothing is left of it
			})
		})
	}
}

// closeConn says when it is closed.
type closeConn struct {
	net.Conn
	closed chan<- time.Time
}

func (c closeConn) Close() error {
	c.closed <- time.Now()
	return c.Conn.Close()
}

func TestLinkEnd(t *testing.T) {
	for _, c := range []struct {
		reason string
		link   func(*testing.T, tap.Link) (client, server net.Conn)
		sent   string
		want   time.Duration
	}{
		{"an end alone takes its time", dialled, "", 50 * ms},
		{"what was sent before comes before", dialled, strings.Repeat("x", 1000), 51 * ms},
		{"a server that speaks first is heard after two round trips", linked, "hello", 200*ms + 5*us},
		{"nor is it heard to hang up before it has picked up", linked, "", 200 * ms},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := c.link(t, paced)
				if c.sent != "" {
					write(t, server, c.sent)
				}
				require.NoError(t, server.Close())
				assert.Equal(t, c.want, after(func() {
					got, err := io.ReadAll(client)
					require.NoError(t, err)
					assert.Equal(t, c.sent, string(got))
				}))
			})
		})
	}
}

// What arrives is what was sent, and the wire carries not a byte more. Nettest reads and writes pieces of all sizes.
func TestLinkCarriesTheBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := new(tap.Counter)
		inner, server := net.Pipe()
		client := paced.Shared()(counter.Wrap(inner))
		sent := string(random(300_001)) // so that the last Read has room for more than comes
		for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() { _, _ = io.WriteString(ends[0], sent) }()
			assert.True(t, read(t, ends[1], len(sent)) == sent)
		}
		require.NoError(t, client.Close())
		rest, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Empty(t, rest)
		assert.EqualValues(t, len(sent), counter.Sent.Load())
		assert.EqualValues(t, len(sent), counter.Received.Load())
		time.Sleep(time.Hour) // until nothing is left of it
	})
}

// What a call allocates over a link is the stack's: packets are used again. (Under the race detector a quarter is not.)
func TestLinkAllocatesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		go echo(server)
		p := make([]byte, 5000)
		const calls = 1000
		assert.Less(t, testkit.Allocated(func() {
			for range calls {
				_, _ = client.Write(p)
				_, _ = io.ReadFull(client, p)
			}
		}), uint64(calls*5000), "each call needs 8 packets of 1500 bytes")
	})
}

func TestFindLink(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		want         tap.Link // zero if it is refused
	}{
		{"a name", "4g", tap.Link{RTT: 170 * ms, Rate: 9e6}},
		{"fractions", "2.5ms/1.6Mbps", tap.Link{RTT: 2500 * us, Rate: 1.6e6}},
		{"other units", "0.3s/768kbps", tap.Link{RTT: 300 * ms, Rate: 768e3}},
		{"the least", "1ms/10kbps", tap.Link{RTT: ms, Rate: 10e3}},
		{"the most", "1s/10Gbps", tap.Link{RTT: 1000 * ms, Rate: 10e9}},

		{"a withdrawn name", "3g", tap.Link{}},
		{"no rate", "40ms", tap.Link{}},
		{"something before it", "-40ms/10Mbps", tap.Link{}},
		{"something behind it", "40ms/10Mbps\n", tap.Link{}},
		{"two points in a delay", "4.0.ms/10Mbps", tap.Link{}},
		{"a delay below a timer's", "0.999ms/10Mbps", tap.Link{}},
		{"a delay that nobody waits for", "1.001s/10Mbps", tap.Link{}},
		{"a rate too low", "40ms/9.999kbps", tap.Link{}},
		{"a rate too high", "40ms/10.001Gbps", tap.Link{}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			found, err := tap.FindLink(c.text)
			assert.Equal(t, c.want, found)
			if c.want != (tap.Link{}) {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, fmt.Sprintf("%q is no link: "+
				"write 4g, or a round trip and a rate such as 40ms/10Mbps, from 1ms/10kbps to 1s/10Gbps; "+
				"a third part is the loss of packets, as in 20ms/100Mbps/1%%", c.text))
		})
	}
}

func TestFindLossyLink(t *testing.T) {
	for _, c := range []struct {
		text string
		want tap.Link
		says string // "" is a link
	}{
		{"20ms/100Mbps/1%", tap.Link{RTT: 20 * ms, Rate: 1e8, Routed: true, Loss: 0.01}, ""},
		{"0ms/10Gbps/0%", tap.Link{Rate: 1e10, Routed: true}, ""},
		{"300ms/10kbps/5%", tap.Link{RTT: 300 * ms, Rate: 1e4, Routed: true, Loss: 0.05}, ""},
		{"301ms/10kbps/5%", tap.Link{}, "is no link with a loss"},
		{"20ms/100Mbps/5.1%", tap.Link{}, "has no loss"},
		{"20ms/100Mbps/-1%", tap.Link{}, "has no loss"},
		{"20ms/100Mbps/NaN%", tap.Link{}, "has no loss"},
		{"1%", tap.Link{}, "has no loss"},
		{"20ms/1%", tap.Link{}, "is no link with a loss"},
		{"4g/1%", tap.Link{}, "is no link with a loss"},
		{"20ms/100Mbps/1", tap.Link{}, "a third part is the loss"},
	} {
		t.Run(c.text, func(t *testing.T) {
			link, err := tap.FindLink(c.text)
			require.Equal(t, c.want, link)
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}
