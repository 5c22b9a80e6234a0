package grpcgateway_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/stacks/more/grpcgateway"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)      { stacktest.Conformance(t, grpcgateway.New()) }
func TestConformanceProxy(t *testing.T) { stacktest.Conformance(t, grpcgateway.Proxy()) }
