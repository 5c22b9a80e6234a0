// Package codecs is the literal list of the codecs and of the messages they are timed on, in the native types of each. The
// benchmark file imports it, and no stack does.
package codecs

import (
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/codec/jsonstd"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/message"
)

// Row is a codec as rows name it, with the native types it takes.
type Row struct {
	Name string             // [a-z0-9.]+
	New  func() codec.Codec // for one caller: the value may keep a buffer from op to op
	Form func(message.Entry) Form
}

// Form is a message in one codec's native type.
type Form struct {
	Value any        // a pointer
	Fresh func() any // a pointer to a destination: zero, or from a pool, to which it returns the destination before
}

// All returns every codec that this build has.
func All() []Row {
	return slices.Concat([]Row{
		{"protobuf", kept(protobuf.Codec{}), protobufTypes},
		{"protobuf.append", func() codec.Codec { return new(appended) }, protobufTypes},
		{"protobuf.delimited", func() codec.Codec { return new(delimited) }, protobufTypes},
		{"protobuf.vt", kept(vt{}), protobufTypes},
		{"protobuf.vtpool", func() codec.Codec { return new(vtPooled) }, pooledTypes},
		{"protojson", jsonOfProtobuf, protobufTypes},
		{"json", kept(jsonstd.Codec{}), plainTypes},
		{"json.stream", func() codec.Codec { return new(jsonStream) }, plainTypes},
		{"json.gzip", func() codec.Codec { return gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody) }, plainTypes},
	}, jsonV2(), []Row{
		{"jsoniter", kept(jsoniter.Compatible()), plainTypes},
		{"jsoniter.fastest", kept(jsoniter.Fastest()), plainTypes},
		{"goccy", goccyJSON, plainTypes},
		{"xml", kept(xmlstd.Codec{}), xmlTypes},
		{"msgpack", messagePack, plainTypes},
		{"msgpack.generated", kept(msgp.Codec{}), msgpTypes},
	})
}

// kept is for a codec without state.
func kept(c codec.Codec) func() codec.Codec { return func() codec.Codec { return c } }

// Main returns the seven codecs of the default run: of protobuf and JSON the library that most programs use and the fastest of
// those that were tried, jsoniter, which HTTP stacks here have, XML, and the faster MessagePack.
func Main() []Row {
	names := []string{"protobuf", "protobuf.vt", "json", "jsoniter", "goccy", "xml", "msgpack.generated"}
	return slices.DeleteFunc(All(), func(r Row) bool { return !slices.Contains(names, r.Name) })
}

// None returns the row of a codec that does nothing: what timing a codec through the interface costs.
func None() Row { return Row{"none", func() codec.Codec { return none{} }, plainTypes} }
