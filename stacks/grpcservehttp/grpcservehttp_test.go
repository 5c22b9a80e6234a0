package grpcservehttp_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)   { stacktest.Conformance(t, grpcservehttp.New()) }
func TestConformanceVT(t *testing.T) { stacktest.Conformance(t, grpcservehttp.VT()) }
