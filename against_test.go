package rpcbench_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// row is a row of go test -bench, of which -count prints several.
type row struct {
	name    string
	procs   int
	figures map[string]float64 // by unit
}

// against compares gRPC and json-iterator with JSON, in lines for people, which benchstat ignores. A stack without rows
// has no line, and rows of several GOMAXPROCS, which have no median, have none.
func against(rows []row) (lines []string) {
	const base = "BenchmarkHTTPJSON"
	for _, stack := range []struct{ name, benchmark string }{
		{"gRPC", "BenchmarkGRPCProtobuf"}, {"json-iterator", "BenchmarkHTTPJSONIter"},
	} {
		var differs []any
		for _, unit := range []string{"ns/op", "B/op", "allocs/op"} {
			value, json := median(rows, stack.benchmark, unit), median(rows, base, unit)
			if value > 0 && json > 0 {
				differs = append(differs, difference(value/json, unit))
			}
		}
		if len(differs) == 3 {
			label := stack.name + " vs JSON:"
			lines = append(lines, fmt.Sprintf("# %-22s", label)+fmt.Sprintf(" %15s, %14s, %19s", differs...))
		}
	}
	if lines != nil {
		lines = append(lines, "# One run of a small call is no comparison. This is: go run ./cmd/rpcbench run")
	}
	return lines
}

// median is that of the printed values of a benchmark, or 0 if there is none.
func median(rows []row, benchmark, unit string) float64 {
	var values []float64
	for _, r := range rows {
		if r.procs != rows[0].procs {
			return 0
		}
		if r.name == benchmark {
			values = append(values, math.Round(r.figures[unit]))
		}
	}
	if values == nil {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// difference says by how much a ratio differs from 1.
func difference(ratio float64, unit string) string {
	percent := math.Round(100 * (ratio - 1))
	switch {
	case percent > 0:
		return fmt.Sprintf("%.0f%% more %s", percent, unit)
	case percent == 0:
		return "same " + unit
	case unit == "allocs/op":
		return fmt.Sprintf("%.0f%% fewer %s", -percent, unit)
	}
	return fmt.Sprintf("%.0f%% less %s", -percent, unit)
}

// TestAgainst: the lines below the rows, of rows made up.
func TestAgainst(t *testing.T) {
	made := func(name string, procs int, ns, bytes, allocs float64) row {
		return row{"Benchmark" + name, procs, map[string]float64{"ns/op": ns, "B/op": bytes, "allocs/op": allocs}}
	}
	grpc, json, iter := made("GRPCProtobuf", 2, 40_000.4, 9200, 165), made("HTTPJSON", 2, 30_000, 10_000, 100),
		made("HTTPJSONIter", 2, 29_850.6, 9_000, 93)
	const (
		grpcs = "# gRPC vs JSON:           33% more ns/op,   8% less B/op,  65% more allocs/op"
		iters = "# json-iterator vs JSON:      same ns/op,  10% less B/op,  7% fewer allocs/op"
		end   = "# One run of a small call is no comparison. This is: go run ./cmd/rpcbench run"
	)
	for _, c := range []struct {
		reason string
		rows   []row
		want   []string
	}{
		{"a row of each", []row{grpc, json, iter}, []string{grpcs, iters, end}},
		{"other rows are others'", []row{grpc, made("Call/workload=tls/stack=httpjson", 2, 1, 1, 1), json,
			made("ConnectRPC", 2, 1, 1, 1), iter}, []string{grpcs, iters, end}},
		{"the median of three", []row{made("GRPCProtobuf", 2, 1, 1, 999), grpc, made("GRPCProtobuf", 2, 1e9, 1e9, 1), json},
			[]string{grpcs, end}},
		{"the median of two is between them", []row{made("GRPCProtobuf", 2, 39_000, 9000, 160),
			made("GRPCProtobuf", 2, 41_000, 9400, 170), json}, []string{grpcs, end}},
		{"without json-iterator", []row{grpc, json}, []string{grpcs, end}},
		{"without gRPC", []row{json, iter}, []string{iters, end}},
		{"without JSON", []row{grpc, iter}, nil},
		{"gRPC alone", []row{grpc}, nil},
		{"JSON alone", []row{json}, nil},
		{"no row", nil, nil},
		{"of two GOMAXPROCS", []row{made("GRPCProtobuf", 1, 1, 1, 1), grpc, made("HTTPJSON", 1, 1, 1, 1), json}, nil},
		{"without a figure", []row{{"BenchmarkGRPCProtobuf", 2, nil}, json}, nil},
		{"a hundred times as much", []row{made("GRPCProtobuf", 2, 3_000_000, 1_000_000, 9900), json}, []string{
			"# gRPC vs JSON:          9900% more ns/op, 9900% more B/op, 9800% more allocs/op", end}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			lines := against(c.rows)
			require.Equal(t, c.want, lines)
			for _, line := range lines {
				require.LessOrEqual(t, len(line), 80, line)
			}
		})
	}
}

// TestRowsEndInTheAnswer: lines of the printed rows stand below them, if there are rows to compare. Benchstat reads
// neither a row nor a key nor an error in them.
func TestRowsEndInTheAnswer(t *testing.T) {
	testkit.Alone(t)
	for _, c := range []struct {
		reason string
		args   []string
		lines  int
	}{
		{"the three, twice", []string{"-test.bench=^Benchmark(GRPCProtobuf|HTTPJSON|HTTPJSONIter)$", "-test.count=2"}, 3},
		{"also with all figures", []string{"-test.bench=^Benchmark(GRPCProtobuf|HTTPJSON)$", "-full"}, 2},
		{"one alone", []string{"-test.bench=^BenchmarkGRPCProtobuf$"}, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, c.args...)
			require.NoError(t, err, out)
			var printed []row
			parsed, _ := testkit.Rows(t, out)
			for _, r := range parsed {
				figures := map[string]float64{}
				for _, v := range r.Values {
					figures[v.Unit] = v.Value
					if v.OrigUnit != "" {
						figures[v.OrigUnit] = v.OrigValue
					}
				}
				base, _ := r.Name.Parts()
				printed = append(printed, row{"Benchmark" + string(base), 1, figures})
			}
			lines := against(printed)
			require.Len(t, lines, c.lines, out)
			_, below, _ := strings.Cut(out, "\nPASS\n")
			require.Equal(t, strings.Join(lines, ""), strings.Join(regexp.MustCompile(`(?m)^# .* vs JSON: .*$|^# One .*$`).
				FindAllString(below, -1), ""), out)
			again, _ := testkit.Rows(t, out+strings.Join(lines, "\n")+"\nBenchmarkX 1 1 ns/op\n")
			require.Len(t, again, len(parsed)+1)
			require.Equal(t, parsed[0].Config, again[len(parsed)].Config, "a line is a key")
		})
	}
}

// TestRunningShowsBenchstat: the columns of docs/running.md compare the rows, and the table there is of recorded ones.
func TestRunningShowsBenchstat(t *testing.T) {
	testkit.Alone(t)
	page, err := os.ReadFile("docs/running.md")
	require.NoError(t, err)
	benchstat := func(nth int, file string) string {
		command := regexp.MustCompile(`benchstat (.*)'(.*)' `).FindAllStringSubmatch(string(page), -1)[nth]
		args := []string{"tool", "-modfile=internal/tools/go.mod", "benchstat"}
		args = append(append(args, strings.Fields(command[1])...), command[2], file)
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "vary in", "rows that should not be one")
		return string(out)
	}
	recorded := regexp.MustCompile(`\[recorded\]\(\.\./(.*?)\)`).FindStringSubmatch(string(page))[1]
	shown := regexp.MustCompile("(?s)```text\n([^`]*│[^`]*)```").FindStringSubmatch(string(page))[1]
	for table := range strings.SplitSeq(strings.TrimSuffix(shown, "\n"), "\n\n") {
		require.Contains(t, benchstat(0, recorded), table)
	}

	var all strings.Builder
	for rows, count := range map[string]string{"(GRPCProtobuf|HTTPJSON(Iter)?|RawTCP)$": "2",
		"Call$/^workload=(tls|small-100-callers)$": "1"} {
		out, err := run(t, "-test.bench=^Benchmark"+rows, "-test.count="+count)
		require.NoError(t, err, out)
		all.WriteString(out)
	}
	file := filepath.Join(t.TempDir(), "rows.txt")
	require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o600))
	for nth, names := range [][]string{{`\*(-\d+)?`}, {"tls", "small-100-callers"}} {
		for _, name := range names {
			require.Regexp(t, `(?m)^`+name+` +[^±\n]*(±[^±\n]+){3}$`, benchstat(nth, file))
		}
	}
}
