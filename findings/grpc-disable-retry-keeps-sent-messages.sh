#!/usr/bin/env bash
# grpc-go: WithDisableRetry does not let go of what a client stream has sent.
#
# What one would expect: a client that might have to retry keeps the messages of a stream until the server has answered.
# With grpc.WithDisableRetry, and without a retry policy anyway, nothing is sent again, so each message's buffer goes
# back to its pool once it is written.
#
# What happens with google.golang.org/grpc v1.85.0: with WithDisableRetry and without it, the client keeps every message
# of the stream until the server's first header arrives, or until there are more than 256 KiB of them; then it frees all
# at once. The reason is the transparent retry of a stream that the server refuses before it looks at it, which no
# option turns off. Servers of client streams, and of bidi streams that collect first, send no header before their first
# reply, so each open stream holds up to 256 KiB of sent messages at the client, although the handler has received them.
# What keeps nothing is the call option grpc.MaxRetryRPCBufferSize(0), or a server that calls SendHeader at the start.
#
# Why it matters to whoever compares RPC stacks: 1,000 uploads that are open at once hold up to 256 MB at a gRPC client,
# which a comparison of memory with another stack puts down to HTTP/2 or to Protocol Buffers. Short uploads, which end
# before 256 KiB, hold all that they send, and long ones next to nothing, so memory falls as the streams get longer. And
# the option whose name says that it turns retries off makes no difference.
#
# Seen with Go 1.26.8 and 1.27.4, 10 messages of 2,000 bytes, all of which the handler has received (buffers kept before
# and after the server's header):
#   defaults: 10 kept, 0 after the header
#   WithDisableRetry: 10 kept, 0 after the header
#   MaxRetryRPCBufferSize(0): 0 kept, 0 after the header
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
	"io"
	"log"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

const messages, size = 10, 2000

// anything is a message, because SendMsg marshals none that is nil.
var anything any = new(int)

// pool counts the buffers that are out.
type pool struct{ out atomic.Int64 }

func (p *pool) Get(n int) *[]byte { p.out.Add(1); b := make([]byte, n); return &b }
func (p *pool) Put(*[]byte)       { p.out.Add(-1) }

// raw sends size bytes from its pool for any message.
type raw struct{ pool *pool }

func (r raw) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.NewBuffer(r.pool.Get(size), r.pool)}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "raw" }

// settled is how many buffers are out once that is what, or after a second.
func settled(p *pool, what int64) int64 {
	for range 100 {
		if p.out.Load() == what {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return p.out.Load()
}

func main() {
	received, answer := make(chan bool, messages), make(chan bool)
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{new(pool)}), grpc.UnknownServiceHandler(
		func(_ any, s grpc.ServerStream) error {
			for range messages {
				if err := s.RecvMsg(anything); err != nil {
					return err
				}
				received <- true
			}
			<-answer
			if err := s.SendHeader(nil); err != nil {
				return err
			}
			if err := s.RecvMsg(anything); err != io.EOF {
				return fmt.Errorf("no end of the stream: %v", err)
			}
			return s.SendMsg(anything)
		}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)
	defer server.Stop()

	changed := false
	for _, row := range []struct {
		name   string
		option grpc.DialOption
		kept   int64
	}{
		{"defaults", grpc.EmptyDialOption{}, messages},
		{"WithDisableRetry", grpc.WithDisableRetry(), messages},
		{"MaxRetryRPCBufferSize(0)", grpc.WithDefaultCallOptions(grpc.MaxRetryRPCBufferSize(0)), 0},
	} {
		p := new(pool)
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), row.option,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{p})))
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/any/Upload")
		if err != nil {
			log.Fatal(err)
		}
		for range messages {
			if err := s.SendMsg(anything); err != nil {
				log.Fatal(err)
			}
			<-received
		}
		kept := settled(p, 0)
		answer <- true
		if _, err := s.Header(); err != nil {
			log.Fatal(err)
		}
		after := settled(p, 0)
		fmt.Printf("%s: %d kept, %d after the header\n", row.name, kept, after)
		changed = changed || kept != row.kept || after != 0
		if err := s.CloseSend(); err != nil {
			log.Fatal(err)
		}
		if err := s.RecvMsg(anything); err != nil {
			log.Fatal(err)
		}
		cancel()
		conn.Close()
	}
	if changed {
		fmt.Println("changed: it used to be 10, 10 and 0 kept, and 0 after the header")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
