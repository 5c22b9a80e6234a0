package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Programs are those that measure.
type Programs struct {
	Of              map[string][]versus.Program // of each build, one per layout
	Layouts         int                         // of each; 0 is this program as it is
	Environment     []string                    // of this program, before the run had written a file
	Notes, Warnings []string                    // on what is measured
	Remove          func() error                // deletes them
}

// Links are the programs to link.
type Links struct {
	Main    string   // the import path of their main package
	Builds  []string // "" is the source as it lies
	Layouts int      // links of each build; 0 is this program as it is
	Seed    uint64
	Judged  string // the flag that judges layouts, so that there must be some; "" takes this program if none can be linked

	Meant map[string]string       // what was probably meant by a build that is a bare version
	Say   func(line string) error // tells at once what the warnings say of builds; nil if nobody asks
}

const aLink = 2 * time.Second // takes about so long

func (of Links) none() bool { return of.Layouts == 0 && !of.ofBuilds() }

func (of Links) ofBuilds() bool {
	return slices.ContainsFunc(of.Builds, func(build string) bool { return build != "" })
}

// Takes is about how long to link takes.
func (of Links) Takes() time.Duration {
	if of.none() {
		return 0
	}
	return aLink * time.Duration(len(of.Builds)*max(1, of.Layouts))
}

// seeds are those of the layouts: each another one, or 0 for the linker's own order.
func (of Links) seeds() []uint64 {
	seeds, random := make([]uint64, max(1, of.Layouts)), rand.New(rand.NewPCG(of.Seed, 1))
	for i := range seeds {
		if of.Layouts > 0 {
			seeds[i] = 1 + random.Uint64N(1e9)
		}
	}
	return seeds
}

// Make links all programs before anything is measured. here is the environment.
func (of Links) Make(ctx context.Context, here []string, show shell.Show) (l Programs, err error) {
	l = Programs{Of: map[string][]versus.Program{}, Layouts: of.Layouts, Environment: here,
		Remove: func() error { return nil }}
	asItIs := func(why string) (Programs, error) {
		l.Notes = append(l.Notes, "the intervals are of this build, not of its source: "+why)
		l.Layouts, l.Of[""] = 0, []versus.Program{{}}
		return l, nil
	}
	if of.none() {
		return asItIs("no layouts were linked")
	}
	folder, err := builds.Open(ctx, of.Main)
	switch {
	case err != nil && ctx.Err() != nil:
		return l, shell.ErrInterrupted
	case of.ofBuilds() && err != nil:
		return l, fmt.Errorf("no build can be made: %w", err)
	case err != nil && of.Judged != "":
		return l, fmt.Errorf("run: %[1]s judges layouts, and none can be linked: %[2]w: mend that, or leave %[1]s out",
			of.Judged, err)
	case err != nil:
		l.Warnings = append(l.Warnings, fmt.Sprintf("one build was measured, and not %d layouts: %s", of.Layouts, err))
		return asItIs(err.Error())
	}
	defer show("", 0)
	show("looking for the builds", of.Takes())
	if l.Warnings, err = of.find(ctx, folder); err != nil {
		return l, errors.Join(err, folder.Remove())
	}
	all, seeds, done, first := of.Builds, of.seeds(), 0, time.Time{}
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
		if l.Of[build], versions, err = folder.Link(ctx, build, seeds...); err != nil {
			if ctx.Err() != nil {
				err = shell.ErrInterrupted
			}
			return l, errors.Join(err, folder.Remove())
		}
		others := slices.DeleteFunc(versions, func(v string) bool { return slices.Contains(here, v) })
		if len(others) > 0 {
			l.Notes = append(l.Notes, strings.TrimSpace("linked "+build)+": "+strings.Join(others, " "))
		}
	}
	l.Remove = folder.Remove
	return l, nil
}

// find finds each build before the first one is linked. It warns of builds of one program, and tells that at once.
func (of Links) find(ctx context.Context, folder *builds.Folder) (warnings []string, err error) {
	for i, build := range of.Builds {
		switch err := folder.Find(ctx, build); {
		case ctx.Err() != nil:
			return nil, shell.ErrInterrupted
		case err != nil && of.Meant[build] != "":
			return nil, fmt.Errorf("%w: did you mean %s?", err, of.Meant[build])
		case err != nil:
			return nil, err
		}
		same := slices.IndexFunc(of.Builds[:i], func(other string) bool { return folder.Same(build, other) })
		if same >= 0 {
			warnings = append(warnings, fmt.Sprintf("%s and %s make the same program, so what differs between them is noise",
				cmp.Or(of.Builds[same], "this source"), cmp.Or(build, "this source")))
		}
	}
	for _, line := range warnings {
		if of.Say != nil {
			err = cmp.Or(err, of.Say(line))
		}
	}
	return warnings, err
}
