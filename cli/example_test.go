package cli_test

import (
	"os"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/cli"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
)

// Make a program of all commands, except init, for your stacks and workloads. This call is its whole main function.
func ExampleMain() {
	cli.Main([]rpcbench.Stack{httpjson.New(), grpcprotobuf.New()},
		rpcbench.Workload{Name: "busy", Title: "2 kB over TLS, 30 callers", Callers: 30, TLS: true, Payload: "2kB"})
}

// Compare stacks of your own method. They have only the workloads that are given here. Main reads the command line,
// which is "bench list" in this example.
func ExampleMain_method() {
	type message struct {
		Text string `json:"text"`
	}
	say := rpcbench.Method[message, message]{Name: "talk.v1.Talk/Say", MadeOf: "1 sample",
		Requests: []*message{{"Hello"}}, Replies: []*message{{"Good day"}},
		Equal: func(want, got *message) bool { return *want == *got }}
	os.Args = []string{"bench", "list"}
	cli.Main([]rpcbench.Stack{httpjson.Of(say)},
		rpcbench.Workload{Name: "busy", Title: "30 callers", Callers: 30})
	// Output:
	// stack     HTTP  protocol   libraries
	// httpjson  1.1   http/json  encoding/json, net/http
	//
	// workload  what it is
	// busy      30 callers
	//
	// Next: rpcbench run, or rpcbench run -workloads busy httpjson.
}
