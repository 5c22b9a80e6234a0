package jsoniter_test

import (
	"testing"

	lib "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/message"
)

var _ codec.Codec = jsoniter.Codec{}

func TestFastest(t *testing.T) {
	f := message.Complex()
	f.String = "<b>in\xffvalid"
	want, err := lib.ConfigFastest.Marshal(f)
	require.NoError(t, err)
	got, err := jsoniter.Fastest().Marshal(f)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.Contains(t, string(got), `"double":3.141593,`, "six digits")
	require.Contains(t, string(got), f.String, "neither escaped nor replaced")
	back := new(message.Flex)
	require.NoError(t, jsoniter.Fastest().Unmarshal(got, back))
	require.Equal(t, f.String, back.String)
	require.Error(t, jsoniter.Fastest().Unmarshal(append(got, 'x'), back), "garbage after the value")
	require.NotEqual(t, jsoniter.Fastest().Traits(), jsoniter.Compatible().Traits())
}
