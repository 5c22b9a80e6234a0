package rpcbench_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// run is this test binary's output for benchmarks of one op each. Who has asked for benchmarks does not wait for these
// first.
func run(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	if flag.Lookup("test.bench").Value.String() != "" {
		t.Skip("benchmarks are to follow")
	}
	cmd := odd.Again(t, odd.Variable+"="+odd.Children(t, 0),
		append([]string{"-test.run=^$", "-test.benchtime=1x", "-test.benchmem"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// madeUp is what a child that measures for BenchmarkVersus answers, at once.
func madeUp(_ []odd.Question[versus.Spec], spec versus.Spec, _ int) (any, error) {
	block := slices.Repeat([]timing.Slice{{Ops: 1, Wall: 1000, CPU: 1000}}, len(spec.Arms))
	return timing.Record{Arms: spec.Arms, Blocks: [][]timing.Slice{block}}, nil
}

func rowsOf(t *testing.T, output string) []*benchfmt.Result {
	t.Helper()
	rows, _ := odd.Rows(t, output)
	return rows
}

// TestRows: names, keys and units of the default run, and of BenchmarkVersus, are API. There are about 70 of them.
// -update writes them anew.
func TestRows(t *testing.T) {
	if testing.Short() {
		t.Skip("seventy rows")
	}
	const golden = "docs/rows.txt"
	require.Equal(t, "4g", chosen.links.unlessGiven)
	const quick = "4ms/100Mbps" // a link that takes no seconds
	outs, errs := [3]string{}, [3]error{}
	var group sync.WaitGroup
	for i, args := range [][]string{
		{"-test.bench=.", "-test.skip=^BenchmarkLink$"},
		{"-test.bench=^BenchmarkLink$", "-links=" + quick}, // they wait, and need no core
		{"-test.bench=^BenchmarkVersus$"},                  // which the default run leaves out
	} {
		group.Go(func() { outs[i], errs[i] = run(t, args...) })
	}
	group.Wait()
	keys := []string{"stack", "client", "server", "msg", "payload", "callers", "conns", "link", "rate", "tls", "op"}
	good := regexp.MustCompile(`^[a-zA-Z0-9.]+$`)
	var got strings.Builder
	var rows []*benchfmt.Result
	for i, out := range outs {
		require.NoError(t, errs[i], out)
		rows = append(rows, rowsOf(t, out)...)
	}
	for _, r := range rows {
		base, parts := r.Name.Parts()
		name := string(base)
		for _, p := range parts {
			key, v, ok := strings.Cut(strings.TrimPrefix(string(p), "/"), "=")
			if !ok {
				require.Regexp(t, `^-\d+$`, string(p), "%s: a part that is no key=value", r.Name)
				continue
			}
			require.Contains(t, keys, key, "%s", r.Name)
			require.Regexp(t, good, v, "%s: a value that benchmark tools would cut", r.Name)
			name += strings.ReplaceAll(string(p), strings.ReplaceAll(quick, "/", "."), chosen.links.unlessGiven)
		}
		var units []string
		for _, v := range r.Values {
			unit := v.Unit
			if v.OrigUnit != "" {
				unit = v.OrigUnit
			}
			if unit != "reconnects" { // which a busy machine may cause
				units = append(units, unit)
			}
		}
		slices.Sort(units)
		fmt.Fprintf(&got, "%s: %s\n", name, strings.Join(units, " "))
	}
	require.InDelta(t, 70, len(rows), 10)
	if *chosen.update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "go test -run '^TestRows$' -update . writes it anew")
}

// TestFlags: each flag changes the rows, and what client and server do.
func TestFlags(t *testing.T) {
	const payload, parallel = "-test.bench=^BenchmarkPayload$", "-test.bench=^BenchmarkParallel$"
	for _, c := range []struct {
		reason string
		args   []string
		names  []string           // of the rows, which are all
		least  map[string]float64 // of the last row's figures
		most   map[string]float64
	}{
		{"payloads go there and back", []string{payload, "-stacks=rawtcp", "-payloads=7B,30kB"},
			[]string{"Payload/stack=rawtcp/payload=7B", "Payload/stack=rawtcp/payload=30kB"},
			map[string]float64{"sent-B/op": 30_000, "recv-B/op": 30_000},
			map[string]float64{"sent-B/op": 31_000, "recv-B/op": 31_000}},
		{"callers", []string{parallel, "-stacks=rawtcp", "-callers=3,30"},
			[]string{"Parallel/stack=rawtcp/callers=3/conns=3", "Parallel/stack=rawtcp/callers=30/conns=20"}, nil, nil},
		{"callers who share connections", []string{parallel, "-stacks=rawtcp", "-callers=3,30", "-conns=2"},
			[]string{"Parallel/stack=rawtcp/callers=3/conns=2", "Parallel/stack=rawtcp/callers=30/conns=2"}, nil, nil},
		{"stacks", []string{"-test.bench=^BenchmarkCreateUser$", "-stacks=rawtcp,httpjson.gzip"},
			[]string{"CreateUser/stack=rawtcp", "CreateUser/stack=httpjson.gzip"}, nil, nil},
		{"links", []string{"-test.bench=^BenchmarkLink$", "-stacks=rawtcp", "-links=4ms/100Mbps"},
			// of 4 ms each, one to dial
			[]string{"Link/stack=rawtcp/link=4ms.100Mbps/op=warm", "Link/stack=rawtcp/link=4ms.100Mbps/op=cold"},
			map[string]float64{"sec/op": 0.008}, nil},
		{"full has every stack, and adds values to each list",
			[]string{"-test.bench=^Benchmark(Payload|Parallel|OpenLoop)$/^stack=rawtcp$", "-full"},
			[]string{"Payload/stack=rawtcp/payload=100B", "Payload/stack=rawtcp/payload=1kB",
				"Payload/stack=rawtcp/payload=10kB", "Payload/stack=rawtcp/payload=100kB", "Payload/stack=rawtcp/payload=1MB",
				"Parallel/stack=rawtcp/callers=50/conns=20", "Parallel/stack=rawtcp/callers=1/conns=1",
				"Parallel/stack=rawtcp/callers=8/conns=8", "Parallel/stack=rawtcp/callers=64/conns=20",
				"OpenLoop/stack=rawtcp/rate=1000", "OpenLoop/stack=rawtcp/rate=100", "OpenLoop/stack=rawtcp/rate=5000"}, nil, nil},
		{"rates", []string{"-test.bench=^BenchmarkOpenLoop$", "-stacks=rawtcp", "-rates=2000,5"},
			[]string{"OpenLoop/stack=rawtcp/rate=2000", "OpenLoop/stack=rawtcp/rate=5", "OpenLoop/stack=none/rate=2000",
				"OpenLoop/stack=none/rate=5"}, map[string]float64{"req/s": 4}, map[string]float64{"req/s": 5}},
		{"the base", []string{"-test.bench=^BenchmarkVersus$", "-stacks=rawtcp,httpjson", "-base=rawtcp", "-processes=1"},
			[]string{"Versus/stack=rawtcp", "Versus/stack=httpjson"}, nil, nil},
		{"without -tls the floor's bytes are few", []string{"-test.bench=^BenchmarkRawTCP$"}, []string{"RawTCP"}, nil,
			map[string]float64{"sent-B/op": 45, "recv-B/op": 65}},
		{"with -tls both directions have its records", []string{"-test.bench=^BenchmarkRawTCP$", "-tls"}, []string{"RawTCP"},
			map[string]float64{"sent-B/op": 60, "recv-B/op": 80}, nil},
		{"with -tls nothing is in clear", []string{"-test.bench=^BenchmarkCold$", "-stacks=rawtcp,httpjson", "-tls"},
			[]string{"Cold/stack=rawtcp/tls=on", "Cold/stack=httpjson/tls=on"}, nil, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, c.args...)
			require.NoError(t, err, out)
			rows := rowsOf(t, out)
			var names []string
			for _, r := range rows {
				names = append(names, regexp.MustCompile(`-\d+$`).ReplaceAllString(string(r.Name), ""))
			}
			require.Equal(t, c.names, names)
			last := rows[len(rows)-1]
			for unit, least := range c.least {
				got, ok := last.Value(unit)
				require.True(t, ok, "%s is missing in\n%s", unit, out)
				require.GreaterOrEqual(t, got, least, unit)
			}
			for unit, most := range c.most {
				got, ok := last.Value(unit)
				require.True(t, ok, "%s is missing in\n%s", unit, out)
				require.LessOrEqual(t, got, most, unit)
			}
			want := ""
			if slices.Contains(c.args, "-tls") {
				want = "on"
			}
			require.Equal(t, want, last.GetConfig("tls"), "a key tells rows with TLS from rows in clear")
		})
	}
}

// TestFlagsWithoutEffect: a flag that no selected row obeys is named on stderr, and so is no other.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		reason, bench string
		args          []string
		useless       []string
		rows          int
	}{
		{"a row of one stack", "RawTCP", []string{"-stacks=grpcprotobuf", "-full", "-base=rawtcp", "-tls"},
			[]string{"full", "base", "stacks"}, 1},
		{"values of other benchmarks", "CreateUser", []string{"-stacks=rawtcp", "-payloads=1kB", "-callers=2", "-conns=2",
			"-links=4ms/100Mbps", "-rates=5"},
			[]string{"conns", "payloads", "callers", "links", "rates"}, 1},
		{"values of this benchmark", "Payload", []string{"-stacks=rawtcp", "-payloads=1kB"}, nil, 1},
		{"a comparison over TLS", "Versus/stack=rawtcp", []string{"-stacks=rawtcp", "-processes=1", "-tls"}, nil, 1},
		{"planned starts have no row by default", "OpenLoop", nil, nil, 0},
		{"a row has a server", "RawTCP", []string{"-server=process"}, nil, 1},
		{"no benchmarks", "", []string{"-stacks=rawtcp"}, nil, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			var bench []string
			if c.bench != "" {
				bench = []string{"-test.bench=^Benchmark" + strings.ReplaceAll(c.bench, "/", "$/^") + "$"}
			}
			out, err := run(t, append(bench, c.args...)...)
			require.NoError(t, err, out)
			require.Len(t, rowsOf(t, out), c.rows, out)
			var useless []string
			for _, m := range regexp.MustCompile(`(?m)^# rpcbench: -(\w+) has no effect on the rows of this run$`).FindAllStringSubmatch(out, -1) {
				useless = append(useless, m[1])
			}
			require.Equal(t, c.useless, useless, out)
		})
	}
}

// TestRowsThatCannotBe: why a row is not there is a line on stderr, printed once, and fails if the row was asked for by
// name.
func TestRowsThatCannotBe(t *testing.T) {
	f := start(t, rawtcp.New(), rpcbench.Config{})
	elsewhere := "-server=rawtcp=" + f.Addr
	for _, c := range []struct {
		reason, bench string
		args          []string
		want          string
		fails         bool
	}{
		{"one stack has no rival", "Versus", []string{"-stacks=httpjson"},
			"rpcbench: versus: nothing to compare with httpjson: name another stack\n", true},
		{"stacks that are elsewhere share no process", "Versus", []string{elsewhere},
			"# rpcbench: the stacks of Versus share one process: run it without -server\n", false},
		{"servers elsewhere have no TLS", "(RawTCP|CreateUser)", []string{elsewhere, "-tls", "-stacks=rawtcp"},
			"# rpcbench: the servers that -server names have no TLS: run rows over TLS with -server process\n", false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := run(t, append(c.args, "-test.bench=^Benchmark"+c.bench+"$")...)
			require.Equal(t, c.fails, err != nil, out)
			require.Empty(t, rowsOf(t, out))
			require.Equal(t, 1, strings.Count(out, c.want), out)
		})
	}
}

// TestCallersReachTheServer: it sees as many users as -callers says, one of each caller, over the connections of the
// row's name.
func TestCallersReachTheServer(t *testing.T) {
	for _, c := range []struct {
		why  string
		args []string
		want []struct{ conns, callers int }
	}{
		{"a connection for each caller, up to 20", nil, []struct{ conns, callers int }{{7, 7}, {20, 30}}},
		{"connections that callers share", []string{"-conns=3"}, []struct{ conns, callers int }{{3, 7}, {3, 30}}},
	} {
		t.Run(c.why, func(t *testing.T) {
			var tap relay.Tap
			f := start(t, rawtcp.New(), rpcbench.Config{WrapServer: tap.Wrap})
			args := append(c.args, "-test.bench=^BenchmarkParallel$", "-stacks=rawtcp", "-callers=7,30",
				"-server=rawtcp="+f.Addr)
			out, err := run(t, args...)
			require.NoError(t, err, out)
			require.NoError(t, f.Close())

			conns := tap.Conns()[1:] // without the fixture's own
			for _, want := range c.want {
				for range 2 { // fixtures of a row: one for the figures and one for the bytes
					require.GreaterOrEqual(t, len(conns), want.conns)
					var received []byte
					for _, c := range conns[:want.conns] {
						_, got := c.Bytes()
						received = append(received, got...)
					}
					conns = conns[want.conns:]
					for user := range 100 {
						require.Equal(t, user < 4*want.callers, bytes.Contains(received, []byte(rpcbench.Sample(user, 0).Email)),
							"user %d, of four for each of %d callers", user, want.callers)
					}
				}
			}
			require.Empty(t, conns)
		})
	}
}

func TestImpossibleFlags(t *testing.T) {
	for _, c := range []struct{ reason, arg, want string }{
		{"a payload without a unit", "-payloads=100", `-payloads: "100" is no size: write 100B, 1kB or 1MB`},
		{"a number of callers that is none", "-callers=many", `-callers: "many" is no number of callers from 1 to 1000`},
		{"nobody calls", "-callers=0", `-callers: "0" is no number of callers from 1 to 1000`},
		{"no connections", "-conns=0", "-conns: 0 is no number of connections from 1 to 1000"},
		{"a link that does not exist", "-links=5g", `-links: "5g" is no link: write 4g, or a round trip and a rate such as 40ms/10Mbps`},
		{"a rate of nothing", "-rates=0", `-rates: "0" is no rate from 1 to 1000000`},
		{"a rate below one", "-rates=0.5", `-rates: "0.5" is no rate from 1 to 1000000`},
		{"a rate that no row could be named after", "-rates=1e+3", `-rates: "1e+3" is no rate from 1 to 1000000`},
		{"a number in two spellings", "-callers=5,05", `-callers: "05" is no number of callers from 1 to 1000`},
		{"a stack that does not exist", "-stacks=httpjsn", `-stacks: rpcbench: unknown stack "httpjsn": the stacks are grpcprotobuf, `},
		{"a base that does not exist", "-base=httpjsn", `-base: rpcbench: unknown stack "httpjsn": the stacks are grpcprotobuf, `},
		{"one value twice", "-links=4g,4g", `-links: "4g" is there twice`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := run(t, "-test.bench=^BenchmarkRawTCP$", c.arg)
			require.Error(t, err)
			require.Contains(t, out, c.want)
			require.Equal(t, 1, strings.Count(out, "\n"), "one line, before anything runs:\n%s", out)
		})
	}
}
