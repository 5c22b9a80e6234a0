#!/usr/bin/env bash
# grpc-go: under Server.ServeHTTP a stats handler sees a new connection for each call, and never a header sent.
#
# What one would expect: a stats.Handler is told of a connection once (ConnBegin when it is accepted, ConnEnd when it
# closes) and of each call's InHeader, Begin, payloads, OutHeader, OutTrailer and End. Where grpc-go doesn't own the
# connection, because net/http has accepted it and calls grpc.Server.ServeHTTP, one would expect no ConnBegin at all.
#
# What happens with google.golang.org/grpc v1.85.0: ServeHTTP reports ConnBegin and ConnEnd with each call, so that five
# calls on one TCP connection are five connections that lived as long as a call. And OutHeader, which Serve reports
# before the first message, isn't reported, although the client gets the handler's header.
#
# Why it matters to whoever compares RPC stacks: a server that moves from Serve to ServeHTTP, to share a port with JSON
# say, keeps its stats handler. Its count of connections becomes its count of calls, and its mean life of a connection
# the mean call, so that it looks as if clients had stopped reusing connections, which isn't so. What is timed from
# OutHeader, such as the time to the first byte, disappears.
#
# Seen with Go 1.26.8 and 1.27.4, five unary calls whose handler sets a header:
#   Serve: TCP connections 1, ConnBegin 1, ConnEnd 1, InHeader 5, OutHeader 5, OutTrailer 5
#   ServeHTTP: TCP connections 1, ConnBegin 5, ConnEnd 5, InHeader 5, OutHeader 0, OutTrailer 5
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
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

const calls = 5

// events counts what a stats handler is told, by type. ended has a value for each call that is over.
type events struct {
	mutex sync.Mutex
	seen  map[string]int
	ended chan bool
}

func (e *events) add(what any) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.seen[fmt.Sprintf("%T", what)]++
}

func (e *events) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (e *events) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (e *events) HandleConn(_ context.Context, s stats.ConnStats)                   { e.add(s) }
func (e *events) HandleRPC(_ context.Context, s stats.RPCStats) {
	e.add(s)
	if _, ok := s.(*stats.End); ok {
		e.ended <- true
	}
}

type service struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (service) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (
	*grpc_health_v1.HealthCheckResponse, error,
) {
	return new(grpc_health_v1.HealthCheckResponse), grpc.SetHeader(ctx, metadata.Pairs("x-finding", "1"))
}

// counted is a listener that counts the TCP connections it accepts.
type counted struct {
	net.Listener
	accepted atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// row makes the calls, closes the client and says what the stats handler saw.
func row(name string, serve func(s *grpc.Server, l net.Listener)) string {
	e := &events{seen: map[string]int{}, ended: make(chan bool, calls)}
	s := grpc.NewServer(grpc.StatsHandler(e))
	grpc_health_v1.RegisterHealthServer(s, service{})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	l := &counted{Listener: tcp}
	go serve(s, l)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	for range calls {
		var header metadata.MD
		_, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(),
			new(grpc_health_v1.HealthCheckRequest), grpc.Header(&header))
		check(err)
		if len(header["x-finding"]) != 1 {
			log.Fatal("changed: the handler's header didn't arrive")
		}
		<-e.ended
	}
	check(conn.Close())
	for range 500 { // ConnEnd comes after End
		if e.count(new(stats.ConnEnd)) == e.count(new(stats.ConnBegin)) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Sprintf("%s: TCP connections %d, %s", name, l.accepted.Load(), e)
}

func (e *events) count(what any) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.seen[fmt.Sprintf("%T", what)]
}

func (e *events) String() string {
	return fmt.Sprintf("ConnBegin %d, ConnEnd %d, InHeader %d, OutHeader %d, OutTrailer %d",
		e.count(new(stats.ConnBegin)), e.count(new(stats.ConnEnd)), e.count(new(stats.InHeader)),
		e.count(new(stats.OutHeader)), e.count(new(stats.OutTrailer)))
}

func main() {
	own := row("Serve", func(s *grpc.Server, l net.Listener) { s.Serve(l) })
	shared := row("ServeHTTP", func(s *grpc.Server, l net.Listener) {
		h := http.Server{Handler: s, Protocols: new(http.Protocols)}
		h.Protocols.SetUnencryptedHTTP2(true)
		h.Serve(l)
	})
	fmt.Println(own)
	fmt.Println(shared)
	if own != "Serve: TCP connections 1, ConnBegin 1, ConnEnd 1, InHeader 5, OutHeader 5, OutTrailer 5" ||
		shared != "ServeHTTP: TCP connections 1, ConnBegin 5, ConnEnd 5, InHeader 5, OutHeader 0, OutTrailer 5" {
		fmt.Println("changed: ServeHTTP used to report 5 connections and no OutHeader, and Serve 1 and 5")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
