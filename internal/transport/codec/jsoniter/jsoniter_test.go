package jsoniter_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsoniter"
)

var _ codec.Codec = jsoniter.Codec{}

// TestConfigurations: Compatible has the bytes of encoding/json, also where json-iterator's other configurations have
// not, and Fastest has what its comment says.
func TestConfigurations(t *testing.T) {
	for reason, v := range map[string]any{
		"entries of maps are sorted": map[string]int{"d": 4, "b": 2, "f": 6, "a": 1, "e": 5, "c": 3},
		"HTML is escaped":            "<b>&'\"</b>\u2028",
		"all digits of a float":      []float64{0.30000000000000004, 1e21, 5e-324},
	} {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		for range 20 { // a map's order is another each time
			got, err := jsoniter.Compatible().Marshal(v)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), reason)
		}
	}
	got, err := jsoniter.Fastest().Marshal([]any{0.30000000000000004, "<"})
	require.NoError(t, err)
	require.Equal(t, `[0.3,"<"]`, string(got))
}
