package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// What could not be done as it was asked for is told: a load that was not found, what was measured again, and what was
// not counted, which fails too.
func TestWhatFailedIsTold(t *testing.T) {
	t.Setenv(testkit.Variable, testkit.Children(t, 0))
	silent := func(string, time.Duration) {}
	p := plan.Plan{Program: programOf(knownStacks()), Compared: plan.Contestants{plan.Of("base"), plan.Of("other")},
		Time: time.Second, Processes: 8, Sweep: plan.Sweep{Workloads: []workload.Planned{
			workload.Ordinary(workload.Workload{Title: "long headers", Headers: true}),
			{Workload: workload.Workload{Title: "no message", Payload: "none"}}}}}
	l := plan.Programs{Of: map[string][]versus.Program{"": {{}}}}
	rates, warnings, err := lookForRates(t.Context(), p, l, silent)
	require.NoError(t, err)
	require.Empty(t, rates)
	require.Equal(t, []string{"long headers: no ordinary load was found, so it is 1000 calls a second: base: dial: the " +
		"protocol has no headers: unsupported operation"}, warnings)
	all := p.Campaign(l.Of, rates)
	require.EqualValues(t, 1000, all.Comparisons[0].Spec.Workload.Rate)
	plan.Count(t.Context(), all, l.Of, silent)
	require.Len(t, all.Failures, 1)
	require.Regexp(t, "^no message, other, counting: base: a workload's Payload: ", all.Failures[0])
	all.Warnings = []string{"measured again: long headers"}
	f, err := findings{warnings: warnings}.ended(t.Context(), p, all, nil)
	require.Subset(t, f.warnings, slices.Concat(warnings, all.Failures, all.Warnings))
	require.ErrorContains(t, err, all.Failures[0])
}

// A row says which link a process was of, and whether others left it too few cores.
func TestRowsOfADisturbedProcess(t *testing.T) {
	one := versus.Comparison{Spec: versus.Spec{Arms: []string{"a", "a", "b"}, Procs: 2}}
	for _, others := range []float64{0.01, 0.9} {
		one.Found = []verdict.Process{{Layout: 7, Others: others}}
		var rows strings.Builder
		require.NoError(t, keep(&rows, &one, timing.Record{}))
		require.Equal(t, 3, strings.Count(rows.String(), "\t7 layout"))
		require.Equal(t, one.Disturbed(one.Found[0]), strings.Contains(rows.String(), "\t1 disturbed"), rows.String())
		if environ.Cores() == float64(cpu.Count()) {
			require.Equal(t, others > 0.5, one.Disturbed(one.Found[0]))
		}
	}
}

// Where a quota of CPUs stops processes amid their calls, the words say so: it's no other program's doing.
func TestQuotaIsNamed(t *testing.T) {
	p := plan.Plan{Compared: plan.Contestants{{Stack: "a"}}, Processes: 8}
	one := versus.Comparison{Spec: versus.Spec{Arms: []string{"a", "a", "b"},
		Workload: workload.Workload{Title: "calls", Callers: 20}}}
	for i := range 8 {
		one.Found = append(one.Found, verdict.Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
			Time: verdict.Ratios{Copy: 1, Ratio: 2}, InFlight: [3]float64{20, 20, 20}})
	}
	const why = "the quota of 0.5 CPUs stops processes amid their calls: raise it, or plan calls with -rate auto"
	said := func(quota ...string) string {
		f := findings{linked: plan.Programs{Environment: append([]string{"cores=2"}, quota...)},
			comparisons: []*versus.Comparison{&one}}
		return strings.Join(f.summary(p).Warnings, "\n")
	}
	require.NotContains(t, said("cpu-quota=0.5"), "quota", "all processes count")
	for i := range 3 {
		one.Found[i].InFlight[0] = 1
	}
	require.Contains(t, said("cpu-quota=0.5"), "in 3 processes the calls under way were not those of the callers: "+why)
	require.NotContains(t, said(), "quota", "there is none")
}
