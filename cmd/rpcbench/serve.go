package main

import (
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"github.com/rpcbench/rpcbench/internal/calibrate"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/remote"
)

func serveCommand(stdout, stderr io.Writer) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve every stack to benchmarks elsewhere: go test -bench=. -server host:port",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			versions := environ.Versions()
			ln, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", addr)
			if err != nil {
				return fmt.Errorf("rpcbench: serve: %w", err)
			}
			fmt.Fprintln(stdout, ln.Addr())
			return remote.Listen(cmd.Context(), ln, versions, calibrate.Find, func(line string) { fmt.Fprintln(stderr, line) })
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "host:port for benchmarks to connect to; port 0 is any free one")
	return cmd
}
