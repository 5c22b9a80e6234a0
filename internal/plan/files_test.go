package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
)

// Connections for which a process may not open files enough are refused before anything starts, and what is advised is
// accepted.
func TestFilesAreEnough(t *testing.T) {
	for reason, c := range map[string]struct {
		workload.Workload
		has  int
		want string // "" if it is accepted
	}{
		"300 connections and 400 files": {workload.Workload{Callers: 300, Conns: 300, Apart: true}, 400,
			"count: w, grpcservehttp: its connections need 700 open files in a process, and 400 are allowed: raise the limit " +
				"with ulimit -n 700, or give -conns 150 or less"},
		"which callers have by default": {workload.Workload{Callers: 300}, 400, "or give -callers 150 or less"},
		"as advised":                    {workload.Workload{Callers: 300, Conns: 150, Apart: true}, 400, ""},
		"by callers":                    {workload.Workload{Callers: 150}, 400, ""},
		"three fixtures at a time":      {workload.Workload{Conns: 100}, 400, "give -conns 50 or less"},
		"a new one for each call":       {workload.Workload{Callers: 300, NewConn: true}, 400, "give -callers 149 or less"},
		"few of them":                   {workload.Workload{}, 50, ""},
		"no connections would do":       {workload.Workload{Callers: 300}, 90, "give -callers 19 or less"},
	} {
		w := workload.Planned{Workload: c.Workload}
		w.Name = "w"
		p := Plan{Program: shell.Program{Stacks: []rpcbench.Stack{httpjson.New(), grpcservehttp.New()}},
			Compared: Contestants{Of("grpcservehttp"), Of("httpjson")}, Sweep: Sweep{Workloads: []workload.Planned{w}}}
		made := Choice{Made: Sweep{Workloads: p.Sweep.Workloads}}
		err := p.CheckFiles("count", made, c.has)
		if c.want == "" {
			require.NoError(t, err, reason)
			continue
		}
		require.ErrorContains(t, err, c.want, reason)
		require.ErrorContains(t, p.CheckFiles("count", Choice{}, c.has), "or take another workload", reason)
		p.Servers = map[string]string{"httpjson": "h:1", "grpcservehttp": "h:2"}
		if c.has == 400 && !c.NewConn {
			require.NoError(t, p.CheckFiles("run", made, c.has), "of servers elsewhere a process has one end: %s", reason)
		}
	}
}
