package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rpcbench/rpcbench/internal/calibrate"
)

func calibrateCommand(stdout, stderr io.Writer) command {
	return command{
		name: "calibrate", does: "Measure how far versus is to be trusted on this machine, in about 70 minutes",
		example: "rpcbench calibrate -out results/today -only replication",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			out := f.String("out", "", "`folder` for records and figures; a calibration that was interrupted goes on")
			only := f.String("only", "", "`experiments`, separated by commas; all unless given")
			read := f.Bool("read", false, "measure nothing, read the records that are there")
			return func(ctx context.Context, _ []string) error {
				if *out == "" {
					return wrong("calibrate: -out names the folder for what is measured")
				}
				plan, err := calibrate.Only(calibrate.Plan(), strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })...)
				if err != nil {
					return wrongUse{err}
				}
				var failed error
				if !*read {
					children, err := self()
					if err != nil {
						return err
					}
					show, done := progress(stderr)
					failed = calibrate.Run(ctx, *out, plan, children, show)
					done()
				}
				if err := figures(*out, stdout); failed == nil { // of what there is
					return err
				}
				return failed
			}
		},
	}
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
	_, err = text.WriteTo(stdout)
	return err
}
