package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/shell"
)

func idleFlag(f *flag.FlagSet) *int {
	return f.Int("idle", 0, "measure memory at rest and no time: what each of a `number` of connections, streams and\n"+
		"waiting calls takes of a server and of a client, such as 1000")
}

// atRest measures memory at rest.
func (o options) atRest(ctx context.Context, number int, stdout, stderr io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(o.typed)) {
		if !slices.Contains([]string{"idle", "base", "out", "seed"}, name) {
			return shell.Wrong("run: -idle measures memory while nothing is called, of which -%s says nothing: "+
				"leave -%[1]s out", name)
		}
	}
	if err := idle.Check(number); err != nil {
		return shell.Wrong("run: %w", err)
	}
	p := o.plan()
	p.layouts = 0 // where functions lie moves no memory
	if err := cmp.Or(o.checkStacks(p), o.checkOut(p)); err != nil {
		return err
	}
	held := idle.Plan{Number: number}
	stacks, _ := p.Find(p.named()...) // which checkStacks has found
	for i, name := range append([]string{p.base}, p.contestants...) {
		if err := idle.Refused(stacks[i]); err != nil {
			return shell.Wrong("run: %w", err)
		}
		held.Contestants = append(held.Contestants, idle.Contestant{Name: name})
	}
	ctx, clock := shell.NewClock(ctx, stderr, p.parts()[0], held.Takes())
	defer clock.End()
	here := environ.List() // a folder of results would be a change of the source
	out, err := shell.Folder(o.out)
	if err != nil {
		return err
	}
	r, err := p.rest(ctx, held, here, clock)
	if ctx.Err() != nil || len(r.Rows) == 0 {
		return errors.Join(err, os.RemoveAll(out))
	}
	failed := r.Write(out)
	err = errors.Join(err, failed, r.Text(stdout, shell.Width(stdout), shell.Colours(stdout)))
	if failed != nil {
		return err
	}
	return errors.Join(err, shell.Say(stdout, "Figures: %s", filepath.Join(out, idle.File)))
}

// rest links what is named, measures, and removes what was linked.
func (p plan) rest(ctx context.Context, held idle.Plan, here []string, clock *shell.Clock) (r idle.Result, err error) {
	l, err := p.link(ctx, here, clock.Part())
	if err != nil {
		return r, err
	}
	for i := range held.Contestants {
		own := &held.Contestants[i]
		own.Program = l.programs[build(own.Name)][0]
	}
	held.Show = clock.Part()
	if r, err = held.Measure(ctx, p.seed); ctx.Err() != nil {
		err = shell.ErrInterrupted
	}
	if r.Command, r.Environment = strings.Join(shell.AsTyped(), " "), here; p.ofBuilds() {
		r.Linked = l.notes
	}
	return r, errors.Join(err, l.remove())
}

// again prints the tables of a folder.
func again(r idle.Result, err error, dir, out string, stdout io.Writer) error {
	switch {
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case out != "":
		return shell.Wrong("report: %s has memory at rest, of which there are no pages: leave -out out", dir)
	}
	return r.Text(stdout, shell.Width(stdout), shell.Colours(stdout))
}
