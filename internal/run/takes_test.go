package run

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/plan"
)

// What is announced has links, rates and counts, and the layers of a method of one's own.
func TestAnnounced(t *testing.T) {
	of := func(args ...string) []time.Duration {
		p := planned(t, ours(), append([]string{"-workloads"}, args...)...)
		parts := takes(p)
		all := p.Campaign(nil, p.Likely())
		require.Equal(t, all.Takes(), parts[2])
		require.Equal(t, all.Whole()*5/4-parts[2], p.Spare(), "for what a first look doesn't decide, and what goes on")
		processes := 8
		if p.Layouts == 0 {
			processes = 6
		}
		require.Equal(t, all.Whole()*time.Duration(processes)/8, parts[2], "processes of the first look")
		return parts
	}
	one, builds := of("small"), of("small", "httpjson@HEAD", "httpjson")
	require.Zero(t, one[0]+one[1], "the short answer is of this program")
	require.Equal(t, plan.CountTakes(planned(t, ours(), "-workloads", "small").Campaign(nil, nil)), one[3])
	require.Positive(t, one[3])
	require.Equal(t, 16*2*time.Second, builds[0])
	require.Equal(t, 8*2*time.Second, of("small", "-thorough")[0])
	require.Positive(t, takes(planned(t, ours(), "-workloads", "small-load"))[1])
	slow := planned(t, ours(), "-callers", "2", "-wait", "100ms")
	require.Equal(t, takes(slow)[2]/3, slow.Spare(), "two processes of six: minutes are enough")
	require.Greater(t, takes(slow)[2], 6*3*2*time.Second, "two windows of ten calls, of three arms in six processes")
	for _, more := range [][]string{{"-callers", "100"}, {"-stream"}} {
		small, large := planned(t, ours(), append(more, "-payload", "1kB")...), planned(t, ours(),
			append(more, "-payload", "100kB")...)
		require.Greater(t, takes(large)[2], 2*takes(small)[2], "the size of a message is known")
	}
	require.Zero(t, of("small-1000-per-second")[1], "nobody looks for a rate that is given")
	require.Greater(t, builds[2], 12*versus.Turn*8*versus.FewestBlocks, "two slices of three arms, for four times as long")
	for thorough, processes := range map[bool]time.Duration{false: 2, true: 5} {
		p := planned(t, programOf(own.Stacks()), fmt.Sprintf("-thorough=%t", thorough))
		require.Equal(t, 2*processes*calls.Each+2*slice*2*blocks*3, takes(p)[4], "layers, and handlers of three stacks")
	}
}
