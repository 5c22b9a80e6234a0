package rpcbench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
)

// Start a stack's server and client, create a user, stop both.
func Example() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()

	anna := rpcbench.User{Email: "anna@example.com", Name: "Anna", Password: "correct horse"}
	reply, err := fixture.Client.CreateUser(ctx, anna)
	fmt.Println(reply.Code, reply.Message, reply.User.ID, reply.User.Name, err)

	anna.Email, anna.Name = "anna", "Ann"
	_, err = fixture.Client.CreateUser(ctx, anna)
	fmt.Println(err)
	// Output:
	// 200 OK 1000000 Anna <nil>
	// rpcbench: invalid: email email, name min=4
}

// Plug in a stack of your own: here httpjson's client with another server. A timed loop makes prepared calls, which
// check every reply.
func Example_ownStack() {
	stack := httpjson.New()
	stack.Name = "mine"
	stack.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) {
		validate := rpcbench.NewValidator[rpcbench.User]()
		return &http.Server{
			ReadHeaderTimeout: rpcbench.HeaderTimeout,
			IdleTimeout:       rpcbench.IdleTimeout,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := func(status int, v any) {
					w.WriteHeader(status)
					_ = json.NewEncoder(w).Encode(v)
				}
				user := new(rpcbench.User)
				if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody)).Decode(user); err != nil {
					answer(http.StatusBadRequest, &rpcbench.Error{Code: rpcbench.Malformed})
				} else if err := validate(user); err != nil {
					answer(http.StatusBadRequest, err)
				} else {
					answer(http.StatusOK, rpcbench.Answer(user))
				}
			}),
		}, nil
	}

	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, stack, rpcbench.Config{Conns: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()

	for _, name := range []string{"Anna", "Ann"} {
		call, err := fixture.Client.Prepare(rpcbench.User{Email: "anna@example.com", Name: name, Password: "correct horse"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, call(ctx))
	}
	fmt.Println(fixture.Stack.Name, fixture.Accepted())
	// Output:
	// Anna <nil>
	// Ann rpcbench: invalid: name min=4
	// mine 2
}
