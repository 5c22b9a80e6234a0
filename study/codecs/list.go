// Package codecs lists the codecs, and the messages on which they are timed, in the types of each codec. BenchmarkCodec
// times them without a network.
package codecs

import (
	"reflect"
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/gzipped"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/transport/codec/xmlstd"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/catalogue/cataloguemsgp"
	"github.com/rpcbench/rpcbench/study/catalogue/cataloguepb"
)

// Row is a codec with its name in rows and the types that it takes.
type Row struct {
	Name string             // [a-z0-9.]+
	New  func() codec.Codec // makes a codec for one caller, which may keep a buffer
	Form func(catalogue.Entry) Form

	// Reuses names what the codec keeps from one op to the next: "nothing", "buffer" or "compressors".
	// Pools inside a library do not count. A codec that keeps a buffer overwrites the body that it returned before.
	Reuses string

	// By is "reflection" or "generated code". protobuf's types are generated, but the library encodes them by tables
	// that it builds from their descriptors.
	By      string
	Decodes rpcbench.UTF8 // what decoding does to invalid UTF-8 in a string; Traits say what encoding does
}

const reflection, generated = "reflection", "generated code"

// Form is a message in the type that one codec takes.
type Form struct {
	Value any        // a pointer
	Fresh func() any // returns a pointer to a new destination
}

// All returns every codec of the tables that this build has.
func All() []Row {
	plain := in() // for codecs that use reflection
	protobufs := in(of[userv1.User](), of[cataloguepb.Small](), of[messagepb.Flex](), of[cataloguepb.AddressBook](),
		of[cataloguepb.NewsFeed](), of[cataloguepb.Tree](), of[cataloguepb.Article]())
	msgps := in(of[msgp.User](), of[cataloguemsgp.Small](), of[msgp.Flex](), of[cataloguemsgp.AddressBook](),
		of[cataloguemsgp.NewsFeed](), of[cataloguemsgp.Tree](), of[cataloguemsgp.Article]())
	xmls := in(of[xmlstd.User](), of[xmlstd.Flex]()) // messages with bytes
	jsonGzip := func() codec.Codec { return gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody) }
	return slices.Concat([]Row{
		{"protobuf", kept(protobuf.Codec{}), protobufs, "nothing", reflection, rpcbench.UTF8Rejected},
		{"protobuf.append", func() codec.Codec { return new(appended) }, protobufs, "buffer", reflection,
			rpcbench.UTF8Rejected},
		{"protobuf.delimited", func() codec.Codec { return new(delimited) }, protobufs, "buffer", reflection,
			rpcbench.UTF8Rejected},
		{"protobuf.vt", kept(vt{}), protobufs, "nothing", generated, rpcbench.UTF8Kept},
		{"protojson", jsonOfProtobuf, protobufs, "nothing", reflection, rpcbench.UTF8Rejected},
		{"json", kept(jsonstd.Codec{}), plain, "nothing", reflection, rpcbench.UTF8Replaced},
		{"json.stream", func() codec.Codec { return new(jsonStream) }, plain, "buffer", reflection, rpcbench.UTF8Replaced},
		{"json.gzip", jsonGzip, plain, "compressors", reflection, rpcbench.UTF8Replaced},
	}, jsonV2(), []Row{
		{"jsoniter", kept(jsoniter.Compatible()), plain, "nothing", reflection, rpcbench.UTF8Kept},
		{"jsoniter.fastest", kept(jsoniter.Fastest()), plain, "nothing", reflection, rpcbench.UTF8Kept},
		{"goccy", goccyJSON, plain, "nothing", reflection, rpcbench.UTF8Replaced},
		{"xml", kept(xmlstd.Codec{}), xmls, "nothing", reflection, rpcbench.UTF8Rejected},
		{"msgpack", messagePack, plain, "nothing", reflection, rpcbench.UTF8Kept},
		{"msgpack.generated", kept(msgp.Codec{}), msgps, "nothing", generated, rpcbench.UTF8Kept},
	})
}

// More returns the codecs of libraries that the tables leave out. Most are in [All] by another library of their format.
func More() []Row {
	return append(ofSonic(), Row{"cbor", kept(fxCBOR()), in(), "nothing", reflection, rpcbench.UTF8Rejected})
}

// kept returns a New for a codec without state.
func kept(c codec.Codec) func() codec.Codec { return func() codec.Codec { return c } }

// Main returns the seven codecs of the default run: for protobuf and JSON the most used library and the fastest one
// that was tried, then jsoniter, which httpjsoniter uses, XML, and the faster MessagePack.
func Main() []Row {
	names := []string{"protobuf", "protobuf.vt", "json", "jsoniter", "goccy", "xml", "msgpack.generated"}
	return slices.DeleteFunc(All(), func(r Row) bool { return !slices.Contains(names, r.Name) })
}

// None returns a codec that does nothing. Its row shows what the timing itself costs.
func None() Row { return Row{"none", kept(none{}), in(), "nothing", reflection, ""} }

// Messages returns the user of the create-user API, without and with payload, and the catalogue.
func Messages() []catalogue.Entry {
	user := func(avatar int) func() any {
		return func() any { u := rpcbench.SampleUser(0, avatar); return &u }
	}
	const random = "random bytes, which text formats write in base64 and nothing compresses"
	return append([]catalogue.Entry{
		{Name: "user", Why: "what the stacks send", Size: 36, Gzip: 1.67, New: user(0)},
		{Name: "user.10kB", Why: random, Size: 10_039, Gzip: 1, New: user(10_000)},
	}, catalogue.All()...)
}

// native makes the messages of one type in a codec's own type.
type native struct {
	name string // of the plain struct
	form func(plain any) Form
}

// in returns a Row's Form: a message in its own type among natives, or else as the plain struct.
func in(natives ...native) func(catalogue.Entry) Form {
	return func(e catalogue.Entry) Form {
		v := e.New()
		t := reflect.TypeOf(v).Elem()
		for _, n := range natives {
			if n.name == t.Name() {
				return n.form(v)
			}
		}
		return Form{v, func() any { return reflect.New(t).Interface() }}
	}
}

func of[T any]() native {
	return native{reflect.TypeFor[T]().Name(), func(plain any) Form {
		return Form{binding.Convert[T](plain), func() any { return new(T) }}
	}}
}
