package command

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/own"
)

// What is announced has links, rates and counts, and the layers of a method of one's own.
func TestAnnounced(t *testing.T) {
	takes := func(args ...string) []time.Duration {
		p := planned(t, ours(), append([]string{"-workloads"}, args...)...)
		require.Equal(t, p.campaign(nil, p.likely()).Takes(), p.parts()[2])
		require.Equal(t, p.parts()[2]/4, p.spare(), "for what goes on")
		return p.parts()
	}
	one, builds := takes("small"), takes("small", "httpjson@HEAD", "httpjson")
	require.Zero(t, one[0]+one[1], "the short answer is of this program")
	require.Equal(t, 2*aCount, one[3])
	require.Equal(t, 16*aLink, builds[0])
	require.Equal(t, 8*aLink, takes("small", "-thorough")[0])
	require.Positive(t, planned(t, ours(), "-workloads", "small-load").parts()[1])
	slow := planned(t, ours(), "-callers", "2", "-wait", "100ms")
	require.Zero(t, slow.spare(), "minutes are enough")
	require.Greater(t, slow.parts()[2], 8*3*2*time.Second, "two windows of ten calls, of three arms in eight processes")
	for _, more := range [][]string{{"-callers", "100"}, {"-stream"}} {
		small, large := planned(t, ours(), append(more, "-payload", "1kB")...), planned(t, ours(),
			append(more, "-payload", "100kB")...)
		require.Greater(t, large.parts()[2], 2*small.parts()[2], "the size of a message is known")
	}
	require.Zero(t, takes("small-1000-per-second")[1], "nobody looks for a rate that is given")
	require.Greater(t, builds[2], 12*versus.Turn*8*versus.FewestBlocks, "two slices of three arms, for four times as long")
	for thorough, processes := range map[bool]time.Duration{false: 2, true: 5} {
		p := planned(t, programOf(own.Stacks()), fmt.Sprintf("-thorough=%t", thorough))
		require.Equal(t, 2*processes*calls.Each+2*slice*2*blocks*3, p.parts()[4], "layers, and handlers of three stacks")
	}
}
