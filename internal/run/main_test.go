package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestMain is also the processes that run starts.
func TestMain(m *testing.M) {
	if testkit.Answer(knownAnswer) {
		return
	}
	if patience, err := time.ParseDuration(os.Getenv(patienceEnv)); err == nil {
		child.Patience = patience
	}
	jobs := map[string]child.Job{child.Serves: child.Serving(), child.Measures: versus.Measuring(),
		child.Counts: versus.Counting()}
	switch done, err := child.Serve(os.Stdin, os.Stdout, child.List(append(stacks.All(), hanging()...)), jobs); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		os.Exit(m.Run())
	}
}

const patienceEnv = "RPCBENCH_TEST_PATIENCE" // of children

// hanging are stacks that never return, not even when their process ends.
func hanging() []rpcbench.Stack {
	return []rpcbench.Stack{testkit.Hanging(rawtcp.New(), "hangs.both", nil, true, true),
		testkit.Hanging(rawtcp.New(), "hangs.close", nil, false, true)}
}

// question is what a child is asked, whatever its job.
type question struct {
	versus.Spec
	Stack string `json:"stack"` // that is counted
}

// knownAnswer is that of children which measure nothing: there are no headers, and a payload that is none is refused.
func knownAnswer(_ []testkit.Question[question], q testkit.Question[question], _ int) (any, error) {
	switch w := q.Spec.Workload; {
	case q.Does == child.Profiles: // some CPU time of each stack
		var all []calls.Process
		for _, arm := range q.Spec.Arms {
			part := layers.Part{Layer: layers.Other, Side: "client", Function: "shop." + arm, Samples: 100, CPU: time.Second}
			all = append(all, calls.Process{Profile: layers.Split{Row: arm, Calls: 1000, Parts: []layers.Part{part}}, Procs: 1,
				Calls: 100, Wall: time.Second, CPU: time.Second})
		}
		return all, nil
	case q.Does == child.Counts && !w.Headers:
		return w.CountCalls(context.Background(), knownStacks()[0], 1)
	}
	return nil, fmt.Errorf("base: dial: the protocol has no headers: %w", errors.ErrUnsupported)
}

func knownStacks() []rpcbench.Stack {
	base, other := rawtcp.New(), rawtcp.New()
	base.Name, other.Name = "base", "other"
	return []rpcbench.Stack{base, other}
}

// ours is cmd/rpcbench.
func ours() shell.Program {
	return shell.Program{Stacks: stacks.All(), Main: "github.com/rpcbench/rpcbench/cmd/rpcbench"}
}

func programOf(stacks []rpcbench.Stack) shell.Program { return shell.Program{Stacks: stacks} }
