package netrpc_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest"

	netrpc "example.com/outsider"
)

func TestConformance(t *testing.T) { stacktest.Conformance(t, netrpc.New()) }

func BenchmarkNetRPC(b *testing.B) {
	stacktest.Benchmark(b, netrpc.New(), rpcbench.Workload{})
}

func BenchmarkBusy(b *testing.B) {
	stacktest.Benchmark(b, netrpc.New(), rpcbench.Workload{Callers: 30, TLS: true, Payload: "2kB"})
}

// BenchmarkOwnLoop is a loop of one's own over a fixture. procs is the GOMAXPROCS that its calls have seen.
func BenchmarkOwnLoop(b *testing.B) {
	call, err := stacktest.Start(b, netrpc.New(), rpcbench.Config{TLS: true}).Client.Prepare(1)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background() // see rpcbench.Call
	for b.Loop() {
		if err := call(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}

// TestRowsHaveTheProcsOfTheirLabels: the first row too, whose only call comes before package testing has set
// GOMAXPROCS.
func TestRowsHaveTheProcsOfTheirLabels(t *testing.T) {
	for _, list := range []string{"1,2", "2,1"} {
		out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkOwnLoop$",
			"-test.benchtime=10x", "-test.cpu="+list, "-test.count=2").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		rows := regexp.MustCompile(`(?m)^BenchmarkOwnLoop(?:-(\d))?\s.*\s(\d)\.0* procs`).FindAllStringSubmatch(string(out), -1)
		if len(rows) != 4 {
			t.Errorf("-cpu %s: %d rows, want 4\n%s", list, len(rows), out)
		}
		for i, row := range rows {
			if label := cmp.Or(row[1], "1"); row[2] != label {
				t.Errorf("-cpu %s: row %d is labelled %s and ran with GOMAXPROCS %s\n%s", list, i+1, label, row[2], out)
			}
		}
	}
}
