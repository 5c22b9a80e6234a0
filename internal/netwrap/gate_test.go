package netwrap_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/netwrap"
)

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

// wait bounds what a broken gate would make hang.
func wait[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "waited 10 seconds for nothing")
	}
	return v
}

func TestGateHoldsRequest(t *testing.T) {
	gate := new(netwrap.Gate)
	var calls atomic.Int64
	call := caller(t, serve(t, gate, func(string) { calls.Add(1) }), nil)
	_, err := call(t.Context(), "first")
	require.NoError(t, err, "an open gate is no gate")

	held := gate.Hold(nil)
	reply := start(func() (string, error) { return call(t.Context(), "second") })
	wait(t, held)
	assert.Equal(t, int64(1), calls.Load(), "the request is there and the handler has not seen it")
	gate.Release()
	assert.Equal(t, result{"hello second", nil}, wait(t, reply))
	assert.Equal(t, int64(2), calls.Load())

	_, err = call(t.Context(), "third")
	require.NoError(t, err, "released is open")
}

func TestGateCancelWhileHeld(t *testing.T) {
	gate := new(netwrap.Gate)
	call := caller(t, serve(t, gate, nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held := gate.Hold(nil)
	reply := start(func() (string, error) { return call(ctx, "alice") })
	wait(t, held)
	cancel()
	require.ErrorIs(t, wait(t, reply).err, context.Canceled)
	gate.Release()
	_, err := call(t.Context(), "bobby")
	require.NoError(t, err)
}

func TestGateDrop(t *testing.T) {
	gate := new(netwrap.Gate)
	var names []string
	call := caller(t, serve(t, gate, func(name string) { names = append(names, name) }), nil)
	held := gate.Hold(nil)
	reply := start(func() (string, error) { return call(t.Context(), "alice") })
	wait(t, held)
	gate.Drop()
	require.ErrorIs(t, wait(t, reply).err, io.EOF)
	_, err := call(t.Context(), "bobby")
	require.NoError(t, err, "dropped is open")
	assert.Equal(t, []string{"bobby"}, names, "what was dropped never arrives")
}

func TestGateDropSparesTheRest(t *testing.T) {
	gate := new(netwrap.Gate)
	bare, gated := pair(t, gate.Wrap)
	idleBare, idle := pair(t, gate.Wrap)
	held := gate.Hold(nil)
	got := startRead(gated, 9)
	write(t, bare, "dropped")
	wait(t, held)
	gate.Drop()
	require.ErrorIs(t, wait(t, got).err, net.ErrClosed)
	_, err := bare.Read(make([]byte, 1))
	require.Error(t, err, "the peer sees it closed")
	write(t, idleBare, "spared")
	assert.Equal(t, "spared", read(t, idle, 6))
}

func TestGateDropsAllThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := new(netwrap.Gate)
		gate.Hold(nil)
		var got []<-chan result
		for range 50 {
			client, server := net.Pipe()
			got = append(got, startRead(gate.Wrap(server), 7))
			write(t, client, "dropped")
		}
		synctest.Wait() // until every Read waits
		gate.Drop()
		for _, g := range got {
			require.Equal(t, result{"", net.ErrClosed}, <-g)
		}
	})
}

func TestGateServerCloseWhileHeld(t *testing.T) {
	gate := new(netwrap.Gate)
	s := serve(t, gate, nil)
	call := caller(t, s, nil)
	held := gate.Hold(nil)
	reply := start(func() (string, error) { return call(t.Context(), "alice") })
	wait(t, held)
	require.NoError(t, s.Config.Close())
	assert.Error(t, wait(t, reply).err)
	s.Close() // waits for the connections' goroutines
}

func TestGateCloseEndsRead(t *testing.T) {
	gate := new(netwrap.Gate)
	bare, gated := pair(t, gate.Wrap)
	held := gate.Hold(nil)
	got := startRead(gated, 9)
	write(t, bare, "x")
	wait(t, held)
	require.NoError(t, gated.Close())
	assert.Equal(t, result{"", net.ErrClosed}, wait(t, got))
	gate.Release()
	_, err := gated.Read(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
}

// The marker waits for the request itself: what comes before it passes, and so do other connections.
func TestGateMarker(t *testing.T) {
	gate := new(netwrap.Gate)
	bare, gated := pair(t, gate.Wrap)
	otherBare, other := pair(t, gate.Wrap)
	held := gate.Hold([]byte("alice"))
	write(t, bare, "window update")
	assert.Equal(t, "window update", read(t, gated, 13))
	select {
	case <-held:
		t.Error("held without the marker")
	default:
	}
	got := startRead(gated, 20)
	write(t, bare, "create alice now")
	wait(t, held)
	write(t, otherBare, "create bobby")
	assert.Equal(t, "create bobby", read(t, other, 12))
	assert.Empty(t, got)
	gate.Release()
	assert.Equal(t, result{"create alice now", nil}, wait(t, got))
}

func TestGateHoldsEveryConnection(t *testing.T) {
	gate := new(netwrap.Gate)
	held := gate.Hold(nil)
	var got []<-chan result
	for range 3 {
		bare, gated := pair(t, gate.Wrap)
		// Held is closed by the first, so the others show by their deadline that they are held.
		require.NoError(t, gated.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		write(t, bare, "x")
		got = append(got, startRead(gated, 1))
	}
	wait(t, held)
	for _, g := range got {
		assert.Equal(t, result{"", os.ErrDeadlineExceeded}, wait(t, g))
	}
}

func TestGateKeepsDataOverDeadline(t *testing.T) {
	gate := new(netwrap.Gate)
	bare, gated := pair(t, gate.Wrap)
	held := gate.Hold(nil)
	p := make([]byte, 6)
	got := start(func() (string, error) {
		n, err := gated.Read(p)
		return string(p[:n]), err
	})
	write(t, bare, "abcdef")
	wait(t, held)
	require.NoError(t, gated.SetReadDeadline(time.Unix(1, 0)))
	r := wait(t, got)
	assert.Equal(t, "", r.data)
	require.True(t, isTimeout(r.err), "a past deadline ends a Read that is held: %v", r.err)
	clear(p) // the buffer is the reader's again

	gate.Release()
	_, err := gated.Read(make([]byte, 6))
	require.True(t, isTimeout(err), "it holds for kept data too: %v", err)
	require.NoError(t, gated.SetDeadline(time.Time{}))
	assert.Equal(t, "ab", read(t, gated, 2))

	held = gate.Hold(nil)
	got = startRead(gated, 6)
	wait(t, held) // what was left of the first hold
	gate.Release()
	assert.Equal(t, result{"cdef", nil}, wait(t, got))
	write(t, bare, "gh")
	assert.Equal(t, "gh", read(t, gated, 2))
}

func TestGateDropsKeptData(t *testing.T) {
	gate := new(netwrap.Gate)
	bare, gated := pair(t, gate.Wrap)
	gate.Hold(nil)
	write(t, bare, "x")
	require.NoError(t, gated.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := gated.Read(make([]byte, 1))
	require.True(t, isTimeout(err), "got %v", err)
	gate.Drop()
	_, err = gated.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed, "held, though nobody was reading")
}

// In a bubble time stands still until all wait, so deadlines can be told to the nanosecond. net.Pipe can be in one.
func TestGateDeadlines(t *testing.T) {
	set := map[string]func(net.Conn, time.Time) error{
		"SetDeadline":     net.Conn.SetDeadline,
		"SetReadDeadline": net.Conn.SetReadDeadline,
	}
	for name, setDeadline := range set {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				gate := new(netwrap.Gate)
				gated := gate.Wrap(server)
				began := time.Now()
				held := gate.Hold(nil)
				got := startRead(gated, 5)
				write(t, client, "hello")
				<-held
				require.NoError(t, setDeadline(gated, began.Add(time.Second)))
				synctest.Wait()
				require.NoError(t, setDeadline(gated, began.Add(time.Minute)))
				assert.Equal(t, result{"", os.ErrDeadlineExceeded}, <-got)
				assert.Equal(t, time.Minute, time.Since(began), "the later deadline replaces the earlier")

				require.NoError(t, setDeadline(gated, time.Now().Add(time.Second)))
				got = startRead(gated, 5)
				synctest.Wait()
				require.NoError(t, setDeadline(gated, time.Time{}))
				<-time.After(time.Hour)
				require.Empty(t, got, "without deadline it waits on")
				gate.Release()
				assert.Equal(t, result{"hello", nil}, <-got)

				require.NoError(t, gated.SetDeadline(time.Now().Add(time.Second)))
				_, err := gated.Write([]byte("nobody reads"))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded, "SetDeadline is for writing too")
				require.NoError(t, gated.Close())
				require.NoError(t, client.Close())
			})
		})
	}
}

// While a handler runs, net/http reads one byte ahead to see the client go, and aborts that by a past deadline when the
// handler is done. If the byte is held then, it must neither delay the reply nor be lost.
func TestGateUnderBackgroundRead(t *testing.T) {
	gate := new(netwrap.Gate)
	running, finish := make(chan struct{}), make(chan struct{})
	s := serve(t, gate, func(name string) {
		if name == "first" {
			close(running)
			<-finish
		}
	})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	replies := bufio.NewReader(c)
	reply := func() string {
		resp, err := http.ReadResponse(replies, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	write(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirst")
	wait(t, running)
	held := gate.Hold(nil)
	write(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nsecond")
	wait(t, held)
	close(finish)
	assert.Equal(t, "hello first", reply())
	gate.Release()
	assert.Equal(t, "hello second", reply())
}

// Whatever the order of holding and releasing, every byte arrives once and in order.
func TestGateLosesNothing(t *testing.T) {
	gate := new(netwrap.Gate)
	var wg sync.WaitGroup
	for range 3 {
		bare, gated := pair(t, gate.Wrap)
		sent := random(1 << 18)
		wg.Go(func() {
			for p := sent; len(p) > 0; p = p[min(1000, len(p)):] {
				write(t, bare, string(p[:min(1000, len(p))]))
			}
			assert.NoError(t, bare.Close())
		})
		wg.Go(func() {
			var got []byte
			p := make([]byte, 700)
			for {
				n, err := gated.Read(p)
				got = append(got, p[:n]...)
				if isTimeout(err) {
					err = gated.SetReadDeadline(time.Now().Add(time.Millisecond))
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if !assert.NoError(t, err) {
					return
				}
				if len(got)%3 == 0 {
					_ = gated.SetReadDeadline(time.Now().Add(time.Millisecond))
				}
			}
			assert.True(t, string(sent) == string(got), "sent %d bytes, got %d", len(sent), len(got))
		})
	}
	done := make(chan struct{})
	var toggling sync.WaitGroup
	toggling.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-gate.Hold(nil):
				gate.Release()
			}
		}
	})
	wg.Wait()
	close(done)
	toggling.Wait()
	gate.Release()
}
