package httpmsgpack_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/stacks/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, httpmsgpack.New()) }
