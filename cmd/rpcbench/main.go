// Rpcbench compares stacks, and says how far its comparisons are to be trusted.
//
//	rpcbench versus [--base httpjson] [--time 20s] [--processes 16] [--procs 1] [--margin 2] [--seed n] [stack...]
//
// compares each stack, all main ones unless named, with the base: short slices of all in turn, in several processes one
// after the other. It prints a line per stack with the ratio of its time to the base's, the interval, and the verdict that
// the interval gives: faster, slower, equal (within the margin, in percent) or undecided. The base takes part twice, and no
// difference is reported inside the interval of the base against itself, the noise floor. --procs is GOMAXPROCS, 0 for the
// default; --seed decides the order of the slices.
//
//	rpcbench calibrate --out folder [--only experiment,...] [--read]
//
// measures on this machine how often such a verdict is false, how small a difference is found and how often an interval
// holds the truth. It takes about 100 minutes with nothing else running, goes on where it was interrupted, and leaves raw
// records, figures and plots in the folder. With --read it only makes figures and plots of the records that are there.
//
//	rpcbench serve [--addr 127.0.0.1:0]
//
// serves every stack to benchmarks that run elsewhere, until it is interrupted. It prints its address, which go test takes:
// go test -bench=. -server host:port. Both sides must be built with one Go from one commit. Servers listen on free ports of
// the interface that a benchmark comes to; there is no password, so give an address other than the default only on a network
// that you trust. The server's figures are those of the whole command: one benchmark at a time.
//
//	rpcbench table [--col codec] [--table op] [--unit size-B,gzip-B,ns/op,allocs/op] [file]
//
// prints what go test -bench printed to the file, or to standard input, as tables: a column for each value of the key --col,
// a table for each unit and value of the key --table, and of six runs or more an interval of 95 %.
//
// Bad input is one line on standard error and exit status 1. What was measured before a failure is printed. Progress shows
// on a terminal only.
//
// docs/method.md explains the method. Examples:
//
//	rpcbench versus grpcprotobuf
//	rpcbench versus --base grpcprotobuf --procs 0 grpcprotobuf.tuned grpcservehttp
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rpcbench/rpcbench/internal/calibrate"
	"github.com/rpcbench/rpcbench/internal/replicate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use: "rpcbench", Short: "Compare ways to serve and call an API, and say how far to trust it",
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("rpcbench: no command %q: rpcbench --help lists them", args[0])
			}
			return cmd.Help()
		},
	}
	root.AddCommand(versusCommand(stdout, stderr), calibrateCommand(stdout, stderr), serveCommand(stdout, stderr), tableCommand(stdout), &cobra.Command{
		Use: measure, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return replicate.Serve(cmd.Context(), stdin, stdout, calibrate.Find)
		},
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

const measure = "measure" // the command of the processes that the others start

// self is this program as a process that measures.
func self() (replicate.Command, error) {
	path, err := os.Executable()
	return replicate.Command{path, measure}, err
}
