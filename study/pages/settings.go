package pages

import (
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// quantities are what a table of settings may show: a ratio to the base of the same run, or what was counted or read of
// a call.
var quantities = map[string]func(comparison) string{
	"CPU":      func(a comparison) string { return decided(of(a, "CPU")) },
	"median":   func(a comparison) string { return decided(of(a, "median")) },
	"writes":   func(a comparison) string { return fmt.Sprintf("%.2f", a.Facts.Writes) },
	"switches": func(a comparison) string { return fmt.Sprintf("%.2f", a.StackLoad.Switches) },
}

// decided is a ratio with its interval, and a word if nothing is decided.
func decided(a comparison) string {
	if a.Verdict == verdict.Less || a.Verdict == verdict.More || a.Ratio == 0 {
		return sized(a)
	}
	return sized(a) + " " + report.Says(a.Verdict)
}

// settingsTable compares settings of a stack: a row for each load of sweeps, and a column for each quantity of each
// stack. It takes quantities, stacks, and for each sweep its folder and how the table calls its messages.
func (m *maker) settingsTable(of []string) string {
	type row struct {
		calls, dir string
		report.Answer
	}
	stacks, t := strings.Fields(of[1]), new(table.Table)
	var rows []row
	for sweeps := of[2:]; len(sweeps) > 1; sweeps = sweeps[2:] {
		for _, a := range m.run(sweeps[0]).Of(stacks[0]) {
			load := a.Value
			if load != report.Saturated {
				load += " " + strings.TrimPrefix(m.run(sweeps[0]).Over, "calls ")
			}
			if a.Value == "1" {
				load = strings.TrimSuffix(load, "s")
			}
			if len(of) > 4 {
				load = sweeps[1] + ", " + load
			}
			rows = append(rows, row{load, sweeps[0], a})
		}
	}
	columns := []table.Of[row]{text("calls", func(r row) string { return r.calls })}
	for name := range strings.FieldsSeq(of[0]) {
		shown, known := quantities[name]
		if !known {
			fail("a table of settings has no quantity %q", name)
		}
		for _, stack := range stacks {
			columns = append(columns, figure(name+": "+code(stack), func(r row) string {
				return shown(*m.led(r.dir, r.Workload, stack))
			}))
		}
	}
	table.Fill(t, rows, columns...)
	var all []comparison
	for _, r := range rows {
		all = append(all, *m.led(r.dir, r.Workload, stacks[0]))
	}
	wired := "" // sweeps over callers or connections have another way in each row, and tell it there
	if s := m.run(of[2]); s.Over == "calls a second" {
		wired = how(s.Base, all)
	}
	return t.Markdown() + "\n" + m.caption(of[2], wired, false, all)
}
