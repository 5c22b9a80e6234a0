#!/usr/bin/env bash
# grpc-go: behind netutil.LimitListener an idle connection of a server holds twice as much memory.
#
# What one would expect: a listener that limits connections wraps each one in a struct of a few words, so an idle
# connection costs a server as much as before.
#
# What happens with grpc-go v1.85.0 on Linux: it gives the 32 kB read buffer of a connection back while nothing arrives,
# but only if the connection is a bare *net.TCPConn (or a Unix one), whose file descriptor it can wait for. Behind any
# wrapper, LimitListener's or one that counts, it holds the buffer for as long as the connection lives. So does TLS.
#
# Why it matters to whoever compares RPC stacks: what many idle clients cost a gRPC server doubles by a line that has
# nothing to do with gRPC, and a measurement whose listener counts connections measures the wrapper.
#
# Seen with Go 1.26.8 and 1.27.4, of client and server together: bare 28 kB, behind netutil.LimitListener 56 kB.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	golang.org/x/net v0.60.0
	google.golang.org/grpc v1.85.0
)
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"runtime"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// heap is what is reachable.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// each is what an idle connection holds, client and server together, in kB.
func each(listen func(net.Listener) net.Listener) float64 {
	const connections = 400
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		return stream.SendMsg(new(emptypb.Empty))
	}))
	go server.Serve(listen(listener))
	defer server.Stop()
	before := heap()
	for range connections {
		client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		check(err)
		defer client.Close()
		check(client.Invoke(context.Background(), "/a.B/C", new(emptypb.Empty), new(emptypb.Empty)))
	}
	return (heap() - before) / connections / 1000
}

func main() {
	bare := each(func(l net.Listener) net.Listener { return l })
	limited := each(func(l net.Listener) net.Listener { return netutil.LimitListener(l, 10_000) })
	fmt.Printf("bare: %.0f kB, behind netutil.LimitListener: %.0f kB\n", bare, limited)
	if more := limited - bare; more < 25 || more > 40 {
		fmt.Printf("a limiting listener takes %.0f kB of a connection, and no longer about 32\n", more)
		os.Exit(1)
	}
}
GO
go mod tidy > tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go run .
