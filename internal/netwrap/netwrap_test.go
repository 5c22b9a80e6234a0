package netwrap_test

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/rpcbench/rpcbench/internal/netwrap"
)

// pipe makes connections over loopback TCP with both ends wrapped; nil leaves them bare.
func pipe(wrap func(net.Conn) net.Conn) nettest.MakePipe {
	return func() (dialed, accepted net.Conn, stop func(), err error) {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		ln := &netwrap.Listener{Listener: inner, Wrap: wrap}
		defer ln.Close()
		if dialed, err = net.Dial("tcp", ln.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		if wrap != nil {
			dialed = wrap(dialed)
		}
		if accepted, err = ln.Accept(); err != nil {
			dialed.Close()
			return nil, nil, nil, err
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
	return bare, wrap(accepted)
}

func read(t *testing.T, c net.Conn, n int) string {
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

func TestNettest(t *testing.T) {
	wraps := []struct {
		name string
		wrap func() func(net.Conn) net.Conn
	}{
		{"Listener", func() func(net.Conn) net.Conn { return nil }},
		{"Counter", func() func(net.Conn) net.Conn { return new(netwrap.Counter).Wrap }},
		{"Tap", func() func(net.Conn) net.Conn { return new(netwrap.Tap).Wrap }},
		{"Tap/filtering", func() func(net.Conn) net.Conn {
			tap := new(netwrap.Tap)
			tap.SetFilter(netwrap.Replace(random(16), random(16)))
			return tap.Wrap
		}},
		{"Gate", func() func(net.Conn) net.Conn { return new(netwrap.Gate).Wrap }},
		{"Gate/waiting", func() func(net.Conn) net.Conn {
			gate := new(netwrap.Gate)
			gate.Hold(random(16))
			return gate.Wrap
		}},
		{"all", func() func(net.Conn) net.Conn {
			counter, tap, gate := new(netwrap.Counter), new(netwrap.Tap), new(netwrap.Gate)
			return func(c net.Conn) net.Conn { return gate.Wrap(tap.Wrap(counter.Wrap(c))) }
		}},
	}
	for _, w := range wraps {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			nettest.TestConn(t, pipe(w.wrap()))
		})
	}
}

func TestListenerCounts(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln := &netwrap.Listener{Listener: inner}
	for i := range int64(3) {
		assert.Equal(t, i, ln.Accepted())
		dialed, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer dialed.Close()
		c, err := ln.Accept()
		require.NoError(t, err)
		defer c.Close()
		assert.IsType(t, (*net.TCPConn)(nil), c, "without Wrap nothing stands in the timed path")
	}
	require.NoError(t, ln.Close())
	_, err = ln.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, int64(3), ln.Accepted(), "a failed Accept is no connection")
}

func TestListenerWraps(t *testing.T) {
	counter := new(netwrap.Counter)
	dialed, accepted, stop, err := pipe(counter.Wrap)()
	require.NoError(t, err)
	defer stop()
	write(t, dialed, "ping")
	assert.Equal(t, "ping", read(t, accepted, 4))
	assert.Equal(t, int64(4), counter.Received(), "the accepted end is wrapped")
}

func TestCounterCountsWhatReadGot(t *testing.T) {
	counter := new(netwrap.Counter)
	bare, counted := pair(t, counter.Wrap)
	write(t, bare, "ping")
	require.NoError(t, bare.Close())
	got, err := io.ReadAll(counted) // into a buffer that is longer
	require.NoError(t, err)
	assert.Equal(t, "ping", string(got))
	assert.Equal(t, int64(4), counter.Received())
}

func TestCounterAddsUpConnections(t *testing.T) {
	const conns, rounds = 4, 50
	counter := new(netwrap.Counter)
	var wg sync.WaitGroup
	for range conns {
		bare, counted := pair(t, counter.Wrap)
		wg.Go(func() {
			for range rounds {
				write(t, counted, "four!")
				read(t, bare, 5)
				write(t, bare, "abc")
				read(t, counted, 3)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, int64(conns*rounds*5), counter.Sent())
	assert.Equal(t, int64(conns*rounds*3), counter.Received())
}

// stubConn writes by calling a function.
type stubConn struct {
	net.Conn
	write func(p []byte) (int, error)
}

func (c stubConn) Write(p []byte) (int, error) { return c.write(p) }

func TestFailedWriteCountsWhatItWrote(t *testing.T) {
	counter, tap := new(netwrap.Counter), new(netwrap.Tap)
	boom := errors.New("boom")
	c := tap.Wrap(counter.Wrap(stubConn{write: func([]byte) (int, error) { return 3, boom }}))
	for range 2 {
		n, err := c.Write([]byte("request"))
		assert.Equal(t, 3, n)
		require.Equal(t, boom, err)
	}
	assert.Equal(t, int64(6), counter.Sent())
	assert.Equal(t, "reqreq", string(tap.Conns()[0].Sent()))
}

// A peer may answer before Write has returned.
func TestRequestCountsBeforeItsReply(t *testing.T) {
	counter, tap := new(netwrap.Counter), new(netwrap.Tap)
	var counted int64
	var recorded []byte
	c := tap.Wrap(counter.Wrap(stubConn{write: func(p []byte) (int, error) {
		counted, recorded = counter.Sent(), tap.Conns()[0].Sent()
		return len(p), nil
	}}))
	write(t, c, "request")
	assert.Equal(t, int64(7), counted)
	assert.Equal(t, "request", string(recorded))
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
