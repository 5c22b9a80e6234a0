package msgp_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/message"
)

func TestCatalogueTypesAreFieldEqual(t *testing.T) {
	for native, plain := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[msgp.Small]():       reflect.TypeFor[message.Small](),
		reflect.TypeFor[msgp.AddressBook](): reflect.TypeFor[message.AddressBook](),
		reflect.TypeFor[msgp.NewsFeed]():    reflect.TypeFor[message.NewsFeed](),
		reflect.TypeFor[msgp.Tree]():        reflect.TypeFor[message.Tree](),
		reflect.TypeFor[msgp.Article]():     reflect.TypeFor[message.Article](),
	} {
		require.Equal(t, codectest.Shape(plain), codectest.Shape(native), "%v", native)
		requireTags(t, native)
	}
}

// requireTags looks at the messages within too.
func requireTags(t *testing.T, typ reflect.Type) {
	t.Helper()
	for f := range typ.Fields() {
		name, limit, limited := strings.Cut(f.Tag.Get("msg"), ",limit=")
		require.Equal(t, f.Tag.Get("json"), name, "%v.%s is named and left out as in JSON", typ, f.Name)
		require.Equal(t, f.Type.Kind() == reflect.Slice, limited, "%v.%s: a list has a limit, as Flex says", typ, f.Name)
		if limited {
			require.Equal(t, "65536", limit, "%v.%s", typ, f.Name)
			if elem := f.Type.Elem(); elem.Kind() == reflect.Pointer {
				requireTags(t, elem.Elem())
			}
		}
	}
}
