package goccy_test

import (
	"math"
	"testing"

	"github.com/goccy/go-json"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/goccy"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/message"
)

var _ codec.Described = goccy.Codec{}

func TestAsEncodingJSON(t *testing.T) { codectest.AsEncodingJSON(t, goccy.Codec{}) }

func TestRoundTrip(t *testing.T) {
	c := goccy.Codec{}
	for _, f := range codectest.Flexes(t) {
		want, wantErr := json.Marshal(f)
		got, err := c.Marshal(f)
		require.Equal(t, wantErr == nil, err == nil, "%v", err)
		require.Equal(t, want, got, "the bytes of the documented call")
		if math.IsNaN(f.Double) || math.IsNaN(float64(f.Float)) {
			require.Error(t, err, "JSON has no NaN")
			continue
		}
		require.NoError(t, err)
		back := new(message.Flex)
		require.NoError(t, c.Unmarshal(got, back))
		if want := *f; !f.Equal(back) { // omitempty takes a negative zero for a zero
			want.Double, want.Float = want.Double+0, want.Float+0
			require.True(t, want.Equal(back), "%+v came back as %+v", f, back)
		}
	}
	whole, err := c.Marshal(message.Complex())
	require.NoError(t, err)
	for n := range whole {
		require.Error(t, c.Unmarshal(whole[:n], new(message.Flex)), "the first %d of %d bytes", n, len(whole))
	}
	back := new(message.Flex)
	require.NoError(t, c.Unmarshal(whole, back), "what it keeps for the next call is not spoilt by errors")
	require.True(t, message.Complex().Equal(back))
}

// Once this fails, the library reads what it writes, and Traits has a line too many.
func TestLargestFloat32(t *testing.T) {
	data, err := goccy.Codec{}.Marshal(&message.Flex{Float: math.MaxFloat32})
	require.NoError(t, err)
	require.Equal(t, `{"float":3.4028235e+38}`, string(data))
	require.ErrorContains(t, goccy.Codec{}.Unmarshal(data, new(message.Flex)), "cannot unmarshal number 3.4028235e+38")
	require.NoError(t, goccy.Codec{}.Unmarshal([]byte(`{"float":3.4028234e+38}`), new(message.Flex)))
}
