package layers_test

import (
	"cmp"
	"flag"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/explain/bound"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/stacks"
)

var long = flag.Bool("long", false, "profile calls of every stack")

// TestRulesKnowEveryStack profiles calls of every stack: a new release of a library may work in functions that no rule
// knows. The first stacks are profiled over TLS too.
func TestRulesKnowEveryStack(t *testing.T) {
	if !*long {
		t.Skip("takes two seconds of CPU for each stack: -long")
	}
	all := stacks.All()
	for i, s := range append(all, all[:3]...) {
		tls := i >= len(all)
		t.Run(fmt.Sprintf("%s, TLS %v", s.Name, tls), func(t *testing.T) {
			p := profiled(t, s, tls)
			split, err := layers.Of(p)
			require.NoError(t, err)
			total := int64(0)
			for _, sample := range p.Sample {
				total += sample.Value[0]
			}
			samples, _ := split.Parts.Sum(layers.All)
			require.Equal(t, total, samples, "the parts add up to the profile")
			share := func(of func(layers.Part) bool) float64 {
				n, _ := split.Parts.Sum(of)
				return float64(n) / float64(total)
			}
			for _, side := range []string{"client", "server"} {
				require.Greater(t, share(func(p layers.Part) bool { return p.Side == side }), 0.15, side)
			}
			bare := strings.HasPrefix(s.Name, "rawtcp")
			for layer, is := range map[string]bool{
				"networking (syscalls)": true, "allocation and GC": true, "scheduling and wake-ups": true,
				"compression": s.Traits.Compression != "", "TLS": tls, "HTTP framing and headers": !bare,
				"RPC library": strings.Contains(s.Name, "grpc") || strings.Contains(s.Name, "connect"),
			} {
				got := share(func(p layers.Part) bool { return p.Layer == layer })
				if is {
					require.Positive(t, got, layer)
				} else if layer == "TLS" || layer == "HTTP framing and headers" {
					require.Zero(t, got, layer)
				}
			}
			unknown := func(p layers.Part) bool { return p.Layer == layers.Other }
			require.LessOrEqual(t, share(unknown), 0.05, "what no rule knows: %v", split.Parts)

			p.Comments = nil // which makes the profile one of a service
			service, err := bound.Of(s.Name, p)
			require.NoError(t, err)
			split.Parts = service.Parts
			if bare {
				require.Zero(t, share(bound.InRPCs), "no library that is known serves it")
				return
			}
			require.Greater(t, share(bound.InRPCs), 0.4, "RPC libraries are at work")
			require.LessOrEqual(t, share(unknown), 0.05*share(bound.InRPCs), "what no rule knows of the RPCs: %v", split.Parts)
		})
	}
}

// profiled is a profile of calls that take two seconds of CPU, however long a busy machine needs for them.
func profiled(t *testing.T, s rpcbench.Stack, tls bool) *profile.Profile {
	t.Helper()
	ctx := pprof.WithLabels(t.Context(), pprof.Labels("side", "client"))
	pprof.SetGoroutineLabels(ctx)
	o, err := workload.Workload{TLS: tls}.Open(ctx, s, workload.Setup{})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	r, err := layers.Start()
	require.NoError(t, err)
	require.NoError(t, o.Loop.Start(0))
	before, known := cpu.Time()
	for used := time.Duration(0); err == nil && used < 2*time.Second; {
		_, err = o.Loop.During(t.Context(), 0, time.Second/4, func(bool) {})
		now, _ := cpu.Time()
		if used = now - before; !known {
			used = 2 * time.Second // as elsewhere than on Unix
		}
	}
	p, stopErr := r.Stop(s.Name, o.Figures.Latency.Count())
	require.NoError(t, cmp.Or(err, stopErr))
	return p
}
