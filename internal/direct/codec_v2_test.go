//go:build go1.27 && goexperiment.jsonv2

package direct

import (
	"encoding/json/v2"

	"github.com/rpcbench/rpcbench/message"
)

func v2Form(small *message.Small) []codecForm {
	return []codecForm{{
		"json.v2",
		func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = json.Marshal(small)
				total += len(data)
			}
			return data, total, err
		},
		func(data []byte, n int) (any, error) {
			var back *message.Small
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(message.Small)
				err = json.Unmarshal(data, back)
			}
			return back, err
		},
	}}
}
