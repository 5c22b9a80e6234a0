#!/usr/bin/env bash
# grpc-go: once a retry policy has given up, SendMsg's io.EOF is wrapped, so a comparison with == misses it.
#
# What one would expect: the documentation of ClientStream.SendMsg says that io.EOF is returned when the server has ended
# the stream, and RecvMsg then has its status. Loops that send until `err == io.EOF` and then ask RecvMsg are common. A
# retry policy in the service configuration is a setting of the deployment, and changes none of that.
#
# What happens with grpc-go v1.85.0: after the last attempt SendMsg returns an error that wraps io.EOF in a text,
# "max retries exhausted: failed after 3 attempts: EOF". It is no longer equal to io.EOF, though errors.Is finds it; and
# it is no status, so a loop that returns it as an error loses the server's code, which RecvMsg still has. The message of
# a unary call gets the same prefix, so messages that are compared or shown to users change. A code that the policy
# doesn't retry leaves both as they are.
#
# Why it matters to whoever compares RPC stacks: an adapter that maps errors by comparing io.EOF or messages passes its
# tests without a policy, and reports another code as soon as an operator adds one.
#
# Seen with Go 1.26.8 and grpc-go v1.85.0:
#   without a policy: SendMsg EOF, equal to io.EOF true; unary: "out of stock" after 1 attempt
#   with a policy:    SendMsg max retries exhausted: failed after 3 attempts: EOF, equal to io.EOF false, errors.Is true;
#                     unary: "max retries exhausted: failed after 3 attempts: rpc error: code = Unavailable desc = out of
#                     stock" after 3 attempts
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require google.golang.org/grpc v1.85.0
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
	"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// said is what a client with a service configuration sees of a server that ends each call with a code: whether SendMsg's
// error equals and wraps io.EOF, the code of RecvMsg, and the message of a unary call.
func said(config string, code codes.Code) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(code, "out of stock")
	}))
	go server.Serve(listener)
	defer server.Stop()
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	unary := client.Invoke(ctx, "/a.B/C", wrapperspb.String("x"), new(wrapperspb.StringValue))
	stream, err := client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a.B/C")
	check(err)
	for err = nil; err == nil; time.Sleep(5 * time.Millisecond) {
		err = stream.SendMsg(wrapperspb.String("x"))
	}
	return fmt.Sprintf("SendMsg: %v, equal %t, wraps %t; RecvMsg: %v; unary: %s", err, err == io.EOF, errors.Is(err, io.EOF),
		status.Code(stream.RecvMsg(new(wrapperspb.StringValue))), status.Convert(unary).Message())
}

func main() {
	plain, retried, other := said(`{}`, codes.Unavailable), said(policy, codes.Unavailable), said(policy, codes.Aborted)
	fmt.Printf("without a policy  %s\nwith a policy     %s\nanother code      %s\n", plain, retried, other)
	const exhausted = "max retries exhausted: failed after 3 attempts: "
	if plain != "SendMsg: EOF, equal true, wraps true; RecvMsg: Unavailable; unary: out of stock" ||
		retried != "SendMsg: "+exhausted+"EOF, equal false, wraps true; RecvMsg: Unavailable; unary: "+exhausted+
			"rpc error: code = Unavailable desc = out of stock" ||
		other != "SendMsg: EOF, equal true, wraps true; RecvMsg: Aborted; unary: out of stock" {
		fmt.Println("what a retry policy does to the end of a stream has changed")
		os.Exit(1)
	}
}
GO
go mod tidy > tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go run .
