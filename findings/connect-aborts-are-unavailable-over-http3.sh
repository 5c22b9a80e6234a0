#!/usr/bin/env bash
# Connect v1 over HTTP/3: a unary handler that aborts is "unavailable" to its client, and "internal" over HTTP/2.
#
# What one would expect: a handler that panics with http.ErrAbortHandler, which is net/http's way to end a reply that
# can't be finished, resets the stream with INTERNAL_ERROR in HTTP/2 and with H3_INTERNAL_ERROR in HTTP/3. The client
# then has one code for both, internal, or unknown where it can't read the transport's error.
#
# What happens with connectrpc.com/connect v1.21.1 and quic-go v0.65.0: over HTTP/2 the code is internal for unary calls
# and for streams, since Connect knows the text of HTTP/2's errors. Over HTTP/3 it is unavailable for unary calls, with
# the Connect and the gRPC protocol: quic-go returns the reset from RoundTrip, and Connect takes any error of RoundTrip
# that it doesn't know for a connection that failed. A stream that is aborted after its first message is internal there
# too, but as a "protocol error".
#
# Why it matters to whoever compares RPC stacks: unavailable is the code that clients retry. The same server behind
# HTTP/3 gets calls again that it has already worked on, and a comparison of HTTP/2 with HTTP/3 under faults measures
# the retries. Errors of a client of both protocols can't be counted by code.
#
# Seen with Go 1.26.8 and 1.27.4:
#   HTTP/2, connect: unary internal, stream internal
#   HTTP/2, grpc: unary internal, stream internal
#   HTTP/3, connect: unary unavailable, stream internal
#   HTTP/3, grpc: unary unavailable, stream internal
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
	github.com/quic-go/quic-go v0.65.0
	google.golang.org/protobuf v1.36.12
)
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"connectrpc.com/connect"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/protobuf/types/known/emptypb"
)

type empty = emptypb.Empty

func unary(context.Context, *connect.Request[empty]) (*connect.Response[empty], error) {
	panic(http.ErrAbortHandler)
}

// stream echoes one message and aborts after the second.
func stream(_ context.Context, s *connect.BidiStream[empty, empty]) error {
	m, err := s.Receive()
	if err != nil {
		return err
	}
	if err := s.Send(m); err != nil {
		return err
	}
	if _, err := s.Receive(); err != nil {
		return err
	}
	panic(http.ErrAbortHandler)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// codes are the client's codes of an aborted unary call and of an aborted stream.
func codes(c *http.Client, url string, options ...connect.ClientOption) string {
	_, unary := connect.NewClient[empty, empty](c, url+"/finding/Unary", options...).
		CallUnary(context.Background(), connect.NewRequest(new(empty)))
	s := connect.NewClient[empty, empty](c, url+"/finding/Stream", options...).CallBidiStream(context.Background())
	check(s.Send(new(empty)))
	_, err := s.Receive()
	check(err)
	if err := s.Send(new(empty)); !errors.Is(err, io.EOF) { // EOF: the abort was faster, and Receive has the error
		check(err)
	}
	_, err = s.Receive()
	return fmt.Sprintf("unary %s, stream %s", connect.CodeOf(unary), connect.CodeOf(err))
}

func main() {
	mux := http.NewServeMux()
	mux.Handle("/finding/Unary", connect.NewUnaryHandler("/finding/Unary", unary))
	mux.Handle("/finding/Stream", connect.NewBidiStreamHandler("/finding/Stream", stream))
	two := httptest.NewUnstartedServer(mux)
	two.EnableHTTP2 = true
	two.StartTLS()
	defer two.Close()
	packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err)
	three := &http3.Server{
		Handler:   mux,
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: two.TLS.Certificates}),
	}
	go three.Serve(packets)
	defer three.Close()
	roots := x509.NewCertPool()
	roots.AddCert(two.Certificate())
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.Close()

	changed := false
	for _, row := range []struct {
		name, url, codes string
		client           *http.Client
	}{
		{"HTTP/2", two.URL, "unary internal, stream internal", two.Client()},
		{
			"HTTP/3", "https://" + packets.LocalAddr().String(), "unary unavailable, stream internal",
			&http.Client{Transport: transport},
		},
	} {
		for _, protocol := range []struct {
			name    string
			options []connect.ClientOption
		}{{"connect", nil}, {"grpc", []connect.ClientOption{connect.WithGRPC()}}} {
			got := codes(row.client, row.url, protocol.options...)
			fmt.Printf("%s, %s: %s\n", row.name, protocol.name, got)
			changed = changed || got != row.codes
		}
	}
	if changed {
		fmt.Println("changed: it used to be internal, but unavailable for unary calls over HTTP/3")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
