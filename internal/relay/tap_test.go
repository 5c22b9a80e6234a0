package relay_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/relay"
)

// serve starts a server that greets whoever the body names, behind gate if there is one.
func serve(t *testing.T, gate *relay.Gate, seen func(name string)) *httptest.Server {
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
		s.Listener = &relay.Listener{Listener: s.Listener, Wrap: gate.Wrap}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// caller returns a function that posts a name and returns the reply. It holds at most one connection, seen by tap if
// there is one.
func caller(t *testing.T, s *httptest.Server, tap *relay.Tap) func(ctx context.Context, name string) (string, error) {
	t.Helper()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || tap == nil {
			return c, err
		}
		return tap.Wrap(c), nil
	}
	tr := &http.Transport{MaxConnsPerHost: 1, DialContext: dial}
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
	tap := new(relay.Tap)
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
				sent, received := tap.Conns()[i].Bytes()
				clear(sent) // a copy
				clear(received)
				clear(tap.Conns())
			}
		})
	}
	wg.Wait()
	conns := tap.Conns()
	require.Len(t, conns, 4)
	for i, c := range conns {
		sent, received := c.Bytes()
		assert.Equal(t, strings.Repeat("s", 100*(i+1)), string(sent), "in the order they were wrapped")
		assert.Equal(t, strings.Repeat("r", 100), string(received))
	}
}

// Of goroutines that write at once, the record has the order of the wire.
func TestTapRecordsOrder(t *testing.T) {
	tap := new(relay.Tap)
	bare, tapped := pair(t, tap.Wrap)
	var writers sync.WaitGroup
	for _, s := range []string{"a", "b", "c"} {
		writers.Go(func() {
			for range 1000 {
				write(t, tapped, s)
			}
		})
	}
	wire := read(t, bare, 3000)
	writers.Wait()
	sent, _ := tap.Conns()[0].Bytes()
	assert.Equal(t, wire, string(sent))
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter func(earlier []byte) relay.Filter
		reply  string
		err    error
		conns  int // after one call more, with the same filter
		next   string
	}{
		{"none", func([]byte) relay.Filter { return nil }, "hello bobby", nil, 1, "hello bobby"},
		{"Replace", func([]byte) relay.Filter { return relay.Replace([]byte("bobby"), []byte("carol")) },
			"hello carol", nil, 1, "hello carol"},
		{"Cut, but not the connection after it", func(p []byte) relay.Filter { return relay.Cut(len(p) - 3) },
			"hello bo", io.ErrUnexpectedEOF, 2, "hello bobby"},
		{"Replay", relay.Replay, "hello alice", nil, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tap := new(relay.Tap)
			call := caller(t, serve(t, nil, nil), tap)
			_, err := call(t.Context(), "alice")
			require.NoError(t, err)
			_, earlier := tap.Conns()[0].Bytes()
			tap.SetFilter(c.filter(earlier))
			reply, err := call(t.Context(), "bobby")
			require.ErrorIs(t, err, c.err)
			assert.Equal(t, c.reply, reply)
			_, received := tap.Conns()[0].Bytes()
			assert.Contains(t, string(received[len(earlier):]), "hello bobby", "the record is of the wire")
			assert.Len(t, received, 2*len(earlier), "all of it")
			if c.next == "" { // Replay discards the next reply
				tap.SetFilter(nil)
				c.next = "hello bobby"
			}
			reply, err = call(t.Context(), "bobby")
			require.NoError(t, err)
			assert.Equal(t, c.next, reply)
			assert.Len(t, tap.Conns(), c.conns)
		})
	}
}

func TestCutClosesConnection(t *testing.T) {
	tap := new(relay.Tap)
	bare, tapped := pair(t, tap.Wrap)
	tap.SetFilter(relay.Cut(7))
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
}

// What a filter returns may be longer than the reader's buffer; and nothing, which is no end.
func TestReplayDiscardsLaterBytes(t *testing.T) {
	tap := new(relay.Tap)
	bare, tapped := pair(t, tap.Wrap)
	tap.SetFilter(relay.Replay([]byte("much longer than what came")))
	write(t, bare, "x")
	assert.Equal(t, "much longer than what came", read(t, iotest.OneByteReader(tapped), 26))

	write(t, bare, "discarded")
	require.NoError(t, tapped.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := tapped.Read(make([]byte, 9))
	require.True(t, isTimeout(err), "got %v: the reader waits on, and its deadline holds", err)
	_, received := tap.Conns()[0].Bytes()
	assert.Equal(t, "xdiscarded", string(received))
	require.NoError(t, tapped.SetReadDeadline(time.Time{}))

	otherBare, otherTapped := pair(t, tap.Wrap)
	write(t, otherBare, "other")
	assert.Equal(t, "other", read(t, otherTapped, 5), "another connection is left alone")

	tap.SetFilter(nil)
	write(t, bare, "real")
	assert.Equal(t, "real", read(t, tapped, 4))
}

// Filters keep state without locks, and whoever has replaced one may read it: the race detector would tell.
func TestFilterCallsNeverOverlap(t *testing.T) {
	const conns, bytes = 4, 200
	tap := new(relay.Tap)
	var wg sync.WaitGroup
	count := 0
	for range conns {
		bare, tapped := pair(t, tap.Wrap)
		tap.SetFilter(func(p []byte) ([]byte, error) {
			count += len(p)
			return p, nil
		})
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
