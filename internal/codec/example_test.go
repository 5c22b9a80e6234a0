package codec_test

import (
	"fmt"
	"log"

	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/message"
)

// Encode a message with two codecs, and see what each declares to lose.
func Example() {
	for _, c := range []codec.Codec{jsonstd.Codec{}, jsoniter.Fastest()} {
		data, err := c.Marshal(message.Complex())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Traits().Library, len(data), c.Traits().Lossy)
	}
	// Output:
	// encoding/json 418 [negative zero NaN infinities]
	// github.com/json-iterator/go 408 [negative zero NaN infinities float digits]
}
