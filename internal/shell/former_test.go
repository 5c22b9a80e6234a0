package shell

import (
	"context"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A flag of before is answered with what is typed now, of its command alone. Others are unknown.
func TestFormer(t *testing.T) {
	for typed, want := range map[string]string{
		"run -quick":      "run: -quick is what run does without it: leave it out, or give -thorough for half an hour",
		"run -idle":       "run: memory at rest has a command of its own: rpcbench idle 1000, and then the stacks",
		"run -max-counts": "run: counts have a command of their own: rpcbench count -max 1, and then the stacks",
		"run -quik":       "run: flag provided but not defined: -quik: rpcbench run -h shows its flags",
		"explain -ratios": "explain: -ratios is for the profile of a service: rpcbench bound -ratios folder profile",
		"list -quick":     "list: flag provided but not defined: -quick: rpcbench list -h shows its flags",
	} {
		name, flags, _ := strings.Cut(typed, " ")
		c := Command{Name: name, Setup: func(*flag.FlagSet) func(context.Context, []string) error { return nil }}
		err := c.Run(t.Context(), []string{flags}, io.Discard)
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(WrongUse))
	}
	require.EqualError(t, Former("explain of a service", "a%d.pprof"), "explain: a%d.pprof is the profile of a service: "+
		"rpcbench bound a%d.pprof says what another stack could save there")
	require.NoError(t, Former("explain of a stack", "a"))
}
