package rpcbench_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/relay"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

// BenchmarkFloor times what the stacks are made of, each part alone: bytes on a connection, validation, codecs, and what empty handlers
// of the two servers cost. A stack can't be faster than its parts. One op at a time, over one connection where there is one. A
// stack's row reads the clock at each op for its percentiles; these rows do not.
func BenchmarkFloor(b *testing.B) {
	skipWithTLS(b)
	if flag.Lookup("server").Value.String() != "" {
		b.Skip("the parts share one process: run it without -server")
	}
	for _, p := range floorParts() {
		b.Run("impl="+p.name, func(b *testing.B) {
			stacktest.Procs(b)
			op := p.start(b)
			for range 256 { // warm-up
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC() // what starting left is not the loop's
			b.ReportAllocs()
			n := 0
			start, known := cpu.Time()
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if end, _ := cpu.Time(); known {
				b.ReportMetric(float64(end-start)/float64(n), "cpu-ns/op")
			}
		})
	}
}

// floorPart is one part. start returns its op, and leaves to tb what ends it.
type floorPart struct {
	name  string
	start func(tb testing.TB) (op func() error)
}

func floorParts() []floorPart {
	return []floorPart{
		{"tcp", tcpFloor},
		{"service", serviceFloor},
		{"codecs", codecsFloor},
		{"nethttp", nethttpFloor},
		{"grpc", grpcFloor},
	}
}

// tcpFloor sends as many bytes as rawtcp does, there and back between two goroutines.
func tcpFloor(tb testing.TB) func() error {
	request, reply := frameSizes(tb)
	ln := listen(tb)
	serve(tb, ln, func() error {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		in, out := make([]byte, request), make([]byte, reply)
		for {
			if _, err := io.ReadFull(conn, in); err != nil {
				return err
			}
			if _, err := conn.Write(out); err != nil {
				return err
			}
		}
	}, func() {})
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", ln.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	out, in := make([]byte, request), make([]byte, reply)
	return func() error {
		if _, err := conn.Write(out); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, in)
		return err
	}
}

// frameSizes counts what a call of rawtcp sends and receives.
func frameSizes(tb testing.TB) (request, reply int) {
	counter := new(relay.Counter)
	f := stacktest.Start(tb, rawtcp.New(), rpcbench.Config{WrapClient: counter.Wrap})
	defer f.Close()
	call, err := f.Client.Prepare(corpus.Sample(0, 0))
	if err != nil {
		tb.Fatal(err)
	}
	sent, received := counter.Sent.Load(), counter.Received.Load()
	if err := call(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return int(counter.Sent.Load() - sent), int(counter.Received.Load() - received)
}

// serviceFloor validates, answers and checks, on the generated types.
func serviceFloor(testing.TB) func() error {
	api := pb.API()
	create := api.NewService()
	asked, came := generated(), generated()
	i := 0
	return func() error {
		i = (i + 1) % corpus.Round
		r, err := create(context.Background(), came[i])
		if err != nil {
			return err
		}
		return api.Check(asked[i], r)
	}
}

// codecsFloor encode and decode a request and its reply, as protobuf's own library does it.
func codecsFloor(tb testing.TB) func() error {
	create := pb.API().NewService()
	asked, came := generated(), generated()
	replies := make([]*userv1.CreateUserResponse, corpus.Round)
	for i := range replies {
		var err error
		if replies[i], err = create(context.Background(), came[i]); err != nil {
			tb.Fatal(err)
		}
	}
	i := 0
	return func() error {
		i = (i + 1) % corpus.Round
		request, err := proto.Marshal(asked[i])
		if err != nil {
			return err
		}
		if err := proto.Unmarshal(request, new(userv1.User)); err != nil {
			return err
		}
		reply, err := proto.Marshal(replies[i])
		if err != nil {
			return err
		}
		return proto.Unmarshal(reply, new(userv1.CreateUserResponse))
	}
}

func generated() []*userv1.User {
	all := make([]*userv1.User, corpus.Round)
	for i := range all {
		u := corpus.Sample(i, 0)
		all[i] = binding.Convert[userv1.User](&u)
	}
	return all
}

// nethttpFloor is a handler that does nothing, with the settings of the HTTP stacks on both sides.
func nethttpFloor(tb testing.TB) func() error {
	ln := listen(tb)
	s := httpapi.NewServer(rpcbench.ServerConfig{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), false)
	serve(tb, ln, func() error { return s.Serve(ln) }, func() { _ = s.Close() })
	config := rpcbench.ClientConfig{Addr: ln.Addr().String(), DialContext: new(net.Dialer).DialContext, Conns: 1}
	client := httpapi.HTTPClients(config, false)[0]
	tb.Cleanup(client.CloseIdleConnections)
	url := httpapi.BaseURL(config) + "/"
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("floor: status %s", resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	}
}

// grpcFloor is a handler that returns the empty message, with the library's defaults on both sides.
func grpcFloor(tb testing.TB) func() error {
	const service, method = "rpcbench.floor.Empty", "Call"
	ln := listen(tb)
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(emptypb.Empty)
			return in, decode(in)
		},
	}}}, struct{}{})
	serve(tb, ln, func() error { return s.Serve(ln) }, s.Stop)
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return func() error {
		return conn.Invoke(context.Background(), "/"+service+"/"+method, new(emptypb.Empty), new(emptypb.Empty))
	}
}

func listen(tb testing.TB) net.Listener {
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return ln
}

// serve runs a server until the test or benchmark ends.
func serve(tb testing.TB, ln net.Listener, run func() error, stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run() // always an error: it was stopped
	}()
	tb.Cleanup(func() {
		_ = ln.Close()
		stop()
		<-ended
	})
}

func TestFloorSharesOneProcess(t *testing.T) {
	require.NoError(t, flag.Set("server", "process"))
	defer func() { require.NoError(t, flag.Set("server", "")) }()
	skipped := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { skipped = b.Skipped() }()
		BenchmarkFloor(b)
	})
	require.True(t, skipped, "its rows would stand below a key that is not theirs")
}

func TestEveryPartOfTheFloorRuns(t *testing.T) {
	for _, p := range floorParts() {
		t.Run(p.name, func(t *testing.T) {
			op := p.start(t)
			for range 2 * corpus.Round {
				require.NoError(t, op())
			}
		})
	}
}

// The bare ping-pong carries as many bytes as a call: a frame's header and the message, both ways.
func TestFrameSizes(t *testing.T) {
	asked := generated()[0]
	reply, err := pb.API().NewService()(t.Context(), generated()[0])
	require.NoError(t, err)
	sent, received := frameSizes(t)
	require.Equal(t, 5+proto.Size(asked), sent)
	require.Equal(t, 5+proto.Size(reply), received)
}
