package more_test

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/more"
	"github.com/rpcbench/rpcbench/stacktest"
)

func all() []rpcbench.Stack { return append(stacks.All(), more.All()...) }

func TestMain(m *testing.M) { stacktest.Main(m, all()...) }

// TestNamesDiffer: the command finds a stack by its name.
func TestNamesDiffer(t *testing.T) {
	var names []string
	for _, s := range all() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	require.Len(t, slices.Compact(slices.Clone(names)), len(names))
}

// TestUnixSockets: every stack makes its calls over a Unix socket, with TLS and without.
func TestUnixSockets(t *testing.T) {
	for _, s := range more.All() {
		for _, tls := range []bool{false, true} {
			check := func(c net.Conn) net.Conn {
				require.IsType(t, (*net.UnixConn)(nil), c, s.Name)
				return c
			}
			f, err := rpcbench.Start(t.Context(), s, rpcbench.Config{Unix: true, TLS: tls, WrapClient: check})
			require.NoError(t, err, s.Name)
			before, made := f.Handled(), int64(1)
			_, err = f.Client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 10_000))
			require.NoError(t, err, s.Name)
			if echoer, ok := f.Client.(rpcbench.Echoer); ok {
				_, err := echoer.Echo(t.Context(), &rpcbench.Flex{String: "echo"})
				require.NoError(t, err, s.Name)
				made++
			}
			require.Equal(t, made, f.Handled()-before, "%s: calls that the server has handled", s.Name)
			require.NoError(t, f.Close(), s.Name)
			require.NoDirExists(t, filepath.Dir(f.Addr), s.Name)
		}
	}
}

func BenchmarkCreateUser(b *testing.B) {
	for _, s := range more.All() {
		b.Run("stack="+s.Name, func(b *testing.B) { stacktest.Benchmark(b, s, rpcbench.Workload{}) })
	}
}
