package tap_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// Drop ends all connections that are held, whether anybody reads them or not, and no other.
func TestGateDropsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := new(tap.Gate)
		gate.Hold([]byte("dropped"))
		var waiting []<-chan result
		var gated []net.Conn
		for range 50 {
			client, server := net.Pipe()
			gated = append(gated, gate.Wrap(server))
			if len(gated)%2 == 0 {
				waiting = append(waiting, startRead(gated[len(gated)-1], 7))
			}
			write(t, client, "dropped")
		}
		client, server := net.Pipe()
		spared := gate.Wrap(server)
		synctest.Wait() // until every one is held
		gate.Drop()
		for _, got := range waiting {
			require.Equal(t, result{"", net.ErrClosed}, <-got)
		}
		for _, c := range gated {
			_, err := c.Read(make([]byte, 7))
			require.Equal(t, net.ErrClosed, err)
		}
		write(t, client, "not dropped")
		assert.Equal(t, "not dropped", read(t, spared, 11))
		require.NoError(t, spared.Close())
	})
}

func TestGateCloseEndsRead(t *testing.T) {
	gate := new(tap.Gate)
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
	gate := new(tap.Gate)
	bare, gated := pair(t, gate.Wrap)
	otherBare, other := pair(t, gate.Wrap)
	write(t, bare, "alice is early")
	assert.Equal(t, "alice is early", read(t, gated, 14), "an open gate is no gate")
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
	write(t, bare, "alice is late")
	assert.Equal(t, "alice is late", read(t, gated, 13), "released is open")
}

// Deadlines end a Read that is held, and leave what is held for the next.
func TestGateDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := new(tap.Gate)
		gate.Hold(nil)
		for _, data := range []string{"hello", "again"} { // every connection is held, not only the first
			client, server := net.Pipe()
			gated := gate.Wrap(server)
			write(t, client, data)
			require.NoError(t, gated.SetDeadline(time.Now().Add(time.Minute)))
			assert.Equal(t, time.Minute, after(func() {
				_, err := gated.Read(make([]byte, 5))
				require.True(t, isTimeout(err), "got %v", err)
			}))
			require.NoError(t, gated.SetDeadline(time.Time{}))
			got := startRead(gated, 5)
			<-time.After(time.Hour)
			require.Empty(t, got, "without deadline it waits on")
			if data == "again" {
				gate.Release()
				assert.Equal(t, result{data, nil}, <-got)
			}
			require.NoError(t, gated.Close())
		}
	})
}

// While a handler runs, net/http reads one byte ahead to see the client go, and aborts that by a past deadline when the
// handler is done. If the byte is held then, it must neither delay the reply nor be lost.
func TestGateUnderBackgroundRead(t *testing.T) {
	gate := new(tap.Gate)
	running, finish := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := io.ReadAll(r.Body)
		if string(name) == "first" {
			close(running)
			<-finish
		}
		_, _ = io.WriteString(w, "hello "+string(name))
	}))
	s.Listener = testkit.Listener{Listener: s.Listener, Wrap: gate.Wrap}
	s.Start()
	defer s.Close()
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
