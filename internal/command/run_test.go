package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacktest"
)

// optionsOf has the options of a command line without the name of the command.
func optionsOf(t *testing.T, p program, args ...string) options {
	t.Helper()
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	read := runFlags(p, f)
	require.NoError(t, f.Parse(args))
	o, err := read(f.Args())
	require.NoError(t, err)
	return o
}

// planned is the plan of a command line, with which nothing is wrong.
func planned(t *testing.T, p program, args ...string) plan {
	t.Helper()
	o := optionsOf(t, p, args...)
	made := o.plan()
	require.NoError(t, o.check(made))
	return made
}

// measured is what one real child of a plan measured in as few blocks as it may.
func measured(t *testing.T, out string, args ...string) (p plan, s report.Summary, stdout string) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures")
	}
	p = planned(t, ours(), args...)
	p.processes, p.time = 1, 0
	var said, errs bytes.Buffer
	require.NoError(t, p.answer(t.Context(), out, false, &said, &errs))
	require.Empty(t, errs.String(), "no progress but on a terminal")
	s, err := report.Read(out)
	require.NoError(t, err)
	return p, s, said.String()
}

// What a real child measures is in a folder that report can read. TestRunOfKnownFigures has several.
func TestRun(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "new")
	_, s, stdout := measured(t, out, "-workloads", "small", "rawtcp")
	require.Regexp(t,
		`(?m)^Not measured: a small call, one core, rawtcp: 1 of 1 processes count, and a verdict needs 6\.$`, stdout)
	require.Len(t, s.Answers, 1)
	a := s.Answers[0]
	require.Equal(t, []int{1, 1, 1}, []int{a.Processes.Counted, a.Processes.Planned, len(a.Time.BasesNs)})
	require.NotEqual(t, a.Time.BaseNs, a.Time.StackNs, "which is less is no matter of a test: others use the machine too")
	require.Equal(t, 3, strings.Count(s.Raw, "\nBenchmarkRun/workload=small/against=rawtcp/stack="))
	require.Greater(t, a.BaseFacts.Sent, a.Facts.Sent)
	said, _, err := typed(t, "report", "-out", t.TempDir(), out)
	require.NoError(t, err)
	require.Contains(t, said, "report.html")
	_, _, err = typed(t, "report", out)
	require.ErrorContains(t, err, "report.html is there already")
}

// Real children call the servers that run already: the base and its copy the base's, the contestant its own. The stacks
// speak one protocol, so that only the connections tell whose server was called.
func TestRunAgainstServers(t *testing.T) {
	t.Parallel()
	servers, out := "", filepath.Join(t.TempDir(), "new")
	fixtures := map[string]*rpcbench.Fixture{}
	for i, name := range []string{"httpjson", "httpjsoniter"} {
		found, err := ours().Find(name)
		require.NoError(t, err)
		f, err := child.ServerOnly(t.Context(), found[0], rpcbench.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		fixtures[name] = f
		servers += []string{"", ","}[i] + name + "=" + f.Addr
	}
	p, s, stdout := measured(t, out, "-headers", "-server", servers, "httpjsoniter")
	before := int64(2) // connections: of child.ServerOnly, and of the call before anything is measured
	base, contestant := fixtures["httpjson"].Accepted()-before, fixtures["httpjsoniter"].Accepted()-before
	require.Greater(t, contestant, int64(2), "a fixture in each block")
	require.InEpsilon(t, 2*contestant, base, 0.3, "the base and its copy")

	require.True(t, s.Remote)
	require.Nil(t, s.Counts(), "bytes and allocations would be of other servers")
	require.Regexp(t, `(?m)^Not measured: long headers, httpjsoniter: `, stdout)
	require.Contains(t, stdout, "\nWarning: the servers are in other programs, so CPU is the client's alone, ")
	require.Contains(t, strings.Join(s.Warnings, " "), "(proved: no)")
	require.True(t, strings.HasPrefix(s.Raw, "server: remote\nproved: no\n"), s.Raw)

	_, _, err := typed(t, "bound", "-ratios", out, aService)
	require.ErrorContains(t, err, "its servers were in other programs, so no ratio is of all CPU: name another folder")

	require.NoError(t, fixtures["httpjsoniter"].Close())
	out += "2"
	err = p.answer(t.Context(), out, false, io.Discard, io.Discard)
	require.ErrorContains(t, err, "httpjsoniter: connect: ")
	require.NoDirExists(t, out, "nothing is begun")
}

// What the suite can't see of a stack is a warning of every summary, once for all its builds, beside others.
func TestUnseen(t *testing.T) {
	masked := httpjson.New()
	masked.Name, masked.Traits.Varies = "masked", rpcbench.VariesMasked
	p := programOf([]rpcbench.Stack{httpjson.New(), masked})
	warnings := func(args ...string) []string { return planned(t, p, args...).summary(findings{}).Warnings }
	require.Equal(t, []string{workload.Unseen(masked)}, warnings("masked@HEAD~1", "masked"))
	require.Contains(t, workload.Unseen(masked), "masked masks its requests: no test reads them")
	of := warnings("-server", "httpjson=h:1,masked=h:2", "-workloads", "small", "masked")
	require.Len(t, of, 3)
	require.Equal(t, workload.Unseen(masked), of[0])
}

// TestWhatRunAsks: what -thorough, -processes, -seed, -server and nothing mean, by what is planned and what processes
// are asked. Those of 100 kB fail.
func TestWhatRunAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a hundred processes")
	}
	t.Chdir(t.TempDir()) // in no module, so nothing is linked
	run := func(args ...string) (rows []string, asked []versus.Spec, s report.Summary) {
		children, out := testkit.Children(t, 0), filepath.Join(t.TempDir(), "new")
		t.Setenv(testkit.Variable, children)
		err := ours().run(t.Context(), append([]string{"run", "-out", out}, args...), io.Discard, io.Discard)
		if err != nil {
			require.ErrorContains(t, err, "too large")
		}
		for _, q := range testkit.Asked[question](children) {
			if len(q.Spec.Arms) == 3 {
				rows = append(rows, q.Spec.Workload.Name+" "+q.Spec.Arms[2])
				asked = append(asked, q.Spec.Spec)
				require.Equal(t, []string{"httpjson", "httpjson"}, q.Spec.Arms[:2])
			}
		}
		s, err = report.Read(out)
		require.NoError(t, err)
		return rows, asked, s
	}
	distinct := func(rows []string) []string { return slices.Compact(slices.Sorted(slices.Values(rows))) }
	of := func(all []workload.Planned) (rows []string) {
		for _, w := range all {
			rows = append(rows, w.Name+" grpcprotobuf")
		}
		return rows
	}
	blocks := func(s report.Summary) (all []float64) { // of each process of small: one has 100 calls
		row := `(?m)^BenchmarkRun/workload=small/against=grpcprotobuf/stack=httpjson\s+(\d+)00\s`
		for _, calls := range regexp.MustCompile(row).FindAllStringSubmatch(s.Raw, -1) {
			n, err := strconv.ParseFloat(calls[1], 64)
			require.NoError(t, err)
			all = append(all, n)
		}
		return all
	}
	plans := func(p program, args ...string) (rows []string) {
		for _, one := range planned(t, p, args...).campaign(nil, nil).Comparisons {
			rows = append(rows, one.Spec.Workload.Name+" "+one.Spec.Arms[2])
		}
		return rows
	}
	const second = "httpjson.default" // whose client leaves all to net/http

	require.ElementsMatch(t, append(of(workload.All()), "small-load "+second, "small-saturated "+second),
		plans(ours(), "-thorough"))
	rows, asked, s := run("-thorough", "-processes", "6", "-workloads", "small")
	require.Equal(t, []string{"small grpcprotobuf"}, distinct(rows))
	require.Contains(t, s.Warnings[0], "one build was measured, and not 6 layouts")
	require.Len(t, blocks(s), 6)
	require.InDelta(t, float64(8*time.Second/6/versus.Turn), blocks(s)[0], 1)
	require.Equal(t, versus.Slice, asked[0].Slice)

	rows, _, s = run()
	require.ElementsMatch(t, of(workload.All()[:5]), distinct(rows), "the short answer")
	require.ElementsMatch(t, plans(ours()), distinct(rows), "all that is planned is asked")
	require.NotContains(t, strings.Join(s.Warnings, "\n"), "layouts")
	require.Len(t, blocks(s), 8)
	require.InDelta(t, float64(2*time.Second/8/versus.Turn), blocks(s)[0], 1)

	named := func(seed string) []string {
		rows, _, _ := run("-processes", "6", "-workloads", "small-saturated,small", "-seed", seed, "grpcprotobuf")
		return rows
	}
	seven := named("7")
	require.Equal(t, []string{"small grpcprotobuf", "small-saturated grpcprotobuf"}, distinct(seven), "a stack was named")
	require.Equal(t, seven, named("7"))
	require.NotEqual(t, seven, named("8"), "the seed is of the order of everything")

	p := programOf(slices.Concat(methodStacks()[:1], methodStacks()[:1], methodStacks()[:1]))
	for i, name := range []string{"httpjson", "grpcprotobuf", "httpjsoniter"} {
		p.Stacks[i].Name = name
	}
	require.ElementsMatch(t, []string{"call-load grpcprotobuf", "call-saturated grpcprotobuf", "call grpcprotobuf",
		"call httpjsoniter"}, plans(p), "the rival that needs no new protocol has one row")

	servers := ""
	for _, name := range []string{"rawtcp", "httpjson", "grpcprotobuf"} {
		found, err := ours().Find(name)
		require.NoError(t, err)
		servers += "," + name + "=" + stacktest.Start(t, found[0], rpcbench.Config{}).Addr
	}
	there := slices.DeleteFunc(workload.All(), func(w workload.Planned) bool {
		return w.TLS || w.Wait != 0 || w.At(nil).Rate != 0
	})
	require.ElementsMatch(t, of(there), plans(ours(), "-thorough", "-server", servers[1:]))
	rows, asked, _ = run("-processes", "6", "-workloads", "small", "-server", servers[1:])
	require.Equal(t, []string{"small grpcprotobuf"}, distinct(rows))
	require.Contains(t, planned(t, ours(), "-thorough", "-server", servers[1:]).summary(findings{}).Warnings, "skipped: "+
		"small-load, structured-load-tls, structured-saturated-tls, cold-tls, small-1000-per-second, small-load-one-core, "+
		"small-load-wait, small-saturated-wait, drawn-load: -server is for workloads without TLS, a Unix socket, a rate, a "+
		"wait or -apart")
	for name, addr := range asked[0].Servers {
		require.Contains(t, servers, ","+name+"="+addr)
	}
	require.Len(t, asked[0].Servers, 3)
}

// Layouts of another seed are others. That those of one differ, builds.txtar sees in the programs.
func TestSeeds(t *testing.T) {
	of := func(seed uint64) []uint64 { return plan{layouts: 2, seed: seed}.seeds() }
	require.NotEqual(t, of(7), of(8))
	require.Equal(t, of(7), of(7))
	require.Equal(t, []uint64{0}, plan{}.seeds(), "the linker's own order")
}

// What a summary says of the machine, and of what too few processes have measured.
func TestSummary(t *testing.T) {
	processes := func(n int, others float64) (all []verdict.Process) {
		for i := range n {
			all = append(all, verdict.Process{
				Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
				Ratios: verdict.Ratios{Copy: 1, Ratio: 2}, Others: others * float64(i)})
		}
		return all
	}
	p := plan{base: "httpjson", processes: 8}
	w, err := workload.Find("small")
	require.NoError(t, err)
	for _, test := range []struct {
		why     string
		found   []verdict.Process
		said    string
		ratio   float64
		warning string
	}{
		{"a quiet machine", processes(8, 0.025), "more", 2, ""},
		{"two processes of eight", processes(2, 0), "undecided: 2 of 8 processes count, and a verdict needs 6", 2, ""},
		{"one of eight", processes(1, 0), "undecided: 1 of 8 processes count, and a verdict needs 6", 0, ""},
		{"nothing", nil, "not measured", 0, ""},
		{"something else runs", processes(8, 0.086), "more", 2, "other programs used 30 % of the machine"},
	} {
		one := versus.Comparison{Spec: p.spec(w, "x"), Found: test.found}
		s := p.summary(findings{comparisons: []*versus.Comparison{&one}})
		require.Equal(t, test.said, s.Answers[0].Led().Said(), test.why)
		require.InDelta(t, test.ratio, s.Answers[0].Time.Ratio, 1e-9, test.why)
		require.Contains(t, strings.Join(s.Warnings, "\n"), test.warning, test.why)
		require.Equal(t, test.warning == "", s.Warnings == nil, test.why)
		_, err := json.Marshal(s)
		require.NoError(t, err, test.why)
	}
	apart := versus.Comparison{Found: processes(4, 0.2), Spec: versus.Spec{Arms: p.spec(w, "x").Arms, Procs: 2}}
	s := p.summary(findings{comparisons: []*versus.Comparison{&apart}})
	require.Contains(t, s.Hour(), "other programs used up to 30 % of it")
	require.Nil(t, s.Warnings, "the first line says it")
	var said strings.Builder
	require.NoError(t, printSummary(&said, s, filepath.Join("mine", "report.html"), false))
	require.Contains(t, strings.ReplaceAll(said.String(), "\n  ", " "), "\n"+s.Hour()+"\n")
	require.True(t, strings.HasSuffix(said.String(), "\nReport: "+filepath.Join("mine", "report.html")+"\n"))
}

// Only of one caller, whose server is in the process, does CPU time over wall time tell how many cores a call had.
func TestOneCallerTellsCores(t *testing.T) {
	var found []verdict.Process
	for i := range 8 {
		cores := []float64{1.1, 1}[i/6] // two of eight had one
		found = append(found, verdict.Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
			CPUNs: [3]float64{1000 * cores, 1000 * cores}, Ratios: verdict.Ratios{Copy: 1, Ratio: 2}})
	}
	for leftOut, all := range map[int][]versus.Spec{
		2: {{}, {Workload: workload.Workload{Callers: 1}}, {Workload: workload.Workload{TLS: true, Headers: true}}},
		0: {{Workload: workload.Workload{Callers: 50}}, {Workload: workload.Workload{Apart: true}}, {Procs: 1},
			{Workload: workload.Workload{Link: "4g"}}, {Servers: map[string]string{"x": "h:1"}}},
	} {
		for _, spec := range all {
			spec.Procs = cmp.Or(spec.Procs, 2)
			one := versus.Comparison{Spec: spec, Found: found}
			require.Equal(t, leftOut, one.Answer(verdict.Plan{Processes: 8}).Processes.OneCore, "%+v", spec)
		}
	}
}

// The codecs of a method are timed one by one, encoding apart from decoding.
func TestCodecTimes(t *testing.T) {
	require.Equal(t, report.Span{Ns: 6.5, Lo: 3, Hi: 10}, span([]float64{12, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6}))
	seen := map[string]bool{} // by a codec that decodes
	messages := func(name string, encodes, decodes time.Duration) rpcbench.Messages {
		takes := func(d time.Duration) {
			garbage = make([]byte, 1<<12)
			<-time.After(d)
		}
		return rpcbench.Messages{Encode: func(i int) ([]byte, error) { takes(encodes); return []byte{byte(i)}, nil },
			Decode: func(data []byte) error { seen[name+string(data)] = true; takes(decodes); return nil }}
	}
	of := func(name string, encodes, decodes time.Duration) codec {
		return codec{rpcbench.Stack{Name: name}, messages(name+" request ", encodes, decodes),
			messages(name+" reply ", encodes, decodes)}
	}
	const long = 2 * time.Millisecond
	times, err := codecTimes(t.Context(), 1, []codec{of("a", long, 0), of("b", 0, long)})
	require.NoError(t, err)
	for i, span := range []report.Span{times[0][0], times[1][1]} {
		require.GreaterOrEqual(t, span.Ns, float64(long), "%d of %+v", i, times)
		require.LessOrEqual(t, span.Lo, span.Ns)
		require.GreaterOrEqual(t, span.Hi, span.Ns)
	}
	require.Len(t, seen, 4*corpus.Round, "each sample goes round")
	failing := of("c", 1, 1)
	failing.replies.Decode = func([]byte) error { return errors.New("no reply") }
	_, err = codecTimes(t.Context(), 1, []codec{failing})
	require.ErrorContains(t, err, "c decodes", "an error names the codec")
}

// The callers of a sweep over rates are as many at each rate as where none is planned.
func TestCallersOfASweep(t *testing.T) {
	for typed, callers := range map[string]int{"-rate=1000,saturated": 100, "-rate=1000,saturated -callers=30": 30} {
		f := flag.NewFlagSet("run", flag.ContinueOnError)
		read := workloadFlags(f)
		require.NoError(t, f.Parse(strings.Fields(typed)))
		m, err := read()
		require.NoError(t, err)
		require.Len(t, m.workloads, 2)
		for _, w := range m.workloads {
			require.Equal(t, callers, w.At(nil).AtOnce(), "%s: %s", typed, w.Title)
			a := report.Answer{Wired: wired(&versus.Comparison{Spec: versus.Spec{Workload: w.At(nil)}})}
			said := report.Summary{Answers: []report.Answer{a}}.Wiring()
			require.Equal(t, fmt.Sprintf("%d callers; client and server in one process", callers), said, "as a picture says")
		}
	}
}

// What several callers cost leads, unless their servers are elsewhere: the CPU time is the clients' alone then.
func TestWhatLeads(t *testing.T) {
	for _, w := range []workload.Workload{{Callers: 4}, {Rate: 1000}} {
		require.True(t, plan{}.asksCPU(w))
		require.False(t, plan{servers: map[string]string{}}.asksCPU(w))
	}
}

// Where a process tells no CPU time, callers have the one figure of time.
func TestNoCPUIsTold(t *testing.T) {
	one := versus.Comparison{Spec: versus.Spec{Arms: []string{"a", "a", "b"}, Workload: workload.Workload{Title: "calls",
		Callers: 4}}}
	for i := range 8 {
		one.Found = append(one.Found, verdict.Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
			Ratios: verdict.Ratios{Copy: 1, Ratio: 2}})
	}
	s := plan{base: "a", processes: 8}.summary(findings{comparisons: []*versus.Comparison{&one}})
	require.InEpsilon(t, 2, s.Answers[0].Led().Ratio, 1e-9)
	var said strings.Builder
	require.NoError(t, printSummary(&said, s, filepath.Join("mine", "report.html"), false))
	require.Contains(t, said.String(), "b serves 0.50 times as many calls as a")
	require.NotContains(t, said.String(), "CPU ")
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
		{"-rate auto -payload flex.1kB -gomaxprocs 0", workload.Workload{Name: "payload.flex.1kB.rate.auto",
			Title: "flex.1kB, ordinary load", Payload: "flex.1kB"}},
		{"-gomaxprocs 0", workload.Workload{Name: "gomaxprocs.0", Title: "GOMAXPROCS=0"}},
		{"-stream -tls=false", workload.Workload{Name: "stream", Title: "on a stream", Stream: true}},
	} {
		want := []workload.Planned{{Workload: test.want, Ordinary: strings.Contains(test.args, "-rate auto")}}
		require.Regexp(t, `^[a-zA-Z0-9.]+$`, test.want.Name)
		programs := []program{ours()}
		if w := test.want; !w.Stream && w.Payload == "" {
			programs = append(programs, programOf(methodStacks()))
		}
		for _, p := range programs {
			made := planned(t, p, strings.Fields(test.args)...)
			require.Equal(t, want, made.workloads, "of %s", p.Base())
			require.Equal(t, test.want, made.spec(test.want, "x").Workload)
		}
	}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	own, err := workloadFlags(f)()
	require.NoError(t, err)
	require.Nil(t, own.workloads, "the list")
}
