package codecs

import (
	"encoding/json"
	"slices"

	iter "github.com/json-iterator/go"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
	pbjson "google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
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
	protobufs := &calls[proto.Message]{marshal: proto.Marshal, unmarshal: proto.Unmarshal}
	appended := &calls[proto.Message]{append: proto.MarshalOptions{}.MarshalAppend, unmarshal: proto.Unmarshal}
	protojsons := &calls[proto.Message]{marshal: pbjson.Marshal, unmarshal: pbjson.Unmarshal}
	jsons := &calls[any]{marshal: json.Marshal, unmarshal: json.Unmarshal}
	msgpacks := &calls[any]{marshal: vmihailenco.Marshal, unmarshal: vmihailenco.Unmarshal}
	return slices.Concat([]Row{
		{"protobuf", protobuf.Codec{}, protobufForm(protobufs)},
		{"protobuf.append", protobuf.Append{}, protobufForm(appended)},
		{"protobuf.delimited", protobuf.Delimited{}, protobufForm(nil)},
		{"protobuf.vt", protobufvt.Codec{}, protobufForm(&calls[proto.Message]{generated: true})},
		{"protobuf.vtpool", protobufvt.Pooled{}, pooledForm},
		{"protojson", protojson.Codec{}, protobufForm(protojsons)},
		{encodingJSON, jsonstd.Codec{}, plainForm(jsons)},
		{encodingJSON + ".stream", jsonstd.Stream{}, plainForm(nil)},
		{encodingJSON + ".gzip", gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody), plainForm(nil)},
	}, jsonV2(), []Row{
		{"jsoniter", jsoniter.Compatible(), plainForm(iterated(iter.ConfigCompatibleWithStandardLibrary))},
		{"jsoniter.fastest", jsoniter.Fastest(), plainForm(iterated(iter.ConfigFastest))},
	}, goJSON(), []Row{
		{"xml", xmlstd.Codec{}, xmlForm},
		{"msgpack", msgpack.Codec{}, plainForm(msgpacks)},
		{"msgpack.generated", msgp.Codec{}, msgpForm},
	})
}

func iterated(api iter.API) *calls[any] {
	return &calls[any]{marshal: api.Marshal, unmarshal: api.Unmarshal}
}

// Main returns the codecs of the default run: of each format the library that most programs use, and the fastest of those
// that were tried. There are seven, or six in a build without goccy.
func Main() []Row {
	names := []string{"protobuf", "protobuf.vt", encodingJSON, "jsoniter", "goccy", "xml", "msgpack.generated"}
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
