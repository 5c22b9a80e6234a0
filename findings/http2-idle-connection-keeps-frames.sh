#!/usr/bin/env bash
# net/http: with Go 1.27 an idle HTTP/2 connection keeps 2 MiB if it has once carried a reply of 1 MiB.
#
# What one would expect: a connection between calls holds its buffers, some 70 kB on both sides together, whatever it
# carried before, with Go 1.27 as with Go 1.26. At most the client keeps the buffer that it read a large frame into.
#
# What happens with net/http: Go 1.27's client tells the server that it takes frames of 1 MiB (1.26: 16 KiB). Both
# sides keep a buffer for the largest frame so far as long as the connection lives: the client the one that it read the
# frame into, the server the one that it wrote the frame from. So a single large reply makes each idle connection 1 MiB
# heavier on both sides. HTTP2Config.MaxReadFrameSize of 16 KiB in the client brings 1.26's figures back. grpc-go
# v1.85.0 keeps frames of 16 KiB and with them its figures.
#
# Why it matters to whoever compares RPC stacks: memory of idle connections isn't a property of the stack alone but of
# what its connections have carried, and measured after small calls it says nothing of a service that sends a large
# reply now and then. 1,000 such clients cost a server a gigabyte, which Go 1.26 didn't need.
#
# Seen, kB of heap for each connection that is idle after one reply of 1 MiB:
#   go1.26.8, net/http: client 35, server 35
#   go1.26.8, net/http, frames of 16 KiB: client 34, server 35
#   go1.26.8, grpc-go: client 18, server 8
#   go1.27.4, net/http: client 1067, server 1073
#   go1.27.4, net/http, frames of 16 KiB: client 34, server 35
#   go1.27.4, grpc-go: client 18, server 8
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require google.golang.org/grpc v1.85.0
MOD
cat > main.go <<'GO'
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
func (raw) Name() string { return "raw" }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

var h2c = func() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}()

// serve prints its address, and then its heap for each line that it reads.
func serve(kind string) {
	reply := make([]byte, 1<<20)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	if kind == "grpc-go" {
		s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(
			func(_ any, s grpc.ServerStream) error { return s.SendMsg(&reply) }))
		go s.Serve(l)
	} else {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(reply) })
		go (&http.Server{Handler: handler, Protocols: h2c}).Serve(l)
	}
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(heap())
	}
}

// connection makes a connection that has carried one reply.
func connection(kind, address string) any {
	if kind == "grpc-go" {
		c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
		check(err)
		var request, reply []byte
		check(c.Invoke(context.Background(), "/any/Large", &request, &reply))
		return c
	}
	t := &http.Transport{Protocols: h2c}
	if kind == "net/http, frames of 16 KiB" {
		t.HTTP2 = &http.HTTP2Config{MaxReadFrameSize: 16 << 10}
	}
	r, err := (&http.Client{Transport: t}).Get("http://" + address)
	check(err)
	n, err := io.Copy(io.Discard, r.Body)
	check(err)
	if n != 1<<20 || r.ProtoMajor != 2 {
		log.Fatal(n, " bytes with ", r.Proto)
	}
	check(r.Body.Close())
	return t
}

// kept is how much heap a connection holds at the client and at the server.
func kept(kind string) (client, server int64) {
	child := exec.Command(os.Args[0], "serve", kind)
	in, err := child.StdinPipe()
	check(err)
	out, err := child.StdoutPipe()
	check(err)
	check(child.Start())
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	check(err)
	address := strings.TrimSpace(line)
	atServer := func() (n int64) {
		fmt.Fprintln(in)
		_, err := fmt.Fscanln(said, &n)
		check(err)
		return n
	}
	const n = 50
	connections := []any{connection(kind, address)}
	time.Sleep(300 * time.Millisecond)
	client, server = -heap(), -atServer()
	for range n {
		connections = append(connections, connection(kind, address))
	}
	time.Sleep(300 * time.Millisecond)
	client, server = client+heap(), server+atServer()
	runtime.KeepAlive(connections)
	check(in.Close())
	check(child.Wait())
	return client / n / 1000, server / n / 1000
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	changed := false
	for _, kind := range []string{"net/http", "net/http, frames of 16 KiB", "grpc-go"} {
		client, server := kept(kind)
		fmt.Printf("%s, %s: client %d, server %d\n", runtime.Version(), kind, client, server)
		heavy := kind == "net/http" && strings.HasPrefix(runtime.Version(), "go1.27")
		changed = changed || (client > 1000) != heavy || (server > 1000) != heavy
	}
	if changed {
		fmt.Println("changed: more than 1 MB on both sides used to be kept by net/http of Go 1.27 alone")
		os.Exit(1)
	}
}
GO
for release in ${GOTOOLCHAIN_OF_FINDING:-go1.26.8 go1.27.4}; do
  GOTOOLCHAIN=$release go build -o finding .
  ./finding
done
