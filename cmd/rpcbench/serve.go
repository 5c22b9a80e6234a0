package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"

	api "github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/remote"
	"github.com/rpcbench/rpcbench/internal/roster"
)

func serveCommand(stdout, stderr io.Writer) command {
	return command{
		name: "serve", does: "Serve every stack to benchmarks elsewhere", example: "rpcbench serve -addr 10.0.0.7:8080",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			addr := f.String("addr", "127.0.0.1:0", "`host:port` for benchmarks to connect to; port 0 is any free one")
			return func(ctx context.Context, _ []string) error {
				versions := environ.Versions()
				ln, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
				if err != nil {
					return fmt.Errorf("rpcbench: serve: %w", err)
				}
				fmt.Fprintln(stdout, ln.Addr())
				return remote.Listen(ctx, ln, versions, one, func(line string) { fmt.Fprintln(stderr, line) })
			}
		},
	}
}

// one is the stack of a name: of the roster, and no copy of one with work injected, which any peer could ask for.
func one(name string) (api.Stack, error) {
	found, err := roster.Find(name)
	if err != nil {
		return api.Stack{}, err
	}
	return found[0], nil
}
