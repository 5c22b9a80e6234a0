package own

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/shell"
)

// Command is init, which makes a module to keep.
func Command(maker Make, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "init", Tidies: true, Does: "Make a Go module that compares ways to serve and call your own method",
		Example: "rpcbench init -proto orders.proto -call shop.v1.Orders/Get -reply order.json -out orders",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var m Messages
			m.Register(f)
			out := f.String("out", "", "new `folder` for the module")
			return func(ctx context.Context, _ []string) error {
				switch err := maker.Check(m); {
				case err != nil:
					return shell.Wrong("init: %w", err)
				case *out == "":
					return shell.Wrong("init: the folder is missing: name a new one with -out")
				}
				if err := shell.IsNew("init: -out", *out); err != nil {
					return err
				}
				return maker.keep(ctx, m, *out, stdout, stderr)
			}
		},
	}
}

// keep writes the module to a folder that was not there, once it is proved.
func (maker Make) keep(ctx context.Context, m Messages, out string, stdout, stderr io.Writer) (err error) {
	path, err := filepath.Abs(out)
	dir, failed := os.MkdirTemp(filepath.Dir(path), ".rpcbench-")
	if err := cmp.Or(err, failed); err != nil {
		return shell.Wrong("init: -out %s: %w", out, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made, err := maker.Build(ctx, m, dir, filepath.Base(path), stdout, stderr)
	if err == nil {
		err = os.Remove(made.Program)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Rename(dir, path)
	}
	if err == nil {
		samples, _, _ := strings.Cut(made.Made, ";") // the rest has been told
		folder := out
		if strings.Contains(out, " ") {
			folder = strconv.Quote(out)
		}
		err = shell.Say(stdout, "%s is a Go module that compares stacks of %s: %s.", out, made.Method, samples)
		if err == nil {
			err = shell.Say(stdout, "Next: cd %s && go run . run -out answer", folder)
		}
	}
	return err
}
