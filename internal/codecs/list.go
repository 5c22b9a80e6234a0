package codecs

import (
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/goccy"
	"github.com/rpcbench/rpcbench/codec/gzipped"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/codec/jsonstd"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/msgpack"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/codec/protobufvt"
	"github.com/rpcbench/rpcbench/codec/protojson"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/named"
	"github.com/rpcbench/rpcbench/message"
)

// All returns every codec that this build has.
func All() []Row {
	return slices.Concat([]Row{
		row("protobuf", protobuf.Codec{}, protobufForm),
		row("protobuf.append", protobuf.Append{}, protobufForm),
		row("protobuf.delimited", protobuf.Delimited{}, protobufForm),
		row("protobuf.vt", protobufvt.Codec{}, vtForm),
		row("protobuf.vtpool", protobufvt.Pooled{}, pooledForm),
		row("protojson", protojson.Codec{}, protobufForm),
		row("json", jsonstd.Codec{}, plainForm),
		row("json.stream", jsonstd.Stream{}, plainForm),
		row("json.gzip", gzippedJSON(), plainForm),
	}, jsonV2(), []Row{
		row("jsoniter", jsoniter.Compatible(), plainForm),
		row("jsoniter.fastest", jsoniter.Fastest(), plainForm),
		row("goccy", goccy.Codec{}, plainForm),
		row("xml", xmlstd.Codec{}, xmlForm),
		row("msgpack", msgpack.Codec{}, plainForm),
		row("msgpack.generated", msgp.Codec{}, msgpForm),
	})
}

func gzippedJSON() *gzipped.Codec { return gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody) }

// Main returns the seven codecs of the default run: of protobuf and JSON the library that most programs use and the fastest of
// those that were tried, jsoniter, which HTTP stacks here have, XML, and the faster MessagePack.
func Main() []Row {
	names := []string{"protobuf", "protobuf.vt", "json", "jsoniter", "goccy", "xml", "msgpack.generated"}
	return slices.DeleteFunc(All(), func(r Row) bool { return !slices.Contains(names, r.Name) })
}

// Find returns the codecs of the given names. The error of an unknown one suggests the nearest and lists all.
func Find(names ...string) ([]Row, error) {
	return named.Find("codec", All(), func(r Row) string { return r.Name }, names...)
}

// FindMessages returns the messages of the given names, likewise.
func FindMessages(names ...string) ([]message.Entry, error) {
	return named.Find("message", Messages(), func(e message.Entry) string { return e.Name }, names...)
}
