#!/usr/bin/env bash
# Connect v1: a bidi stream that the client cancels ends for the handler as if the client had finished.
#
# What one would expect: a client cancels the context of a bidi stream and reads until it gets an error, as one does to
# let go of a stream. The handler's Receive then returns an error with the code canceled, and never io.EOF, which means
# that the client has sent everything.
#
# What happens with connectrpc.com/connect v1.21.1, over HTTP/2, with the Connect protocol: the handler's Receive
# returns io.EOF, in each of 100 streams. After an error the client's Receive closes the body of the request first, so
# END_STREAM leaves before RST_STREAM does. In some of the streams (3 to 12 in 100) the handler's context isn't yet
# cancelled when it sees io.EOF, so even a handler that looks at ctx.Err() takes half an upload for a whole one.
#
# The same program with the gRPC protocol gets canceled each time, because v1.21.1 closes the reply first there. Up to
# v1.21.0 (seen in v1.16.2 and later, not in v1.11.0) io.EOF came with both protocols. connectrpc.com/connect/v2 v2.0.2
# gives canceled with both.
#
# Why it matters to whoever compares RPC stacks: "what does a handler see when its caller gives up" is part of what a
# stack promises. With v1 the answer depends on the protocol that the client chose, and a server can't tell. A count of
# finished streams, or of errors, at a server is then another one for Connect than for gRPC.
#
# Seen with Go 1.26.8, and likewise with 1.27.4 (streams of 100 whose handler saw io.EOF, and of those with a live
# context):
#   v1 connect: EOF 100, live 7
#   v1 grpc: EOF 0, live 0
#   v2 connect: EOF 0, live 0
#   v2 grpc: EOF 0, live 0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	connectrpc.com/connect/v2 v2.0.2
	google.golang.org/protobuf v1.36.12
)
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"connectrpc.com/connect"
	connect2 "connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

// seen is what a handler saw when its stream ended.
type seen struct{ eof, live bool }

var ends = make(chan seen, 1)

func end(ctx context.Context, err error) error {
	ends <- seen{errors.Is(err, io.EOF), ctx.Err() == nil}
	return nil
}

func echo(ctx context.Context, s *connect.BidiStream[text, text]) error {
	for {
		m, err := s.Receive()
		if err != nil {
			return end(ctx, err)
		}
		if err := s.Send(m); err != nil {
			return err
		}
	}
}

func echo2(ctx context.Context, _ connect2.Spec, s connect2.ServerStream) error {
	for {
		m := new(text)
		if err := s.Receive(m); err != nil {
			return end(ctx, err)
		}
		if err := s.Send(m); err != nil {
			return err
		}
	}
}

// stream sends one message, gets it back, cancels, and reads until there is an error.
type stream func(ctx context.Context, cancel func()) error

func v1(c *http.Client, url string, options ...connect.ClientOption) stream {
	client := connect.NewClient[text, text](c, url+"/v1/Echo", options...)
	return func(ctx context.Context, cancel func()) error {
		s := client.CallBidiStream(ctx)
		if err := s.Send(wrapperspb.String("half")); err != nil {
			return err
		}
		if _, err := s.Receive(); err != nil {
			return err
		}
		cancel()
		if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeCanceled {
			return fmt.Errorf("the client's own error is %v", err)
		}
		return nil
	}
}

func v2(c *http.Client, url string, spec connect2.Spec, options ...connecthttp.Option) stream {
	client := connect2.NewClient(connecthttp.NewTransport(c, url, options...))
	return func(ctx context.Context, cancel func()) error {
		s, err := client.CallClientStream(ctx, spec)
		if err != nil {
			return err
		}
		if err := s.Send(wrapperspb.String("half")); err != nil {
			return err
		}
		if err := s.Receive(new(text)); err != nil {
			return err
		}
		cancel()
		if err := s.Receive(new(text)); connect2.CodeOf(err) != connect2.CodeCanceled {
			return fmt.Errorf("the client's own error is %v", err)
		}
		return nil
	}
}

func main() {
	mux := http.NewServeMux()
	mux.Handle("/v1/Echo", connect.NewBidiStreamHandler("/v1/Echo", echo))
	spec := connect2.Spec{Procedure: "/v2.Text/Echo", StreamType: connect2.StreamTypeBidi}
	server := connect2.NewServer()
	server.Register(connect2.Method{Spec: spec, Handler: echo2})
	connecthttp.Mount(mux, server)
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	changed := false
	for _, row := range []struct {
		name string
		run  stream
		eof  bool
	}{
		{"v1 connect", v1(s.Client(), s.URL), true},
		{"v1 grpc", v1(s.Client(), s.URL, connect.WithGRPC()), false},
		{"v2 connect", v2(s.Client(), s.URL, spec), false},
		{"v2 grpc", v2(s.Client(), s.URL, spec, connecthttp.WithGRPC()), false},
	} {
		eof, live := 0, 0
		for range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			if err := row.run(ctx, cancel); err != nil {
				fmt.Println("changed:", row.name, err)
				os.Exit(1)
			}
			if e := <-ends; e.eof {
				eof++
				if e.live {
					live++
				}
			}
		}
		fmt.Printf("%s: EOF %d, live %d\n", row.name, eof, live)
		changed = changed || (eof > 50) != row.eof
	}
	if changed {
		fmt.Println("changed: it used to be EOF for v1 connect and for no other")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
