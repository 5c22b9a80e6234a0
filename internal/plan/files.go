package plan

import (
	"fmt"

	"github.com/rpcbench/rpcbench/internal/shell"
)

// CheckFiles refuses connections that need more open files than a process may have: the stack would seem to hang.
func (p Plan) CheckFiles(command string, of Choice, has int) error {
	stacks, _ := p.Find(p.Compared.Stacks()...)
	for _, w := range p.Sweep.Workloads {
		for _, s := range stacks {
			needs := w.Files(s.Traits, p.Servers[s.Name] != "")
			if needs <= has {
				continue
			}
			less := "take another workload"
			if of.Made.Workloads != nil {
				less = fewer(w.Callers, func(n int) int {
					w.Callers = n
					return w.Files(s.Traits, p.Servers[s.Name] != "") - has
				}, "-callers")
				if w.Conns > 0 {
					less = fewer(w.Conns, func(n int) int {
						w.Conns = n
						return w.Files(s.Traits, p.Servers[s.Name] != "") - has
					}, "-conns")
				}
			}
			return shell.Wrong("%s: %s, %s: its connections need %d open files in a process, and %d are allowed: raise the "+
				"limit with ulimit -n %[4]d, or %[6]s", command, w.Name, s.Name, needs, has, less)
		}
	}
	return nil
}

// fewer advises the most of a flag's number with which nothing is over the limit.
func fewer(n int, over func(int) int, name string) string {
	for n--; n > 0; n-- {
		if over(n) <= 0 {
			return fmt.Sprintf("give %s %d or less", name, n)
		}
	}
	return "use fewer connections"
}
