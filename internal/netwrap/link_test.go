package netwrap_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
	"google.golang.org/grpc/benchmark/latency"

	"github.com/rpcbench/rpcbench/internal/netwrap"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// paced takes a microsecond for every byte.
var paced = netwrap.Link{RTT: 100 * ms, Up: 8e6, Down: 8e6}

// Time in a bubble stands still until all wait, so that these tests compare times for equality.

// linked returns the ends of an emulated connection over net.Pipe, which takes no time, and closes them at the test's
// end. A goroutine that stayed would fail the bubble.
func linked(t *testing.T, link netwrap.Link) (client, server net.Conn) {
	t.Helper()
	inner, server := net.Pipe()
	client = link.Wrap(inner)
	t.Cleanup(func() {
		_, _ = server.Close(), client.Close()
		time.Sleep(time.Hour)
	})
	return client, server
}

// dialled is linked, past the time that dialling costs.
func dialled(t *testing.T, link netwrap.Link) (client, server net.Conn) {
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
		link   netwrap.Link
		want   time.Duration
	}{
		{"nothing but the RTT", netwrap.Link{RTT: 100 * ms}, 100 * ms},
		{"and each direction's rate", netwrap.Link{RTT: 100 * ms, Up: 8e6, Down: 4e6}, 100*ms + 1*us + 2*us},
		{"an odd RTT is not rounded", netwrap.Link{RTT: 3}, 3},
		{"the zero value takes no time", netwrap.Link{}, 0},
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
		{"written just then", 100 * ms, 151 * ms, 202 * ms},
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

func TestLinkServerSpeaksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := linked(t, paced)
		write(t, server, "hello")
		assert.Equal(t, 200*ms+5*us, after(func() { read(t, client, 5) }))
	})
	synctest.Test(t, func(t *testing.T) { // nor is it heard to hang up before it has picked up
		client, server := linked(t, paced)
		require.NoError(t, server.Close())
		assert.Equal(t, 200*ms, after(func() {
			_, err := client.Read(make([]byte, 1))
			assert.Equal(t, io.EOF, err)
		}))
	})
}

// 100 kB don't come in one piece when the last byte has come, nor the first packet late.
func TestLinkPayload(t *testing.T) {
	const size = 100_000
	link := netwrap.Link{RTT: 100 * ms, Up: 8e6, Down: 16e6}
	for _, c := range []struct {
		direction string
		perByte   time.Duration
	}{{"up", time.Microsecond}, {"down", 500 * time.Nanosecond}} {
		t.Run(c.direction, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to := dialled(t, link)
				if c.direction == "down" {
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
					require.Equal(t, 50*ms+time.Duration(got)*c.perByte, time.Since(began), "after %d bytes", got)
				}
			})
		})
	}
}

// A fast link is busy all the while, even if more is under way than waits for it.
func TestLinkKeepsBusy(t *testing.T) {
	const size = 10_000_000
	for _, link := range []netwrap.Link{
		{RTT: 200 * ms, Up: 80e6, Down: 80e6}, // 1 MB under way
		{RTT: 200 * ms},                       // 4 MB
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := dialled(t, link)
			want := 100*ms + time.Second
			if link.Up == 0 { // 4 MB, three times
				want = 300 * ms
			}
			for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() { _, _ = ends[0].Write(make([]byte, size)) }()
				assert.Equal(t, want, after(func() { read(t, ends[1], size) }))
			}
		})
	}
}

func TestLinkIsShared(t *testing.T) {
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

func TestLinkDirectionsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, netwrap.Link{RTT: 100 * ms, Up: 8e6, Down: 16e6})
		began := time.Now()
		write(t, client, strings.Repeat("u", 20_000))
		go func() { _, _ = server.Write(make([]byte, 20_000)) }()
		heard := make(chan time.Duration, 1)
		go func() {
			_, _ = io.ReadFull(client, make([]byte, 20_000))
			heard <- time.Since(began)
		}()
		read(t, server, 20_000)
		assert.Equal(t, 70*ms, time.Since(began))
		assert.Equal(t, 60*ms, <-heard)
	})
}

func TestLinkPipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, netwrap.Link{RTT: 100 * ms})
		go echo(server)
		began := time.Now()
		for range 10 {
			write(t, client, "x")
			time.Sleep(ms)
		}
		for i := range 10 {
			read(t, client, 1)
			assert.Equal(t, 100*ms+time.Duration(i)*ms, time.Since(began), "one RTT each, all at the same time")
		}
	})
}

func TestLinkReadDeadline(t *testing.T) {
	set := map[string]func(net.Conn, time.Time) error{
		"SetDeadline":     net.Conn.SetDeadline,
		"SetReadDeadline": net.Conn.SetReadDeadline,
	}
	for name, setDeadline := range set {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := dialled(t, paced)
				began := time.Now()
				expire := func(want time.Duration, got <-chan result) {
					t.Helper()
					assert.Equal(t, result{"", os.ErrDeadlineExceeded}, <-got)
					assert.Equal(t, want, time.Since(began))
				}
				write(t, server, "hello")
				require.NoError(t, setDeadline(client, began.Add(10*ms)))
				expire(10*ms, startRead(client, 5))
				expire(10*ms, startRead(client, 5))

				require.NoError(t, setDeadline(client, began.Add(time.Second)))
				got := startRead(client, 5)
				synctest.Wait()
				require.NoError(t, setDeadline(client, began.Add(20*ms)))
				expire(20*ms, got)

				require.NoError(t, setDeadline(client, began.Add(30*ms)))
				got = startRead(client, 5)
				synctest.Wait()
				require.NoError(t, setDeadline(client, began.Add(40*ms)))
				expire(40*ms, got)

				require.NoError(t, setDeadline(client, time.Time{}))
				got = startRead(client, 5)
				synctest.Wait()
				require.NoError(t, setDeadline(client, time.Unix(1, 0)))
				expire(40*ms, got)

				require.NoError(t, setDeadline(client, time.Now().Add(ms)))
				got = startRead(client, 5)
				synctest.Wait()
				require.NoError(t, setDeadline(client, time.Time{}))
				assert.Equal(t, result{"hello", nil}, <-got)
				assert.Equal(t, 50*ms+5*us, time.Since(began), "the data keep their time")

				write(t, server, "again")
				time.Sleep(time.Second)
				require.NoError(t, setDeadline(client, time.Now()))
				expire(time.Since(began), startRead(client, 5)) // a deadline that has passed is before data that have come
				require.NoError(t, setDeadline(client, time.Time{}))
				assert.Equal(t, "again", read(t, client, 5))
			})
		})
	}
}

func TestLinkWriteBlocks(t *testing.T) {
	const buffer = 1 << 16 // and what is under way: nothing, without RTT
	link := netwrap.Link{Up: 8e6}
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, link)
		go func() { _, _ = io.Copy(io.Discard, server) }()
		assert.Zero(t, after(func() { write(t, client, strings.Repeat("x", buffer)) }))
		assert.Equal(t, 1500*us, after(func() { write(t, client, "x") }), "until a packet has left")
	})
	set := map[string]func(net.Conn, time.Time) error{
		"SetDeadline":      net.Conn.SetDeadline,
		"SetWriteDeadline": net.Conn.SetWriteDeadline,
	}
	for name, setDeadline := range set {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := dialled(t, link)
				began := time.Now()
				sent := random(100_000)
				require.NoError(t, setDeadline(client, began.Add(time.Second)))
				n, err := client.Write(sent)
				assert.Equal(t, os.ErrDeadlineExceeded, err)
				assert.Equal(t, time.Second, time.Since(began), "the server doesn't read")
				assert.Equal(t, buffer+1500, n, "one packet is in its hands")

				more, err := client.Write([]byte("x"))
				assert.Zero(t, more)
				assert.Equal(t, os.ErrDeadlineExceeded, err)

				require.NoError(t, setDeadline(client, time.Time{}))
				rest := start(func() (string, error) {
					_, err := client.Write(sent[n:])
					return "", err
				})
				synctest.Wait()
				require.Empty(t, rest)
				assert.Equal(t, string(sent), read(t, server, len(sent)), "every byte that Write has said it took, once")
				assert.Equal(t, result{}, <-rest)

				require.NoError(t, setDeadline(client, time.Unix(1, 0)))
				n, err = client.Write([]byte("x"))
				assert.Zero(t, n, "there is room, but no time")
				assert.Equal(t, os.ErrDeadlineExceeded, err)
			})
		})
	}
}

// A write deadline is none for reading, and the reverse; nor does either reach beneath the link.
func TestLinkDeadlinesAreSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		go echo(server)
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(10*ms)))
		write(t, client, "hello")
		assert.Equal(t, "hello", read(t, client, 5))
		require.NoError(t, client.SetDeadline(time.Time{}))
		require.NoError(t, client.SetReadDeadline(time.Now()))
		write(t, client, "again")
		require.NoError(t, client.SetReadDeadline(time.Time{}))
		assert.Equal(t, "again", read(t, client, 5))
	})
}

// A server that doesn't read, and a client that doesn't, leave the other waiting.
func TestLinkBoundsMemory(t *testing.T) {
	for _, link := range []netwrap.Link{{RTT: ms}, {RTT: time.Second, Up: 1e15, Down: 1e15}, {RTT: ms, Up: 8e6, Down: 8e6}} {
		synctest.Test(t, func(t *testing.T) {
			const most = 5 << 20 // 4 MB, and what the goroutines have in hand
			client, server := dialled(t, link)
			for _, c := range []net.Conn{client, server} {
				require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
				n, err := c.Write(make([]byte, 10<<20))
				require.True(t, isTimeout(err), "got %v", err)
				assert.Less(t, n, most)
			}
		})
	}
}

func TestLinkWritesDontMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := linked(t, paced)
		const size = 200_000 // more than the buffer takes at once
		for _, s := range []string{"a", "b", "c"} {
			go func() { _, _ = io.WriteString(client, strings.Repeat(s, size)) }()
		}
		for range 3 {
			got := read(t, server, size)
			assert.Equal(t, strings.Repeat(got[:1], size), got)
		}
	})
}

func TestLinkCloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, netwrap.Link{RTT: 100 * ms, Up: 8e6})
		write(t, server, "unread")
		reading := startRead(client, 10)
		writing := start(func() (string, error) {
			_, err := client.Write(make([]byte, 1<<20))
			return "", err
		})
		synctest.Wait()
		require.Empty(t, writing)
		assert.Zero(t, after(func() {
			require.NoError(t, client.Close())
			assert.Equal(t, result{"", net.ErrClosed}, <-reading)
			assert.Equal(t, result{"", net.ErrClosed}, <-writing)
		}))
		for what, err := range map[string]error{
			"Close":            client.Close(),
			"SetReadDeadline":  client.SetReadDeadline(time.Time{}),
			"SetWriteDeadline": client.SetWriteDeadline(time.Time{}),
		} {
			assert.Equal(t, net.ErrClosed, err, what)
		}
		for range 2 {
			_, err := client.Read(make([]byte, 1))
			assert.Equal(t, net.ErrClosed, err, "what was not read is lost")
			_, err = client.Write([]byte("x"))
			assert.Equal(t, net.ErrClosed, err)
			time.Sleep(time.Hour) // until nothing is left of it
		}
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
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		write(t, client, strings.Repeat("x", 3000))
		require.NoError(t, client.Close())
		write(t, server, "seen by nobody") // and then nobody is there to see
		assert.Equal(t, 53*ms+5*time.Second, after(func() {
			_, err := server.Write([]byte("x"))
			assert.ErrorIs(t, err, io.ErrClosedPipe, "a server that doesn't read")
		}))
	})
	synctest.Test(t, func(t *testing.T) {
		inner, server := net.Pipe()
		closed := make(chan time.Time, 2)
		client := netwrap.Link{RTT: 100 * ms, Up: 8e6}.Wrap(closeConn{inner, closed})
		time.Sleep(time.Hour)
		write(t, client, strings.Repeat("x", 60_000))
		require.NoError(t, client.Close())
		began := time.Now()
		require.NoError(t, server.Close())
		assert.Equal(t, 51*ms+500*us, (<-closed).Sub(began), "a server that has closed: the first packet finds out")
	})
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
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		began := time.Now()
		sent := string(random(3000))
		write(t, server, sent)
		require.NoError(t, server.Close())
		assert.Equal(t, sent[:1500], read(t, client, 1500))
		assert.Equal(t, 51*ms+500*us, time.Since(began))
		assert.Equal(t, sent[1500:], read(t, client, 1500))
		assert.Equal(t, 53*ms, time.Since(began))
		for range 2 {
			_, err := client.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err)
			assert.Equal(t, 53*ms, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) { // and alone
		client, server := dialled(t, paced)
		require.NoError(t, server.Close())
		assert.Equal(t, 50*ms, after(func() {
			_, err := client.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err)
		}))
	})
}

var errReset = errors.New("reset")

// resetConn says "reset" for io.EOF.
type resetConn struct{ net.Conn }

func (c resetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		err = errReset
	}
	return n, err
}

// The client hears of a reset when it has come, reading or writing, and not before the reply that came first.
func TestLinkReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, server := net.Pipe()
		closed := make(chan time.Time, 2)
		client := paced.Wrap(resetConn{closeConn{inner, closed}})
		time.Sleep(time.Hour)
		began := time.Now()
		write(t, server, strings.Repeat("x", 1500))
		require.NoError(t, server.Close())
		synctest.Wait()
		write(t, client, "on its way into the void")
		writing := start(func() (string, error) {
			_, err := client.Write(make([]byte, 1<<20)) // more than is taken
			return "", err
		})
		read(t, client, 1500)
		assert.Equal(t, 51*ms+500*us, time.Since(began))
		assert.Equal(t, result{"", errReset}, <-writing)
		_, err := client.Read(make([]byte, 1))
		assert.Equal(t, errReset, err)
		_, err = client.Write([]byte("x"))
		assert.Equal(t, errReset, err)
		assert.Equal(t, 51*ms+500*us, time.Since(began))
		assert.Empty(t, closed, "that is for the client to do")
		require.NoError(t, client.Close())
		assert.Len(t, closed, 1)
	})
}

// A connection that dies takes the goroutines with it, even if nobody closes: the bubble would fail.
func TestLinkDead(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		inner, server := net.Pipe()
		netwrap.Link{}.Wrap(resetConn{inner})
		_ = server.Close()
	})
}

// A packet that the server refuses is answered by a reset, and that takes its time as well.
func TestLinkRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		began := time.Now()
		require.NoError(t, server.Close()) // for the client the end of one direction, as yet
		write(t, client, strings.Repeat("x", 1500))
		time.Sleep(101 * ms)
		write(t, client, "x")
		time.Sleep(500 * us)
		require.Equal(t, 101*ms+500*us, time.Since(began))
		_, err := client.Write([]byte("x"))
		assert.ErrorIs(t, err, io.ErrClosedPipe)
	})
	synctest.Test(t, func(t *testing.T) {
		inner, server := net.Pipe()
		client := paced.Wrap(refusingConn{inner})
		write(t, client, "x")
		time.Sleep(time.Hour)
		_, err := client.Write([]byte("x"))
		assert.Equal(t, errReset, err)
		write(t, server, "reply")
		assert.Equal(t, "reply", read(t, client, 5), "what had come before it is there to be read")
		require.NoError(t, client.Close())
	})
}

// refusingConn can't be written to.
type refusingConn struct{ net.Conn }

func (refusingConn) Write([]byte) (int, error) { return 0, errReset }

// Whatever the sizes of writes and reads, what arrives is what was sent, and the wire carries not a byte more.
func TestLinkCarriesTheBytes(t *testing.T) {
	for name, link := range map[string]netwrap.Link{
		"paced":     paced,
		"lopsided":  {RTT: 7 * ms, Up: 1e6, Down: 1e9},
		"unlimited": {RTT: 100 * ms},
		"zero":      {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 300_000
				rng := rand.New(rand.NewPCG(1, 2))
				counter := new(netwrap.Counter)
				inner, server := net.Pipe()
				client := link.Wrap(counter.Wrap(inner))
				request, reply := make([]byte, size), make([]byte, size)
				for i := range size {
					request[i], reply[i] = byte(rng.Uint32()), byte(rng.Uint32())
				}
				send := func(c net.Conn, p []byte, seed uint64) {
					rng := rand.New(rand.NewPCG(seed, 0))
					for len(p) > 0 {
						n := min(len(p), 1+rng.IntN(1<<rng.IntN(17)))
						_, err := c.Write(p[:n])
						assert.NoError(t, err)
						p = p[n:]
						time.Sleep(time.Duration(rng.IntN(2)) * ms)
					}
				}
				receive := func(c net.Conn, seed uint64) <-chan result {
					rng := rand.New(rand.NewPCG(seed, 0))
					return start(func() (string, error) {
						var got bytes.Buffer
						for got.Len() < size {
							n, err := io.CopyN(&got, c, int64(min(size-got.Len(), 1+rng.IntN(1<<rng.IntN(17)))))
							if err != nil {
								return "", err
							}
							time.Sleep(time.Duration(n % 2 * int64(ms)))
						}
						return got.String(), nil
					})
				}
				served, heard := receive(server, 3), receive(client, 4)
				go send(client, request, 5)
				go send(server, reply, 6)
				r := <-served
				require.NoError(t, r.err)
				assert.True(t, r.data == string(request))
				r = <-heard
				require.NoError(t, r.err)
				assert.True(t, r.data == string(reply))

				require.NoError(t, client.Close())
				rest, err := io.ReadAll(server)
				require.NoError(t, err)
				assert.Empty(t, rest)
				assert.Equal(t, int64(size), counter.Sent())
				assert.Equal(t, int64(size), counter.Received())
			})
		})
	}
}

// Allocations per call are published; over a link they must be the stack's, as without.
func TestLinkAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := dialled(t, paced)
		go echo(server)
		p := make([]byte, 5000)
		call := func() {
			_ = client.SetDeadline(time.Now().Add(time.Second))
			_, _ = client.Write(p)
			_, _ = io.ReadFull(client, p)
		}
		assert.Zero(t, testing.AllocsPerRun(100, call))
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 1000 {
			call()
		}
		runtime.ReadMemStats(&now)
		assert.Less(t, now.TotalAlloc-before.TotalAlloc, uint64(1<<17), "nor does anything grow: bytes in 1000 calls")
	})
}

func TestLinkAddresses(t *testing.T) {
	dialled, accepted, stop, err := pipe(nil)()
	require.NoError(t, err)
	defer stop()
	c := paced.Wrap(dialled)
	defer c.Close()
	assert.Equal(t, accepted.RemoteAddr(), c.LocalAddr())
	assert.Equal(t, accepted.LocalAddr(), c.RemoteAddr())
}

// Over a real network: timers may be late, never early.
func TestLinkUnderHTTP(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	s := serve(t, nil, nil)
	link := netwrap.Link{RTT: 20 * ms, Up: 1e8, Down: 1e8}
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return link.Wrap(c), nil
	}}
	client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	name := strings.Repeat("x", 100_000) // 8 ms
	for _, least := range []time.Duration{56 * ms, 36 * ms} {
		took := after(func() {
			resp, err := client.Post(s.URL, "text/plain", strings.NewReader(name))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.True(t, string(body) == "hello "+name)
		})
		assert.GreaterOrEqual(t, took, least)
	}
	tr.CloseIdleConnections()
	s.Close()
	goleak.VerifyNone(t, leaks)
}

func TestLinkNettest(t *testing.T) {
	for name, link := range map[string]netwrap.Link{
		"zero":  {},
		"1ms":   {RTT: ms},
		"paced": {RTT: ms, Up: 1e9, Down: 1e9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nettest.TestConn(t, pipe(link.Wrap))
		})
	}
}

// The names are keys of published results: other numbers need another name.
func TestLinks(t *testing.T) {
	lan := float64(latency.LAN.Kbps) * 1024
	want := []netwrap.Link{
		{Name: "lan", RTT: 2 * latency.LAN.Latency, Up: lan, Down: lan},
		{Name: "4g", RTT: 170 * ms, Up: 9e6, Down: 9e6},
		{Name: "3g", RTT: 300 * ms, Up: 768e3, Down: 1.6e6},
	}
	var got []netwrap.Link
	for _, l := range netwrap.Links() {
		found, err := netwrap.FindLink(l.Name)
		require.NoError(t, err)
		assert.Equal(t, l, found)
		assert.Contains(t, l.Source, "https://", l.Name)
		l.Source = ""
		got = append(got, l)
	}
	assert.Equal(t, want, got)

	_, err := netwrap.FindLink("5g")
	assert.EqualError(t, err, `rpcbench: unknown link "5g", the links are lan, 4g, 3g`)
}
