//go:build go1.27 && goexperiment.jsonv2

package codecs

import (
	"encoding/json/v2"

	"github.com/rpcbench/rpcbench/codec/jsonv2"
)

func jsonV2() []Row { return []Row{row("json.v2", jsonv2.Codec{}, plainForm)} }

func jsonV2Loops[T any](v *T) (func(int) ([]byte, int, error), func([]byte, int) (any, error)) {
	return func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = json.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}, func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = json.Unmarshal(data, back)
			}
			return back, err
		}
}
