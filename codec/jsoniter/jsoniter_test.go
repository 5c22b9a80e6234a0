package jsoniter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/users"
)

// The configuration that calls itself compatible writes the bytes of encoding/json, so rows differ in the library alone.
func TestSameBytesAsEncodingJSON(t *testing.T) {
	c := codec.Codec(jsoniter.Compatible())
	unsorted := map[string]int{}
	for _, key := range strings.Fields("the keys of a map are sorted by what calls itself compatible") {
		unsorted[key] = len(key)
	}
	for _, name := range []string{"Anna", "<b>&'\"</b>", "a\u2028b\u2029c", "\x00\t\r\n\x1f\x7f", `\u0041`, "\U0001F600", "in\xffvalid", strings.Repeat("n", 1000)} {
		u := users.Sample(0, 100)
		u.Name = name
		for _, v := range []any{u, &u, rpcbench.Answer(&u), rpcbench.NewValidator[rpcbench.User]()(new(rpcbench.User)), unsorted} {
			want, err := json.Marshal(v)
			require.NoError(t, err)
			got, err := c.Marshal(v)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), "%T", v)
		}
		var viaStd, back rpcbench.User
		data, err := c.Marshal(u)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &viaStd))
		require.NoError(t, c.Unmarshal(data, &back))
		require.Equal(t, viaStd, back)
	}
	require.Error(t, c.Unmarshal([]byte("{}x"), new(rpcbench.User)), "garbage after the value")
	require.Equal(t, "application/json", c.ContentType())
	_, ok := c.(codec.Stream)
	require.False(t, ok, "whole bodies, as the row says")
}
