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
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
)

func reportCommand(stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "report", Args: " folder...", Does: "Make report.html, report.md and answer.svg of a run, or of several",
		More: "\n\nOf several runs with the same base, machine and Go release it prints the mean of each ratio, and\n" +
			"where that of the next run will be. With -out it also writes pages and pooled.json.",
		Example: "rpcbench report -out pages mine",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			out := f.String("out", "", "`folder` for the report (default the run's; none of several)")
			return func(_ context.Context, args []string) error {
				switch len(args) {
				case 0:
					return shell.Wrong("report: name one folder that rpcbench run made, or several")
				case 1:
					return ofOne(args[0], *out, stdout)
				}
				return ofSeveral(args, *out, stdout, stderr)
			}
		},
	}
}

// ofOne makes the pages of a run, or prints the tables of memory at rest.
func ofOne(folder, out string, stdout io.Writer) error {
	if _, none := os.Stat(filepath.Join(folder, idle.File)); none == nil {
		r, err := idle.Read(folder)
		return atRest(r, err, folder, out, stdout)
	}
	s, err := report.Read(folder)
	if err != nil {
		return err
	}
	dir := cmp.Or(out, folder)
	if err := pages(dir, s.Write); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Report: %s\n", filepath.Join(dir, s.Page()))
	return err
}

// pages has pages written in a folder, and makes it unless it's there.
func pages(dir string, write func(dir string) error) error {
	switch err := os.Mkdir(dir, 0o755); {
	case err == nil || errors.Is(err, fs.ErrExist):
		return write(dir)
	case errors.Is(err, fs.ErrNotExist):
		return shell.Wrong("report: -out %s: make the folder %s first", dir, filepath.Dir(filepath.Clean(dir)))
	default:
		return err
	}
}

// ofSeveral prints one answer of several runs, and makes its pages if they have a folder. Of each run that is not in it
// it says why, and then it fails.
func ofSeveral(folders []string, out string, stdout, stderr io.Writer) error {
	var refused []error
	folders = slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		_, none := os.Stat(filepath.Join(folder, idle.File))
		if none == nil {
			refused = append(refused, fmt.Errorf("report: %s has memory at rest, which has no mean: leave it out", folder))
		}
		return none == nil
	})
	runs, unread := report.ReadRuns(folders)
	p, unlike := report.Combine(strings.Join(shell.AsTyped(), " "), runs)
	refused = slices.Concat(refused, unread, unlike)
	for _, why := range refused {
		told(stderr, ourName, why)
	}
	var err error
	if len(p.Questions) > 0 {
		if out != "" {
			err = pages(out, p.Write)
		}
		if err == nil {
			err = p.Text(stdout, shell.Width(stdout), shell.Colours(stdout))
		}
		if err == nil && out != "" {
			_, err = fmt.Fprintf(stdout, "Report: %s\n", filepath.Join(out, "report.html"))
		}
	}
	if err == nil && refused != nil {
		err = shell.ExitStatus(1)
	}
	return err
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
