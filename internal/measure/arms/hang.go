package arms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// within runs do. When the limit is over, it notes what the goroutines of all processes do, ends the servers and closes
// the fixtures, so that a call that hangs fails.
func (g *Group) within(limit time.Duration, do func() error) error {
	returned, ended := make(chan struct{}), make(chan *child.Hang, 1)
	late := time.AfterFunc(limit, func() { ended <- g.end(limit, returned) })
	err := do()
	close(returned)
	if late.Stop() {
		return err
	}
	hang := <-ended
	if err == nil { // it was slow
		return nil
	}
	if failed, ok := errors.AsType[*timing.Failed](err); ok && hang.Stack == "" {
		hang.Stack = g.Arms[failed.Arm].stack.Name
	}
	return hang
}

// end ends what hangs, and says which stack that is if it can be seen from here.
func (g *Group) end(limit time.Duration, returned <-chan struct{}) *child.Hang {
	hang := &child.Hang{Said: fmt.Sprintf("a call had not returned after %v", limit), Goroutines: child.Goroutines()}
	for _, arm := range g.Arms {
		if what := arm.doing.Load(); what != nil {
			hang.Stack, hang.Said = arm.stack.Name, fmt.Sprintf("%s had not returned after %v", *what, limit)
		}
		if s := arm.server.Load(); s != nil {
			hang.Goroutines += "\n\nThe server of " + arm.stack.Name + ":\n\n" + s.Quit()
		}
	}
	for _, arm := range g.unclosed(child.ToClose()) {
		if hang.Stack == "" {
			hang.Stack = arm.stack.Name
			hang.Said += fmt.Sprintf(", and neither had Close after %v more", child.ToClose())
		}
	}
	select {
	case <-returned:
	case <-time.After(g.hang / 4): // for a call to fail
		if g.spec.Hangs != nil {
			g.spec.Hangs(hang)
		}
	}
	return hang
}

// unclosed closes the fixtures of all arms at a time, and returns the arms that don't within the limit. Nobody closes
// those again.
func (g *Group) unclosed(limit time.Duration) (all []*Arm) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	open, closed := make([]*workload.Open, len(g.Arms)), make([]chan struct{}, len(g.Arms))
	for i, arm := range g.Arms {
		if open[i] = arm.open.Load(); open[i] != nil {
			closed[i] = make(chan struct{})
			go func() {
				_ = open[i].Fixture.Close()
				close(closed[i])
			}()
		}
	}
	for i, arm := range g.Arms {
		if open[i] == nil {
			continue
		}
		select {
		case <-closed[i]:
		case <-ctx.Done():
			arm.open.CompareAndSwap(open[i], nil)
			all = append(all, arm)
		}
	}
	return all
}
