package netwrap_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/netwrap"
)

// serve starts a server that greets whoever the body names, behind gate if there is one.
func serve(t *testing.T, gate *netwrap.Gate, seen func(name string)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if seen != nil {
			seen(string(name))
		}
		_, _ = io.WriteString(w, "hello "+string(name))
	}))
	if gate != nil {
		s.Listener = &netwrap.Listener{Listener: s.Listener, Wrap: gate.Wrap}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// caller returns a function that posts a name and returns the reply. It holds at most one connection, seen by tap if
// there is one.
func caller(t *testing.T, s *httptest.Server, tap *netwrap.Tap) func(ctx context.Context, name string) (string, error) {
	t.Helper()
	tr := &http.Transport{MaxConnsPerHost: 1, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || tap == nil {
			return c, err
		}
		return tap.Wrap(c), nil
	}}
	t.Cleanup(tr.CloseIdleConnections)
	client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	return func(ctx context.Context, name string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(name))
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
}

func TestTapRecordsEachConnection(t *testing.T) {
	tap := new(netwrap.Tap)
	var wg sync.WaitGroup
	for i := range 4 {
		bare, tapped := pair(t, tap.Wrap)
		wg.Go(func() { // both directions at once
			for range 100 {
				write(t, tapped, strings.Repeat("s", i+1))
				read(t, bare, i+1)
			}
		})
		wg.Go(func() {
			for range 100 {
				write(t, bare, "r")
				read(t, tapped, 1)
				tap.Conns()[i].Sent()
			}
		})
	}
	wg.Wait()
	conns := tap.Conns()
	require.Len(t, conns, 4)
	for i, c := range conns {
		assert.Equal(t, strings.Repeat("s", 100*(i+1)), string(c.Sent()), "in the order they were wrapped")
		assert.Equal(t, strings.Repeat("r", 100), string(c.Received()))
	}
}

// Of goroutines that write at once, the record has the order of the wire; and of those that read.
func TestTapRecordsOrder(t *testing.T) {
	var mu sync.Mutex
	var wire []byte
	writer := new(netwrap.Tap)
	slow := writer.Wrap(stubConn{write: func(p []byte) (int, error) {
		runtime.Gosched() // lets another overtake, were that possible
		mu.Lock()
		defer mu.Unlock()
		wire = append(wire, p...)
		return len(p), nil
	}})
	var writers sync.WaitGroup
	for _, s := range []string{"a", "b", "c"} {
		writers.Go(func() {
			for range 1000 {
				write(t, slow, s)
			}
		})
	}
	writers.Wait()
	assert.Len(t, wire, 3000)
	assert.Equal(t, string(wire), string(writer.Conns()[0].Sent()))

	reader := new(netwrap.Tap)
	bare, tapped := pair(t, reader.Wrap)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { _, _ = io.Copy(io.Discard, iotest.OneByteReader(tapped)) })
	}
	_, err := bare.Write(wire)
	require.NoError(t, err)
	require.NoError(t, bare.Close())
	readers.Wait()
	assert.Equal(t, string(wire), string(reader.Conns()[0].Received()))
}

func TestTapReturnsCopies(t *testing.T) {
	tap := new(netwrap.Tap)
	bare, tapped := pair(t, tap.Wrap)
	write(t, tapped, "sent")
	write(t, bare, "received")
	read(t, tapped, 8)
	c := tap.Conns()[0]
	clear(c.Sent())
	clear(c.Received())
	clear(tap.Conns())
	assert.Equal(t, "sent", string(tap.Conns()[0].Sent()))
	assert.Equal(t, "received", string(c.Received()))
}

func TestReplace(t *testing.T) {
	tap := new(netwrap.Tap)
	call := caller(t, serve(t, nil, nil), tap)
	tap.SetFilter(netwrap.Replace([]byte("alice"), []byte("carol")))
	reply, err := call(t.Context(), "alice")
	require.NoError(t, err)
	assert.Equal(t, "hello carol", reply)
	assert.Contains(t, string(tap.Conns()[0].Sent()), "alice")
	assert.Contains(t, string(tap.Conns()[0].Received()), "hello alice", "the record is of the wire")

	tap.SetFilter(nil)
	reply, err = call(t.Context(), "alice")
	require.NoError(t, err)
	assert.Equal(t, "hello alice", reply)
	assert.Len(t, tap.Conns(), 1, "the connection lives on")
}

func TestCutReply(t *testing.T) {
	tap := new(netwrap.Tap)
	call := caller(t, serve(t, nil, nil), tap)
	_, err := call(t.Context(), "alice")
	require.NoError(t, err)
	whole := len(tap.Conns()[0].Received())

	tap.SetFilter(netwrap.Cut(whole - 3))
	reply, err := call(t.Context(), "alice")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "hello al", reply)
	assert.Len(t, tap.Conns()[0].Received(), 2*whole, "the record is of the wire")

	reply, err = call(t.Context(), "alice")
	require.NoError(t, err, "the connection after the cut is left alone")
	assert.Equal(t, "hello alice", reply)
	assert.Len(t, tap.Conns(), 2)
}

func TestCutClosesConnection(t *testing.T) {
	tap := new(netwrap.Tap)
	bare, tapped := pair(t, tap.Wrap)
	tap.SetFilter(netwrap.Cut(7))
	write(t, bare, "four")
	assert.Equal(t, "four", read(t, tapped, 4))
	write(t, bare, "more")
	p := make([]byte, 2)
	var got []byte
	for range 10 { // in pieces smaller than what is left
		n, err := tapped.Read(p)
		got = append(got, p[:n]...)
		if n == 0 {
			require.Equal(t, io.EOF, err)
		}
	}
	assert.Equal(t, "mor", string(got), "up to the offset, then nothing but io.EOF")
	_, err := tapped.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = bare.Read(p)
	require.Error(t, err, "the peer sees the end too")
	assert.NoError(t, tapped.Close(), "the owner need not know who closed it")
}

func TestReplayReply(t *testing.T) {
	tap := new(netwrap.Tap)
	call := caller(t, serve(t, nil, nil), tap)
	_, err := call(t.Context(), "alice")
	require.NoError(t, err)
	recorded := tap.Conns()[0].Received()

	tap.SetFilter(netwrap.Replay(recorded))
	reply, err := call(t.Context(), "bobby")
	require.NoError(t, err)
	assert.Equal(t, "hello alice", reply)
	assert.Contains(t, string(tap.Conns()[0].Received()), "hello bobby", "the record is of the wire")

	tap.SetFilter(nil)
	reply, err = call(t.Context(), "bobby")
	require.NoError(t, err)
	assert.Equal(t, "hello bobby", reply)
	assert.Len(t, tap.Conns(), 1)
}

// What a filter returns may be longer than the reader's buffer; and nothing, which is no end.
func TestReplayDiscardsLaterBytes(t *testing.T) {
	tap := new(netwrap.Tap)
	bare, tapped := pair(t, tap.Wrap)
	tap.SetFilter(netwrap.Replay([]byte("much longer than what came")))
	write(t, bare, "x")
	assert.Equal(t, "much longer than what came", read(t, iotestConn{tapped}, 26))

	write(t, bare, "discarded")
	require.NoError(t, tapped.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := tapped.Read(make([]byte, 9))
	require.True(t, isTimeout(err), "got %v: the reader waits on, and its deadline holds", err)
	assert.Equal(t, "xdiscarded", string(tap.Conns()[0].Received()))
	require.NoError(t, tapped.SetReadDeadline(time.Time{}))

	otherBare, otherTapped := pair(t, tap.Wrap)
	write(t, otherBare, "other")
	assert.Equal(t, "other", read(t, otherTapped, 5), "another connection is left alone")

	tap.SetFilter(nil)
	write(t, bare, "real")
	assert.Equal(t, "real", read(t, tapped, 4))
}

// iotestConn reads a byte at a time.
type iotestConn struct{ net.Conn }

func (c iotestConn) Read(p []byte) (int, error) { return iotest.OneByteReader(c.Conn).Read(p) }

func TestFilterErrorIsTheConnectionsOwn(t *testing.T) {
	tap := new(netwrap.Tap)
	bare, tapped := pair(t, tap.Wrap)
	otherBare, otherTapped := pair(t, tap.Wrap)
	boom := errors.New("boom")
	tap.SetFilter(func(*netwrap.TapConn, []byte) ([]byte, error) { return []byte("last words"), boom })
	write(t, bare, "x")
	assert.Equal(t, "last words", read(t, tapped, 10))
	tap.SetFilter(nil)
	for range 2 {
		_, err := tapped.Read(make([]byte, 1))
		require.Equal(t, boom, err, "for ever, filter or not")
	}
	write(t, otherBare, "fine")
	assert.Equal(t, "fine", read(t, otherTapped, 4))
}

// A filter that appends to what it is given must not write into the reader's buffer behind it.
func TestFilterStaysWithinItsBytes(t *testing.T) {
	tap := new(netwrap.Tap)
	bare, tapped := pair(t, tap.Wrap)
	tap.SetFilter(func(_ *netwrap.TapConn, p []byte) ([]byte, error) { return append(p, "behind"...), nil })
	write(t, bare, "ab")
	buf := []byte("--------------")
	n, err := tapped.Read(buf[:4])
	require.NoError(t, err)
	assert.Equal(t, "abbe----------", string(buf))
	assert.Equal(t, 4, n)
	assert.Equal(t, "hind", read(t, tapped, 4))
}

// Filters keep state without locks, and whoever has replaced one may read it: the race detector would tell.
func TestFilterCallsNeverOverlap(t *testing.T) {
	const conns, bytes = 4, 200
	tap := new(netwrap.Tap)
	var wg sync.WaitGroup
	count := 0
	tap.SetFilter(func(_ *netwrap.TapConn, p []byte) ([]byte, error) {
		count += len(p)
		return p, nil
	})
	for range conns {
		bare, tapped := pair(t, tap.Wrap)
		wg.Go(func() {
			for range bytes {
				write(t, bare, "x")
				read(t, tapped, 1)
			}
		})
	}
	wg.Wait()
	tap.SetFilter(nil)
	assert.Equal(t, conns*bytes, count)
}
