package versus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

func TestWindowsAtARate(t *testing.T) {
	for rate, want := range map[float64]time.Duration{500: 2 * time.Second, 1000: time.Second,
		20_000: 300 * time.Millisecond} {
		_, length := workload.Workload{Rate: rate}.Window(time.Second)
		require.Equal(t, want, length, "%v a second", rate)
	}
}

// The ordinary load is found of what the base takes where a first look has led: here each call takes a quarter of the
// machine at 5000 a second, when 2000 are looked at, and more or less at other rates.
func TestOrdinary(t *testing.T) {
	quarter := environ.Cores() / 4
	for ns, want := range map[float64]float64{quarter / 5000 * 1e9: 5000, quarter / 100 * 1e9: 500, 100: 1e6,
		quarter / 30_000 * 1e9: 20_000} {
		var asked []float64
		measure := func(_ context.Context, s Spec, p ...Program) (timing.Record, error) {
			require.Equal(t, []string{"base", "base"}, s.Arms)
			require.Equal(t, []Program{{Layout: 3}}, p)
			require.Equal(t, 3, s.Procs, "GOMAXPROCS of the process that looks, where 3 are measured")
			asked = append(asked, s.Workload.Rate)
			cost := time.Duration(ns)
			if s.Workload.Rate == 2000 {
				cost = time.Duration(quarter / 5000 * 1e9)
			}
			one := timing.Slice{Ops: 1, Wall: 1, CPU: cost}
			return timing.Record{Arms: s.Arms, Blocks: [][]timing.Slice{{one, one}}}, nil
		}
		rate, err := Ordinary(t.Context(), measure, Spec{Arms: []string{"base", "base", "other"}, Procs: 3},
			Program{Layout: 3})
		require.NoError(t, err)
		require.Equal(t, []float64{2000, 5000}, asked)
		require.Equal(t, want, rate)
	}
	// A first look that asks for the rate that it was at is enough.
	looks := 0
	rate, err := Ordinary(t.Context(), func(_ context.Context, s Spec, _ ...Program) (timing.Record, error) {
		looks++
		one := timing.Slice{Ops: 1, Wall: 1, CPU: time.Duration(quarter / 2000 * 1e9)}
		return timing.Record{Arms: s.Arms, Blocks: [][]timing.Slice{{one, one}}}, nil
	}, Spec{Arms: []string{"base", "base", "other"}, Workload: workload.Workload{Rate: 2000}}, Program{})
	require.NoError(t, err)
	require.Equal(t, 1, looks, "whatever rate the workload had")
	require.EqualValues(t, 2000, rate)
	// Handlers that wait, of whom no field tells, complete half of 2000 calls a second. Four fifths of these are planned.
	asked := []float64(nil)
	rate, err = Ordinary(t.Context(), func(_ context.Context, s Spec, _ ...Program) (timing.Record, error) {
		asked = append(asked, s.Workload.Rate)
		one := timing.Slice{Ops: 1, Wall: 1, CPU: time.Microsecond}
		l := timing.Latency{Planned: 1000, Calls: int64(1000 * min(1, 1000/s.Workload.Rate))}
		return timing.Record{Arms: s.Arms, Blocks: [][]timing.Slice{{one, one}}, Latencies: []timing.Latency{l, l}}, nil
	}, Spec{Arms: []string{"base", "base", "other"}}, Program{})
	require.NoError(t, err)
	require.Equal(t, []float64{2000, 500}, asked)
	require.EqualValues(t, 500, rate)

	broken := errors.New("broken")
	_, err = Ordinary(t.Context(), func(context.Context, Spec, ...Program) (timing.Record, error) {
		return timing.Record{}, broken
	}, Spec{Arms: []string{"base"}}, Program{})
	require.ErrorIs(t, err, broken)
}

// What others used is of the windows alone, where these are told.
func TestOthersOfWindows(t *testing.T) {
	one := timing.Slice{Ops: 10, Wall: 10, CPU: 4, Busy: 10, Idle: 10, Switches: 30}
	p, err := ProcessOf(timing.Record{Arms: []string{"a", "a", "b"}, Others: 0.9,
		Blocks: [][]timing.Slice{{one, one, {Ops: 10, Wall: 10, CPU: 10, Busy: 10, Idle: 10}}}})
	require.NoError(t, err)
	require.InDelta(t, (0.3+0.3+1e-4)/3, p.Others, 1e-9)
	require.Equal(t, verdict.Load{Idle: 0.5, Switches: 3}, p.Loads[0])
	require.Equal(t, verdict.Load{Idle: 0.5}, p.Loads[2])
}
