package connectrpc_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)        { stacktest.Conformance(t, connectrpc.New()) }
func TestConformanceH2C(t *testing.T)     { stacktest.Conformance(t, connectrpc.H2C()) }
func TestConformanceGRPC(t *testing.T)    { stacktest.Conformance(t, connectrpc.GRPC()) }
func TestConformanceGRPCWeb(t *testing.T) { stacktest.Conformance(t, connectrpc.GRPCWeb()) }
func TestConformanceJSON(t *testing.T)    { stacktest.Conformance(t, connectrpc.JSON()) }
func TestConformanceGzip(t *testing.T)    { stacktest.Conformance(t, connectrpc.Gzip()) }
func TestConformanceVT(t *testing.T)      { stacktest.Conformance(t, connectrpc.VT()) }

// exchange returns the request and the reply of one call, as they were on the wire.
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
	return requests[len(requests)-1], replies[len(replies)-1]
}

func TestProtocolOnTheWire(t *testing.T) {
	const path = "/rpcbench.user.v1.UserService/CreateUser"
	for _, c := range []struct {
		stack                  rpcbench.Stack
		version, contentType   string
		connectVersion         string
		enveloped, httpTrailer bool // gRPC's five bytes before the message; its status in HTTP's trailers
	}{
		{connectrpc.New(), "1.1", "application/proto", "1", false, false},
		{connectrpc.Gzip(), "1.1", "application/proto", "1", false, false},
		{connectrpc.VT(), "1.1", "application/proto", "1", false, false},
		{connectrpc.H2C(), "2", "application/proto", "1", false, false},
		{connectrpc.JSON(), "1.1", "application/json", "1", false, false},
		{connectrpc.GRPC(), "2", "application/grpc", "", true, true},
		{connectrpc.GRPCWeb(), "1.1", "application/grpc-web+proto", "", true, false},
	} {
		t.Run(c.stack.Name, func(t *testing.T) {
			request, reply := exchange(t, c.stack)
			require.Equal(t, c.version, request.Version)
			require.Equal(t, "POST", request.Header.Get(":method"))
			require.Equal(t, path, request.Header.Get(":path"))
			require.Equal(t, c.connectVersion, request.Header.Get("Connect-Protocol-Version"))
			require.Equal(t, c.contentType, request.Header.Get("Content-Type"))
			require.Equal(t, c.contentType, reply.Header.Get("Content-Type"))
			require.Equal(t, "200", reply.Header.Get(":status"))
			require.Equal(t, c.enveloped, bytes.HasPrefix(request.Body, []byte{0, 0, 0, 0, byte(len(request.Body) - 5)}), "%q",
				request.Body)
			require.Equal(t, c.httpTrailer, request.Header.Get("Te") == "trailers")
			require.Equal(t, c.httpTrailer, reply.Trailer.Get("Grpc-Status") == "0")
			require.Equal(t, c.enveloped && !c.httpTrailer,
				bytes.HasSuffix(reply.Body, []byte("\x80\x00\x00\x00\x10grpc-status: 0\r\n")),
				"the last message is of trailers: %q", reply.Body)
		})
	}
}
