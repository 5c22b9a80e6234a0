package httpjsoniter_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)        { stacktest.Conformance(t, httpjsoniter.New()) }
func TestConformanceFastest(t *testing.T) { stacktest.Conformance(t, httpjsoniter.Fastest()) }
