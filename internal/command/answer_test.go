package command

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// What could not be done as it was asked for is told: a load that was not found, what was measured again, and what was
// not counted, which fails too.
func TestWhatFailedIsTold(t *testing.T) {
	t.Setenv(testkit.Variable, testkit.Children(t, 0))
	silent := func(string, time.Duration) {}
	p := plan{program: knownProgram(), base: "base", contestants: []string{"other"}, time: time.Second, processes: 8,
		workloads: []workload.Planned{{Workload: workload.Workload{Title: "long headers", Headers: true}, Ordinary: true},
			{Workload: workload.Workload{Title: "no message", Payload: "none"}}}}
	l := linked{programs: map[string][]versus.Program{"": {{}}}}
	rates, warnings, err := p.lookForRates(t.Context(), l, silent)
	require.NoError(t, err)
	require.Empty(t, rates)
	require.Equal(t, []string{"long headers: no ordinary load was found, so it is 1000 calls a second: base: dial: the " +
		"protocol has no headers: unsupported operation"}, warnings)
	all := p.campaign(l.programs, rates)
	require.EqualValues(t, 1000, all.Comparisons[0].Spec.Workload.Rate)
	p.count(t.Context(), l, all, silent)
	require.Len(t, all.Failures, 1)
	require.Regexp(t, "^no message, other, counting: base: a workload's Payload: ", all.Failures[0])
	all.Warnings = []string{"measured again: long headers"}
	f, err := p.ended(t.Context(), findings{warnings: warnings}, all, nil)
	require.Subset(t, f.warnings, slices.Concat(warnings, all.Failures, all.Warnings))
	require.ErrorContains(t, err, all.Failures[0])
}
