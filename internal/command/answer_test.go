package command

import (
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
	c := comparison{program: knownProgram(), base: "base", contestants: []string{"other"}, time: time.Second, processes: 8,
		programs: map[string][]versus.Program{"": {{}}}, workloads: []workload.Workload{
			{Title: "long headers", Headers: true, Rate: workload.Auto}, {Title: "no message", Message: "none"}}}
	require.NoError(t, c.rates(t.Context(), silent))
	require.Equal(t, []string{"long headers: no ordinary load was found, so it is 1000 calls a second: base: dial: the " +
		"protocol has no headers: unsupported operation"}, c.warnings)
	require.EqualValues(t, 1000, c.workloads[0].Rate)
	f := found{comparison: &c, all: c.campaign()}
	f.look(t.Context(), f.all, silent)
	require.Len(t, f.all.Failures, 1)
	require.Regexp(t, "^no message, other, counting: base: a workload's Message is ", f.all.Failures[0])
	f.all.Warnings = []string{"measured again: long headers"}
	f.decide(t.Context())
	require.Subset(t, f.Warnings, append(f.all.Failures, f.all.Warnings...))
	require.ErrorContains(t, f.err, f.all.Failures[0])
}
