package httpjsoniter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjsoniter"
)

// Start a server and a client, create a user, and stop both.
func Example() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjsoniter.New(), rpcbench.Config{})
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
