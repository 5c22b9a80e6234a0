// Package floor times what the stacks are made of, each part alone: bytes on a connection, codecs, service, empty
// handlers. A stack can't be faster than its parts, and what it takes longer is its own. The root's BenchmarkFloor runs
// it; it is apart from stacktest, whose importers compile no gRPC.
package floor

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

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/internal/users"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

const warmOps = 256 // before anything is measured

// Benchmark times every part in a sub-benchmark impl=… of its own: one op at a time, over one connection where there is
// one. A stack's row reads the clock at each op for its percentiles, and this does not.
func Benchmark(b *testing.B) {
	if f := flag.Lookup("server"); f != nil && f.Value.String() != "" {
		b.Skip("rpcbench: floor: its parts share one process: run it without -server")
	}
	for _, p := range parts() {
		b.Run("impl="+p.name, func(b *testing.B) {
			stacktest.Procs(b)
			op := p.start(b)
			for range warmOps {
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

// part is one floor. start returns its op, and leaves to tb what ends it.
type part struct {
	name  string
	start func(tb testing.TB) (op func() error)
}

func parts() []part {
	return []part{
		{"tcp", tcp},
		{"service", service},
		{"codecs", codecs},
		{"nethttp", nethttp},
		{"grpc", grpcEmpty},
	}
}

// tcp sends as many bytes as rawtcp does, there and back between two goroutines.
func tcp(tb testing.TB) func() error {
	request, reply := frames(tb)
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

// frames counts what a call of rawtcp sends and receives.
func frames(tb testing.TB) (request, reply int) {
	counter := new(netwrap.Counter)
	f := stacktest.Start(tb, rawtcp.New(), rpcbench.Config{WrapClient: counter.Wrap})
	defer f.Close()
	call, err := f.Client.Prepare(users.Sample(0, 0))
	if err != nil {
		tb.Fatal(err)
	}
	sent, received := counter.Sent(), counter.Received()
	if err := call(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return int(counter.Sent() - sent), int(counter.Received() - received)
}

// service validates, answers and checks, on the generated types.
func service(testing.TB) func() error {
	api := pbnative.API()
	create := api.NewService()
	asked, came := generated(), generated()
	i := 0
	return func() error {
		i = (i + 1) % users.Round
		r, err := create(context.Background(), came[i])
		if err != nil {
			return err
		}
		return api.Check(asked[i], r)
	}
}

// codecs encode and decode a request and its reply, as protobuf's own library does it.
func codecs(tb testing.TB) func() error {
	create := pbnative.API().NewService()
	asked, came := generated(), generated()
	replies := make([]*userv1.CreateUserResponse, users.Round)
	for i := range replies {
		var err error
		if replies[i], err = create(context.Background(), came[i]); err != nil {
			tb.Fatal(err)
		}
	}
	i := 0
	return func() error {
		i = (i + 1) % users.Round
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
	all := make([]*userv1.User, users.Round)
	for i := range all {
		u := users.Sample(i, 0)
		all[i] = pbnative.API().FromUser(&u)
	}
	return all
}

// nethttp is a handler that does nothing, with the settings of the HTTP stacks on both sides.
func nethttp(tb testing.TB) func() error {
	ln := listen(tb)
	s := httpapi.NewServer(rpcbench.ServerConfig{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), false)
	serve(tb, ln, func() error { return s.Serve(ln) }, func() { _ = s.Close() })
	config := rpcbench.ClientConfig{Addr: ln.Addr().String(), DialContext: new(net.Dialer).DialContext, Conns: 1}
	client := httpapi.NewHTTPClient(config, config.Conns, false)
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

// grpcEmpty is a handler that returns the empty message, with the library's defaults on both sides.
func grpcEmpty(tb testing.TB) func() error {
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
