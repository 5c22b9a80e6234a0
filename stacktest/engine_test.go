//go:build go1.27 && goexperiment.jsonv2

package stacktest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
)

// TestWitnessTellsTheTwoJSONs: from Go 1.27 on both packages run on one engine, and a stack can't pass one off as the
// other.
func TestWitnessTellsTheTwoJSONs(t *testing.T) {
	v1, v2 := httpjson.New(), httpjson.V2()
	require.NoError(t, run("codec", conform.Subject{Stack: v1}))
	require.NoError(t, run("codec", conform.Subject{Stack: v2}))
	v1.Traits.Codec, v2.Traits.Codec = v2.Traits.Codec, v1.Traits.Codec
	require.ErrorContains(t, run("codec", conform.Subject{Stack: v1}), "functions of encoding/json allocated")
	require.ErrorContains(t, run("codec", conform.Subject{Stack: v2}),
		"functions of encoding/json, the declared codec, allocated these objects by goroutine: map[]")
}
