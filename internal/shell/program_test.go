package shell

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// A program may have workloads and a method of its own, but no two of a name.
func TestOwnWorkloads(t *testing.T) {
	own := func(names ...string) (all []rpcbench.Workload) {
		for _, name := range names {
			all = append(all, rpcbench.Workload{Name: name, Title: "hers", Callers: 30, TLS: true, Payload: "2kB"})
		}
		return all
	}
	method := httpjson.New()
	method.Serves = "shop.v1.Orders/Get"
	listed := func(p Program) (names []string) {
		for _, w := range p.Workloads() {
			names = append(names, w.Name)
		}
		return names
	}
	create, serves := []rpcbench.Stack{httpjson.New(), rawtcp.New()}, []rpcbench.Stack{method}
	all := listed(Program{Stacks: create})
	require.Len(t, all, len(workload.All()))
	require.Equal(t, append(all, "busy"), listed(Program{Stacks: create, Own: own("busy")}), "hers come after the others")
	require.Equal(t, []string{"call-load", "call-saturated", "call", "call-load-tls", "call-saturated-tls", "call-tls",
		"call-cold-tls", "call-apart"},
		listed(Program{Stacks: serves}))
	require.Equal(t, []string{"busy"}, listed(Program{Stacks: serves, Own: own("busy")}), "hers replace those of a method")

	p := Program{Stacks: create, Own: own("busy")}
	require.NoError(t, p.Check(nil))

	for want, p := range map[string]Program{
		`this program has two stacks named rawtcp: give each a name of its own`: {Stacks: append(create, rawtcp.New())},
		`this program has no stacks: its main function gives them to cli.Main`:  {},
		`two workloads named small`:              {Stacks: create, Own: own("small")},
		`two workloads named busy`:               {Stacks: create, Own: own("busy", "busy")},
		`workload "a b" needs a Name of letters`: {Stacks: create, Own: own("a b")},
		`workload "x": a workload's Callers lies`: {Stacks: create, Own: []rpcbench.Workload{{Name: "x", Title: "x",
			Callers: -1}}},
		`workload "x": at 10 calls a second`:        {Stacks: create, Own: []rpcbench.Workload{{Name: "x", Title: "x", Rate: 10}}},
		`this program's workload "y" needs a Name `: {Stacks: create, Own: []rpcbench.Workload{{Name: "y"}}},
	} {
		require.ErrorContains(t, p.Check(nil), want)
	}
	t.Setenv(child.Variable, "measure")
	require.NoError(t, p.Check(nil), "a child")
	require.EqualError(t, p.Check([]string{"list"}),
		"RPCBENCH_CHILD is set, which is for processes that rpcbench starts: unset it")
}
