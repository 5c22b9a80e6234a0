package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
)

func reportCommand(stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "report", Args: " folder", Does: "Make report.html, report.md and answer.svg of a run",
		Example: "rpcbench report -out pages mine",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			out := f.String("out", "", "`folder` for the report (default the run's)")
			return func(_ context.Context, args []string) error {
				if len(args) != 1 {
					return shell.Wrong("report: name one folder that rpcbench run made")
				}
				if _, none := os.Stat(filepath.Join(args[0], idle.File)); none == nil {
					r, err := idle.Read(args[0])
					return atRest(r, err, args[0], *out, stdout)
				}
				s, err := report.Read(args[0])
				if err != nil {
					return err
				}
				dir := cmp.Or(*out, args[0])
				if err = os.Mkdir(dir, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
					err = s.Write(dir)
				} else if errors.Is(err, fs.ErrNotExist) {
					return shell.Wrong("report: -out %s: make the folder %s first", dir, filepath.Dir(filepath.Clean(dir)))
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(stdout, "Report: %s\n", filepath.Join(dir, s.Page()))
				return err
			}
		},
	}
}

// atRest prints the tables of a folder of memory at rest.
func atRest(r idle.Result, err error, dir, out string, stdout io.Writer) error {
	switch {
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case out != "":
		return shell.Wrong("report: %s has memory at rest, of which there are no pages: leave -out out", dir)
	}
	return r.Text(stdout, shell.Width(stdout), shell.Colours(stdout))
}

func listCommand(p program, stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "list", Does: "List the stacks and the workloads",
		Example: "rpcbench list",
		Setup: func(*flag.FlagSet) func(context.Context, []string) error {
			return func(context.Context, []string) error {
				stacks := table.New(4, "stack", "HTTP", "protocol", "libraries")
				for _, s := range p.Stacks {
					stacks.Add(s.Name, string(cmp.Or(s.Traits.HTTP, "none")), s.Protocol,
						strings.Join(append([]string{s.Traits.Codec}, s.Traits.ClientLibraries...), ", "))
				}
				workloads := table.New(2, "workload", "what it is")
				for _, w := range p.Workloads() {
					workloads.Add(w.Name, w.Title)
				}
				err := stacks.Text(stdout, shell.Width(stdout))
				fmt.Fprintln(stdout)
				err = errors.Join(err, workloads.Text(stdout, shell.Width(stdout)))
				some, last := p.Workloads()[0].Name, p.Stacks[len(p.Stacks)-1].Name
				return errors.Join(err, shell.Say(stdout, "\nNext: rpcbench run, or rpcbench run -workloads %s %s.", some, last))
			}
		},
	}
}

func versionCommand(stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "version", Does: "Print commit, Go release, machine and the versions of all libraries",
		Example: "rpcbench version",
		Setup: func(*flag.FlagSet) func(context.Context, []string) error {
			return func(context.Context, []string) error {
				_, err := fmt.Fprintln(stdout, strings.Join(environ.List(), "\n"))
				return err
			}
		},
	}
}
