// Package codec holds the small interface behind which each serialization library stands, one in each subfolder, so
// that an importer compiles only the library it names. The HTTP stacks and the codec benchmarks use the same values.
package codec

import "io"

// Codec encodes and decodes whole bodies. Decoding expects a pointer to a fresh value.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// Stream is a Codec that can also write to and read from a connection directly.
type Stream interface {
	Codec
	Encode(w io.Writer, v any) error
	Decode(r io.Reader, v any) error
}
