package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
)

// heading begins bench.txt.
func (c *comparison) heading() string {
	keys := "" // an address is none: it changes from run to run
	if c.servers != nil {
		keys = "server: remote\nproved: no\n"
	}
	return keys + fmt.Sprintf("# %s\n# %s\n# base=%s seed=%d processes=%d layouts=%d %s\ngoos: %s\ngoarch: %s\n",
		strings.Join(asTyped(), " "), strings.Join(environ.List(), " "), c.base, c.seed, c.processes, c.layouts,
		strings.Join(c.notes, " "), runtime.GOOS, runtime.GOARCH)
}

// keep writes a process as rows that benchstat reads, one for each arm.
func keep(w io.Writer, one *versus.Comparison, r timing.Record) error {
	p, arms, procs := one.Found[len(one.Found)-1], one.Spec.Arms, ""
	if n := cmp.Or(one.Spec.Procs, runtime.NumCPU()); n > 1 {
		procs = fmt.Sprintf("-%d", n)
	}
	named := func(stack string) string { return strings.ReplaceAll(stack, "/", ":") } // a slash would begin a key
	disturbed := 0.0
	if one.Disturbed(p) {
		disturbed = 1
	}
	var lines strings.Builder
	for arm, name := range []string{arms[0], arms[0] + ".again", arms[2]} {
		ops := 0
		for _, block := range r.Blocks {
			ops += block[arm].Ops
		}
		fmt.Fprintf(&lines, "BenchmarkRun/workload=%s/against=%s/stack=%s%s\t%d\t%.0f ns/op\t%.0f cpu-ns/op",
			one.Spec.Workload.Name, named(arms[2]), named(name), procs, ops, p.Ns[arm], p.CPUNs[arm])
		for _, metric := range []struct {
			value float64
			unit  string
		}{
			{[]float64{0, p.Copy, p.Ratio}[arm], "base-ratio"}, {[]float64{0, 0, p.ToCopy}[arm], "copy-ratio"},
			{[]float64{0, p.CPU.Copy, p.CPU.Ratio}[arm], "cpu-ratio"}, {[]float64{0, 0, p.CPU.ToCopy}[arm], "cpu-copy-ratio"},
			{p.ServerNs[arm], "server-cpu-ns/op"},
			{float64(p.Latencies[arm].P50), "p50-ns"}, {float64(p.Latencies[arm].P95), "p95-ns"},
			{float64(p.Latencies[arm].P99), "p99-ns"}, {float64(p.Latencies[arm].P999), "p999-ns"},
			{p.InFlight[arm], "in-flight"}, {float64(p.Layout), "layout"}, {100 * p.Others, "others-%"},
			{100 * p.Loads[arm].Free, "free-%"}, {p.Loads[arm].Switches, "switches/op"},
			{100 * p.Loads[arm].Reached, "reached-%"}, {100 * p.Loads[arm].Dropped, "dropped-%"},
			{p.Loads[arm].LateNs, "late-ns"}, {disturbed, "disturbed"},
		} {
			if metric.value > 0 {
				fmt.Fprintf(&lines, "\t%.6g %s", metric.value, metric.unit)
			}
		}
		lines.WriteString("\n")
	}
	if _, err := io.WriteString(w, lines.String()); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	return nil
}

// header is the summary of what is to be measured.
func (c *comparison) header() report.Summary {
	return report.Summary{Release: report.Release, Command: strings.Join(asTyped(), " "), Environment: environ.List(),
		Notes: c.notes, Base: c.base, Estimator: versus.Estimator, Seed: c.seed, Processes: c.processes, Layouts: c.layouts,
		Warnings: slices.Clip(c.warnings), Remote: c.servers != nil, Over: lists[c.sweep.over]}
}

// summary adds what was found. What can't be done has no answer.
func (c *comparison) summary(s report.Summary, all []*versus.Comparison) report.Summary {
	others, n, told := 0.0, 0.0, false // whether Hour tells of others
	for _, one := range all {
		if one.Cant && len(one.Found) == 0 {
			continue
		}
		for _, p := range one.Found {
			others, n = others+p.Others, n+1
		}
		w, contestant := one.Spec.Workload, one.Spec.Arms[2]
		a := report.Answer{Workload: w.Name, Does: w.Title, Stack: contestant,
			GOMAXPROCS: cmp.Or(w.Procs, runtime.NumCPU()), Result: one.Result(c.plan())}
		if a.Facts = c.facts[[2]string{w.Name, contestant}]; a.Facts != nil {
			a.BaseFacts = c.facts[[2]string{w.Name, c.base}]
		}
		if c.sweep.over != "" {
			i := slices.IndexFunc(c.sweep.workloads, func(o workload.Workload) bool { return o.Name == w.Name })
			a.Value = c.sweep.values[i]
		}
		if c.asksCPU(w) {
			a.Leads = report.ByCPU
		}
		a.Rate = c.found[w.Name]
		s.Answers, told = append(s.Answers, a), told || a.Others > versus.BusyMachine
		if w.Callers > 1 && w.Procs == 0 && runtime.NumCPU() == 1 {
			s.Warnings = append(s.Warnings, w.Title+": the machine has one core, so callers take turns")
		}
	}
	if others > n*versus.BusyMachine && !told {
		s.Warnings = append(s.Warnings, fmt.Sprintf("other programs used %.0f %% of the machine meanwhile", 100*others/n))
	}
	return s
}

// asksCPU says whether an answer leads by CPU time. All of a sweep do if one does, or its ratios were of two things.
func (c *comparison) asksCPU(w workload.Workload) bool {
	asks := w.AsksCPU()
	if c.sweep.over != "" {
		asks = slices.ContainsFunc(c.sweep.workloads, workload.Workload.AsksCPU)
	}
	return asks && c.servers == nil
}

// printSummary writes the answer for people, and where the report is. Of nothing there is none: the error says why.
func printSummary(w io.Writer, s report.Summary, out string, verbose bool) error {
	if !s.Measured() {
		return nil
	}
	err := s.Text(w, width(w), colours(w), verbose)
	_, failed := fmt.Fprintf(w, "Report: %s\n", filepath.Join(out, "report.html"))
	return errors.Join(err, failed)
}

// width is how many columns a terminal has, and table.Width at most, which is also for what is no terminal.
func width(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return min(columns, table.Width)
		}
	}
	return table.Width
}

// colours tells whether somebody looks at a terminal that has them.
func colours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isTerminal(file) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
}
