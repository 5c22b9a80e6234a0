package stacktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/odd"
)

// BenchmarkProfiled is a row of each kind that has a profile.
func BenchmarkProfiled(b *testing.B) {
	forChildren(b)
	b.Run("kind=one", func(b *testing.B) { Benchmark(b, rpcbench.Workload{}, httpjson.New()) })
	b.Run("kind=many", func(b *testing.B) { Benchmark(b, rpcbench.Workload{Callers: 4, Conns: 4}, httpjson.New()) })
	b.Run("kind=planned", func(b *testing.B) { Benchmark(b, rpcbench.Workload{Rate: 10_000, Conns: 4}, httpjson.New()) })
}

// Each row has a profile of its own calls, in which client and server are told apart.
func TestProfiles(t *testing.T) {
	t.Parallel() // children measure
	dir := filepath.Join(t.TempDir(), "new")
	// Samples are of CPU time. So many ops take as much of that on a busy machine as on an idle one.
	rows, names := figures(t, "-test.bench=^BenchmarkProfiled$", "-profiles="+dir,
		"-test.benchtime=16000x", "-test.cpu=1")
	require.Len(t, names, 3)
	for i, name := range names {
		s, err := layers.ReadFile(filepath.Join(dir, "Benchmark"+strings.ReplaceAll(name, "/", "_")+".pprof"))
		require.NoError(t, err)
		require.Equal(t, "Benchmark"+name, s.Row)
		require.Greater(t, s.Calls, int64(100), "as many as the row has ops: %v", rows[i])
		for _, side := range []string{"client", "server"} {
			samples, _ := s.Sum(func(p layers.Part) bool { return p.Side == side })
			require.Positive(t, samples, "%s of %s", side, name)
		}
		if name == "Profiled/kind=planned" { // whose starts have a goroutine of their own
			continue
		}
		all, _ := s.Sum(func(layers.Part) bool { return true })
		odd, _ := s.Sum(func(p layers.Part) bool {
			runtimes := []string{"scheduling and wake-ups", "allocation and GC", layers.Other}
			return p.Side == layers.Unlabelled && !slices.Contains(runtimes, p.Layer)
		})
		require.LessOrEqual(t, odd, 1+all/10, "samples of %s whose side is not told, of %d: %v", name, all, s.Parts)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3)

	for _, c := range []struct{ why, want string }{
		{"-profiles=" + dir, "rpcbench: -profiles needs the name of a new folder: mkdir " + dir + ": file exists\n"},
		{"-profiles=" + filepath.Join(dir, "a", "b"), "rpcbench: -profiles needs the name of a new folder: mkdir "},
	} {
		out, err := child(t, "-test.bench=^BenchmarkProfiled$", c.why, "-test.benchtime=1x")
		require.Error(t, err)
		require.Contains(t, out, c.want)
		require.NotContains(t, out, "ns/op", "nothing is measured")
	}
	cpu := filepath.Join(t.TempDir(), "cpu")
	out, err := child(t, "-test.bench=^BenchmarkProfiled$", "-profiles="+dir+"2", "-test.cpuprofile="+cpu,
		"-test.benchtime=1x")
	require.Error(t, err)
	require.Contains(t, out, "rpcbench: -profiles and -cpuprofile: Go takes one CPU profile at a time: give one of them\n")
}

// BenchmarkBreaking fails while its profile is taken, and then has a row that does not.
func BenchmarkBreaking(b *testing.B) {
	forChildren(b)
	var clients atomic.Int64 // the third one is that of the profile
	breaking := clientOf(func(c rpcbench.Users) rpcbench.Client {
		client, calls := clients.Add(1), new(atomic.Int64)
		return odd.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				if client == 3 && calls.Add(1) > warmRounds*corpus.Round {
					return errors.New("broken")
				}
				return call(ctx)
			}
		})
	})
	b.Run("kind=breaking", func(b *testing.B) { Benchmark(b, rpcbench.Workload{}, breaking) })
	b.Run("kind=whole", func(b *testing.B) { Benchmark(b, rpcbench.Workload{}, httpjson.New()) })
}

func TestProfileAfterAFailure(t *testing.T) {
	t.Parallel() // children measure
	dir := filepath.Join(t.TempDir(), "new")
	out, err := child(t, "-test.bench=^BenchmarkBreaking$", "-profiles="+dir, "-test.benchtime=100x", "-test.cpu=1")
	require.Error(t, err)
	require.Contains(t, out, "broken")
	require.NotContains(t, out, "already in use")
	files, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "BenchmarkBreaking_kind=whole.pprof")}, files)
}
