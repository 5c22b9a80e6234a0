package versus

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// question is whose calls a child counts.
type question struct {
	Stack    string            `json:"stack"`
	Workload workload.Workload `json:"workload"`
}

const counts = 4 * time.Minute // at most, on a busy machine: calls that hang are ended in a minute

// Count has a process of the program count what calls of an arm do, in a pass of its own. A build counts its own calls,
// so that builds can be compared.
func Count(ctx context.Context, arm string, w workload.Workload, program Program) (f workload.Facts, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.Routed() { // which changes what the kernel sends, and not what a stack writes
		w.Link = ""
	}
	asked := question{Stack: stacks([]string{arm})[0], Workload: w}
	c, err := program.start(ctx, child.Command{Does: child.Counts, Asked: asked, Files: w.Unix, Limit: counts})
	if err != nil {
		return f, err
	}
	if err = c.Ask("", &f); err != nil {
		cancel() // which kills it
	}
	err = cmp.Or(err, c.End())
	if hang, hangs := errors.AsType[*child.Hang](err); hangs {
		hang.Stack = arm
	}
	return f, err
}

// Counting is the job of a child that counts: the child's side of Count.
func Counting() child.Job { return child.NewJob(count) }

func count(ctx context.Context, all child.Stacks, asked question, lines <-chan []byte, reply func(any) error) error {
	stack, err := all(asked.Stack)
	if err != nil || <-lines == nil {
		return err
	}
	f, err := asked.Workload.CountCalls(ctx, stack, 1000)
	if err == nil {
		err = reply(f)
	}
	return err
}
