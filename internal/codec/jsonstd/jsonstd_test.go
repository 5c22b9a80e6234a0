package jsonstd_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsonstd"
)

func TestCodecs(t *testing.T) {
	u := rpcbench.Sample(0, 100)
	u.Name = "<b>&\u2028\xff"
	want, err := json.Marshal(u)
	require.NoError(t, err)

	whole := codec.Codec(jsonstd.Codec{})
	got, err := whole.Marshal(u)
	require.NoError(t, err)
	require.Equal(t, want, got)
	decoded := u
	decoded.Name = "<b>&\u2028\ufffd"
	back := rpcbench.Sample(1, 0)
	require.NoError(t, whole.Unmarshal(got, &back))
	require.Equal(t, decoded, back)
	require.Error(t, whole.Unmarshal(append(got, 'x'), &back), "garbage after the value")
	_, ok := whole.(codec.Streaming)
	require.False(t, ok, "whole bodies are another row than streams")

	stream := codec.Streaming(jsonstd.Streaming{})
	var buf bytes.Buffer
	require.NoError(t, stream.Encode(&buf, u))
	require.Equal(t, string(want)+"\n", buf.String())
	back = rpcbench.Sample(1, 0)
	buf.WriteByte('x')
	require.NoError(t, stream.Decode(&buf, &back), "what follows a complete value is not looked at")
	require.Equal(t, decoded, back)

	require.Equal(t, "application/json", whole.ContentType())
	require.Equal(t, "application/json", stream.ContentType())
}
