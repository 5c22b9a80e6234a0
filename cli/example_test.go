package cli_test

import (
	"os"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/cli"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
)

// A main function has this one call, with stacks and workloads of yours. Its program then has all commands but init.
func ExampleMain() {
	cli.Main([]rpcbench.Stack{httpjson.New(), grpcprotobuf.New()},
		rpcbench.Workload{Name: "busy", Title: "2 kB over TLS, 30 callers", Callers: 30, TLS: true, Payload: "2kB"})
}

// Stacks of a method of your own have the workloads that are given alone. Main reads the command line: here it is list.
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
