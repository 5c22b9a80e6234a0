package pages

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

var ofProcs = regexp.MustCompile(`(?m)^Benchmark\S*?(?:-(\d+))?\s`)

// does is what a call is, with the rate that its run found for it. The title of another has it.
func does(a comparison) string {
	if a.Chosen {
		return a.Does + ": " + grouped(a.Rate) + " a second"
	}
	return a.Does
}

// processes is in how many processes client and server were.
func processes(a comparison) int {
	return map[bool]int{true: 2, false: 1}[a.Apart]
}

// place is the cell of a column "processes×cores", which tells rows of two wirings apart.
func place(a comparison) string { return fmt.Sprintf("%d×%d", processes(a), a.GOMAXPROCS) }

// onConnections are those of the base and of the stack.
func onConnections(a comparison) string {
	if a.BaseFacts == nil || a.Facts == nil {
		return "–"
	}
	base, own := a.BaseFacts, a.Facts
	if base.Connections > 1 && base.Connections == base.Calls && own.Connections == own.Calls {
		return "one for each call"
	}
	return fmt.Sprintf("%d/%d", base.Connections, own.Connections)
}

// waits tells a figure of what a caller waits from one of CPU.
func waits(a comparison) bool { return a.Leads == report.ByTime && a.GOMAXPROCS != 1 }

func measured(a comparison) string { return map[bool]string{true: "latency", false: "CPU"}[waits(a)] }

// changed is how far a ratio is from 1, in percent.
func changed(ratio float64) string { return fmt.Sprintf("%.0f%%", 100*math.Abs(ratio-1)) }

// answered is how many calls a second callers made who call again at once, in times the base's. At a planned rate both
// answer as many.
func answered(a comparison) string {
	if a.Leads == report.ByTime || !a.Time.There() {
		return ""
	}
	return table.Ratio(1 / a.Timed().Figure.Ratio)
}

// count is a number of things, each called name.
func count(n any, name string) string {
	if fmt.Sprint(n) != "1" {
		name += "s"
	}
	return fmt.Sprint(n, " ", name)
}

// ways says in which ways the calls of answers were made. Connections are left out if a row does not tell them.
func ways(base string, all []comparison) (said []string) {
	counted := !slices.ContainsFunc(all, func(a comparison) bool { return a.BaseFacts == nil || a.Facts == nil })
	for _, a := range all {
		on := count(fmt.Sprint(a.Callers), "caller")
		switch {
		case !counted:
		case a.BaseFacts.Connections == a.Facts.Connections:
			on += ", " + count(a.Facts.Connections, "connection")
		default:
			on += fmt.Sprintf(", %d connections (%s) and %d (stack)", a.BaseFacts.Connections, report.Label(base),
				a.Facts.Connections)
		}
		where := "one process with " + count(a.GOMAXPROCS, "core")
		if processes(a) == 2 {
			where = "two processes with " + count(a.GOMAXPROCS, "core") + " each"
		}
		if now := on + "; " + where + "."; !slices.Contains(said, now) {
			said = append(said, now)
		}
	}
	return said
}

// how is the one way of a table that has no column to tell two apart.
func how(base string, all []comparison) string {
	said := ways(base, all)
	if len(said) > 1 {
		fail("%s is wired in two ways, which need a column: %s", all[0].Workload, strings.Join(said, " "))
	}
	return strings.Join(said, "")
}

// caption says of the answers of a table where and when they were measured, how their calls were made if that is one
// way, and whether the machine was quiet.
//
// A table with figures of JSON itself tells that always, and one of ratios if one of them is undecided.
func (m *maker) caption(dir, how string, absolute bool, all []comparison) string {
	s := report.Summary{Base: m.run(m.within(dir)[0]).Base}
	for _, a := range all {
		s.Answers = append(s.Answers, a.Answer)
	}
	lines := []string{m.where(dir) + ".", how, hour(s, absolute)}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// hour is what a report says of a machine that was not quiet, without the advice that docs/limits.md gives: of absolute
// figures, and of ratios of which one is undecided.
func hour(s report.Summary, absolute bool) string {
	said := s.Unrest()
	if said == "" || !absolute && !slices.ContainsFunc(s.Led(), undecided) {
		return ""
	}
	if rest, others := strings.CutPrefix(said, "other"); others { // else the name of the base begins it
		said = "Other" + rest
	}
	return said + "."
}

func undecided(l report.Led) bool { return l.Figure.Verdict == verdict.Undecided }

// environment is what a file of rows says of where they were measured, and their GOMAXPROCS.
func (m *maker) environment(file string) (s report.Summary, cores string) {
	procs := ofProcs.FindStringSubmatch(m.read(file))
	if procs == nil {
		fail("%s has no row", file)
	}
	if s = m.header(file); s.Environment == nil {
		fail("%s does not say where it was measured", file)
	}
	return s, "GOMAXPROCS " + cmp.Or(procs[1], "1")
}

// measuredAt says where and when the rows of a file were measured, and links it.
func (m *maker) measuredAt(file string) string {
	s, cores := m.environment(file)
	return fmt.Sprintf("%s on [%s, %s, %s](%s)", cores, machine(s), noted(s, "go"), noted(s, "date"), m.link(file))
}
