package tap_test

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A wrapper makes the Wrap method of a new value.
type wrapper struct {
	name string
	wrap func() func(net.Conn) net.Conn
}

func wrappers() []wrapper {
	return []wrapper{
		{"Counter", func() func(net.Conn) net.Conn { return new(tap.Counter).Wrap }},
		{"Tap that filters", func() func(net.Conn) net.Conn {
			recorder := new(tap.Tap)
			return func(c net.Conn) net.Conn {
				defer recorder.SetFilter(tap.Replace(random(16), random(16)))
				return recorder.Wrap(c)
			}
		}},
		{"Gate that waits", func() func(net.Conn) net.Conn {
			gate := new(tap.Gate)
			gate.Hold(random(16))
			return gate.Wrap
		}},
		{"Link", func() func(net.Conn) net.Conn { return tap.Link{RTT: 100 * us, Rate: 1e10}.Shared() }},
		{"all", func() func(net.Conn) net.Conn {
			counter, recorder, gate := new(tap.Counter), new(tap.Tap), new(tap.Gate)
			return func(c net.Conn) net.Conn { return tap.Link{}.Shared()(gate.Wrap(recorder.Wrap(counter.Wrap(c)))) }
		}},
	}
}

// Nettest covers deadlines, concurrent use and large payloads.
func TestNettest(t *testing.T) {
	for _, w := range wrappers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			nettest.TestConn(t, pipe(w.wrap()))
		})
	}
}

// A wrapped connection ends as a TCP connection does.
func TestEnds(t *testing.T) {
	for _, w := range wrappers() {
		t.Run(w.name, func(t *testing.T) {
			t.Run("what was written before Close arrives", func(t *testing.T) {
				bare, wrapped := pair(t, w.wrap())
				sent := strings.Repeat("0123456789", 100_000)
				got := start(func() (string, error) {
					data, err := io.ReadAll(bare)
					return string(data), err
				})
				write(t, wrapped, sent)
				require.NoError(t, wrapped.Close())
				r := wait(t, got)
				require.NoError(t, r.err)
				require.True(t, r.data == sent, "%d bytes of %d", len(r.data), len(sent))
			})
			t.Run("its own Close gives net.ErrClosed", func(t *testing.T) {
				bare, wrapped := pair(t, w.wrap())
				waiting := startRead(wrapped, 1)
				write(t, wrapped, "x")
				read(t, bare, 1) // so the connection works, and its Read waits
				require.NoError(t, wrapped.Close())
				assert.ErrorIs(t, wait(t, waiting).err, net.ErrClosed)
				for range 2 {
					_, err := wrapped.Read(make([]byte, 1))
					assert.ErrorIs(t, err, net.ErrClosed)
					_, err = wrapped.Write([]byte("x"))
					assert.ErrorIs(t, err, net.ErrClosed)
					assert.ErrorIs(t, wrapped.SetReadDeadline(time.Time{}), net.ErrClosed)
					assert.ErrorIs(t, wrapped.SetWriteDeadline(time.Time{}), net.ErrClosed)
				}
			})
			t.Run("the peer's EOF comes after its data", func(t *testing.T) {
				bare, wrapped := pair(t, w.wrap())
				write(t, bare, "last words")
				require.NoError(t, bare.Close())
				got, err := io.ReadAll(wrapped)
				require.NoError(t, err)
				assert.Equal(t, "last words", string(got))
				_, err = wrapped.Read(make([]byte, 1))
				assert.Equal(t, io.EOF, err)
				assert.NoError(t, wrapped.SetDeadline(time.Now()), "nothing is closed")
				_, err = wrapped.Read(make([]byte, 1))
				assert.Error(t, err)
				require.NoError(t, wrapped.Close())
				_, err = wrapped.Read(make([]byte, 1))
				assert.ErrorIs(t, err, net.ErrClosed)
			})
			t.Run("the peer's reset comes as itself", func(t *testing.T) {
				bare, inner := pair(t, func(c net.Conn) net.Conn { return resetConn{c} })
				wrapped := w.wrap()(inner)
				defer wrapped.Close()
				write(t, bare, "reply")
				require.NoError(t, bare.Close())
				assert.Equal(t, "reply", read(t, wrapped, 5), "it has come before")
				for range 2 {
					_, err := wrapped.Read(make([]byte, 1))
					assert.Equal(t, errReset, err)
				}
				for n := 0; ; n++ {
					if _, err := wrapped.Write([]byte("x")); err != nil {
						assert.NotErrorIs(t, err, net.ErrClosed)
						assert.NotErrorIs(t, err, io.ErrClosedPipe)
						break
					}
					require.Less(t, n, 1<<20, "a Write fails sooner or later")
				}
			})
		})
	}
}

// Who knows the reply has the request on record.
func TestRequestIsRecordedBeforeItsReply(t *testing.T) {
	counter, recorder := new(tap.Counter), new(tap.Tap)
	var counted int64
	var recorded []byte
	inner, _ := net.Pipe()
	c := recorder.Wrap(counter.Wrap(stubConn{inner, func(p []byte) (int, error) {
		counted = counter.Sent.Load()
		recorded, _ = recorder.Conns()[0].Bytes()
		return len(p), nil
	}}))
	defer c.Close()
	write(t, c, "request")
	assert.Equal(t, int64(7), counted)
	assert.Equal(t, "request", string(recorded))
}

// pipe makes connections over loopback TCP with both ends wrapped; nil leaves them bare.
func pipe(wrap func(net.Conn) net.Conn) nettest.MakePipe {
	return func() (dialed, accepted net.Conn, stop func(), err error) {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		defer inner.Close()
		if dialed, err = net.Dial("tcp", inner.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		if accepted, err = inner.Accept(); err != nil {
			dialed.Close()
			return nil, nil, nil, err
		}
		if wrap != nil {
			dialed, accepted = wrap(dialed), wrap(accepted)
		}
		return dialed, accepted, func() { dialed.Close(); accepted.Close() }, nil
	}
}

// pair returns the two ends of a TCP connection, of which only the second is wrapped.
func pair(t *testing.T, wrap func(net.Conn) net.Conn) (bare, wrapped net.Conn) {
	t.Helper()
	bare, accepted, stop, err := pipe(nil)()
	require.NoError(t, err)
	t.Cleanup(stop)
	wrapped = wrap(accepted)
	t.Cleanup(func() { wrapped.Close() })
	return bare, wrapped
}

func read(t *testing.T, c io.Reader, n int) string {
	t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(c, p)
	require.NoError(t, err)
	return string(p)
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	_, err := io.WriteString(c, s)
	require.NoError(t, err)
}

func random(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.Read(p) // never fails
	return p
}

type result struct {
	data string
	err  error
}

// start runs f on a goroutine of its own.
func start(f func() (string, error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		data, err := f()
		done <- result{data, err}
	}()
	return done
}

// startRead reads once, up to n bytes.
func startRead(c net.Conn, n int) <-chan result {
	return start(func() (string, error) {
		p := make([]byte, n)
		n, err := c.Read(p)
		return string(p[:n]), err
	})
}

// wait bounds what a broken relay would make hang.
func wait[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "waited 10 seconds for nothing")
	}
	return v
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// stubConn writes by calling a function.
type stubConn struct {
	net.Conn
	write func(p []byte) (int, error)
}

func (c stubConn) Write(p []byte) (int, error) { return c.write(p) }

var errReset = errors.New("reset")

// resetConn says "reset" for io.EOF, and when its peer has gone.
type resetConn struct{ net.Conn }

func (c resetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		err = errReset
	}
	return n, err
}
