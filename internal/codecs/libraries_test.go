package codecs_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/message"
)

func named(t *testing.T, name string) codec.Codec {
	t.Helper()
	for _, row := range codecs.All() {
		if row.Name == name {
			return row.New()
		}
	}
	require.FailNow(t, "no codec "+name)
	return nil
}

// goccy/go-json reads the runtime's own data by unsafe pointers, so each new Go release may break it.
func TestGoccyIsAsEncodingJSON(t *testing.T) { codectest.AsEncodingJSON(t, named(t, "goccy")) }

// Once this fails, the library reads what it writes, and goccy's traits have a line too many.
func TestGoccysLargestFloat32(t *testing.T) {
	c := named(t, "goccy")
	data, err := c.Marshal(&message.Flex{Float: math.MaxFloat32})
	require.NoError(t, err)
	require.Equal(t, `{"float":3.4028235e+38}`, string(data))
	require.ErrorContains(t, c.Unmarshal(data, new(message.Flex)), "cannot unmarshal number 3.4028235e+38")
	require.NoError(t, c.Unmarshal([]byte(`{"float":3.4028234e+38}`), new(message.Flex)))
}

// A field without the tag would have its Go name, and be there when it is zero.
func TestMsgpackNames(t *testing.T) {
	codectest.Names(t, "msgpack", reflect.TypeFor[rpcbench.User]())
	for _, e := range message.Catalogue() {
		codectest.Names(t, "msgpack", reflect.TypeOf(e.New()))
	}
	data, err := named(t, "msgpack").Marshal(new(message.Flex))
	require.NoError(t, err)
	require.Equal(t, []byte{0x80}, data, "zero fields are left out: an empty map")
}
