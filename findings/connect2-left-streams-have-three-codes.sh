#!/usr/bin/env bash
# Connect v2: a client that leaves a stream gets another code by Close, by its context, and in process.
#
# What one would expect: the documentation of ClientStream.Close says that it unblocks a pending Receive and may be
# called concurrently with it. Receive then has the code canceled, as when the context is cancelled, since in both cases
# the client itself has let go of the stream; and connectinprocess, which is made for tests, has the codes of HTTP.
#
# What happens with connectrpc.com/connect/v2 v2.0.2: after Close, over HTTP/1.1 and HTTP/2, with the Connect protocol
# and that of gRPC, Receive returns "internal: protocol error: incomplete envelope", as if the server had sent half a
# message. A cancelled context gives canceled. In process both give the bare context.Canceled, whose CodeOf is unknown.
# The handler sees its context cancelled in all cases.
#
# Why it matters to whoever compares RPC stacks: a client that leaves streams by Close counts internal errors where
# nothing is wrong, and one of grpc-go, which can only cancel the context, counts none. Code that asks for canceled
# passes over HTTP and fails in process. Cancel the context, and ask what ctx.Err() is.
#
# Seen with Go 1.26.8 and 1.27.4, codes of 20 streams each:
#   HTTP/1.1, connect: closed map[internal:20], context cancelled map[canceled:20]
#   HTTP/2, connect: closed map[internal:20], context cancelled map[canceled:20]
#   HTTP/2, grpc: closed map[internal:20], context cancelled map[canceled:20]
#   in process: closed map[unknown:20], context cancelled map[unknown:20]
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	connectrpc.com/connect/v2 v2.0.2
	google.golang.org/protobuf v1.36.12
)
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectinprocess"
	"google.golang.org/protobuf/types/known/emptypb"
)

type empty = emptypb.Empty

var spec = connect.Spec{Procedure: "/finding.Finding/Wait", StreamType: connect.StreamTypeServer}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// wait sends a message and waits until its context ends.
func wait(ctx context.Context, _ connect.Spec, s connect.ServerStream) error {
	if err := s.Receive(new(empty)); err != nil {
		return err
	}
	if err := s.Send(new(empty)); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// codes are those of a Receive during which the client closes the stream, or cancels its context.
func codes(transport connect.Transport, closes bool) string {
	all := map[connect.Code]int{}
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		s, err := connect.NewClient(transport).CallServerStream(ctx, spec, new(empty))
		check(err)
		check(s.Receive(new(empty)))
		time.AfterFunc(20*time.Millisecond, func() {
			if closes {
				s.Close()
			} else {
				cancel()
			}
		})
		err = s.Receive(new(empty))
		all[connect.CodeOf(err)]++
		s.Close()
		cancel()
	}
	return fmt.Sprint(all)
}

func main() {
	server := connect.NewServer()
	server.Register(connect.Method{Spec: spec, Handler: wait})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	both, h2c := new(http.Protocols), new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	h2c.SetUnencryptedHTTP2(true)
	go (&http.Server{Handler: mux, Protocols: both}).Serve(l)
	url := "http://" + l.Addr().String()
	one, two := &http.Client{Transport: new(http.Transport)}, &http.Client{Transport: &http.Transport{Protocols: h2c}}

	changed := false
	for _, row := range []struct {
		name              string
		transport         connect.Transport
		closed, cancelled string
	}{
		{"HTTP/1.1, connect", connecthttp.NewTransport(one, url), "map[internal:20]", "map[canceled:20]"},
		{"HTTP/2, connect", connecthttp.NewTransport(two, url), "map[internal:20]", "map[canceled:20]"},
		{"HTTP/2, grpc", connecthttp.NewTransport(two, url, connecthttp.WithGRPC()), "map[internal:20]", "map[canceled:20]"},
		{"in process", connectinprocess.New(server), "map[unknown:20]", "map[unknown:20]"},
	} {
		closed, cancelled := codes(row.transport, true), codes(row.transport, false)
		fmt.Printf("%s: closed %s, context cancelled %s\n", row.name, closed, cancelled)
		changed = changed || closed != row.closed || cancelled != row.cancelled
	}
	if changed {
		fmt.Println("changed: over HTTP Close used to give internal and cancelling canceled, and in process both unknown")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
