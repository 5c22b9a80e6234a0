package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// linked are the programs that measure.
type linked struct {
	programs        map[string][]versus.Program // of each build, one per layout
	layouts         int                         // of each; 0 is this program as it is
	environment     []string                    // of this program, before the run had written a file
	notes, warnings []string                    // on what is measured
	remove          func() error                // deletes them
}

// link makes all programs before anything is measured. here is the environment.
func (p plan) link(ctx context.Context, here []string, show shell.Show) (l linked, err error) {
	l = linked{programs: map[string][]versus.Program{}, layouts: p.layouts, environment: here,
		remove: func() error { return nil }}
	asItIs := func(why string) (linked, error) {
		l.notes = append(l.notes, "the intervals are of this build, not of its source: "+why)
		l.layouts, l.programs[""] = 0, []versus.Program{{}}
		return l, nil
	}
	if p.layouts == 0 && !p.ofBuilds() {
		return asItIs("no layouts were linked")
	}
	folder, err := builds.Open(ctx, p.Main)
	switch {
	case err != nil && ctx.Err() != nil:
		return l, shell.ErrInterrupted
	case p.ofBuilds() && err != nil:
		return l, fmt.Errorf("no build can be made: %w", err)
	case err != nil && p.gate.max > 0:
		return l, fmt.Errorf("run: -max judges layouts, and none can be linked: %w: mend that, "+
			"or leave -max out", err)
	case err != nil:
		l.warnings = append(l.warnings, fmt.Sprintf("one build was measured, and not %d layouts: %s", p.layouts, err))
		return asItIs(err.Error())
	}
	defer show("", 0)
	all, seeds, done, first := p.builds(), p.seeds(), 0, time.Time{}
	for _, build := range all {
		tell := func() {
			pace, total := aLink, len(all)*len(seeds)
			if done > 1 { // the first was compiled too
				pace = time.Since(first) / time.Duration(done-1)
			}
			show("linking "+cmp.Or(build, "this source"), pace*time.Duration(total-done))
		}
		folder.Linked = func() {
			if done++; done == 1 {
				first = time.Now()
			}
			tell()
		}
		tell()
		var versions []string
		if l.programs[build], versions, err = folder.Link(ctx, build, seeds...); err != nil {
			if ctx.Err() != nil {
				err = shell.ErrInterrupted
			}
			return l, errors.Join(err, folder.Remove())
		}
		others := slices.DeleteFunc(versions, func(v string) bool { return slices.Contains(here, v) })
		if len(others) > 0 {
			l.notes = append(l.notes, strings.TrimSpace("linked "+build)+": "+strings.Join(others, " "))
		}
	}
	l.remove = folder.Remove
	return l, nil
}
