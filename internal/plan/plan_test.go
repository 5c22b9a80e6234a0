package plan

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// Layouts of another seed are others. That those of one differ, builds.txtar sees in the programs.
func TestSeeds(t *testing.T) {
	of := func(seed uint64) []uint64 { return Links{Layouts: 2, Seed: seed}.seeds() }
	require.NotEqual(t, of(7), of(8))
	require.Equal(t, of(7), of(7))
	require.Equal(t, []uint64{0}, Links{}.seeds(), "the linker's own order")
}

// The callers of a sweep over rates are as many at each rate as where none is planned.
func TestCallersOfASweep(t *testing.T) {
	for typed, callers := range map[string]int{"-rate=1000,saturated": 100, "-rate=1000,saturated -callers=30": 30} {
		f := flag.NewFlagSet("run", flag.ContinueOnError)
		read := makers(f)
		require.NoError(t, f.Parse(strings.Fields(typed)))
		m, err := read()
		require.NoError(t, err)
		require.Len(t, m.Workloads, 2)
		for _, w := range m.Workloads {
			require.Equal(t, callers, w.AtOnce(), "%s: %s", typed, w.Title)
			a := report.Answer{Wired: Wired(&versus.Comparison{Spec: versus.Spec{Workload: w.Workload}})}
			said := report.Summary{Answers: []report.Answer{a}}.Wiring()
			require.Equal(t, fmt.Sprintf("%d callers; client and server in one process", callers), said, "as a picture says")
		}
	}
}

// What several callers cost leads, unless their servers are elsewhere: the CPU time is the clients' alone then.
func TestWhatLeads(t *testing.T) {
	for _, w := range []workload.Workload{{Callers: 4}, {Rate: 1000}} {
		require.True(t, Plan{}.AsksCPU(w))
		require.False(t, Plan{Servers: map[string]string{}}.AsksCPU(w))
	}
}

// Flags make a workload, which its name and title tell, and which is measured alone.
func TestFlagsMakeAWorkload(t *testing.T) {
	for _, test := range []struct {
		args string
		want workload.Workload
	}{
		{"-callers 30 -conns 4 -tls -payload 2kB", workload.Workload{Name: "callers.30.conns.4.payload.2kB.tls",
			Title: "30 callers, 4 connections, 2kB of bytes, TLS", Callers: 30, Conns: 4, TLS: true, Payload: "2kB"}},
		{"-unix -callers 3", workload.Workload{
			Name: "callers.3.unix", Title: "3 callers, a Unix socket", Callers: 3, Unix: true}},
		{"-new-connections -headers -link 40ms/10Mbps -gomaxprocs 4", workload.Workload{
			Name:  "gomaxprocs.4.headers.link.40ms.10Mbps.newconnections",
			Title: "GOMAXPROCS=4, long headers, over 40ms/10Mbps, new connections",
			Procs: 4, Headers: true, Link: "40ms/10Mbps", NewConn: true}},
		{"-rate 5000 -apart", workload.Workload{Name: "apart.rate.5000", Rate: 5000, Apart: true,
			Title: "client and server in two processes, 5000 calls a second"}},
		{"-rate auto -payload flex.2kB -gomaxprocs 0", workload.Workload{Name: "payload.flex.2kB.rate.auto",
			Title: "flex.2kB, ordinary load", Payload: "flex.2kB", Rate: 1000}},
		{"-gomaxprocs 0", workload.Workload{Name: "gomaxprocs.0", Title: "GOMAXPROCS=0"}},
		{"-stream -tls=false", workload.Workload{Name: "stream", Title: "on a stream", Stream: true}},
	} {
		want := []workload.Planned{{Workload: test.want, Ordinary: test.want.Rate == 1000}}
		require.Regexp(t, `^[a-zA-Z0-9.]+$`, test.want.Name)
		f := flag.NewFlagSet("run", flag.ContinueOnError)
		read := Flags(f, "default all")
		require.NoError(t, f.Parse(strings.Fields(test.args)))
		c, err := read()
		require.NoError(t, err)
		for _, p := range []shell.Program{{Stacks: stacks.All()}, {Stacks: own.Stacks()}} {
			made := Plan{Compared: Named(p, "", nil), Sweep: c.Of(p, 1)}
			require.NoError(t, c.Check(p))
			require.Equal(t, want, made.Sweep.Workloads, "of %s", p.Base())
			require.Equal(t, test.want, made.Spec(test.want, Of("x")).Workload)
		}
	}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	none, err := makers(f)()
	require.NoError(t, err)
	require.Nil(t, none.Workloads, "the list")
}

// converted is a stack as it would be named if it converted messages.
func converted(s rpcbench.Stack) rpcbench.Stack {
	s.Name += ".converted"
	return s
}

func TestWhatIsComparedUnlessNamed(t *testing.T) {
	for _, test := range []struct {
		why         string
		stacks      []rpcbench.Stack
		base        string
		contestants []string
	}{
		{"both are there", []rpcbench.Stack{rawtcp.New(), grpcprotobuf.New(), httpjson.New()}, "httpjson",
			[]string{"grpcprotobuf"}},
		{"no JSON", []rpcbench.Stack{rawtcp.New(), grpcprotobuf.New()}, "rawtcp", []string{"grpcprotobuf"}},
		{"no gRPC", []rpcbench.Stack{rawtcp.New(), httpjson.New(), httpxml.New()}, "httpjson", []string{"rawtcp", "httpxml"}},
		{"gRPC converts messages", []rpcbench.Stack{rawtcp.New(), httpjson.New(), converted(grpcprotobuf.New())}, "httpjson",
			[]string{"grpcprotobuf.converted"}},
		{"JSON converts messages", []rpcbench.Stack{rawtcp.New(), converted(httpjson.New()), grpcprotobuf.New()},
			"httpjson.converted", []string{"grpcprotobuf"}},
		{"neither", []rpcbench.Stack{rawtcp.New(), httpxml.New()}, "rawtcp", []string{"httpxml"}},
	} {
		all := Named(shell.Program{Stacks: test.stacks}, "", nil)
		require.Equal(t, append([]string{test.base}, test.contestants...), all.Stacks(), test.why)
	}
}

// A process of two builds has twice as many blocks as one of two stacks, since ratios of builds spread more.
func TestBlocksOfBuilds(t *testing.T) {
	p := Plan{Compared: Contestants{Of("a@HEAD~1"), Of("a"), Of("b@HEAD~1")}, Processes: 8, Time: 8 * time.Second}
	blocks := func(c Contestant) int { return p.Spec(workload.Workload{}, c).Blocks }
	require.Equal(t, 22, blocks(p.Compared[2]), "of one build")
	require.Equal(t, 44, blocks(p.Compared[1]), "of two")
}

// What somebody wrote is read as it was written.
func TestContestants(t *testing.T) {
	for name, want := range map[string]Contestant{
		"a":                    {Stack: "a"},
		"a@HEAD~1":             {"a", "HEAD~1"},
		"a@example.com/m@v1.0": {"a", "example.com/m@v1.0"},
		"a@":                   {Stack: "a@"}, // which Check refuses
	} {
		require.Equal(t, want, Of(name))
		require.Equal(t, name, Of(name).String())
	}
	all := Contestants{Of("a@x"), Of("b"), Of("a"), Of("c@x")}
	require.Equal(t, []string{"x", ""}, all.Builds())
	require.True(t, all.OfBuilds())
	require.False(t, all[1:3].OfBuilds())
}
