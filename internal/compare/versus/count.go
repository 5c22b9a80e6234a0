package versus

import (
	"cmp"
	"context"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Count has a process of the program count what calls of the first arm of spec do, in a pass of its own. A build counts
// its own calls, so that builds can be compared.
func Count(ctx context.Context, spec Spec, program Program) (f workload.Facts, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	spec.Counted = true
	c, err := program.start(ctx, spec)
	if err != nil {
		return f, err
	}
	if err = c.Ask("", &f); err != nil {
		cancel() // which kills it
	}
	return f, cmp.Or(err, c.End())
}

// count is the child's side of Count.
func count(ctx context.Context, w workload.Workload, stacks []rpcbench.Stack, lines <-chan []byte,
	answer func(any) error) error {
	if len(stacks) == 0 || <-lines == nil {
		return nil
	}
	f, err := w.CountCalls(ctx, stacks[0], 1000)
	if err == nil {
		err = answer(f)
	}
	return err
}
