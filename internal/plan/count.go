package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Facts are what was counted of calls, by workload and contestant.
type Facts map[[2]string]*workload.Facts

// Count has a process of each build count bytes and allocations of the calls of each comparison. It tells a comparison
// what is left of it, and the campaign what has failed.
func Count(ctx context.Context, all *versus.Campaign, programs map[string][]versus.Program, show shell.Show) Facts {
	facts, left := Facts{}, CountTakes(all)
	defer show("", 0)
	for _, one := range all.Comparisons {
		w := one.Spec.Workload
		show("counting, "+one.String(), left)
		left -= counts(one)
		for _, name := range one.Spec.Arms[1:] {
			key := [2]string{w.Name, name}
			if one.Left != "" && one.TooFast() < 2 || facts[key] != nil || ctx.Err() != nil {
				continue
			}
			seen, err := versus.Count(ctx, name, w, programs[Of(name).Build][0])
			if err == nil {
				facts[key] = &seen
				continue
			}
			one.Left = err.Error()
			if one.Cant = errors.Is(err, errors.ErrUnsupported); !one.Cant && ctx.Err() == nil {
				all.Failures = append(all.Failures, fmt.Sprintf("%s, counting: %s", one, one.Left))
			}
		}
	}
	return facts
}

// Tell gives an answer about a contestant what was counted of it, and then of its base.
func (f Facts) Tell(a *report.Answer, base string) {
	if a.Facts = (*report.Counts)(f[[2]string{a.Workload, a.Stack}]); a.Facts != nil {
		a.BaseFacts = (*report.Counts)(f[[2]string{a.Workload, base}])
	}
}

const aCount = 150 * time.Millisecond // in a process, takes about so long

// CountTakes is about how long it takes to count.
func CountTakes(all *versus.Campaign) (sum time.Duration) {
	for _, one := range all.Comparisons {
		sum += counts(one)
	}
	return sum
}

// counts is how long it takes to count what a comparison's stacks do.
func counts(one *versus.Comparison) time.Duration {
	return aCount*time.Duration(len(one.Spec.Arms)-1) + one.Spec.Workload.Extra(one.Spec.Traits...)
}
