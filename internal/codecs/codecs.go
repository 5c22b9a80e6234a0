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
type Form struct {
	Value any        // a pointer
	Fresh func() any // a pointer to a destination: zero, or from a pool where Row.Codec is a codec.Releaser
}
