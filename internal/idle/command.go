package idle

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Command is idle.
func Command(p shell.Program, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "idle", Tidies: true, Args: " number [stack[@build]...]",
		Does: "Compare the memory that idle connections, streams and waiting calls take",
		More: "\n\nThe number is how many of each are held, such as 1000. What each takes of a server and of a client\n" +
			"is measured in processes of their own, while nothing is called.",
		Example: "rpcbench idle 1000 -base httpjson grpcprotobuf",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			o := options{}
			f.StringVar(&o.base, "base", "", "`stack` that the others are compared with: "+p.Base()+
				", or the first if one names a build")
			f.StringVar(&o.out, "out", "", "new `folder` for the figures (default rpcbench- with day and minute)")
			f.Uint64Var(&o.seed, "seed", rand.Uint64N(1e6), "`number` that decides the order of everything")
			f.Lookup("seed").DefValue = "random" // and not another number in each -h
			return func(ctx context.Context, args []string) error {
				held, err := o.plan(p, args)
				if err != nil {
					return err
				}
				return o.answer(ctx, held, p.Main, stdout, stderr)
			}
		},
	}
}

// options are what was typed behind idle.
type options struct {
	base, out string
	seed      uint64
}

// plan makes a plan, and says what is wrong with what was typed.
func (o options) plan(p shell.Program, args []string) (held Plan, err error) {
	if len(args) == 0 {
		return held, shell.Wrong("idle: the number is missing: give how many connections are held, such as 1000")
	}
	if held.Number, err = strconv.Atoi(args[0]); err != nil {
		return held, shell.Wrong("idle: %q is no number of connections: give one before the stacks, such as 1000", args[0])
	}
	if err := Check(held.Number); err != nil {
		return held, shell.Wrong("idle: %w", err)
	}
	all := plan.Named(p, o.base, args[1:])
	stacks, err := all.Check("idle", p)
	if err != nil {
		return held, err
	}
	for i, c := range all {
		if err := Refused(stacks[i]); err != nil {
			return held, shell.Wrong("idle: %w", err)
		}
		held.Arms = append(held.Arms, Arm{Contestant: c})
	}
	if o.out == "" {
		return held, nil
	}
	return held, shell.IsNew("idle: -out", filepath.Clean(o.out))
}

// answer measures, and writes and prints what was found before an error.
func (o options) answer(ctx context.Context, held Plan, main string, stdout, stderr io.Writer) error {
	links := plan.Links{Main: main, Builds: held.contestants().Builds()} // without layouts: they move no memory
	ctx, clock := shell.NewClock(ctx, stderr, links.Takes(), held.Takes())
	defer clock.End()
	here := environ.List() // a folder of results would be a change of the source
	links.Say = clock.Say
	out, err := shell.Folder("idle", o.out)
	if err != nil {
		return err
	}
	l, err := links.Make(ctx, here, clock.Part())
	if err != nil {
		return errors.Join(err, os.RemoveAll(out))
	}
	for i, arm := range held.Arms {
		held.Arms[i].Program = l.Of[arm.Build][0]
	}
	held.Show = clock.Part()
	r, err := held.Measure(ctx, o.seed)
	if ctx.Err() != nil {
		err = shell.ErrInterrupted
	}
	if err = errors.Join(err, l.Remove()); len(r.Rows) == 0 {
		return errors.Join(err, os.RemoveAll(out))
	}
	if r.Command, r.Environment = strings.Join(shell.AsTyped(), " "), here; held.contestants().OfBuilds() {
		r.Linked = l.Notes
	}
	failed := r.Write(out)
	err = errors.Join(err, failed, r.Text(stdout, shell.Width(stdout), shell.Colours(stdout)))
	if failed != nil {
		return err
	}
	return errors.Join(err, shell.Say(stdout, "Figures: %s", filepath.Join(out, File)))
}
