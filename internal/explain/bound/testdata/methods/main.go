// Command methods serves two methods of gRPC and a route of HTTP, calls them, and profiles itself: methods FILE. It
// made the profiles of this folder, one with each of two Go releases:
//
//	GRPC_GO_SERVER_GOROUTINE_LABELS=grpc.method=true go run ./internal/explain/bound/testdata/methods FILE
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

var sink [sha256.Size]byte

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged()))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "shop.Orders", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: _Orders_Get_Handler},
			{MethodName: "List", Handler: _Orders_List_Handler}}}, orders{})
	go server.Serve(ln)
	defer server.Stop()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	routes := &http.Server{Handler: labelled(priced())}
	go routes.Serve(web)
	defer routes.Close()

	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for began, i := time.Now(), 0; time.Since(began) < 6*time.Second; i++ {
		method, asked := "/shop.Orders/Get", "an order"
		if i%4 == 0 {
			method, asked = "/shop.Orders/List", strings.Repeat("an order", 1000)
		}
		if err := conn.Invoke(context.Background(), method, wrapperspb.String(asked), new(text)); err != nil {
			return err
		}
		if i%4 == 1 {
			reply, err := http.Post("http://"+web.Addr().String()+"/price", "text/plain", strings.NewReader(asked))
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, reply.Body)
			_ = reply.Body.Close()
		}
	}
	return nil
}

type orders struct{}

func (orders) Get(_ context.Context, in *text) (*text, error) {
	each(10, func(i int) { sink = sha256.Sum256([]byte(in.Value)) })
	return in, nil
}

func (orders) List(_ context.Context, in *text) (*text, error) {
	slices.SortFunc([]byte(in.Value), func(a, b byte) int { return int(a) - int(b) })
	return in, nil
}

// each calls a closure that the compiler inlines into its caller, or doesn't.
func each(n int, do func(i int)) {
	for i := range n {
		func() { do(i) }()
	}
}

// logged makes an interceptor, which is a closure within a closure.
func logged() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		line := func() { sink = sha256.Sum256([]byte(info.FullMethod)) }
		each(5, func(int) { line() })
		return next(ctx, in)
	}
}

// labelled gives what a handler does a label by hand.
func labelled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pprof.Do(r.Context(), pprof.Labels("route", r.URL.Path), func(ctx context.Context) {
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	})
}

func priced() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		each(20, func(i int) { sink = sha256.Sum256([]byte(r.URL.Path)) })
		_, _ = io.Copy(w, r.Body)
	})
}

func _Orders_Get_Handler(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any,
	error) {
	in := new(text)
	if err := dec(in); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, in any) (any, error) { return srv.(orders).Get(ctx, in.(*text)) }
	return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.Orders/Get"}, handler)
}

func _Orders_List_Handler(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any,
	error) {
	in := new(text)
	if err := dec(in); err != nil {
		return nil, err
	}
	handler := func(ctx context.Context, in any) (any, error) { return srv.(orders).List(ctx, in.(*text)) }
	return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.Orders/List"}, handler)
}
