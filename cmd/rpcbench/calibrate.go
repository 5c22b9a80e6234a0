package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rpcbench/rpcbench/internal/calibrate"
	"github.com/rpcbench/rpcbench/internal/replicate"
)

func calibrateCommand(stderr io.Writer) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "calibrate", Short: "Measure how far versus is to be trusted on this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			children, err := self()
			if err != nil {
				return err
			}
			show, clear := progress(stderr)
			defer clear()
			return calibrate.Run(cmd.Context(), out, calibrate.Plan(), children, show)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for records, figures and plots")
	_ = cmd.MarkFlagRequired("out") // fails only if there is no such flag
	return cmd
}

// self is this program as a process that measures.
func self() (replicate.Command, error) {
	path, err := os.Executable()
	return replicate.Command{path, "measure"}, err
}
