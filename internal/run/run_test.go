package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks"
)

// optionsOf has the options of a command line without the name of the command.
func optionsOf(t *testing.T, p shell.Program, args ...string) options {
	t.Helper()
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	read := flags(p, f)
	require.NoError(t, f.Parse(args))
	o, err := read(f.Args())
	require.NoError(t, err)
	return o
}

// planned is the plan of a command line, with which nothing is wrong.
func planned(t *testing.T, p shell.Program, args ...string) plan.Plan {
	t.Helper()
	o := optionsOf(t, p, args...)
	made := o.plan()
	require.NoError(t, o.check(made))
	return made
}

// measured is what one real child of a plan measured in as few blocks as it may.
func measured(t *testing.T, out string, args ...string) (o options, s report.Summary, stdout string) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures")
	}
	o = optionsOf(t, ours(), append([]string{"-out", out}, args...)...)
	require.NoError(t, o.check(o.plan()))
	var said, errs bytes.Buffer
	require.NoError(t, answer(t.Context(), quick(o), o, &said, &errs))
	require.Empty(t, errs.String(), "no progress but on a terminal")
	s, err := report.Read(out)
	require.NoError(t, err)
	return o, s, said.String()
}

// quick is the plan of options, with one process.
func quick(o options) plan.Plan {
	p := o.plan()
	p.Processes, p.Time = 1, 0
	return p
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
	require.ErrorContains(t, s.Write(out), "report.html is there already")
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
	o, s, stdout := measured(t, out, "-headers", "-server", servers, "httpjsoniter")
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

	_, s, _ = measured(t, out+"1", "-rate", "2000", "-server", servers, "httpjsoniter")
	a := s.Answers[0]
	require.Positive(t, a.BaseMeans.CPUNs)
	require.Zero(t, a.BaseMeans.ServerCPUNs, "the client alone is told")
	require.Positive(t, a.BaseLoad.Completed, "the plan is the client's")
	require.Contains(t, s.Raw, "BenchmarkRun/workload=rate.2000/")

	require.NoError(t, fixtures["httpjsoniter"].Close())
	o.out += "2"
	err := answer(t.Context(), quick(o), o, io.Discard, io.Discard)
	require.ErrorContains(t, err, "httpjsoniter: connect: ")
	require.NoDirExists(t, o.out, "nothing is begun")
}

// What the suite can't see of a stack is a warning of every summary, once for all its builds, beside others.
func TestUnseen(t *testing.T) {
	masked := httpjson.New()
	masked.Name, masked.Traits.Varies = "masked", rpcbench.VariesMasked
	p := programOf([]rpcbench.Stack{httpjson.New(), masked})
	warnings := func(args ...string) []string { return findings{}.summary(planned(t, p, args...)).Warnings }
	require.Equal(t, []string{workload.Unseen(masked)}, warnings("masked@HEAD~1", "masked"))
	require.Contains(t, workload.Unseen(masked), "masked masks its requests: no test reads them")
	of := warnings("-server", "httpjson=h:1,masked=h:2", "-workloads", "small", "masked")
	require.Len(t, of, 3)
	require.Equal(t, workload.Unseen(masked), of[0])
}

// What a summary says of the machine, and of what too few processes have measured.
func TestSummary(t *testing.T) {
	processes := func(n int, others float64) (all []verdict.Process) {
		for i := range n {
			all = append(all, verdict.Process{
				Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
				Time: verdict.Ratios{Copy: 1, Ratio: 2}, Others: others * float64(i)})
		}
		return all
	}
	p := plan.Plan{Compared: plan.Contestants{{Stack: "httpjson"}}, Processes: 8}
	w, err := workload.Find("small")
	require.NoError(t, err)
	for _, test := range []struct {
		why     string
		found   []verdict.Process
		said    string
		ratio   float64
		warning string
	}{
		{"a quiet machine", processes(8, 0.025), "", 2, ""},
		{"two processes of eight", processes(2, 0), "2 of 8 processes count, and a verdict needs 6", 2, ""},
		{"one of eight", processes(1, 0), "1 of 8 processes count, and a verdict needs 6", 0, ""},
		{"nothing", nil, "not measured", 0, ""},
		{"something else runs", processes(8, 0.086), "", 2, "other programs used 30% of the machine"},
	} {
		one := versus.Comparison{Spec: p.Spec(w, plan.Of("x")), Found: test.found}
		s := findings{comparisons: []*versus.Comparison{&one}}.summary(p)
		require.Equal(t, test.said, strings.Join(s.Answers[0].Led().Notes(), "; "), test.why)
		require.Equal(t, test.said == "", s.Answers[0].Led().Figure.Verdict == verdict.More, test.why)
		require.InDelta(t, test.ratio, s.Answers[0].Time.Ratio, 1e-9, test.why)
		require.Contains(t, strings.Join(s.Warnings, "\n"), test.warning, test.why)
		require.Equal(t, test.warning == "", s.Warnings == nil, test.why)
		_, err := json.Marshal(s)
		require.NoError(t, err, test.why)
	}
	apart := versus.Comparison{Found: processes(4, 0.2), Spec: versus.Spec{Arms: p.Spec(w, plan.Of("x")).Arms, Procs: 2}}
	s := findings{comparisons: []*versus.Comparison{&apart}}.summary(p)
	require.Contains(t, s.Hour(), "other programs used up to 30% of it")
	require.Nil(t, s.Warnings, "the first line says it")
	var said strings.Builder
	require.NoError(t, printSummary(&said, s, filepath.Join("mine", "report.html"), false))
	require.Contains(t, strings.ReplaceAll(said.String(), "\n  ", " "), "] "+s.Hour()+".\n")
	require.True(t, strings.HasSuffix(said.String(), "\nReport: "+filepath.Join("mine", "report.html")+"\n"))
	require.Equal(t, 1, strings.Count(said.String(), "\n"+oneHour+"\n"))
	require.Less(t, len(oneHour), 100)
	apart.Found = apart.Found[:1]
	said.Reset()
	require.NoError(t, printSummary(&said, findings{comparisons: []*versus.Comparison{&apart}}.summary(p), "", false))
	require.NotContains(t, said.String(), oneHour, "without a ratio it says nothing of others")
}

// Only of one caller, whose server is in the process, does CPU time over wall time tell how many cores a call had.
func TestOneCallerTellsCores(t *testing.T) {
	var found []verdict.Process
	for i := range 8 {
		cores := []float64{1.1, 1}[i/6] // two of eight had one
		found = append(found, verdict.Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
			CPUNs: [3]float64{1000 * cores, 1000 * cores}, Time: verdict.Ratios{Copy: 1, Ratio: 2}})
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

// Where a process tells no CPU time, callers have the one figure of time.
func TestNoCPUIsTold(t *testing.T) {
	one := versus.Comparison{Spec: versus.Spec{Arms: []string{"a", "a", "b"}, Workload: workload.Workload{Title: "calls",
		Callers: 4}}}
	for i := range 8 {
		one.Found = append(one.Found, verdict.Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 2000},
			Time: verdict.Ratios{Copy: 1, Ratio: 2}})
	}
	s := findings{comparisons: []*versus.Comparison{&one}}.summary(
		plan.Plan{Compared: plan.Contestants{{Stack: "a"}}, Processes: 8})
	require.InEpsilon(t, 2, s.Answers[0].Led().Figure.Ratio, 1e-9)
	var said strings.Builder
	require.NoError(t, printSummary(&said, s, filepath.Join("mine", "report.html"), false))
	require.Contains(t, said.String(), "b serves 50% fewer calls per second than a")
	require.NotContains(t, said.String(), "CPU ")
}

// TestWhatIsPlanned: the rows of -thorough, of a method of one's own and of servers elsewhere.
func TestWhatIsPlanned(t *testing.T) {
	plans := func(p shell.Program, args ...string) (rows []string) {
		for _, one := range planned(t, p, args...).Campaign(nil, nil).Comparisons {
			rows = append(rows, one.Spec.Workload.Name+" "+one.Spec.Arms[2])
		}
		return rows
	}
	of := func(all []workload.Planned) (rows []string) {
		for _, w := range all {
			rows = append(rows, w.Name+" grpcprotobuf")
		}
		return rows
	}
	const second = "httpjson.default" // whose client leaves all to net/http

	require.ElementsMatch(t, append(of(workload.All()), "small-load "+second, "small-saturated "+second),
		plans(ours(), "-thorough"))
	require.ElementsMatch(t, of(workload.All()[:5]), plans(ours()), "the short answer")
	hers := programOf(stacks.All())
	hers.Own = []rpcbench.Workload{{Name: "busy", Title: "hers", Callers: 30, TLS: true, Payload: "2kB"}}
	made := planned(t, hers, "-workloads", "small,busy", "rawtcp")
	require.Equal(t, 30, made.Sweep.Workloads[1].Callers)

	require.ElementsMatch(t, []string{"call-load grpcprotobuf", "call-saturated grpcprotobuf", "call grpcprotobuf",
		"call httpjsoniter"}, plans(programOf(own.Stacks())), "the rival that needs no new protocol has one row")

	const servers = "rawtcp=h:1,httpjson=h:2,grpcprotobuf=h:3"
	there := slices.DeleteFunc(workload.All(), func(w workload.Planned) bool {
		return w.TLS || w.Wait != 0 || w.Ordinary
	})
	require.ElementsMatch(t, of(there), plans(ours(), "-thorough", "-server", servers))
	require.Contains(t, findings{}.summary(planned(t, ours(), "-thorough", "-server", servers)).Warnings, "skipped: "+
		"small-load, structured-load-tls, structured-saturated-tls, cold-tls, small-load-one-core, small-load-wait, "+
		"small-saturated-wait, drawn-load: -server is for workloads without TLS, a Unix socket, -rate auto, a wait or -apart")
}
