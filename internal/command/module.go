package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// runModule makes the module in a temporary folder, runs its program there with the other flags, and removes the
// folder. The program's report shows what was typed.
func (p program) runModule(ctx context.Context, m own.Messages, f *flag.FlagSet, o options, stdout, stderr io.Writer) (
	err error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made, err := p.make.Build(ctx, m, dir, "own", stderr, stderr)
	if err != nil {
		return err
	}
	args, taken := []string{"run"}, strings.Fields(own.Flags)
	f.Visit(func(f *flag.Flag) {
		if f.Name != "out" && !slices.Contains(taken, f.Name) {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	out := ""
	if !o.gate.countsOnly() {
		if out, err = shell.Folder(o.out); err != nil {
			return err
		}
		here, err := filepath.Abs(out) // lies where the caller is
		if err != nil {
			return err
		}
		args = append(args, "-out="+here)
	}
	cmd := exec.CommandContext(ctx, made.Program, append(args, f.Args()...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, stdout, stderr, time.Minute
	cmd.Env = append(append(cmd.Environ(), builds.Here()...), report.Typed+"="+strings.Join(shell.AsTyped(), "\n"))
	err = builds.Run(cmd)
	_ = os.Remove(out) // unless something is in it
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
	case exit.ExitCode() < 0 && ctx.Err() != nil: // before the program listened for signals, so it has said nothing
		err = shell.ErrInterrupted
	default:
		err = shell.ExitStatus(max(1, exit.ExitCode()))
	}
	if _, none := os.Stat(out); made.Schema != nil && none == nil {
		schema := filepath.Join(out, "schema.proto")
		err = errors.Join(err, os.WriteFile(schema, made.Schema, 0o644))
		_, _ = fmt.Fprintf(stderr, "Next: edit %s and pass -proto %[1]s -call %s to go on.\n", schema, made.Method)
	}
	return err
}
