package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/rpcbench/rpcbench/cmd/rpcbench/internal/calibrate"
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
				plan, err := calibrate.Plan(strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })...)
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
				if err := calibrate.Figures(*out, stdout); failed == nil { // of what there is
					return err
				}
				return failed
			}
		},
	}
}
