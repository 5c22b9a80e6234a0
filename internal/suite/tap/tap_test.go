package tap_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

func TestTapRecordsEachConnection(t *testing.T) {
	recorder := new(tap.Tap)
	var wg sync.WaitGroup
	for i := range 4 {
		bare, tapped := pair(t, recorder.Wrap)
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
				sent, received := recorder.Conns()[i].Bytes()
				assert.Equal(t, cap(sent)+cap(received), len(sent)+len(received), "whoever appends makes a copy")
				clear(recorder.Conns())
			}
		})
	}
	wg.Wait()
	conns := recorder.Conns()
	require.Len(t, conns, 4)
	for i, c := range conns {
		sent, received := c.Bytes()
		assert.Equal(t, strings.Repeat("s", 100*(i+1)), string(sent), "in the order they were wrapped")
		assert.Equal(t, strings.Repeat("r", 100), string(received))
	}
}

// Of goroutines that write at once, the record has the order of the wire.
func TestTapRecordsOrder(t *testing.T) {
	recorder := new(tap.Tap)
	bare, tapped := pair(t, recorder.Wrap)
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
	sent, _ := recorder.Conns()[0].Bytes()
	assert.Equal(t, wire, string(sent))
}

// The reader gets what a filter makes of the wire, and the record has what was on it.
func TestReplaceAndCut(t *testing.T) {
	recorder := new(tap.Tap)
	bare, tapped := pair(t, recorder.Wrap)
	recorder.SetFilter(tap.Replace([]byte("bobby"), []byte("carol")))
	write(t, bare, "hello bobby")
	assert.Equal(t, "hello carol", read(t, tapped, 11))
	recorder.SetFilter(tap.Cut(7))
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
	_, received := recorder.Conns()[0].Bytes()
	assert.Equal(t, "hello bobbyfourmore", string(received))
}

// What a filter returns may be longer than the reader's buffer; and nothing, which is no end.
func TestReplayDiscardsLaterBytes(t *testing.T) {
	recorder := new(tap.Tap)
	bare, tapped := pair(t, recorder.Wrap)
	recorder.SetFilter(tap.Replay([]byte("much longer than what came")))
	write(t, bare, "x")
	assert.Equal(t, "much longer than what came", read(t, iotest.OneByteReader(tapped), 26))

	write(t, bare, "discarded")
	require.NoError(t, tapped.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := tapped.Read(make([]byte, 9))
	require.True(t, isTimeout(err), "got %v: the reader waits on, and its deadline holds", err)
	_, received := recorder.Conns()[0].Bytes()
	assert.Equal(t, "xdiscarded", string(received))
	require.NoError(t, tapped.SetReadDeadline(time.Time{}))

	otherBare, otherTapped := pair(t, recorder.Wrap)
	write(t, otherBare, "other")
	assert.Equal(t, "other", read(t, otherTapped, 5), "another connection is left alone")

	recorder.SetFilter(nil)
	write(t, bare, "real")
	assert.Equal(t, "real", read(t, tapped, 4))
}

// Filters keep state without locks, and whoever has replaced one may read it: the race detector would tell.
func TestFilterCallsNeverOverlap(t *testing.T) {
	const conns, bytes = 4, 200
	recorder := new(tap.Tap)
	var wg sync.WaitGroup
	count := 0
	for range conns {
		bare, tapped := pair(t, recorder.Wrap)
		recorder.SetFilter(func(p []byte) ([]byte, error) {
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
	recorder.SetFilter(nil)
	assert.Equal(t, conns*bytes, count)
}
