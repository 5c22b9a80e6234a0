package plan

import (
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// CheckStreams refuses more callers on a connection than the server of a stack takes, unless somebody has asked for so
// few connections. It gives only advice that fits.
func (p Plan) CheckStreams(command string, of Choice, fits func(workload.Planned) bool) error {
	stacks, _ := p.Find(p.Compared.Stacks()...)
	for _, w := range p.Sweep.Workloads {
		for _, s := range stacks {
			if !w.Crowded(s.Traits) {
				continue
			}
			most := workload.MostStreams(s.Traits)
			crowd := fmt.Sprintf("%s: %s, %s: net/http's HTTP/2 server takes %d calls on a connection at a time, and here "+
				"are %d callers on each", command, w.Name, s.Name, most, w.Sharing(s.Traits))
			if of.Made.Workloads == nil {
				return shell.Wrong("%s: leave %s out, or give the workload %d connections", crowd, s.Name, w.Room(most))
			}
			var ways []string
			for _, way := range []struct {
				callers, conns int
				says           string
			}{
				{w.Callers, w.Room(most), fmt.Sprintf("-conns %d", w.Room(most))},
				{w.Callers, 1, "-conns 1 to see how the others wait"},
				{most, 0, fmt.Sprintf("-callers %d", most)},
			} {
				other := w
				if other.Callers, other.Conns = way.callers, way.conns; fits(other) && other.Check() == nil {
					ways = append(ways, way.says)
				}
			}
			if ways == nil {
				return shell.Wrong("%s: leave %s out", crowd, s.Name)
			}
			return shell.Wrong("%s: give %s, or leave %s out", crowd, strings.Join(ways, ", or "), s.Name)
		}
	}
	return nil
}
