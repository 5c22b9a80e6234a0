package stacks_test

import (
	"fmt"

	"github.com/rpcbench/rpcbench/stacks"
)

// Find stacks by the names that rows and commands use.
func ExampleFind() {
	found, err := stacks.Find("grpcprotobuf", "httpjson.h2c")
	for _, s := range found {
		fmt.Println(s.Name, s.Traits.HTTP, s.Traits.Codec)
	}
	fmt.Println(err)
	// Output:
	// grpcprotobuf 2 google.golang.org/protobuf
	// httpjson.h2c 2 encoding/json
	// <nil>
}
