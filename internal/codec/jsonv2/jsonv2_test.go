//go:build go1.27 && goexperiment.jsonv2

package jsonv2_test

import (
	"encoding/json/v2"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsonv2"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/message"
)

var _ codec.Codec = jsonv2.Codec{}

func TestRoundTrip(t *testing.T) {
	c := jsonv2.Codec{}
	require.Equal(t, "application/json", c.ContentType())
	for _, h := range corpus.Flexes() {
		f := h.Flex
		want, wantErr := json.Marshal(f)
		got, err := c.Marshal(f)
		require.Equal(t, wantErr == nil, err == nil, "%v", err)
		if math.IsNaN(f.Double) || math.IsInf(f.Double, 0) {
			require.Error(t, err, "JSON has neither")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got, "the bytes of the documented call")
		back := new(message.Flex)
		require.NoError(t, c.Unmarshal(got, back))
		require.True(t, f.Equal(back), "%+v came back as %+v", f, back)
	}
	_, err := c.Marshal(&message.Flex{String: "in\xffvalid"})
	require.Error(t, err, "invalid UTF-8")
	require.Error(t, c.Unmarshal([]byte("{\"string\":\"in\xffvalid\"}"), new(message.Flex)), "invalid UTF-8")
	require.Error(t, c.Unmarshal([]byte("{}x"), new(message.Flex)), "garbage after the value")
}
