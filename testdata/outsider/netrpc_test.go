package netrpc_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"

	netrpc "example.com/outsider"
)

func TestMain(m *testing.M) { stacktest.Main(m, netrpc.New(), httpjson.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, netrpc.New()) }

func BenchmarkNetRPC(b *testing.B) {
	stacktest.Benchmark(b, rpcbench.Workload{}, netrpc.New())
}

func BenchmarkBusy(b *testing.B) {
	stacktest.Benchmark(b, rpcbench.Workload{Callers: 30, TLS: true, Payload: 2000}, netrpc.New())
}

func BenchmarkVersus(b *testing.B) {
	stacktest.BenchmarkVersus(b, rpcbench.Workload{}, httpjson.New(), netrpc.New())
}

// BenchmarkOwnLoop is a loop of one's own over a fixture. procs is the GOMAXPROCS that its calls have seen.
func BenchmarkOwnLoop(b *testing.B) {
	user := rpcbench.Sample(1, 2000)
	call, err := stacktest.Start(b, netrpc.New(), rpcbench.Config{TLS: true}).Users.PrepareUser(user)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background() // a deadline would cost time
	for b.Loop() {
		if err := call(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}

// TestRowsHaveTheProcsOfTheirLabels: the first row of -cpu 1,2 too, whose only call comes before package testing has set
// GOMAXPROCS.
func TestRowsHaveTheProcsOfTheirLabels(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkOwnLoop$",
		"-test.benchtime=10x", "-test.cpu=1,2,1", "-test.count=2").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := regexp.MustCompile(`(?m)^BenchmarkOwnLoop(?:-(\d))?\s.*\s(\d+)(?:\.0+)? procs`).FindAllStringSubmatch(string(out), -1)
	if len(rows) != 6 {
		t.Errorf("%d rows, want 6", len(rows))
	}
	for i, row := range rows {
		label := row[1]
		if label == "" {
			label = "1"
		}
		if row[2] != label {
			t.Errorf("row %d is labelled %s and ran with GOMAXPROCS %s", i, label, row[2])
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
