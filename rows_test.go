package rpcbench_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// run is this test binary's output for benchmarks of one op each.
func run(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	cmd := testkit.Again(t, testkit.Variable+"=",
		append([]string{"-test.run=^$", "-test.benchtime=1x", "-test.benchmem"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestRows: names, keys and units of rows are API: of all rows by default, and with -full of those of the core stacks.
// Without -long each workload of -full is timed with one of them, and each of BenchmarkCross' clients with one server.
// -update writes the rows anew.
func TestRows(t *testing.T) {
	testkit.Alone(t)
	if testing.Short() {
		t.Skip("a hundred rows")
	}
	const golden, links = "testdata/rows.txt", "^BenchmarkCall$/^workload=.*-4g$"
	var stacks []string
	for _, s := range core() {
		stacks = append(stacks, s.Name)
	}
	timed := fmt.Sprint("-few=", !*update && flag.Lookup("long").Value.String() != "true")
	all := []string{timed, "-full", "-stacks=" + strings.Join(stacks, ",")}
	outs, errs := [3]string{}, [3]error{}
	var group sync.WaitGroup
	for i, args := range [][]string{
		{timed, "-test.bench=."},
		append(all, "-test.bench=.", "-test.skip="+links),
		append(all, "-test.bench="+links), // they wait, and need no core
	} {
		group.Go(func() { outs[i], errs[i] = run(t, args...) })
	}
	group.Wait()
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	left := strings.Split(string(want), "\n")
	var got strings.Builder
	for i, heading := range []string{"go test -bench=. -benchmem", "\ngo test -bench=. -benchmem -full", ""} {
		require.NoError(t, errs[i], outs[i])
		if heading != "" {
			fmt.Fprintf(&got, "%s\n\n", heading)
		}
		rows, _ := testkit.Rows(t, outs[i])
		for _, r := range rows {
			row := nameAndUnits(t, r)
			if name, is := strings.CutSuffix(row, " "+untimed); is { // the units are those that are expected
				name, _, _ = strings.Cut(name, " ")
				at := slices.IndexFunc(left, func(line string) bool { return strings.HasPrefix(line, name+" ") })
				require.NotEqual(t, -1, at, "no such row is expected: %s", row)
				row, left = left[at], left[at+1:]
			}
			fmt.Fprintln(&got, row)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(want), got.String(), "go test -run '^TestRows$' -update . writes it anew")
}

// nameAndUnits is a row as rows.txt lists it: without its GOMAXPROCS.
func nameAndUnits(t *testing.T, r *benchfmt.Result) string {
	t.Helper()
	good := regexp.MustCompile(`^[a-zA-Z0-9.-]+$`)
	base, parts := r.Name.Parts()
	name := string(base)
	for _, p := range parts {
		key, v, ok := strings.Cut(strings.TrimPrefix(string(p), "/"), "=")
		if !ok {
			require.Regexp(t, `^-\d+$`, string(p), "%s: a part that is no key=value", r.Name)
			continue
		}
		require.Contains(t, []string{"workload", "stack", "conns", "client", "server"}, key, "%s", r.Name)
		require.Regexp(t, good, v, "%s: a value that benchmark tools would cut", r.Name)
		name += string(p)
	}
	var units []string
	for _, v := range r.Values {
		if unit := cmp.Or(v.OrigUnit, v.Unit); unit != "reconnects" { // of a busy machine
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return name + ": " + strings.Join(units, " ")
}

// Rows begin with the libraries of their stack, and of no others.
func TestLibraries(t *testing.T) {
	testkit.Alone(t)
	out, err := run(t, "-test.bench=^Benchmark(ConnectRPC2?|HTTPJSONIter)$")
	require.NoError(t, err, out)
	for _, c := range []struct{ module, row string }{
		{"connectrpc.com/connect", "ConnectRPC"}, {"google.golang.org/protobuf", "ConnectRPC"},
		{"connectrpc.com/connect/v2", "ConnectRPC2"}, {"github.com/json-iterator/go", "HTTPJSONIter"},
	} {
		require.Regexp(t, `(?ms)^# library=`+c.module+`@v\S+$.*^Benchmark`+c.row+`\b`, out)
	}
	require.Equal(t, 4, strings.Count(out, "# library="), "protobuf, which Connect v2 has too, is said once: %s", out)
}

// TestFlags: each flag changes the rows, and what client and server do. A row's bytes are those of its workload.
func TestFlags(t *testing.T) {
	testkit.Alone(t)
	const calls = "-test.bench=^BenchmarkCall$/^workload="
	for _, c := range []struct {
		reason      string
		args, names []string // names of all rows
		least, most float64  // bytes that the last row's client sends and receives
	}{
		{"stacks, and the usual workloads", []string{calls + "(tls|empty)$", "-stacks=rawtcp,httpjson.gzip"},
			[]string{"Call/workload=tls/stack=rawtcp", "Call/workload=tls/stack=httpjson.gzip"}, 0, 0},
		{"all figures of them", []string{calls + "small$", "-stacks=rawtcp,httpjson.gzip", "-full"},
			[]string{"Call/workload=small/stack=rawtcp", "Call/workload=small/stack=httpjson.gzip"}, 200, 1000},
		{"full has every stack, and more workloads", []string{calls + "(small|empty)$/^stack=rawtcp$", "-full"},
			[]string{"Call/workload=small/stack=rawtcp", "Call/workload=empty/stack=rawtcp"}, 10, 20},
		{"without -tls the floor's bytes are few", []string{"-test.bench=^BenchmarkRawTCP$", "-full"}, []string{"RawTCP"},
			80, 110},
		{"with -tls both directions have its records", []string{"-test.bench=^BenchmarkRawTCP$", "-full", "-tls"},
			[]string{"RawTCP"}, 140, 200},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, c.args...)
			require.NoError(t, err, out)
			rows, _ := testkit.Rows(t, out)
			var names []string
			for _, r := range rows {
				names = append(names, regexp.MustCompile(`-\d+$`).ReplaceAllString(string(r.Name), ""))
			}
			require.Equal(t, c.names, names)
			last := rows[len(rows)-1]
			require.Equal(t, 1, last.Iters, "-benchtime is as it was given")
			sent, _ := last.Value("sent-B/op")
			received, _ := last.Value("recv-B/op")
			require.GreaterOrEqual(t, sent+received, c.least, out)
			require.LessOrEqual(t, sent+received, c.most, out)
			want := ""
			if slices.Contains(c.args, "-tls") {
				want = "on"
			}
			require.Equal(t, want, last.GetConfig("tls"), "a key tells rows with TLS from rows in clear")
		})
	}
}

// TestWrongFlags: what is wrong is one line.
func TestWrongFlags(t *testing.T) {
	testkit.Alone(t)
	out, err := run(t, "-stacks=httpjsn", "-test.bench=^BenchmarkRawTCP$")
	require.Error(t, err, out)
	rows, _ := testkit.Rows(t, out)
	require.Empty(t, rows)
	const want = `-stacks: unknown stack "httpjsn": the stacks are grpcprotobuf, `
	require.Equal(t, 1, strings.Count(out, want), out)
}

// TestRunningNamesTheFlags, each at least once.
func TestRunningNamesTheFlags(t *testing.T) {
	running, err := os.ReadFile("docs/running.md")
	require.NoError(t, err)
	for _, name := range []string{"full", "tls", "stacks", "long"} {
		require.NotNil(t, flag.Lookup(name), name)
		require.Regexp(t, "[` ]-"+name+"\\b", string(running))
	}
}

// TestProfilesHaveNoTests: a profile of benchmarks has the calls of no test, unless -run asks for tests.
func TestProfilesHaveNoTests(t *testing.T) {
	testkit.Alone(t)
	for _, name := range []string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace"} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-test.v", "-test.benchtime=1x", "-test.bench=^BenchmarkRawTCP$",
				"-test." + name + "=" + filepath.Join(t.TempDir(), "profile")}
			const one = "ExampleNewUserValidator"
			for run, want := range map[string]string{"": "", "-test.run=^" + one + "$": "=== RUN   " + one + "\n"} {
				cmd := testkit.Again(t, testkit.Variable+"=", append(args, strings.Fields(run)...)...)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				tests := regexp.MustCompile(`(?m)^=== RUN .*\n`).FindAllString(string(out), -1)
				require.Equal(t, want, strings.Join(tests, ""))
				require.Equal(t, run == "", strings.Contains(string(out), "no test runs, since -"+name+" "), string(out))
				require.Contains(t, string(out), " ns/op")
			}
		})
	}
}
