package conform

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

// TestNotOnLoopbackFails: a fixture that listens on every interface.
func TestNotOnLoopbackFails(t *testing.T) {
	onLoopback := func(addr string) error {
		return ended((&session{Fixture: &rpcbench.Fixture{Addr: addr}}).onLoopback)
	}
	require.ErrorContains(t, onLoopback("0.0.0.0:0"), "not the loopback interface")
	require.NoError(t, onLoopback("[::1]:0"))
}
