// Package codec defines the interface of a serialization library. Each package below this one implements it for one
// library: jsonstd, jsonv2, jsoniter, protobuf, msgp and xmlstd, and gzipped around any of these. Importing one of them
// does not compile the other libraries. HTTP stacks encode with codecs, and the study times them alone.
package codec

import (
	"io"

	"github.com/rpcbench/rpcbench"
)

// Codec encodes and decodes whole bodies. Unmarshal needs a pointer to a fresh value.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
	Traits() Traits
}

// Streaming is a Codec that can also encode into a writer and decode from a reader.
type Streaming interface {
	Codec
	Encode(w io.Writer, v any) error
	Decode(r io.Reader, v any) error
}

// Traits is what a codec declares about itself. The suite and the tests of the study check each trait.
type Traits struct {
	Library     string // import path of the package or module that encodes and decodes, or that generates the code for it
	Lossy       []rpcbench.Loss
	InvalidUTF8 rpcbench.UTF8 // what encoding does to it in a string
}
