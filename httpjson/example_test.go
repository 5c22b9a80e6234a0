package httpjson_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
)

// Start a server and a client, create a user, and stop both.
func Example() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{})
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

// Serve and call a method of your own: the server finds the order that a request asks for by its number.
func ExampleOf() {
	type get struct{ Number uint64 }
	type order struct{ Item string }
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjson.Of(rpcbench.Method[get, order]{
		Name:     "shop.v1.Orders/Get",
		Requests: []*get{{1}, {2}},
		Replies:  []*order{{"anvil"}, {"bench"}},
		Key:      func(q *get) uint64 { return q.Number },
		Equal:    func(want, got *order) bool { return *want == *got },
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
