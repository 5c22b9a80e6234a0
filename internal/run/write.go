package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// heading begins bench.txt.
func heading(p plan.Plan, l plan.Programs) string {
	keys := "" // an address is none: it changes from run to run
	if p.Servers != nil {
		keys = "server: remote\nproved: no\n"
	}
	return keys + fmt.Sprintf("# %s\n# %s\n# base=%s seed=%d processes=%d layouts=%d %s\ngoos: %s\ngoarch: %s\n",
		strings.Join(shell.AsTyped(), " "), strings.Join(l.Environment, " "), p.Base(), p.Seed, p.Processes, l.Layouts,
		strings.Join(l.Notes, " "), runtime.GOOS, runtime.GOARCH)
}

// keep writes a process as rows that benchstat reads, one for each arm.
func keep(w io.Writer, one *versus.Comparison, r timing.Record) error {
	p, arms, procs := one.Found[len(one.Found)-1], one.Spec.Arms, ""
	if n := cmp.Or(one.Spec.Procs, environ.Procs()); n > 1 {
		procs = fmt.Sprintf("-%d", n)
	}
	routed := one.Spec.Workload.Routed()
	if routed { // whose router has a part of CPU
		p.CPU, p.CPUNs, p.ServerNs = verdict.Ratios{}, [3]float64{}, [3]float64{}
	}
	named := func(stack string) string { return strings.ReplaceAll(stack, "/", ":") } // a slash would begin a key
	if one.Halved() {                                                                 // rows of the whole rate stand above
		procs = fmt.Sprintf("/rate=%v", one.Spec.Workload.Rate) + procs
	}
	disturbed, data := 0.0, 0.0
	if one.Spec.Workload.Rate == 0 {
		data = float64(one.Spec.Workload.Data())
	}
	if one.Disturbed(p) {
		disturbed = 1
	}
	var lines strings.Builder
	for arm, name := range []string{arms[0], arms[0] + ".again", arms[2]} {
		ops := 0
		for _, block := range r.Blocks {
			ops += block[arm].Ops
		}
		fmt.Fprintf(&lines, "BenchmarkRun/workload=%s/against=%s/stack=%s%s\t%d\t%.0f ns/op",
			one.Spec.Workload.Name, named(arms[2]), named(name), procs, ops, p.Ns[arm])
		if !routed {
			fmt.Fprintf(&lines, "\t%.0f cpu-ns/op", p.CPUNs[arm])
		}
		for _, metric := range []struct {
			value float64
			unit  string
		}{
			{[]float64{0, p.Time.Copy, p.Time.Ratio}[arm], "base-ratio"}, {[]float64{0, 0, p.Time.ToCopy}[arm], "copy-ratio"},
			{[]float64{0, p.CPU.Copy, p.CPU.Ratio}[arm], "cpu-ratio"}, {[]float64{0, 0, p.CPU.ToCopy}[arm], "cpu-copy-ratio"},
			{p.ServerNs[arm], "server-cpu-ns/op"},
			{1e3 * data / p.Ns[arm], "MB/s"}, {p.Latencies[arm].P50, "p50-ns"}, {p.Latencies[arm].P95, "p95-ns"},
			{p.Latencies[arm].P99, "p99-ns"}, {p.Latencies[arm].P999, "p999-ns"},
			{p.InFlight[arm], "in-flight"}, {float64(p.Layout), "layout"}, {100 * p.Others, "others-%"},
			{100 * p.Loads[arm].Idle, "idle-%"}, {p.Loads[arm].Switches, "switches/op"},
			{100 * p.Loads[arm].Completed, "completed-%"}, {100 * p.Loads[arm].Skipped, "skipped-%"},
			{p.Loads[arm].LateNs, "late-ns"}, {disturbed, "disturbed"},
			{per(r, arm, func(c tcp.Counters) int64 { return c.Again }), "resent/op"},
			{per(r, arm, func(c tcp.Counters) int64 { return c.Probes }), "probes/op"},
			{per(r, arm, func(c tcp.Counters) int64 { return c.Timeouts }), "timeouts/op"},
		} {
			if metric.value > 0 {
				fmt.Fprintf(&lines, "\t%.6g %s", metric.value, metric.unit)
			}
		}
		lines.WriteString("\n")
	}
	if _, err := io.WriteString(w, lines.String()); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// findings are what a run has found so far.
type findings struct {
	linked      plan.Programs
	rates       map[string]float64 // of ordinary load, by workload
	comparisons []*versus.Comparison
	facts       plan.Facts
	call        *report.Call
	layers      string
	warnings    []string
	otherJSON   map[string]string // how that of a stack differs from the base's
	skipped     []string          // workloads that can't be measured, a line for each reason
	hung        bool              // a stack, so that there is a file of goroutines
	settings    tcp.Settings      // of a network with a router
	crossed     map[*versus.Comparison]*crossed
}

// summary is what was found of a plan. What can't be done has no answer.
func (f findings) summary(p plan.Plan) report.Summary {
	s := report.Summary{Release: report.Release, Command: strings.Join(shell.AsTyped(), " "),
		Environment: f.linked.Environment, Notes: f.linked.Notes, Base: p.Base(), Estimator: verdict.Estimator,
		Counting: workload.Counting,
		Plan:     report.Plan{Processes: p.Processes, Layouts: f.linked.Layouts, Seed: p.Seed},
		Remote:   p.Servers != nil, Over: p.Sweep.Over, Call: f.call, Layers: f.layers,
		Warnings: slices.Concat(p.Warnings, f.linked.Warnings, f.warnings)}
	others, n, told, miscounted := 0.0, 0.0, false, 0 // told: whether Hour tells of others
	for _, one := range f.comparisons {
		if one.Cant && len(one.Found) == 0 {
			continue
		}
		for _, process := range one.Found {
			others, n = others+process.Others, n+1
		}
		w, contestant := one.Spec.Workload, one.Spec.Arms[2]
		a := report.Answer{Workload: w.Name, Does: w.Title, Stack: contestant, Wired: plan.Wired(one), Leads: report.ByTime,
			GOMAXPROCS: cmp.Or(w.Procs, environ.Procs()), Answer: one.Answer(p.Rule()),
			OtherJSON: f.otherJSON[contestant], Network: f.crossed[one].of(f.settings)}
		if one.Left != "" && !one.Cant {
			a.Fails(one.Left)
		}
		f.facts.Tell(&a, p.Base())
		if i := slices.IndexFunc(p.Sweep.Workloads, func(o workload.Planned) bool { return o.Name == w.Name }); i >= 0 {
			a.Calls = p.Sweep.Workloads[i].Calls
			if p.Sweep.Over != "" {
				a.Value = p.Sweep.Values[i]
			}
		}
		miscounted += a.Processes.Miscounted
		switch {
		case w.Routed() && w.Rate > 0:
			a.Leads = report.ByTail
		case a.ByCPU(p.AsksCPU(w)):
			a.Leads = report.ByCPU
		}
		s.Answers, told = append(s.Answers, a), told || a.Others > verdict.BusyMachine
		if w.Callers > 1 && w.Procs == 0 && environ.Procs() == 1 {
			s.Warnings = append(s.Warnings, w.Title+": the machine has one core, so callers take turns")
		}
	}
	if why := throttled(f.linked.Environment, miscounted); why != "" {
		s.Warnings = append(s.Warnings, fmt.Sprintf("in %d processes the calls under way were not those of the callers: %s",
			miscounted, why))
	}
	if others > n*verdict.BusyMachine && !told {
		s.Warnings = append(s.Warnings, fmt.Sprintf("other programs used %.0f%% of the machine meanwhile", 100*others/n))
	}
	return s
}

// oneHour says what the figures of one run don't tell.
const oneHour = "Another hour's or day's figures differ: two more runs and rpcbench report a b c say by how much."

// printSummary writes the answer for people, and which page has it, "" if none has. Of nothing there is none: the error
// says why.
func printSummary(w io.Writer, s report.Summary, page string, verbose bool) error {
	if !s.Measured() {
		return nil
	}
	err := s.Text(w, shell.Width(w), shell.Colours(w), verbose)
	if slices.ContainsFunc(s.Led(), func(l report.Led) bool { return l.Figure.Ratio > 0 }) {
		err = errors.Join(err, shell.Say(w, oneHour))
	}
	if page != "" {
		_, failed := fmt.Fprintf(w, "Report: %s\n", page)
		err = errors.Join(err, failed)
	}
	return err
}
