package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// The time of a codec is that of both messages, to encode as to decode.
func TestCodecTimesAreOfBothMessages(t *testing.T) {
	made := map[string]int{}
	messages := func(kind string) rpcbench.Messages {
		return rpcbench.Messages{Encode: func(int) ([]byte, error) { made["encodes "+kind]++; return nil, nil },
			Decode: func([]byte) error { made["decodes "+kind]++; return nil }}
	}
	_, err := codecTimes(t.Context(), 1, []codec{{requests: messages("requests"), replies: messages("replies")}})
	require.NoError(t, err)
	for _, does := range []string{"encodes ", "decodes "} {
		require.Greater(t, made[does+"requests"], 1000)
		require.Equal(t, made[does+"requests"], made[does+"replies"], "how often the codec %s replies", does)
	}
}

// Layers are those of the base and of the first contestant, at the first workload of one caller.
func TestLayersAreOfOneCaller(t *testing.T) {
	children := testkit.Children(t, 0)
	t.Setenv(testkit.Variable, children)
	p := program{stacks: append(knownStacks(), knownStacks()[0])}
	p.stacks[2].Name = "third"
	for i := range p.stacks {
		p.stacks[i].Method = "yours"
	}
	made := planned(t, p, "-base", "base", "-workloads", "call-saturated,call,call-tls", "other", "third")
	_, err := made.layers(t.Context(), func(string, time.Duration) {})
	require.NoError(t, err)
	asked := testkit.Asked[versus.Spec](children)
	require.NotEmpty(t, asked)
	for _, q := range asked {
		require.Equal(t, "call base other", q.Spec.Workload.Name+" "+strings.Join(q.Spec.Arms, " "))
	}
}
