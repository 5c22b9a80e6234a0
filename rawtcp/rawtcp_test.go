package rawtcp_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, rawtcp.New()) }
