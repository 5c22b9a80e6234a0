// Package bound is the command of that name. It bounds what another stack could save a service, by a profile of its
// CPU: owners.txt says whose work a sample is, and an RPC library's is all that can be saved.
package bound

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// options are what was typed behind bound.
type options struct {
	shell.Program
	ratios  string // a folder
	timeout time.Duration
	waits   bool // the timeout was given
}

// Command is bound.
func Command(p shell.Program, stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "bound", Tidies: true, Args: " profile|URL|-",
		Does:    "Bound what another stack could save a service, by a profile of the service's CPU",
		More:    "\n\nIt reads a file, what a server has at /debug/pprof/profile, or standard input.",
		Example: "rpcbench bound -ratios mine cpu.pprof",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			o := options{Program: p}
			f.StringVar(&o.ratios, "ratios", "",
				"`folder` of rpcbench run, by whose ratios its stacks would save CPU of the service")
			f.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the profile of a URL")
			return func(ctx context.Context, args []string) error {
				f.Visit(func(f *flag.Flag) { o.waits = o.waits || f.Name == "timeout" })
				if err := o.check(args); err != nil {
					return err
				}
				return o.run(ctx, args[0], stdout)
			}
		},
	}
}

// check says what is wrong with what was typed.
func (o options) check(args []string) error {
	switch {
	case len(args) == 0:
		return shell.Wrong("bound: nothing is named: give the CPU profile of a service, or its URL")
	case len(args) > 1:
		return shell.Wrong("bound: %s and %s are two: give one profile, or merge them: "+
			"go tool pprof -proto FIRST SECOND > BOTH", args[0], args[1])
	case o.waits && !isURL(args[0]):
		return shell.Wrong("bound: -timeout is for the profile of a URL, and %s is none: leave -timeout out", args[0])
	}
	return nil
}

// run bounds what can be saved by the profile that was typed.
func (o options) run(ctx context.Context, typed string, stdout io.Writer) error {
	var by report.Summary
	if o.ratios != "" {
		var err error
		if by, err = report.Read(o.ratios); err != nil {
			return err
		}
	}
	if by.Remote {
		return shell.Wrong("bound: -ratios %s: its servers were in other programs, so no ratio is of all CPU: "+
			"name another folder", o.ratios)
	}
	name, p, err := o.read(ctx, typed)
	if ctx.Err() != nil {
		err = shell.ErrInterrupted
	}
	if err != nil {
		return err
	}
	if row, calls := layers.Calls(p); calls > 0 {
		return shell.Wrong("bound: %s is a profile of rpcbench, of %d calls of %s: rpcbench explain %[1]s splits a call",
			typed, calls, row)
	}
	s, err := Of(name, p)
	if err != nil {
		return err
	}
	return s.print(stdout, by, typed)
}

// read reads the profile of a file, of a server, or of standard input. name is what messages call it.
func (o options) read(ctx context.Context, typed string) (name string, p *profile.Profile, err error) {
	switch {
	case typed == "-":
		p, err = piped(ctx, os.Stdin)
		return "standard input", p, err
	case isURL(typed):
		return fetch(ctx, typed, o.timeout)
	}
	switch info, missing := os.Stat(typed); {
	case missing != nil && slices.Contains(o.Names(), typed):
		return "", nil, shell.Wrong("bound: %s is a stack, and no service: rpcbench explain %[1]s splits a call of it", typed)
	case missing != nil:
		return "", nil, shell.Wrong("bound: there is no file %q: name a CPU profile, or give its URL", typed)
	case !info.Mode().IsRegular():
		return "", nil, shell.Wrong("bound: %s is no file: name a profile, or give its URL", typed)
	}
	file, err := os.Open(typed)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	p, err = layers.Read(typed, file)
	return typed, p, err
}

func isURL(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// fetch reads the profile that a server takes of itself. The whole of it must come within the time.
func fetch(ctx context.Context, address string, within time.Duration) (name string, p *profile.Profile, err error) {
	late := fmt.Errorf("no whole profile came within %v: ask for fewer seconds, or give a longer "+
		"-timeout", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", nil, shell.Wrong("bound: %w", err)
	}
	name = request.URL.Redacted()
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		if p, err = layers.Read(name, answer.Body); answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s: is it /debug/pprof/profile?", name, answer.Status)
		}
	}
	return name, p, cmp.Or(context.Cause(ctx), err)
}

// piped reads the profile that another program writes, unless the context ends before.
func piped(ctx context.Context, from io.Reader) (p *profile.Profile, err error) {
	whole := make(chan error, 1)
	var read *profile.Profile
	go func() {
		var err error
		read, err = layers.Read("standard input", from)
		whole <- err
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-whole:
		return read, err
	}
}
