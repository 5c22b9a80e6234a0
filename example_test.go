package rpcbench_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func anna() rpcbench.User {
	return rpcbench.User{Email: "anna@example.com", Name: "Anna", Password: "correct horse"}
}

// Start a server and a client of a stack, create a user, and stop both.
func Example() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()

	user := rpcbench.User{Email: "anna@example.com", Name: "Anna", Password: "correct horse"}
	users, err := rpcbench.As[rpcbench.Users](fixture)
	if err != nil {
		log.Fatal(err)
	}
	reply, err := users.CreateUser(ctx, user)
	fmt.Println(reply.Code, reply.Message, reply.User.ID, reply.User.Name, err)

	user.Email, user.Name = "anna", "Ann"
	_, err = users.CreateUser(ctx, user)
	fmt.Println(err)
	// Output:
	// 200 OK 1000000 Anna <nil>
	// invalid: email email, name min=4
}

// Time prepared calls in a benchmark of your own. This would be func BenchmarkMine(b *testing.B).
func ExampleStart_benchmark() {
	_ = func(b *testing.B) {
		stacktest.Procs(b) // or the first row of -cpu 1,4 would have the last GOMAXPROCS of the list
		fixture, err := rpcbench.Start(b.Context(), httpjson.New(), rpcbench.Config{})
		if err != nil {
			b.Fatal(err)
		}
		defer fixture.Close()
		call, err := fixture.Client.Prepare(0)
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background() // see Call
		for b.Loop() {
			if err := call(ctx); err != nil { // a wrong reply is an error
				b.Fatal(err)
			}
		}
	}
}

// get and order are what handlers of examples take and return.
type get struct {
	Number uint64 `json:"number"`
}

type order struct {
	Item string `json:"item"`
}

// shop is a service: its state, and a handler.
type shop struct {
	mu     sync.RWMutex
	orders map[uint64]order
}

func (s *shop) get(_ context.Context, q *get) (*order, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o, ok := s.orders[q.Number]; ok {
		return &o, nil
	}
	return nil, &rpcbench.Error{Code: rpcbench.CodeInvalid, Message: "no such order"}
}

// Call a handler of your own over JSON. In a benchmark, stacktest.Benchmark times its stack.
func ExampleHandler() {
	method := rpcbench.Handler("shop.v1.Orders/Get", func(_ context.Context, q *get) (*order, error) {
		return &order{Item: map[uint64]string{1: "anvil", 2: "bench"}[q.Number]}, nil
	}, &get{1}, &get{2})
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjson.Of(method), rpcbench.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	call, err := fixture.Client.Prepare(1) // of &get{2}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(call(ctx)) // a reply that differs from what the handler answers is an error
	// Output: <nil>
}

// Call a handler of your own over JSON, where it takes plain structs, and over gRPC, where these are converted from and
// to generated messages. Package wrapperspb stands for the one that protoc-gen-go made of your .proto.
func ExampleConverted() {
	s := &shop{orders: map[uint64]order{1: {"anvil"}, 2: {"bench"}}}
	plain := rpcbench.Handler("shop.v1.Orders/Get", s.get, &get{1}, &get{2})
	generated := rpcbench.Converted(plain,
		func(q *get) *wrapperspb.UInt64Value { return wrapperspb.UInt64(q.Number) },
		func(q *wrapperspb.UInt64Value) *get { return &get{q.GetValue()} },
		func(o *order) *wrapperspb.StringValue { return wrapperspb.String(o.Item) },
		func(want, got *wrapperspb.StringValue) bool { return want.GetValue() == got.GetValue() })

	ctx := context.Background()
	for _, stack := range []rpcbench.Stack{
		httpjson.Of(plain), httpjsoniter.Of(plain), grpcprotobuf.Of(generated),
	} {
		fixture, err := rpcbench.Start(ctx, stack, rpcbench.Config{TLS: true})
		if err != nil {
			log.Fatal(err)
		}
		call, err := fixture.Client.Prepare(1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(stack.Name, call(ctx)) // a wrong reply is an error
		fixture.Close()
	}
	// Output:
	// httpjson <nil>
	// httpjsoniter <nil>
	// grpcprotobuf.converted <nil>
}

// Run a fixture over TLS. Its client verifies a certificate that is made for it.
func ExampleStart_tls() {
	fixture, err := rpcbench.Start(context.Background(), grpcprotobuf.New(), rpcbench.Config{TLS: true})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	state, ok := fixture.TLS()
	fmt.Println(ok, tls.VersionName(state.Version), state.NegotiatedProtocol)
	// Output: true TLS 1.3 h2
}

// counted is a connection that counts its bytes.
type counted struct {
	net.Conn
	sent, received *atomic.Int64
}

func (c counted) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// Count the bytes of a call: WrapClient sees every connection of the client, beneath TLS.
func ExampleConfig_countBytes() {
	ctx := context.Background()
	var sent, received atomic.Int64
	fixture, err := rpcbench.Start(ctx, rawtcp.New(), rpcbench.Config{
		WrapClient: func(c net.Conn) net.Conn { return counted{c, &sent, &received} },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	call, err := fixture.Client.Prepare(0)
	if err != nil {
		log.Fatal(err)
	}
	sent.Store(0) // Start has made calls
	received.Store(0)
	err = call(ctx)
	fmt.Println(sent.Load(), "bytes sent,", received.Load(), "received, error:", err)
	// Output: 41 bytes sent, 59 received, error: <nil>
}

// Serve a protocol connection by connection: this one answers each line with the same line.
func ExampleServeConns() {
	server := rpcbench.ServeConns(rpcbench.ServerConfig{}, func(c net.Conn) {
		_, _ = io.Copy(c, c)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	line, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(line, err, "\n")
	server.Close() // and every connection with it
	<-served
	conn.Close()
	// Output:
	// hello
	// <nil>
}

// Validate a request in a server of your own.
func ExampleNewUserValidator() {
	validate := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	user := anna()
	fmt.Println(validate(&user))
	user.Password = "abc"
	fmt.Println(validate(&user))
	// Output:
	// <nil>
	// invalid: password min=4
}

// TestExampleIsAStack: Example_ownStack, which people copy, passes the suite.
func TestExampleIsAStack(t *testing.T) { stacktest.Conformance(t, newStack()) }
