package connectrpc2_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
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

// exchange returns the request and the reply of one call, as they were on the wire, without what can't be the same.
func exchange(t *testing.T, s rpcbench.Stack) (request, reply wire.Message) {
	t.Helper()
	tap := new(tap.Tap)
	f := stacktest.Start(t, s, rpcbench.Config{WrapClient: tap.Wrap})
	_, err := testkit.As[rpcbench.Users](t, f).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	require.Len(t, tap.Conns(), 1)
	requests, replies, err := wire.Read(tap.Conns()[0].Bytes())
	require.NoError(t, err)
	require.Len(t, requests, len(replies))
	request, reply = requests[len(requests)-1], replies[len(replies)-1]
	delete(request.Header, ":authority")
	delete(reply.Header, "Date")
	return request, reply
}

// Both versions send the same messages, but for their own in the header User-Agent.
func TestSameOnTheWireAsV1(t *testing.T) {
	for _, c := range []struct{ v1, v2 rpcbench.Stack }{
		{connectrpc.New(), connectrpc2.New()}, {connectrpc.Gzip(), connectrpc2.Gzip()},
		{connectrpc.VT(), connectrpc2.VT()}, {connectrpc.H2C(), connectrpc2.H2C()},
		{connectrpc.JSON(), connectrpc2.JSON()}, {connectrpc.GRPC(), connectrpc2.GRPC()},
		{connectrpc.GRPCWeb(), connectrpc2.GRPCWeb()},
	} {
		t.Run(c.v2.Name, func(t *testing.T) {
			wantRequest, wantReply := exchange(t, c.v1)
			request, reply := exchange(t, c.v2)
			for _, header := range []string{"User-Agent", "X-User-Agent"} {
				if was, is := wantRequest.Header.Get(header), request.Header.Get(header); was != is {
					require.Contains(t, strings.ReplaceAll(was, "/1.", "/2."), "/2.", header)
					require.Contains(t, is, "/2.0.2", header)
					delete(wantRequest.Header, header)
					delete(request.Header, header)
				}
			}
			require.Equal(t, wantRequest, request)
			require.Equal(t, wantReply, reply)
		})
	}
}

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
