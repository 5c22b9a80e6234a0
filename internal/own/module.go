package own

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
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Group is the group of the flags in a manual; none if the program makes no modules.
func (maker Make) Group() []string {
	if maker == nil {
		return nil
	}
	return []string{"Your messages: " + Flags}
}

// Asked tells whether flags of messages were given to a command, and what is wrong with them.
func (maker Make) Asked(f *flag.FlagSet, m Messages) (asked bool, err error) {
	f.Visit(func(f *flag.Flag) { asked = asked || slices.Contains(strings.Fields(Flags), f.Name) })
	if asked {
		err = maker.Check(m)
	}
	if err != nil {
		err = shell.Wrong("%s: %w", f.Name(), err)
	}
	return asked, err
}

// Run makes the module in a temporary folder, runs the command of its program there with the other flags, and removes
// the folder. The program's report shows what was typed. folder makes that of the results, and is nil if there is none
// of them.
func (maker Make) Run(ctx context.Context, m Messages, f *flag.FlagSet, folder func() (string, error),
	stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made, err := maker.Build(ctx, m, dir, "own", stderr, stderr)
	if err != nil {
		return err
	}
	args, taken := []string{f.Name()}, strings.Fields(Flags)
	f.Visit(func(f *flag.Flag) {
		if f.Name != "out" && !slices.Contains(taken, f.Name) {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	out := ""
	if folder != nil {
		if out, err = folder(); err != nil {
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
	cmd.Env = append(append(cmd.Environ(), builds.Here()...), shell.ForMade())
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
