#!/usr/bin/env bash
# grpc-go: the flow-control window of streams that no handler reads grows with the traffic of the connection.
#
# What one would expect: a stream's window begins with 64 KiB, and what a handler doesn't read stays unsent. So 100
# streams on a connection whose handlers don't read cost a server 100 times 64 KiB, 6.5 MB.
#
# What happens with google.golang.org/grpc v1.85.0: one such stream alone makes the server read about 128 KiB. With 100
# of them the bandwidth estimate sees their data arrive, which reading by handlers has no part in, and raises the
# windows of all streams, up to 16 MiB each. The server then holds hundreds of megabytes that no handler asked for. Static
# windows (StaticStreamWindowSize and StaticConnWindowSize) are kept: 100 streams of 64 KiB hold 6.5 MB.
#
# Why it matters to whoever compares RPC stacks: memory of slow consumers is a property of the link's speed and of the
# other streams, not of the window in the documentation, so a comparison over loopback says more than one over a network.
#
# Seen with Go 1.26.8 (2 CPUs, loopback), bytes that the server has read when nothing moves any longer, about:
#   defaults, 1 stream: 131,332; defaults, 100 streams: 278,937,724; static 64 KiB, 100 streams: 6.6 million
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require google.golang.org/grpc v1.85.0
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "raw" }

type listener struct {
	net.Listener
	read atomic.Int64
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return conn{c, l}, err
}

type conn struct {
	net.Conn
	of *listener
}

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.read.Add(int64(n))
	return n, err
}

func held(streams int, options ...grpc.ServerOption) int64 {
	options = append(options, grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(
		func(_ any, s grpc.ServerStream) error { <-s.Context().Done(); return nil }))
	server := grpc.NewServer(options...)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	l := &listener{Listener: tcp}
	go server.Serve(l)
	defer server.Stop()
	client, err := grpc.NewClient("passthrough:///"+tcp.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	message := make([]byte, 32<<10)
	for range streams {
		s, err := client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/any/Sink")
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			for s.SendMsg(&message) == nil {
			}
		}()
	}
	for last := int64(-1); last != l.read.Load(); {
		last = l.read.Load()
		time.Sleep(500 * time.Millisecond)
	}
	return l.read.Load()
}

func main() {
	one, many := held(1), held(100)
	static := held(100, grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(64<<10))
	fmt.Printf("defaults, 1 stream: %d; defaults, 100 streams: %d; static 64 KiB, 100 streams: %d\n", one, many, static)
	if one > 1<<20 || many < 20<<20 || static > 10<<20 {
		fmt.Println("changed: many streams used to hold far more than 100 windows, and static windows to be kept")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
