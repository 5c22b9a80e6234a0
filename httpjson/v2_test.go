//go:build go1.27 && goexperiment.jsonv2

package httpjson_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestConformanceV2(t *testing.T) { stacktest.Conformance(t, httpjson.V2()) }
