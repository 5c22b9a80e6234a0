package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
)

// crowds warns of callers who share a connection on which a server takes fewer calls at a time: what one connection
// carries is then the most of all throughput. The limit is the server's own where it can be read, before anything is
// timed, and else what is known of its library.
func crowds(ctx context.Context, p plan.Plan) (warnings []string) {
	for _, c := range p.Compared {
		stacks, err := p.Find(c.Stack)
		if err != nil {
			continue
		}
		s, read := stacks[0], 0
		for _, planned := range p.Sweep.Workloads {
			w := planned.Workload
			sharing, most := w.Sharing(s.Traits), workload.MostStreams(s.Traits)
			if sharing < 2 {
				continue
			}
			if s.Traits.HTTP == "2" && c.Build == "" && !w.TLS {
				if read == 0 {
					read = limit(ctx, s, p.Servers[s.Name])
				}
				most = read
			}
			if most <= 0 || sharing <= most {
				continue
			}
			line := fmt.Sprintf("%s, %s: its server takes %d calls on a connection at a time, and %d callers share each, so "+
				"the others wait, unless the client opens more connections: %d have room for all", w.Title, c, most, sharing,
				w.Room(most))
			if !slices.Contains(warnings, line) {
				warnings = append(warnings, line)
			}
		}
	}
	return warnings
}

// limit is how many calls a server takes on a connection at a time, or -1 if it sets no limit or can't be asked, which
// measuring tells.
func limit(ctx context.Context, s rpcbench.Stack, remote string) int {
	most, err := workload.ReadStreams(ctx, s, remote)
	if err != nil || most == 0 {
		return -1
	}
	return most
}
