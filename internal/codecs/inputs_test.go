package codecs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/codecs"
)

// input is what no encoder would write.
type input struct {
	name    string // the reason
	data    []byte
	worse   []byte // the same, so large that it is for those alone that survive data
	content int    // length after decompression
	kept    bool   // it is given many times in a row, since the library may keep a larger buffer after each
}

// keys are the names of a message's fields, and one that it lacks.
func keys(plain any) []string {
	all := []string{"unknown"}
	for f := range reflect.TypeOf(plain).Elem().Fields() {
		all = append(all, binding.JSONName(f))
	}
	return all
}

// hostileInputs are in the format of a row, each field of a message being spoilt in turn.
func hostileInputs(row codecs.Row, keys []string) []input {
	switch format(row) {
	case "application/json":
		return jsonInputs(keys)
	case "application/json, gzip":
		return append(zipped(jsonInputs(keys)), gzipInputs()...)
	case "application/xml":
		return xmlInputs(keys)
	case "application/vnd.msgpack":
		return msgpackInputs(keys)
	case "application/protobuf":
		return protobufInputs()
	case "application/octet-stream":
		return append(delimited(protobufInputs()), delimitedInputs()...)
	}
	panic("there are no malformed inputs in the format of " + row.Name)
}

// deepInputs hold as much within each other as depth bytes can. What is known is a string, bytes, a list or a message.
func deepInputs(row codecs.Row) []input {
	keys := []string{"unknown", "email", "first", "avatar", "message", "people"}
	switch format(row) {
	case "application/json":
		return deepJSON(keys)
	case "application/json, gzip":
		return zipped(deepJSON(keys))
	case "application/xml":
		return deepXML(keys)
	case "application/vnd.msgpack":
		return deepMsgpack(keys)
	case "application/protobuf":
		return deepProtobuf()
	case "application/octet-stream":
		return delimited(deepProtobuf())
	}
	panic("there are no deep inputs in the format of " + row.Name)
}

// format is the media type of a row, without parameters, and the compression.
func format(row codecs.Row) string {
	name, _, _ := strings.Cut(row.New().ContentType(), ";")
	if row.Reuses == "compressors" {
		name += ", gzip"
	}
	return name
}

const long = 1 << 16 // bytes of what goes on and on

func repeat(s string, bytes int) string { return strings.Repeat(s, bytes/len(s)) }

func jsonInputs(keys []string) (all []input) {
	add := func(name, data string) { all = append(all, input{name: name, data: []byte(data)}) }
	add("nothing", "")
	add("white space", repeat(" \n\t", long))
	add("zeros", repeat("\x00", long))
	add("a byte order mark", "\ufeff{}")
	add("null", "null")
	add("a string", `"anna"`)
	add("a list", `[{}]`)
	add("something after it", `{}x`)
	add("another after it", `{}{}`)
	add("no JSON", "<User></User>")
	add("many fields", manyKeys())
	for _, key := range keys {
		field := func(value string) string { return `{"` + key + `":` + value }
		for _, value := range []string{
			`null`, `true`, `0`, `-1`, `""`, `"x"`, `[]`, `{}`, `[null]`, `[[]]`, `[{}]`, `[0]`, `{"unknown":0}`, `1.5`, `1e400`, `1e-400`, `-`, `.`, `+1`, `01`, `0x1`,
			`1e`, `--1`, `tru`, `nul`, `NaN`, `Infinity`, `9223372036854775808`, `-9223372036854775809`, `18446744073709551616`, `2147483648`,
			`1e999999999`, `1e-999999999`, `"%%%%"`, `"QUJ"`, `"\x"`, `"\u12"`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, "\"\xff\"", "\"\x00\"", "\"\n\"", `'x'`, `,`, `:`, `]`, `}`, `"`, `"\`, ``,
		} {
			add("a value that the field does not take", field(value)+"}")
			add("a value that ends the input", field(value))
		}
		add("a string without end", field(`"`+repeat("a", long)))
		add("a long string", field(`"`+repeat(`\u00e9`, long)+`"}`))
		add("a long number", field(repeat("1", long/8)+"}"))
		add("a long number with an exponent", field(repeat("1", long/8)+"e5}"))
		add("a list without end", field("["+repeat("{},", long)))
		add("a list of nothing", field("["+repeat("null,", long)+"null]}"))
		add("a field again and again", "{"+repeat(`"`+key+`":null,`, long)+`"`+key+`":null}`)
	}
	return all
}

func manyKeys() string {
	var b strings.Builder
	for i := range long / 16 {
		fmt.Fprintf(&b, `,"unknown%08d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func deepJSON(keys []string) (all []input) {
	add := func(name, data string) { all = append(all, input{name: name, data: []byte(data)}) }
	add("arrays within each other, and nothing else", repeat("[", depth))
	add("arrays within each other, closed, and nothing else", repeat("[", depth/2)+repeat("]", depth/2))
	add("objects within each other, and nothing else", repeat(`{"unknown":`, depth))
	for _, key := range keys {
		add("arrays within each other", `{"`+key+`":`+repeat("[", depth))
		add("closed arrays within each other", `{"`+key+`":`+repeat("[", depth/2)+repeat("]", depth/2)+"}")
		add("objects within each other", repeat(`{"`+key+`":`, depth))
		add("closed objects within each other", repeat(`{"`+key+`":`, depth*3/4)+"null"+repeat("}", depth/4))
		add("arrays of objects within each other", repeat(`{"`+key+`":[`, depth))
	}
	return all
}

func zipped(inputs []input) (all []input) {
	w := gzip.NewWriter(nil)
	for _, in := range inputs {
		all = append(all, input{name: in.name, data: zipWith(w, in.data), content: len(in.data)})
	}
	return all
}

func zip(data []byte) []byte { return zipWith(gzip.NewWriter(nil), data) }

func zipWith(w *gzip.Writer, data []byte) []byte {
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(data) // which a bytes.Buffer takes
	_ = w.Close()
	return out.Bytes()
}

func gzipInputs() (all []input) {
	add := func(name string, data []byte) { all = append(all, input{name: name, data: data}) }
	valid := zip([]byte("{}"))
	spoilt := bytes.Clone(valid)
	spoilt[len(spoilt)-8] ^= 1
	shorter := bytes.Clone(valid)
	shorter[len(shorter)-4]++
	named := bytes.Clone(valid[:10])
	named[3] = 1 << 3
	extra := bytes.Clone(valid[:10])
	extra[3] = 1 << 2
	add("no gzip", []byte("{}"))
	add("a wrong checksum", spoilt)
	add("a wrong length", shorter)
	add("another member after it", append(bytes.Clone(valid), valid...))
	add("garbage after it", append(bytes.Clone(valid), "xxxxxxxxxxxxxxxxxxxx"...))
	add("a name without end", append(named, repeat("n", long)...))
	add("an extra field that is said to be long", append(extra, 0xff, 0xff, 1))
	return append(all, bombs()...)
}

// bombs are beyond what the codec may decompress. They take long to make.
var bombs = sync.OnceValue(func() []input {
	const content = 32 << 20
	return []input{
		{name: "a thousand times as much white space", data: zip(bytes.Repeat([]byte(" "), content)), content: content},
		{name: "a thousand times as many zeros", data: zip(make([]byte, content)), content: content},
		{name: "a string a thousand times as long", data: zip([]byte(`{"email":"` + strings.Repeat("a", content) + `"}`)), content: content},
	}
})

func xmlInputs(keys []string) (all []input) {
	add := func(name, data string) { all = append(all, input{name: name, data: []byte(data)}) }
	add("nothing", "")
	add("white space", repeat(" \n\t", long))
	add("zeros", repeat("\x00", long))
	add("no XML", `{"email":"a"}`)
	add("an end without a start", "</a>")
	add("a root that does not end", "<a>")
	add("a start that does not end", "<a")
	add("a name without end", "<"+repeat("a", long))
	add("a comment without end", "<!--"+repeat("a", long))
	add("character data without end", "<a><![CDATA["+repeat("a", long))
	add("an instruction without end", "<?a "+repeat("a", long))
	add("another encoding", `<?xml version="1.0" encoding="utf-7"?><a></a>`)
	add("another version", `<?xml version="2.0"?><a></a>`)
	add("directives within each other", repeat("<!a ", long))
	add("an entity of its own", `<!DOCTYPE a [<!ENTITY e "eeee">]><a>&e;</a>`)
	add("many attributes", "<a"+repeat(` b=""`, long)+"></a>")
	add("an attribute without end", `<a b="`+repeat("b", long))
	add("a namespace", `<a xmlns="b"></a>`)
	add("many namespaces", "<a"+repeat(` xmlns:b="c"`, long)+"></a>")
	add("a prefix that is none", "<a:b:c></a:b:c>")
	for _, key := range keys {
		field := func(value string) string { return "<a><" + key + ">" + value }
		for _, value := range []string{
			"", "x", "-1", "1.5", "1e400", "9223372036854775808", "18446744073709551616", "2147483648", "NaN", "Inf", "0x1p-2", "1_000", "true", "%%%%", "QUJ",
			"&", "&x;", "&#0;", "&#xd800;", "&#x110000;", "&#99999999999;", "\x00", "\xff", "]]>", "<", "<b/>", "<b></c>", "<!---->", "<![CDATA[]]>", "<" + key + "/>",
		} {
			add("a value that the field does not take", field(value)+"</"+key+"></a>")
			add("a value that ends the input", field(value))
		}
		add("a text without end", field(repeat("a", long)))
		add("a text of entities", field(repeat("&lt;", long)+"</"+key+"></a>"))
		add("a long number", field(repeat("1", long)+"</"+key+"></a>"))
		add("a field again and again", "<a>"+repeat("<"+key+"/>", long)+"</a>")
	}
	return all
}

func deepXML(keys []string) (all []input) {
	add := func(name, data string) { all = append(all, input{name: name, data: []byte(data)}) }
	add("elements within each other, and nothing else", repeat("<a>", depth))
	add("closed elements within each other, and nothing else", repeat("<a>", depth/2)+repeat("</a>", depth/2))
	for _, key := range keys[:3] { // which take long
		add("elements within each other", "<a><"+key+">"+repeat("<a>", depth))
		add("closed elements within each other", "<a><"+key+">"+repeat("<a>", depth*3/7)+repeat("</a>", depth*4/7)+"</"+key+"></a>")
		add("elements of one name within each other", "<a>"+repeat("<"+key+">", depth))
	}
	return all
}

func msgpackInputs(keys []string) (all []input) {
	const text = "a string or an extension that is said to have 2^26 bytes"
	add := func(name string, data, worse []byte) {
		all = append(all, input{name: name, data: data, worse: worse, kept: name == text})
	}
	// Lengths of 32 bits. Where an int has no more, a library may take a larger one for a negative one.
	const most = uint32(min(math.MaxUint32, math.MaxInt))
	header := func(start []byte, kind byte, n uint32) []byte {
		return binary.BigEndian.AppendUint32(append(bytes.Clone(start), kind), n)
	}
	const (
		bin, ext, str, array, object = 0xc6, 0xc9, 0xdb, 0xdd, 0xdf
		million, manyBytes           = 1 << 20, 1 << 26
	)
	add("nothing", nil, nil)
	add("zeros", make([]byte, long), nil)
	add("no MessagePack", []byte(`{"email":"a"}`), nil)
	add("nil", msgp.AppendNil(nil), nil)
	add("an array for the message", msgp.AppendArrayHeader(nil, 1), nil)
	add("a message that is said to have 2^20 fields", header(nil, object, million), header(nil, object, most))
	add("a message that is an array of 2^20 elements", header(nil, array, million), header(nil, array, most))
	add(text, header([]byte{0x81}, str, manyBytes), header([]byte{0x81}, str, most))
	add("a number for a name of a field", []byte{0x81, 7, 7}, nil)
	for _, key := range keys {
		start := msgp.AppendString(msgp.AppendMapHeader(nil, 1), key)
		both := func(name string, kind byte, n uint32) {
			add(name, header(start, kind, n), header(start, kind, most))
		}
		both("an array that is said to have 2^20 elements", array, million)
		both("a map that is said to have 2^20 elements", object, million)
		both(text, str, manyBytes)
		if key == "avatar" || key == "bytes" {
			both("bytes that are said to be 2^26", bin, manyBytes)
		} else {
			both(text, bin, manyBytes)
		}
		both(text, ext, manyBytes)
		add("an array of nothing", append(header(start, array, long), bytes.Repeat([]byte{0xc0}, long)...), nil)
		add("an array of maps without elements", append(header(start, array, long), bytes.Repeat([]byte{0x80}, long)...), nil)
		for kind := range 256 { // with a length of 0 or, as 32 bits, of 145
			value := append(bytes.Clone(start), byte(kind))
			add("a value that ends the input", value, nil)
			add("a value that the field does not take", append(value, make([]byte, 32)...), nil)
			add("a value that the field does not take", append(append(value[:len(value):len(value)], 0, 0, 0), bytes.Repeat([]byte{0x91}, 32)...), nil)
		}
	}
	return all
}

func deepMsgpack(keys []string) (all []input) {
	add := func(name string, data []byte) { all = append(all, input{name: name, data: data}) }
	add("arrays within each other, and nothing else", bytes.Repeat([]byte{0x91}, depth))
	for _, key := range keys {
		start := msgp.AppendString(msgp.AppendMapHeader(nil, 1), key)
		add("arrays within each other", append(bytes.Clone(start), bytes.Repeat([]byte{0x91}, depth)...))
		add("maps within each other", append(bytes.Clone(start), bytes.Repeat([]byte{0x81, 0xa0}, depth/2)...))
		add("maps in place of keys within each other", append(bytes.Clone(start), bytes.Repeat([]byte{0x81}, depth)...))
		add("arrays of maps within each other", bytes.Repeat(append(bytes.Clone(start), 0x91), depth/(len(start)+1)))
	}
	return all
}

func protobufInputs() (all []input) {
	add := func(name string, data []byte) { all = append(all, input{name: name, data: data}) }
	add("zeros", make([]byte, long))
	add("no protobuf", []byte(`{"email":"a"}`))
	add("field zero", []byte{0x02, 0})
	add("a tag without end", bytes.Repeat([]byte{0xff}, long))
	add("a tag of the largest field and more", []byte{0xf8, 0xff, 0xff, 0xff, 0x7f, 1})
	for field := protowire.Number(1); field <= 20; field++ {
		tag := func(kind protowire.Type) []byte { return protowire.AppendTag(nil, field, kind) }
		for _, length := range []uint64{1, 1 << 7, 1 << 20, 1 << 26, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64} {
			add(fmt.Sprintf("a field that is said to have %d bytes", length), protowire.AppendVarint(tag(protowire.BytesType), length))
		}
		for kind := range 8 {
			add("a kind that the field does not have", append(tag(protowire.Type(kind)), bytes.Repeat([]byte{1}, 16)...))
			add("a kind that ends the input", tag(protowire.Type(kind)))
		}
		add("a varint without end", append(tag(protowire.VarintType), bytes.Repeat([]byte{0x80}, long)...))
		add("invalid UTF-8", append(tag(protowire.BytesType), 1, 0xff))
		add("a group that does not end", tag(protowire.StartGroupType))
		add("an end of what has not begun", tag(protowire.EndGroupType))
		add("a field again and again", bytes.Repeat(append(tag(protowire.BytesType), 0), long/3))
		add("zeros in a field", protowire.AppendBytes(tag(protowire.BytesType), make([]byte, long)))
	}
	return all
}

func deepProtobuf() (all []input) {
	add := func(name string, data []byte) { all = append(all, input{name: name, data: data}) }
	for _, field := range []protowire.Number{1, 2, 15, 17, 1000} {
		start, end := protowire.AppendTag(nil, field, protowire.StartGroupType), protowire.AppendTag(nil, field, protowire.EndGroupType)
		n := depth / len(start)
		add("groups within each other", bytes.Repeat(start, n))
		add("closed groups within each other", append(bytes.Repeat(start, n/2), bytes.Repeat(end, n/2)...))
		add("messages within each other", nested(field))
	}
	return all
}

// nested is a message within a message, as often as depth bytes allow: the innermost is written first, at the end.
func nested(field protowire.Number) []byte {
	reversed := make([]byte, 0, depth)
	for {
		head := protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(len(reversed)))
		if len(reversed)+len(head) > depth {
			break
		}
		for i := len(head) - 1; i >= 0; i-- {
			reversed = append(reversed, head[i])
		}
	}
	data := make([]byte, len(reversed))
	for i, b := range reversed {
		data[len(data)-1-i] = b
	}
	return data
}

func delimited(inputs []input) (all []input) {
	for _, in := range inputs {
		all = append(all, input{name: in.name, data: append(protowire.AppendVarint(nil, uint64(len(in.data))), in.data...)})
	}
	return all
}

func delimitedInputs() (all []input) {
	for _, length := range []uint64{1, 4 << 20, 4<<20 + 1, math.MaxUint32, math.MaxInt64, math.MaxUint64} {
		all = append(all, input{name: "a message that is said to be large", data: protowire.AppendVarint(nil, length)})
	}
	return append(all, input{name: "nothing"}, input{name: "a length without end", data: bytes.Repeat([]byte{0x80}, long)})
}
