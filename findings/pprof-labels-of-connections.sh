#!/usr/bin/env bash
# pprof labels: the goroutines of a connection keep the labels of one call for good, and each stack picks another one.
#
# What one would expect: pprof.Do around a call labels what the call costs, and where a library has goroutines of a
# connection that many calls share, they have no labels, or at least those of the first call with every library.
#
# What happens instead: a goroutine inherits the labels of the one that starts it.
#   - net/http (Go 1.26.8 and 1.27.4) dials within the first call, so readLoop and writeLoop of HTTP/1.1, and readLoop
#     of HTTP/2, have the first call's labels as long as the connection lives. All later calls' socket work is put down
#     to the first.
#   - grpc-go v1.85.0 also dials at the first call, but from a goroutine that NewClient started. So the reader and the
#     writer of its connection have the labels of whoever called NewClient, and no call's at all. That a call made the
#     connection doesn't show.
#
# Why it matters to whoever compares RPC stacks: a CPU profile that is split by labels, per method or per tenant say,
# shows one dear call and many cheap ones with net/http, and calls without any system call with gRPC. The two can't be
# compared by label. Call NewClient and make the first HTTP call outside pprof.Do, and the connections' work is at least
# unlabelled with both.
#
# Seen:
#   HTTP/1.1 readLoop: first
#   HTTP/1.1 writeLoop: first
#   HTTP/2 readLoop: first
#   grpc-go reader: newclient
#   grpc-go loopyWriter: newclient
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
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime/pprof"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

var who = regexp.MustCompile(`labels: \{"who":"(\w+)"\}`)

// label is what the goroutines with this frame are labelled with.
func label(frame string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		log.Fatal(err)
	}
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, frame) {
			continue
		}
		if m := who.FindStringSubmatch(stack); m != nil {
			return m[1]
		}
		return "no label"
	}
	return "no such goroutine"
}

func labelled(name string, f func(ctx context.Context) error) {
	pprof.Do(context.Background(), pprof.Labels("who", name), func(ctx context.Context) {
		if err := f(ctx); err != nil {
			log.Fatal(err)
		}
	})
}

// changed is whether a row differs from what was seen.
var changed bool

func row(name, frame, want string) {
	got := label(frame)
	fmt.Printf("%s: %s\n", name, got)
	changed = changed || got != want
}

// calls makes two calls to an HTTP server, each with a label of its own, on one connection.
func calls(protocols *http.Protocols) (stop func()) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.Protocols = protocols
	s.Start()
	t := &http.Transport{Protocols: protocols}
	for _, name := range []string{"first", "second"} {
		labelled(name, func(ctx context.Context) error {
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
			if err != nil {
				return err
			}
			r, err := t.RoundTrip(q)
			if err != nil {
				return err
			}
			defer r.Body.Close()
			_, err = io.Copy(io.Discard, r.Body)
			return err
		})
	}
	return func() { t.CloseIdleConnections(); s.Close() }
}

func main() {
	var one, two http.Protocols
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	stop := calls(&one)
	row("HTTP/1.1 readLoop", "(*persistConn).readLoop", "first")
	row("HTTP/1.1 writeLoop", "(*persistConn).writeLoop", "first")
	stop()
	stop = calls(&two)
	row("HTTP/2 readLoop", "ClientConn).readLoop", "first") // http2ClientConn with Go 1.26
	stop()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	defer server.Stop()
	var conn *grpc.ClientConn
	labelled("newclient", func(context.Context) (err error) {
		conn, err = grpc.NewClient("passthrough:///"+l.Addr().String(),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		return err
	})
	defer conn.Close()
	for _, name := range []string{"first", "second"} {
		labelled(name, func(ctx context.Context) error {
			_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, new(grpc_health_v1.HealthCheckRequest))
			return err
		})
	}
	row("grpc-go reader", "(*http2Client).reader", "newclient")
	row("grpc-go loopyWriter", "transport.NewHTTP2Client.func", "newclient")
	if changed {
		fmt.Println("changed: it used to be first for net/http and newclient for grpc-go")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
