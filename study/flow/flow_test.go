// Package flow measures two mechanisms of HTTP/2 without the stacks of the library: what a header of a handler costs
// with net/http, and what a stream holds whose handler doesn't read with grpc-go.
package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// counter counts what the connections of a listener carry.
type counter struct {
	net.Listener
	writes, read atomic.Int64
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return counted{conn, c}, err
}

type counted struct {
	net.Conn
	of *counter
}

func (c counted) Write(b []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(b)
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.read.Add(int64(n))
	return n, err
}

func listen(tb testing.TB) *counter {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	return &counter{Listener: lis}
}

// BenchmarkHeader calls a handler of net/http over cleartext HTTP/2, which answers 100 bytes and sets a header or none.
// Writes are the server's.
func BenchmarkHeader(b *testing.B) {
	for _, header := range []string{"none", "Content-Type"} {
		b.Run("header="+header, func(b *testing.B) {
			var h2c http.Protocols
			h2c.SetUnencryptedHTTP2(true)
			body, lis := make([]byte, 100), listen(b)
			server := &http.Server{Protocols: &h2c, ReadHeaderTimeout: time.Second,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if header != "none" {
						w.Header().Set(header, "application/json")
					}
					_, _ = w.Write(body)
				})}
			go func() { _ = server.Serve(lis) }()
			client := &http.Client{Transport: &http.Transport{Protocols: &h2c}}
			call := func() (n int64) {
				reply, err := client.Get("http://" + lis.Addr().String())
				if err == nil {
					n, err = io.Copy(io.Discard, reply.Body)
					err = errors.Join(err, reply.Body.Close())
				}
				require.NoError(b, err)
				return n
			}
			require.EqualValues(b, len(body), call())
			before := lis.writes.Load()
			for b.Loop() {
				call()
			}
			b.ReportMetric(float64(lis.writes.Load()-before)/float64(b.N), "writes/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/op")
			client.CloseIdleConnections()
			require.NoError(b, server.Close())
		})
	}
}

// raw passes messages as they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(b mem.BufferSlice, v any) error { *v.(*[]byte) = b.Materialize(); return nil }
func (raw) Name() string                             { return "raw" }

// BenchmarkHeld sends on streams whose handlers don't read, until nothing moves any longer. It reports what the server
// has read from its connection by then, which it holds.
func BenchmarkHeld(b *testing.B) {
	for _, window := range []int32{0, 4 << 20} {
		for _, streams := range []int{1, 100} {
			b.Run(fmt.Sprintf("window=%d/streams=%d", window, streams), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(float64(held(b, window, streams)), "held-B")
				}
			})
		}
	}
}

// held is of a server with static windows, or with those of grpc-go if window is 0.
func held(b *testing.B, window int32, streams int) int64 {
	desc := grpc.StreamDesc{StreamName: "Sink", ClientStreams: true, ServerStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error { <-s.Context().Done(); return nil }}
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(raw{})}
	if window > 0 {
		options = append(options, grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window))
	}
	server, lis := grpc.NewServer(options...), listen(b)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "flow.Flow", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{desc}}, nil)
	go func() { _ = server.Serve(lis) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///"+lis.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	require.NoError(b, err)
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	message := make([]byte, 32<<10)
	for range streams {
		stream, err := conn.NewStream(ctx, &desc, "/flow.Flow/Sink")
		require.NoError(b, err)
		go func() {
			for stream.SendMsg(&message) == nil { // until cancel
			}
		}()
	}
	for last := int64(-1); last != lis.read.Load(); { // half a second without a byte ends it
		last = lis.read.Load()
		<-time.After(500 * time.Millisecond)
	}
	return lis.read.Load()
}
