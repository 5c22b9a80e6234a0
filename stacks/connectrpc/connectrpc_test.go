package connectrpc_test

import (
	"testing"

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
