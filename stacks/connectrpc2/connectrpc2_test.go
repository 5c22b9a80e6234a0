package connectrpc2_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)        { stacktest.Conformance(t, connectrpc2.New()) }
func TestConformanceH2C(t *testing.T)     { stacktest.Conformance(t, connectrpc2.H2C()) }
func TestConformanceGRPC(t *testing.T)    { stacktest.Conformance(t, connectrpc2.GRPC()) }
func TestConformanceGRPCWeb(t *testing.T) { stacktest.Conformance(t, connectrpc2.GRPCWeb()) }
func TestConformanceJSON(t *testing.T)    { stacktest.Conformance(t, connectrpc2.JSON()) }
func TestConformanceGzip(t *testing.T)    { stacktest.Conformance(t, connectrpc2.Gzip()) }
func TestConformanceVT(t *testing.T)      { stacktest.Conformance(t, connectrpc2.VT()) }

// Every server takes JSON, also one with a codec of its own, which takes the place of the library's list.
func TestServersTakeJSON(t *testing.T) {
	for _, s := range []rpcbench.Stack{connectrpc2.New(), connectrpc2.VT(), connectrpc2.Gzip()} {
		f := stacktest.Start(t, s, rpcbench.Config{})
		c, err := connectrpc2.JSON().Dial(
			rpcbench.ClientConfig{Addr: f.Addr, DialContext: new(net.Dialer).DialContext, Conns: 1})
		require.NoError(t, err)
		u := rpcbench.SampleUser(0, 100)
		reply, err := c.(rpcbench.Users).CreateUser(t.Context(), u)
		require.NoError(t, err, s.Name)
		require.NoError(t, rpcbench.CheckUser(&u, &reply))
		require.NoError(t, c.Close())
	}
}
