package report

import (
	"fmt"
	"slices"
	"strings"
)

// Wiring says what surrounds the calls of a sweep: the callers, the connections of each stack, and the processes. It
// leaves out what differs between answers, such as the connections in a sweep over connections. Callers and processes
// are those of the workload, and connections were counted.
func (s Summary) Wiring() string {
	on := []string{alike(s.Answers, func(a Answer) string { return a.BaseFacts.on(s.Base) })}
	for _, stack := range s.Stacks() {
		on = append(on, alike(s.Of(stack), func(a Answer) string { return a.Facts.on(stack) }))
	}
	processes := alike(s.Answers, func(a Answer) string {
		in := either(a.Apart, "two processes", "one process")
		return "client and server in " + in
	})
	if s.Remote {
		processes = "servers in other programs"
	}
	called := alike(s.Answers, func(a Answer) string { return callers(a.Callers) })
	return joined("; ", called, joined(", ", on...), processes)
}

// caption says where and when a run was measured, and with what around its calls.
func (s Summary) caption() string {
	return joined(". ", joined(", ", s.Head(), s.Date()), s.Wiring()) + "."
}

// captions are those of several runs, each with the run's name unless all are the same.
func captions(machines []Machine) (all []string) {
	for _, m := range machines {
		all = append(all, m.caption())
	}
	if same := slices.Compact(slices.Clone(all)); len(same) == 1 {
		return same
	}
	for i, m := range machines {
		all[i] = m.Name + ": " + all[i]
	}
	return all
}

// callers says how many there were, or nothing of an older result.
func callers(n int) string {
	if n == 0 {
		return ""
	}
	return several(n, "caller")
}

// on says how many connections a stack had, or nothing if they were not counted.
func (c *Counts) on(stack string) string {
	if c == nil || c.Connections == 0 {
		return ""
	}
	return Label(stack) + " on " + several(int(c.Connections), "connection")
}

func several(n int, what string) string {
	return fmt.Sprintf("%d %s%s", n, what, either(n == 1, "", "s"))
}

// alike is what all answers say, or nothing if they differ.
func alike(all []Answer, say func(Answer) string) string {
	var said []string
	for _, a := range all {
		said = append(said, say(a))
	}
	if said = slices.Compact(said); len(said) == 1 {
		return said[0]
	}
	return ""
}

// joined leaves out what is empty.
func joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), by)
}
