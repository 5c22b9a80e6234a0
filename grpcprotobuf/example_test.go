package grpcprotobuf_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
)

// Start a server and a client, create a user, and stop both.
func Example() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, grpcprotobuf.New(), rpcbench.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	anna := rpcbench.User{Email: "anna@example.com", Name: "Anna", Password: "correct horse"}
	users, err := rpcbench.As[rpcbench.Users](fixture)
	if err != nil {
		log.Fatal(err)
	}
	reply, err := users.CreateUser(ctx, anna)
	fmt.Println(reply.Code, reply.User.Name, err)
	// Output: 200 Anna <nil>
}

// Serve and call a method of your own. Package wrapperspb stands for the one that protoc-gen-go made of your .proto.
func ExampleOf() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, grpcprotobuf.Of(rpcbench.Method[wrapperspb.UInt64Value, wrapperspb.StringValue]{
		Name:     "shop.v1.Orders/Get",
		Requests: []*wrapperspb.UInt64Value{{Value: 1}, {Value: 2}},
		Replies:  []*wrapperspb.StringValue{{Value: "anvil"}, {Value: "bench"}},
		Key:      func(q *wrapperspb.UInt64Value) uint64 { return q.Value },
		Equal:    func(want, got *wrapperspb.StringValue) bool { return want.Value == got.Value },
	}), rpcbench.Config{TLS: true})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	for i := range 2 {
		call, err := fixture.Client.Prepare(i)
		fmt.Println(err, call(ctx))
	}
	// Output:
	// <nil> <nil>
	// <nil> <nil>
}
