//go:build !race

// The race detector allocates on its own account, so costs are compared without it.

package stacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacktest"
)

// cost is what one call of a row allocates and puts on the wire.
type cost struct{ Allocs, Bytes, Sent, Received float64 }

const (
	calls = 300 // of a batch
	wired = 200
)

// costOf is the median of three batches of calls.
func costOf(t *testing.T, stack rpcbench.Stack) cost { return costsOf(t, stack, 3, calls)[0] }

// costsOf are, for each n, the median of batches of n calls each, all of one fixture, on one P and without garbage
// collection. Bytes on the wire are of wired calls: they hardly vary.
func costsOf(t *testing.T, stack rpcbench.Stack, batches int, n ...int) (costs []cost) {
	t.Helper()
	bare := stacktest.Start(t, stack, rpcbench.Config{})
	counter := new(tap.Counter)
	counted := stacktest.Start(t, stack, rpcbench.Config{WrapClient: counter.Wrap})
	defer bare.Close()
	defer counted.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	run := func(f *rpcbench.Fixture) func(int) {
		var calls []rpcbench.Call
		for i := range corpus.Round {
			call, err := testkit.As[rpcbench.Users](t, f).PrepareUser(rpcbench.SampleUser(i, 0))
			require.NoError(t, err)
			calls = append(calls, call)
		}
		return func(n int) {
			for i := range n {
				if err := calls[i%len(calls)](context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	call, countedCall := run(bare), run(counted)
	counts := len(n) == 1 // bytes on the wire, which are of as many calls whatever n is
	call(300)
	if counts {
		countedCall(wired)
	}
	for _, n := range n {
		var allocs, bytes, sent, received []float64
		for range batches {
			runtime.GC() // else a large n would exhaust memory
			since := workload.Allocated()
			call(n)
			allocated, objects := since()
			s, r := counter.Sent.Load(), counter.Received.Load()
			if counts {
				countedCall(wired)
			}
			per := func(total uint64, calls int) float64 { return float64(total) / float64(calls) }
			allocs = append(allocs, per(objects, n))
			bytes = append(bytes, per(allocated, n))
			sent = append(sent, per(uint64(counter.Sent.Load()-s), wired))
			received = append(received, per(uint64(counter.Received.Load()-r), wired))
		}
		median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
		costs = append(costs, cost{median(allocs), median(bytes), median(sent), median(received)})
	}
	return costs
}

// requireEqual compares costs. One batch is measured, and the median of three only if that one is not equal: something
// else may have allocated.
func requireEqual(t *testing.T, where string, measured func(batches int) (want, got cost)) {
	t.Helper()
	var want, got cost
	for _, batches := range []int{1, 3} {
		want, got = measured(batches)
		if math.Abs(want.Allocs-got.Allocs) <= 0.5 && math.Abs(want.Bytes-got.Bytes) <= 0.01*want.Bytes &&
			math.Abs(want.Sent-got.Sent) <= 2 && math.Abs(want.Received-got.Received) <= 2 {
			return
		}
	}
	require.Fail(t, "costs differ", "%s: %+v and %+v", where, want, got)
}

// What a process of this test binary reads: the stack whose cost it tells, and of how many batches.
const ofChild, batchesOfChild = "RPCBENCH_TEST_STACK", "RPCBENCH_TEST_BATCHES"

func TestChildCost(t *testing.T) {
	name, ok := os.LookupEnv(ofChild)
	if !ok {
		t.Skip("runs in a child process")
	}
	found, err := stacks.Find(name)
	require.NoError(t, err)
	batches, err := strconv.Atoi(os.Getenv(batchesOfChild))
	require.NoError(t, err)
	data, err := json.Marshal(costsOf(t, found[0], batches, calls)[0])
	require.NoError(t, err)
	t.Logf("cost %s", data)
}

// TestRowsCostTheSame: what a row allocates and sends does not depend on what ran before it in the process.
func TestRowsCostTheSame(t *testing.T) {
	testkit.Alone(t)
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	main := stacks.Core()
	first := map[string]cost{}
	for _, s := range main {
		first[s.Name] = costOf(t, s)
	}
	slices.Reverse(main)
	for _, s := range main {
		requireEqual(t, s.Name+", in another order", func(batches int) (want, got cost) {
			return first[s.Name], costsOf(t, s, batches, calls)[0]
		})
		requireEqual(t, s.Name+", alone in its process", func(batches int) (want, got cost) {
			t.Setenv(batchesOfChild, fmt.Sprint(batches))
			out, err := testkit.Again(t, ofChild+"="+s.Name, "-test.run=^TestChildCost$", "-test.v").CombinedOutput()
			require.NoError(t, err, string(out))
			m := regexp.MustCompile(`cost (\{.*\})`).FindSubmatch(out)
			require.NotNil(t, m, string(out))
			require.NoError(t, json.Unmarshal(m[1], &got))
			t.Logf("%s: %+v", s.Name, got)
			return first[s.Name], got
		})
	}
}

// TestNothingGrows: a call costs the same among ten times as many.
func TestNothingGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	for _, s := range stacks.All() {
		requireEqual(t, s.Name+", with ten times as many calls", func(batches int) (want, got cost) {
			costs := costsOf(t, s, batches, 60, 600)
			return costs[0], costs[1]
		})
	}
}
