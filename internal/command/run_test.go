package command

import (
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
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacktest"
)

// TestWhatRunAsks: what -thorough, -processes, -seed, -server and nothing mean, by what processes are asked. Those of
// 100 kB fail. What is planned, TestWhatIsPlanned sees.
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
	rows, asked, s := run("-thorough", "-processes", "6", "-workloads", "small")
	require.Equal(t, []string{"small grpcprotobuf"}, distinct(rows))
	require.Contains(t, s.Warnings[0], "one build was measured, and not 6 layouts")
	require.Len(t, blocks(s), 6)
	require.InDelta(t, float64(8*time.Second/6/versus.Turn), blocks(s)[0], 1)
	require.Equal(t, versus.Slice, asked[0].Slice)

	rows, _, s = run()
	require.ElementsMatch(t, of(workload.All()[:5]), distinct(rows), "the short answer")
	require.NotContains(t, strings.Join(s.Warnings, "\n"), "layouts")
	require.Len(t, blocks(s), 6, "all that the verdict took")
	require.InDelta(t, float64(2*time.Second/8/versus.Turn), blocks(s)[0], 1)

	named := func(seed string) []string {
		rows, _, _ := run("-processes", "6", "-workloads", "small-saturated,small", "-seed", seed, "grpcprotobuf")
		return rows
	}
	seven := named("7")
	require.Equal(t, []string{"small grpcprotobuf", "small-saturated grpcprotobuf"}, distinct(seven), "a stack was named")
	require.Equal(t, seven, named("7"))
	require.NotEqual(t, seven, named("8"), "the seed is of the order of everything")

	servers := ""
	for _, name := range []string{"rawtcp", "httpjson", "grpcprotobuf"} {
		found, err := ours().Find(name)
		require.NoError(t, err)
		servers += "," + name + "=" + stacktest.Start(t, found[0], rpcbench.Config{}).Addr
	}
	rows, asked, _ = run("-processes", "6", "-workloads", "small", "-server", servers[1:])
	require.Equal(t, []string{"small grpcprotobuf"}, distinct(rows))
	for name, addr := range asked[0].Servers {
		require.Contains(t, servers, ","+name+"="+addr)
	}
	require.Len(t, asked[0].Servers, 3)
}

// Counts are of the calls that flags make: over TLS 1.3 each message is a record, with five bytes before it and
// seventeen behind. The gate sees growth there as it does in clear.
func TestCountsOfFlags(t *testing.T) {
	const record = 5 + 17
	const both = `\s+([0-9.]+)\s+\(base\s+([0-9.]+)\)`
	counted := regexp.MustCompile(`bytes sent` + both + `,\s+bytes\s+received` + both)
	for _, size := range []string{"0B", "1kB"} {
		of := func(flags ...string) (all [4]float64) { // sent and received, of httpjson and of rawtcp
			args := append([]string{"count", "-max", "1.02", "-base", "rawtcp"}, flags...)
			if size != "0B" {
				args = append(args, "-payload", size)
			}
			out, _, err := typed(t, append(args, "httpjson")...)
			require.ErrorContains(t, err, "count: above the gate: ", "%q: JSON over HTTP sends more than frames: %s", flags, out)
			require.Contains(t, err.Error(), "bytes sent", "what has grown, with %q", flags)
			found := counted.FindStringSubmatch(out)
			require.NotNil(t, found, "counts of %q: %s", flags, out)
			for i := range all {
				all[i], err = strconv.ParseFloat(found[i+1], 64)
				require.NoError(t, err)
			}
			return all
		}
		clear := of("-gomaxprocs", "1")
		for _, flags := range [][]string{{"-tls"}, {"-tls", "-apart"}} {
			got := of(flags...)
			for i, what := range []string{"sent by httpjson", "sent by rawtcp", "received by httpjson", "received by rawtcp"} {
				require.InDelta(t, clear[i]+record, got[i], 1, "bytes %s with %q, of payloads of %s: a record more than %v in "+
					"clear", what, flags, size, clear[i])
			}
		}
	}
}

// No ratio of a run whose servers were in other programs is of all CPU, so none bounds a service.
func TestBoundOfServersElsewhere(t *testing.T) {
	dir := saved(t)
	s, err := report.Read(dir)
	require.NoError(t, err)
	s.Remote = true
	require.NoError(t, s.Save(dir))
	_, _, err = typed(t, "bound", "-ratios", dir, aService)
	require.ErrorContains(t, err, "its servers were in other programs, so no ratio is of all CPU: name another folder")
}
