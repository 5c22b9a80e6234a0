// Package codecs is the literal list of the codecs and of the messages they are timed on, in the native types of each. The
// benchmark file imports it, and no stack does.
package codecs

import (
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/message"
)

// Row is a codec as rows name it, with the native types it takes.
type Row struct {
	Name  string // [a-z0-9.]+
	Codec codec.Described
	Form  func(message.Entry) Form
}

// Form is a message in one codec's native type.
//
// Marshal and Unmarshal are the library's documented call on that type, which is what rows time: on the smallest message a
// codec.Codec costs up to 5 ns more, mostly for finding out what is behind an any, and where the codec refuses what follows the
// value, as those of encoding/xml and vmihailenco/msgpack do, for looking. They are nil for streams, gzip and pools, which
// are several calls: there rows time the codec.
type Form struct {
	Value any        // a pointer
	Fresh func() any // a pointer to a destination: zero, or from a pool where Row.Codec is a codec.Releaser

	Marshal   func(dst []byte) ([]byte, error) // of Value, as codec.Appender's Append where Row.Codec has it; else dst is nil
	Unmarshal func(data []byte) (any, error)   // into a zero destination
}
