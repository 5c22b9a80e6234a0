package run

import (
	"context"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
)

// elsewhere warns of what is not known of servers in other programs.
var elsewhere = []string{
	"the servers are in other programs, so CPU is the client's alone, and a server on this machine counts as one of those",
	"no test of this program has checked the servers (proved: no), other processes of them may differ by more than an " +
		"interval says, and bytes, allocations and layers are left out"}

// servers are the host:port of -server, by stack.
func (o options) servers() map[string]string {
	all := map[string]string{}
	for item := range strings.SplitSeq(o.server, ",") {
		name, addr, _ := strings.Cut(item, "=")
		all[name] = addr
	}
	return all
}

// reachable are the workloads that servers in other programs can serve. left names the others, and says why: "" if
// there are none. A workload that flags made is not measured in one process when it was asked for two. The client plans
// a rate, but to find one takes the server's CPU time.
func reachable(all []workload.Planned, made bool) (there []workload.Planned, left string) {
	var names []string
	for _, w := range all {
		if w.TLS || w.Unix || w.Ordinary || w.Wait != 0 || w.Apart && made {
			names = append(names, w.Name)
		} else {
			there = append(there, w)
		}
	}
	if names != nil {
		left = strings.Join(names, ", ") +
			": -server is for workloads without TLS, a Unix socket, -rate auto, a wait or -apart"
	}
	return there, left
}

// reach calls each server once, and tries the network: a run would take minutes to say that one is missing. It returns
// the settings of the network's TCP.
func reach(ctx context.Context, p plan.Plan) (tcp.Settings, error) {
	for _, s := range p.Stacks {
		if addr := p.Servers[s.Name]; addr != "" {
			f, err := rpcbench.Start(ctx, s, rpcbench.Config{Remote: addr})
			if err != nil {
				return nil, err
			}
			_ = f.Close() // of the client alone
		}
	}
	return tryNetwork(ctx, p)
}
