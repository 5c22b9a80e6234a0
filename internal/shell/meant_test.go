package shell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Words of go test, fortio and vegeta get the flag or command that does it here, not one that is spelt alike.
func TestMeantByOtherTools(t *testing.T) {
	names := []string{"run", "count", "-conns", "-processes", "-time", "-callers", "-request"}
	for typed, want := range map[string]string{"-count": "-processes", "-n": "-time", "load": "run", "attack": "run",
		"bench": "run", "compare": "run", "-c400": "-callers", "-d": "-request"} {
		require.Equal(t, "did you mean "+want+"? ", didYouMean(typed, names), typed)
	}
}
