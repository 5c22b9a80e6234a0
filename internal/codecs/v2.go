//go:build goexperiment.jsonv2

package codecs

import (
	"encoding/json/v2"

	"github.com/rpcbench/rpcbench/codec/jsonv2"
)

// encodingJSON tells rows of encoding/json apart in a build that puts encoding/json/v2 underneath it.
const encodingJSON = "json.v1onv2"

func jsonV2() []Row {
	return []Row{{"json.v2", jsonv2.Codec{}, plainForm(&calls[any]{
		marshal:   func(v any) ([]byte, error) { return json.Marshal(v) },
		unmarshal: func(data []byte, v any) error { return json.Unmarshal(data, v) },
	})}}
}
