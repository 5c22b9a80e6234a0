#!/usr/bin/env bash
# net/http: over HTTP/2 a client opens more connections than MaxConnsPerHost, once their streams are in use.
#
# What one would expect: the documentation of Transport.MaxConnsPerHost says that it limits the connections of a host,
# active and idle ones included, and that dials block at the limit. So with a limit of one and a server that takes 10
# streams on a connection, 30 calls at a time share one connection, and 20 of them wait for a stream.
#
# What happens with Go 1.26.8 and 1.27.4: three connections are open at the same time, and no call waits. With up to 10
# calls the limit holds. Without a limit, 30 calls at a time to a server that the client has not called before open a
# connection for most of them, which then stay: they dial before the first one is known to speak HTTP/2.
#
# Why it matters to whoever compares RPC stacks: a client whose figures are to be those of one shared connection has to
# make one call before the callers begin, and to stay below the server's streams, which are 250 by default in net/http.
# Counting connections at the server is the only proof. grpc-go's client never opens a second one: its calls wait.
#
# Seen with Go 1.26.8, connections open at the same time:
#   limit 1, after a call, 10 calls at a time: 1
#   limit 1, after a call, 30 calls at a time: 3
#   no limit, 30 calls at a time: 14 to 30 (Go 1.27.4: 20 to 29)
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// most calls a new server of 10 streams so many times at a time, perhaps after a first call, and returns how many
// connections were open at the same time.
func most(limit, calls int, first bool) int {
	var mu sync.Mutex
	open, most := 0, 0
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &h2c, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(300 * time.Millisecond)
			io.WriteString(w, "ok")
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			mu.Lock()
			defer mu.Unlock()
			switch state {
			case http.StateNew:
				open++
				most = max(most, open)
			case http.StateClosed:
				open--
			}
		}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go server.Serve(listener)
	defer server.Close()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{Protocols: &h2c, MaxConnsPerHost: limit}}
	call := func() {
		reply, err := client.Get("http://" + listener.Addr().String())
		check(err)
		_, err = io.Copy(io.Discard, reply.Body)
		check(err)
		check(reply.Body.Close())
	}
	if first {
		call()
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(call)
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	return most
}

func main() {
	few, many, cold := most(1, 10, true), most(1, 30, true), most(0, 30, false)
	fmt.Printf("limit 1, after a call, 10 calls at a time: %d\nlimit 1, after a call, 30 calls at a time: %d\n", few, many)
	fmt.Printf("no limit, 30 calls at a time: %d\n", cold)
	switch {
	case few != 1:
		fmt.Println("changed: the limit does not hold below the server's streams either")
	case many < 2:
		fmt.Println("changed: the limit holds")
	case cold < 10:
		fmt.Println("changed: calls at a time wait for the first connection")
	default:
		return
	}
	os.Exit(1)
}
GO
go run .
