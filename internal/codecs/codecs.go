// Package codecs is the literal list of the codecs and of the messages they are timed on, in the native types of each. The
// benchmark file imports it, and no stack does.
package codecs

//go:generate go -C ../../tools run ./genloops

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

func row(name string, c codec.Described, form func(e message.Entry, codec string) Form) Row {
	return Row{name, c, func(e message.Entry) Form { return form(e, name) }}
}

// Form is a message in one codec's native type.
//
// Marshal and Unmarshal are what rows time: n times the library's documented call (of json.gzip, that of its codec), in a loop of its
// own whose types the compiler knows. Behind a codec.Codec a small message takes some nanoseconds more, mostly for finding out what is
// behind an any; docs/codecs.md has them. They end at the first error, and return the last body, which the next call may overwrite
// where the codec's Reuses has a buffer, and how many bytes all of them had, or the last value.
type Form struct {
	Value any        // a pointer
	Fresh func() any // a pointer to a destination: zero, or from a pool where Row.Codec is a codec.Releaser

	Marshal   func(n int) (data []byte, total int, err error)
	Unmarshal func(data []byte, n int) (value any, err error) // each time into a fresh destination
}
