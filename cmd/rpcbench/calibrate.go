package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rpcbench/rpcbench/internal/calibrate"
)

func calibrateCommand(stdout, stderr io.Writer) *cobra.Command {
	var out string
	var only []string
	var read bool
	cmd := &cobra.Command{
		Use:   "calibrate --out folder",
		Short: "Measure how far versus is to be trusted on this machine, in about 100 minutes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := calibrate.Only(calibrate.Plan(), only...)
			if err != nil {
				return err
			}
			var failed error
			if !read {
				children, err := self()
				if err != nil {
					return err
				}
				show, done := progress(stderr)
				failed = calibrate.Run(cmd.Context(), out, plan, children, show)
				done()
			}
			if err := figures(out, stdout); failed == nil { // of what there is
				return err
			}
			return failed
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for records, figures and plots; a calibration that was interrupted goes on")
	cmd.Flags().StringSliceVar(&only, "only", nil, "names of experiments; all unless given")
	cmd.Flags().BoolVar(&read, "read", false, "measure nothing, read the records that are there")
	_ = cmd.MarkFlagRequired("out") // fails only if there is no such flag
	return cmd
}

// figures reads the records of a folder, and writes what they say to it and to stdout.
func figures(dir string, stdout io.Writer) error {
	entries, err := calibrate.Read(filepath.Join(dir, calibrate.RecordsFile))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := calibrate.Figures(&text, entries); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "figures.txt"), text.Bytes(), 0o644); err != nil {
		return err
	}
	if _, err := text.WriteTo(stdout); err != nil {
		return err
	}
	return calibrate.Plots(dir, entries)
}
