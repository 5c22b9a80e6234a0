// Package codecs is the literal list of the codecs and of the messages they are timed on, in the native types of each.
// The benchmark file imports it, and no stack does.
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

	// Reuses is what is kept from one op to the next: "nothing", "buffer", "buffer, values" or "compressors". What a
	// library pools by itself is not counted. A codec that keeps a buffer overwrites the body that it returned before.
	Reuses string
}

// Form is a message in one codec's native type.
type Form struct {
	Value any        // a pointer
	Fresh func() any // a pointer to a destination: zero, or from a pool, to which it returns the destination before
}

// All returns every codec that this build has.
func All() []Row {
	return slices.Concat([]Row{
		{"protobuf", kept(protobuf.Codec{}), protobufTypes, "nothing"},
		{"protobuf.append", func() codec.Codec { return new(appended) }, protobufTypes, "buffer"},
		{"protobuf.delimited", func() codec.Codec { return new(delimited) }, protobufTypes, "buffer"},
		{"protobuf.vt", kept(vt{}), protobufTypes, "nothing"},
		{"protobuf.vtpool", func() codec.Codec { return new(vtPooled) }, pooledTypes, "buffer, values"},
		{"protojson", jsonOfProtobuf, protobufTypes, "nothing"},
		{"json", kept(jsonstd.Codec{}), plainTypes, "nothing"},
		{"json.stream", func() codec.Codec { return new(jsonStream) }, plainTypes, "buffer"},
		{"json.gzip", jsonGzip, plainTypes, "compressors"},
	}, jsonV2(), []Row{
		{"jsoniter", kept(jsoniter.Compatible()), plainTypes, "nothing"},
		{"jsoniter.fastest", kept(jsoniter.Fastest()), plainTypes, "nothing"},
		{"goccy", goccyJSON, plainTypes, "nothing"},
		{"xml", kept(xmlstd.Codec{}), xmlTypes, "nothing"},
		{"msgpack", messagePack, plainTypes, "nothing"},
		{"msgpack.generated", kept(msgp.Codec{}), msgpTypes, "nothing"},
	})
}

func jsonGzip() codec.Codec { return gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody) }

// kept is for a codec without state.
func kept(c codec.Codec) func() codec.Codec { return func() codec.Codec { return c } }

// Main returns the seven codecs of the default run: of protobuf and JSON the library that most programs use and the
// fastest of those that were tried, jsoniter, which HTTP stacks here have, XML, and the faster MessagePack.
func Main() []Row {
	names := []string{"protobuf", "protobuf.vt", "json", "jsoniter", "goccy", "xml", "msgpack.generated"}
	return slices.DeleteFunc(All(), func(r Row) bool { return !slices.Contains(names, r.Name) })
}

// None returns the row of a codec that does nothing: what timing a codec through the interface costs.
func None() Row { return Row{"none", kept(none{}), plainTypes, "nothing"} }
