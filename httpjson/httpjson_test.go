package httpjson_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T)        { stacktest.Conformance(t, httpjson.New()) }
func TestConformanceDecoder(t *testing.T) { stacktest.Conformance(t, httpjson.Decoder()) }
func TestConformanceTuned(t *testing.T)   { stacktest.Conformance(t, httpjson.Tuned()) }
func TestConformanceGzip(t *testing.T)    { stacktest.Conformance(t, httpjson.Gzip()) }
func TestConformanceH2C(t *testing.T)     { stacktest.Conformance(t, httpjson.H2C()) }
func TestConformanceDefault(t *testing.T) { stacktest.Conformance(t, httpjson.Default()) }
