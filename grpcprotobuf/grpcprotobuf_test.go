package grpcprotobuf_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)        { stacktest.Conformance(t, grpcprotobuf.New()) }
func TestConformanceTuned(t *testing.T)   { stacktest.Conformance(t, grpcprotobuf.Tuned()) }
func TestConformanceWindows(t *testing.T) { stacktest.Conformance(t, grpcprotobuf.Windows()) }
func TestConformanceVT(t *testing.T)      { stacktest.Conformance(t, grpcprotobuf.VT()) }
func TestConformanceGzip(t *testing.T)    { stacktest.Conformance(t, grpcprotobuf.Gzip()) }
