// Package count is rpcbench count: it compares what calls allocate, send, receive and write, and times nothing.
package count

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Command is count.
func Command(p shell.Program, make own.Make, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "count", Tidies: true, Args: " [stack[@build]...]",
		Does: "Compare the bytes, allocations and writes of a call, in seconds",
		More: "\n\nNothing is timed, so a busy machine does no harm. A stack or a build is named as for run. With -max\n" +
			"the command is a gate for pull requests.",
		Example: "rpcbench count -max 1 -workloads small -base httpjson@HEAD~1 httpjson",
		Groups: append([]string{
			"What is called: base workloads payload stream headers",
			"How: rate callers conns wait new-connections tls unix apart link gomaxprocs",
			"What is decided: max",
			"Where to: out",
		}, make.Group()...),
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var m own.Messages
			m.Register(f)
			read := flags(p, f)
			return func(ctx context.Context, args []string) error {
				o, err := read(args)
				theirs, wrong := make.Asked(f, m)
				if theirs {
					o.Program = shell.Program{Stacks: own.Stacks(), Others: p.Names()}
				}
				if err := cmp.Or(wrong, err); err != nil {
					return err
				}
				p := o.plan()
				switch err := o.check(p); {
				case err != nil:
					return err
				case theirs && o.out == "":
					return make.Run(ctx, m, f, nil, stdout, stderr)
				case theirs:
					return make.Run(ctx, m, f, func() (string, error) { return shell.Folder("count", o.out) }, stdout, stderr)
				}
				return o.answer(ctx, p, stdout, stderr)
			}
		},
	}
}

// options are what was typed behind count. Nothing writes them once they are read.
type options struct {
	shell.Program
	args      []string // stack[@build]
	base, out string
	workloads plan.Choice
	max       gate // 0 is none
	judges    bool // the gate was given
}

// flags registers the flags. read returns what was typed, after they are parsed.
func flags(p shell.Program, f *flag.FlagSet) (read func(args []string) (options, error)) {
	o := options{Program: p}
	f.StringVar(&o.base, "base", "", "`stack` that the others are compared with: "+p.Base()+
		", or the first if one names a build")
	f.StringVar(&o.out, "out", "", "new `folder` for what is counted (default none)")
	f.Float64Var((*float64)(&o.max), "max", 0, "exit with status 3 if a stack allocates, sends, receives or writes more "+
		"than so many\n`times` as much: 1 allows no growth")
	workloads := plan.Flags(f, "default all")
	return func(args []string) (_ options, err error) {
		o.args = args
		f.Visit(func(f *flag.Flag) { o.judges = o.judges || f.Name == "max" })
		if o.out != "" {
			o.out = filepath.Clean(o.out)
		}
		o.workloads, err = workloads()
		return o, err
	}
}

// plan makes a plan of the options. What they can't mean, check refuses.
func (o options) plan() plan.Plan {
	return plan.Plan{Program: o.Program, Compared: plan.Named(o.Program, o.base, o.args),
		Sweep: o.workloads.Of(o.Program, len(o.Workloads()))}
}

// check says what is wrong with the options, whose plan is p.
func (o options) check(p plan.Plan) error {
	if err := o.workloads.Check(o.Program); err != nil {
		return err
	}
	stacks, err := p.Compared.Check("count", o.Program)
	if err == nil {
		err = o.workloads.Fits(stacks)
	}
	if err == nil {
		err = p.CheckStreams("count", o.workloads, func(workload.Planned) bool { return true })
	}
	if err == nil {
		err = p.CheckFiles("count", o.workloads, environ.Files())
	}
	switch {
	case err != nil:
		return err
	case o.judges && !(o.max >= 1 && o.max <= 100):
		return shell.Wrong("count: -max %v: give 1, which allows no growth, or up to 100", float64(o.max))
	case o.judges && !slices.ContainsFunc(p.Sweep.Workloads, exact):
		return shell.Wrong("count: -max compares counts of one caller without a link: name such a workload, such as small")
	case o.out == "":
		return nil
	}
	return shell.IsNew("count: -out", o.out)
}

// answer links, counts, writes what was counted if a folder is named, tidies up and prints.
func (o options) answer(ctx context.Context, p plan.Plan, stdout, stderr io.Writer) (err error) {
	ctx, clock := shell.NewClock(ctx, stderr, p.Links().Takes(), plan.CountTakes(p.Campaign(nil, nil)))
	defer clock.End()
	here := environ.List() // a folder of results would be a change of the source
	if o.out != "" {
		if _, err := shell.Folder("count", o.out); err != nil {
			return err
		}
		defer func() { _ = os.Remove(o.out) }() // unless something is in it
	}
	links := p.Links()
	links.Say = clock.Say
	l, err := links.Make(ctx, here, clock.Part())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Remove()) }()
	all := p.Campaign(l.Of, nil)
	facts := plan.Count(ctx, all, l.Of, clock.Part())
	s := report.Summary{Release: report.Release, Command: strings.Join(shell.AsTyped(), " "), Environment: here,
		Base: p.Base(), Counting: workload.Counting, Over: p.Sweep.Over,
		Warnings: slices.Concat(p.Unheeded(), l.Warnings, all.Skipped())}
	if p.Compared.OfBuilds() {
		s.Notes = l.Notes
	}
	for _, one := range all.Comparisons {
		w := one.Spec.Workload
		a := report.Answer{Workload: w.Name, Does: w.Title, Stack: one.Spec.Arms[2], Wired: plan.Wired(one)}
		if facts.Tell(&a, p.Base()); !one.Cant {
			s.Answers = append(s.Answers, a)
		}
	}
	switch {
	case ctx.Err() != nil: // which is the cause of all else that failed
		s.Warnings, err = append(s.Warnings, "interrupted"), shell.ErrInterrupted
		return errors.Join(err, o.tell(s, "", stdout))
	case len(all.Failures) > 0 || s.Counts() == nil:
		err = errors.New("count: not all was counted: " + strings.Join(append(all.Failures, all.Skipped()...), "; "))
	}
	said, judged := o.max.judge(s, p.Sweep.Workloads, o.workloads.Chosen(), all.Skipped())
	return errors.Join(err, judged, o.tell(s, said+shell.Step(s, said), stdout))
}

// tell writes what was counted, and prints it with what the gate says. Of nothing there is no table: the error says
// why.
func (o options) tell(s report.Summary, said string, stdout io.Writer) (err error) {
	if s.Counts() == nil {
		return shell.SayAll(stdout, said)
	}
	page := ""
	if o.out != "" {
		if err = s.Save(o.out); err == nil {
			err = s.Write(o.out)
		}
		if err == nil {
			page = "Report: " + filepath.Join(o.out, s.Page()) + "\n"
		}
	}
	err = errors.Join(err, s.CountsText(stdout, shell.Width(stdout)))
	_, failed := io.WriteString(stdout, page)
	return errors.Join(err, failed, shell.SayAll(stdout, said))
}
