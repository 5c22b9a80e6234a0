package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rpcbench/rpcbench/internal/results"
)

func tableCommand(stdout io.Writer) *cobra.Command {
	var layout results.Layout
	cmd := &cobra.Command{
		Use:   "table [file]",
		Short: "Print benchmark results as tables",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				return layout.Write(stdout, cmd.InOrStdin(), "standard input")
			}
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("rpcbench: table: %w", err)
			}
			defer file.Close()
			return layout.Write(stdout, file, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&layout.Col, "col", "codec", "key whose values are the columns")
	f.StringVar(&layout.Table, "table", "op", `key whose values have a table each, "" for none`)
	f.StringSliceVar(&layout.Units, "unit", []string{"size-B", "gzip-B", "ns/op", "allocs/op"}, "units, a table each")
	return cmd
}
