package scaffold

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const seeds = 100

var (
	integers       = strings.Fields("int32 sint32 sfixed32 uint32 fixed32 int64 sint64 sfixed64 uint64 fixed64")
	enums          = strings.Fields("Level Closed Mood")
	scalarKinds    = append(strings.Fields("double float bool string bytes Level Closed Mood"), integers...)
	wellKnownTypes = strings.Fields("Timestamp Duration FieldMask Empty Struct Value ListValue DoubleValue FloatValue " +
		"Int64Value UInt64Value Int32Value UInt32Value BoolValue StringValue BytesValue google.rpc.Status")
	labels = strings.Fields("single optional repeated map oneof")
)

// layout is added to what is random: to the file, to the fields of Reply and to its JSON. cNN is the seed.
type layout struct {
	why, syntax, file, top, fields, json string
	files                                map[string]string // that are imported
}

// layouts are what generators of Go get wrong, one in each of the first seeds.
var layouts = []layout{
	{"a oneof whose name follows its message's name like another message's", "", "",
		`message Payment { oneof method { string card = 1; PaymentMethod other = 2; } }
		message PaymentMethod { string id = 1; oneof card { string visa = 2; int32 x = 3; } }`,
		`Payment payment = 1; PaymentMethod method = 2; repeated Payment all = 3;`,
		`"payment":{"other":{"id":"abc"}},"method":{"visa":"4711"},"all":[{"card":"x12"},{"other":{"x":0}}]`, nil},
	{"fields that are words of Go, and predeclared", "", "", "", `string type = 1; int64 func = 2; bytes len = 3;
		repeated string string = 4; optional int32 error = 5; bool nil = 6; double any = 7; string range = 8;
		map<string, string> append = 9; oneof select { string chan = 10; bytes new = 11; } string true = 12;`,
		`"type":"t1","func":"12","len":"AAE=","string":["s1"],"error":0,"nil":true,"any":1.5,"range":"r1",
		"append":{"k":"v1"},"new":"AA==","true":"t2"`, nil},
	{"messages that are words of Go, and predeclared", "", "", `message type { string func = 1; func in = 2; }
		message func { type type = 1; error error = 2; len len = 3; } message len { int32 len = 1; }
		message string { bytes string = 1; } message error { .cNN.v1.string string = 1; } message nil {} message any {}`,
		`type type = 1; repeated func func = 2; map<string, len> len = 3; error error = 4; nil nil = 5; any any = 6;`,
		`"type":{"func":"x1","in":{"len":{"len":5}}},"func":[{"error":{"string":{"string":"AAE="}}}],
		"len":{"k":{"len":7}},"error":{},"nil":{},"any":{}`, nil},
	{"fields that are packages", "", "", `message fmt { string fmt = 1; }`, `string fmt = 1; fmt time = 2; bytes bytes = 3;
		repeated int32 slices = 4; map<string, bytes> maps = 5; int64 strconv = 6; oneof json { string a = 7; fmt b = 8; }
		google.protobuf.Timestamp maphash = 9; string proto = 10; string p = 11; string m = 12; string c = 13;`,
		`"fmt":"f1","time":{"fmt":"f2"},"bytes":"AAE=","slices":[1],"maps":{"k":"AA=="},"strconv":"77","b":{"fmt":"x1"}`, nil},
	{"messages named like well-known types", "", "", `message Timestamp { string any = 1; } message Duration { int64 s = 1; }
		message Empty { bool b = 1; } message Struct { Value v = 1; } message Value { string kind = 1; }
		message List { int32 len = 1; } message StringValue { string value = 1; } message Any { string type_url = 1; }`,
		`Timestamp timestamp = 1; Duration duration = 2; Empty empty = 3; Struct struct = 4; repeated Value value = 5;
		List list = 6; StringValue string = 7; Any any = 8; google.protobuf.Timestamp at = 9;`,
		`"timestamp":{"any":"a1"},"duration":{"s":"12"},"empty":{"b":true},"struct":{"v":{"kind":"k1"}},
		"value":[{"kind":"k2"}],"list":{"len":3},"string":{"value":"v1"},"any":{},"at":"2026-01-02T03:04:05Z"`, nil},
	{"Reply_Nested beside Reply.Nested", "", "", `message Reply_Nested { string a = 1; }`,
		`message Nested { string b = 1; } Nested n = 1; Reply_Nested o = 2;`, `"n":{"b":"b1"},"o":{"a":"a1"}`, nil},
	{"a message TestSamples", "", "", `message TestSamples { string a = 1; }`, `TestSamples s = 1;`, `"s":{"a":"a1"}`, nil},
	{"a message TestMain", "", "", `message TestMain { string a = 1; }`, `TestMain m = 1;`, `"m":{"a":"a1"}`, nil},
	{"a message TestConformance", "", "", `message TestConformance { string a = 1; }`, `TestConformance c = 1;`,
		`"c":{"a":"a1"}`, nil},
	{"messages named like what is in the module", "", "", `message BenchmarkCall { string a = 1; }
		message Main { string a = 1; } message Plain_Request { string a = 1; }`,
		`BenchmarkCall v = 1; Main m = 2; Plain_Request p = 3;`, `"v":{"a":"v1"},"m":{"a":"m1"},"p":{"a":"p1"}`, nil},
	{"fields named like generated methods", "", "", "", `string reset = 1; string string = 2; string proto_message = 3;
		string descriptor = 4; string id = 5; string get_id = 6; string FooBar = 8;
		string foo_bar = 9; oneof arm { string card = 10; bytes get_card = 11; bytes get_arm = 12; }`,
		`"reset":"a1","string":"a2","descriptor":"a3","id":"a4","FooBar":"a5","card":"a6"`, nil},
	{"a field that hides a generated method", "", "", "", `string proto_reflect = 1;`, ``, nil},
	{"a key with a comma", "", "", "", `string a = 1 [json_name = "a,b"];`, `"a,b":"x1"`, nil},
	{"a key with a quote", "", "", "", `string a = 1 [json_name = "a\"b"];`, `"a\"b":"x1"`, nil},
	{"keys that tags can have", "", "", "", `string a = 1 [json_name = "-"]; string b = 2 [json_name = "ключ"];
		string c = 3 [json_name = "@type"]; string d = 4 [json_name = "x.y"];`, `"-":"x1","ключ":"x2","@type":"x3","x.y":"x4"`, nil},
	{"two names of a value", "", "", `enum Two { option allow_alias = true; ZERO = 0; TWO = 2; ALSO_TWO = 2; }`, `Two two = 1;`,
		`"two":"ALSO_TWO"`, nil},
	{"proto2", "proto2", "", `message Old { required string a = 1; optional int32 b = 2 [default = 7]; required Kind c = 3;
		enum Kind { ONE = 1; TWO = 2; } optional group Grp = 5 { optional int32 x = 1; } repeated int32 p = 6 [packed = true];
		optional bytes d = 7 [default = "abc"]; optional bool e = 8 [default = true]; extensions 100 to 200; }
		extend Old { optional string more = 100; }`, `optional Old old = 1; repeated Old all = 2;`,
		`"old":{"a":"","b":0,"c":"TWO"},"all":[{"a":"x","c":"ONE","d":"","e":false,"p":[1]}]`, nil},
	{"edition 2023", "edition", "", `message Part { string a = 1 [features.field_presence = LEGACY_REQUIRED];
		string i = 2 [features.field_presence = IMPLICIT]; repeated int32 e = 3 [features.repeated_field_encoding = EXPANDED]; }`,
		`Part part = 1; Part d = 2 [features.message_encoding = DELIMITED]; int32 n = 3 [default = 5];`,
		`"part":{"a":"x1","i":"","e":[1,2]},"n":0`, nil},
	{"two files of one base name in one package", "", "", "", `cNN.z.X x = 1; cNN.z.Y y = 2;`, `"x":{"a":"a1"},"y":{"x":{}}`,
		map[string]string{"cNN/x/common.proto": `package cNN.z; message X { string a = 1; }`,
			"cNN/y/common.proto": `package cNN.z; import "cNN/x/common.proto"; message Y { X x = 1; }`}},
	{"packages foo.bar and foobar", "", "", "", `cNN.foo.bar.Item a = 1; cNN.foobar.Item b = 2;`,
		`"a":{"a":"a1"},"b":{"b":"b1"}`, map[string]string{"cNN/one.proto": `package cNN.foo.bar; message Item { string a = 1; }`,
			"cNN/two.proto": `package cNN.foobar; message Item { string b = 1; }`}},
	{"names that a number tells apart, beside one that has it", "", "", `message Item { string a = 1; }
		message Item2 { string b = 1; }`, `Item a = 1; cNN.other.Item b = 2; Item2 c = 3;`,
		`"a":{"a":"a1"},"b":{"c":"b1"},"c":{"b":"c1"}`,
		map[string]string{"cNN/other.proto": `package cNN.other; message Item { string c = 1; }`}},
	{"a file for Windows", "", "win_windows.proto", "", "", "", nil},
	{"a file for tests", "", "a_test.proto", "", "", "", nil},
	{"a file for Windows beside another", "", "", "", `W w = 1;`, `"w":{"a":"a1"}`,
		map[string]string{"cNN/sys_linux_arm64.proto": `package cNN.v1; message W { string a = 1; }`}},
	{"import public", "", "", "", `cNN.base.B b = 1; cNN.base.E e = 2; google.rpc.Code c = 3;`,
		`"b":{"a":"a1"},"e":"BASE_ONE","c":"NOT_FOUND"`,
		map[string]string{"cNN/base.proto": `package cNN.base; message B { string a = 1; } enum E { ZERO = 0; BASE_ONE = 1; }`,
			"cNN/pub.proto": `package cNN.pub; import public "cNN/base.proto"; message P { base.B b = 1; }`}},
	{"a file without a package", "", "", "", `cNNFree f = 1;`, `"f":{"a":"a1"}`,
		map[string]string{"cNN/odd-name.v2/x.y-z.proto": `message cNNFree { string a = 1; }`}},
	{"packages that need each other", "", "", "", `cNN.sub.Part part = 1; Id id = 2; cNN.far.Far far = 3;`,
		`"part":{"id":{"id":"a1"}},"id":{"id":"b1"},"far":{"part":{"id":{"id":"c1"}}}`, map[string]string{
			"cNN/common.proto": `package cNN.v1; message Id { string id = 1; }`,
			"cNN/sub.proto":    `package cNN.sub; import "cNN/common.proto"; message Part { cNN.v1.Id id = 1; }`,
			"cNN/far.proto":    `package cNN.far; import "cNN/sub.proto"; message Far { cNN.sub.Part part = 1; }`}},
	{"files of one's own with paths like Google's", "", "", "", `cNN.mine.A a = 1; google.rpc.Mine b = 2;
		google.rpc.Code code = 3;`, `"a":{"n":"a1"},"b":{"n":"b1"},"code":"NOT_FOUND"`, map[string]string{
		"google/protobuf/mine.proto": `package cNN.mine; message A { string n = 1; }`,
		"google/rpc/error_details.proto": `package google.rpc; import "google/rpc/code.proto";
			message Mine { string n = 1; google.rpc.Code code = 2; }`}},
	{"nothing but oneofs", "", "", `message Only { oneof a { string x = 1; Only y = 2; } oneof b { Only z = 3; Kind k = 4; } }
		enum Kind { NO = 0; YES = 1; NEG = -3; }`, `Only o = 1;`, `"o":{"y":{"x":""},"z":{"k":"NO"}}`, nil},
}

// part is a field, and shape a message.
type part struct {
	name, key, label, typ, by string
	of                        *shape
	text, always              bool // numbers and enums are text; every sample has it
}

type shape struct {
	name   string // from the package on
	fields []part
	inner  []*shape
}

type grower struct {
	*rand.Rand
	syntax string
	camel  bool
	shapes []*shape
	covers map[string]bool // that samples have
}

func (g *grower) pick(of []string) string { return of[g.IntN(len(of))] }
func (g *grower) in(n int) bool           { return g.IntN(n) == 0 }

// corpus makes the .proto files of a seed, of which main has the method, and samples that fit.
func corpus(seed uint64, covers map[string]bool) (main string, files map[string]string, request, reply string) {
	g := &grower{rand.New(rand.NewPCG(seed, 1)), "", seed%2 == 0, nil, covers}
	pkg := fmt.Sprintf("c%02d", seed)
	fill := strings.NewReplacer("cNN", pkg)
	l := layout{syntax: g.pick([]string{"", "", "", "proto2", "edition"})}
	if seed < uint64(len(layouts)) {
		l = layouts[seed]
	}
	main, g.syntax = cmp.Or(l.file, pkg+".proto"), cmp.Or(l.syntax, "proto3")
	g.shapes = []*shape{{name: "Request"}, {name: "Reply"}}
	for i := range 1 + g.IntN(4) {
		s := &shape{name: fmt.Sprint("Shape", i)}
		if outer := g.shapes[g.IntN(len(g.shapes))]; g.in(2) {
			s.name = outer.name + "." + fmt.Sprint("Inner", i)
			outer.inner = append(outer.inner, s)
		}
		g.shapes = append(g.shapes, s)
	}
	var text, tops string
	for _, s := range g.shapes {
		g.grow(s)
	}
	for _, s := range g.shapes {
		if !strings.Contains(s.name, ".") {
			more := ""
			if s.name == "Reply" {
				more = l.fields
			}
			tops += g.print(s, more)
		}
	}
	head := map[string]string{"proto3": `syntax = "proto3";`, "proto2": `syntax = "proto2";`, "edition": `edition = "2023";`}
	files, text = map[string]string{}, head[g.syntax]+"\npackage cNN.v1;\n"
	for _, name := range strings.Fields("any duration empty field_mask struct timestamp wrappers") {
		text += `import "google/protobuf/` + name + `.proto";` + "\n"
	}
	for name, of := range l.files {
		files[fill.Replace(name)] = `syntax = "proto3";` + fill.Replace(of)
		if !strings.Contains(name, "base") { // which pub.proto imports
			text += fmt.Sprintf("import %q;\n", name)
		}
	}
	closed := map[string]string{"proto3": "CLOSED_NO = 0;", "proto2": "", "edition": "option features.enum_type = CLOSED;"}
	text += `import "google/rpc/status.proto"; import "google/rpc/code.proto";
		service Orders { rpc Get(Request) returns (Reply); }
		enum Level { LEVEL_NONE = 0; LEVEL_LOW = 1; LEVEL_HIGH = 200; }
		enum Closed { ` + closed[g.syntax] + ` CLOSED_ONE = 1; CLOSED_NEG = -4; }` + "\n" + tops + l.top + "\n"
	files[main] = fill.Replace(text)
	for i := range 1 + g.IntN(3) {
		request += g.object(g.shapes[0], 0, "") + "\n"
		if i > 0 {
			l.json = strings.ReplaceAll(l.json, "1\"", "2\"")
		}
		reply += g.object(g.shapes[1], 0, fill.Replace(l.json)) + "\n"
	}
	return main, files, request, reply
}

// grow gives a message fields.
func (g *grower) grow(s *shape) {
	if s.name == "Request" && !g.in(12) {
		s.fields = append(s.fields, part{name: "id", key: "id", label: "single", typ: "string", always: true})
	}
	oneof := "" // that is open, and takes fields
	for i := range []int{2 + g.IntN(10), 0}[g.IntN(15)/14] {
		f := part{label: g.pick(labels), typ: g.pick(scalarKinds)}
		names := strings.Fields("total_cents createdAt name x note_2x Upper url_path _lead tail_ a__b")
		f.name = g.pick(names) + fmt.Sprint(i)
		switch n := g.IntN(20); {
		case n < 4:
			f.of = g.shapes[g.IntN(len(g.shapes))]
			f.typ = "cNN.v1." + f.of.name
		case n < 12:
			if f.typ = g.pick(wellKnownTypes); !strings.Contains(f.typ, ".") {
				f.typ = "google.protobuf." + f.typ
			}
		}
		wide := strings.Contains(strings.ToLower(f.typ), "64") || slices.Contains(enums, f.typ)
		f.text = wide && g.in(2) || !wide && g.in(8)
		f.always = f.label == "single" && g.syntax != "proto3" && slices.Contains(scalarKinds, f.typ) && g.in(3)
		f.key = f.name
		if g.camel {
			f.key = regexp.MustCompile("_+.?").ReplaceAllStringFunc(f.name, func(s string) string {
				return strings.ToUpper(strings.Trim(s, "_"))
			})
		}
		switch f.label {
		case "oneof":
			if oneof == "" || g.in(4) {
				oneof = fmt.Sprint("kind_", i)
			}
			f.by = oneof
		case "map":
			f.by = g.pick(append([]string{"string", "bool"}, integers...))
			if f.typ == "Closed" && g.syntax != "proto3" { // which has no zero
				f.typ = "Level"
			}
		}
		s.fields = append(s.fields, f)
	}
}

// print writes a message as the .proto has it.
func (g *grower) print(s *shape, more string) string {
	name := s.name[strings.LastIndexByte(s.name, '.')+1:]
	text := "message " + name + " {\nenum Mood { BAD = 0; GOOD = 5; }\n" + more + "\n"
	for _, inner := range s.inner {
		text += g.print(inner, "")
	}
	oneofs := map[string]string{}
	for i, f := range s.fields {
		scalar := slices.Contains(scalarKinds, f.typ)
		line, after := fmt.Sprintf("%s %s = %d", f.typ, f.name, 101+i), ";\n"
		switch {
		case f.label == "oneof":
			oneofs[f.by] += line + after
			continue
		case f.label == "map":
			line = fmt.Sprintf("map<%s, %s> %s = %d", f.by, f.typ, f.name, 101+i)
		case f.label == "repeated":
			line = "repeated " + line
		case g.syntax == "proto2" && f.always:
			line = "required " + line
		case g.syntax == "proto2", g.syntax == "proto3" && f.label == "optional":
			line = "optional " + line
		case g.syntax == "edition" && f.always:
			after = " [features.field_presence = LEGACY_REQUIRED];\n"
		case g.syntax == "edition" && f.label == "single" && scalar && f.typ != "Closed":
			after = " [features.field_presence = IMPLICIT];\n"
		}
		text += line + after
	}
	for _, name := range slices.Sorted(maps.Keys(oneofs)) {
		text += "oneof " + name + " {\n" + oneofs[name] + "}\n"
	}
	if g.syntax == "proto2" {
		text += "optional "
	}
	return text + "google.protobuf.Any never = 99;\n}\n"
}

// object is a JSON object of a message.
func (g *grower) object(s *shape, deep int, members string) string {
	var all []string
	arms := map[string]bool{}
	if members != "" {
		all = append(all, members)
	}
	for _, f := range s.fields {
		if !f.always && (deep > 2 || g.in(4) || f.label == "oneof" && (arms[f.by] || g.in(2))) {
			continue
		}
		value, n := "", g.IntN(4)
		switch {
		case f.label != "oneof" && !f.always && f.typ != "google.protobuf.Value" && g.in(25):
			value = "null"
		case f.label == "repeated":
			var list []string
			for range n {
				list = append(list, g.value(f, deep))
			}
			value = "[" + strings.Join(list, ",") + "]"
		case f.label == "map":
			entries := map[string]string{}
			for range n {
				entries[g.key(f.by)] = g.value(f, deep)
			}
			var list []string
			for _, key := range slices.Sorted(maps.Keys(entries)) {
				list = append(list, key+":"+entries[key])
			}
			value = "{" + strings.Join(list, ",") + "}"
		default:
			value, arms[f.by] = g.value(f, deep), f.by != ""
		}
		typ := f.typ
		if f.of != nil {
			typ = "message"
		}
		if value != "null" && (n > 0 || f.label != "map" && f.label != "repeated") {
			g.covers[f.label+" "+typ], g.covers["by "+f.by] = true, true
		}
		all = append(all, strconv.Quote(f.key)+":"+value)
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "{" + strings.Join(all, ",") + "}"
}

func (g *grower) word() string {
	text := ""
	for range 1 + g.IntN(9) {
		text += string("abcdefghijkXYZ0123456789"[g.IntN(24)])
	}
	return text
}

func (g *grower) key(kind string) string {
	switch kind {
	case "string":
		return strconv.Quote(g.pick([]string{"", "", "ключ.", "a b"}) + g.word())
	case "bool":
		return g.pick([]string{`"true"`, `"false"`})
	}
	return strconv.Quote(g.integer(kind))
}

func (g *grower) integer(kind string) string {
	bits := 63
	if strings.HasSuffix(kind, "32") {
		bits = 31
	}
	n := g.Uint64() >> (64 - bits + g.IntN(bits))
	if kind[0] != 'u' && kind[0] != 'f' && g.in(2) && n > 0 {
		return fmt.Sprint("-", n)
	}
	return fmt.Sprint(n)
}

// value is one value of a field.
func (g *grower) value(f part, deep int) (value string) {
	switch {
	case f.of != nil:
		return g.object(f.of, deep+1, "")
	case f.name == "id":
		return fmt.Sprintf(`"id-%08d"`, g.IntN(1e8))
	}
	kind := strings.ToLower(strings.TrimPrefix(f.typ, "google.protobuf."))
	if kind != "value" && kind != "listvalue" {
		kind = strings.TrimSuffix(kind, "value")
	}
	word, odd := g.word(), []string{"Größe ", "日本", "„<&>“ ", "a\\n", "\\u2028", "😀"}
	zero := g.in(7)
	switch kind {
	case "string":
		if value = `"` + word + `"`; zero {
			value = `""`
		} else if g.in(4) {
			value = `"` + g.pick(odd) + word + `"`
		}
		return value
	case "bytes":
		return g.pick([]string{`""`, `"AA=="`, `"AAE="`, `"aGVsbG8="`, `"+/8A"`})
	case "bool":
		return g.pick([]string{"true", "true", "false"})
	case "timestamp":
		return g.pick([]string{`"2026-01-02T03:04:05Z"`, `"2026-11-12T13:14:15.123456Z"`, `"2026-01-02T03:04:05.100Z"`,
			`"2026-01-02T03:04:05+02:00"`, `"1970-01-01T00:00:00Z"`, `"2026-11-12T13:14:15.5Z"`})
	case "duration":
		return g.pick([]string{`"3.500s"`, `"1s"`, `"0s"`, `"-1.000001s"`, `"1.50s"`})
	case "fieldmask":
		return g.pick([]string{`"id,parentId"`, `"a.bC"`, `""`})
	case "empty":
		return "{}"
	case "struct":
		return g.pick([]string{`{"k":[1,"` + word + `",null,{"x":true}]}`, `{"` + word + `":-2.5}`, `{}`})
	case "listvalue":
		return g.pick([]string{`["` + word + `",1]`, `[[],{}]`, `[]`})
	case "value":
		return g.pick([]string{`null`, `"` + word + `"`, `17`, `false`, `["a",null]`, `{"k":{}}`})
	case "google.rpc.status":
		return g.pick([]string{`{"code":5,"message":"` + word + `"}`, `{}`, `{"message":""}`})
	case "level":
		if value = g.pick([]string{"0", "1", "200"}); f.text {
			value = g.pick(strings.Fields("LEVEL_NONE LEVEL_LOW LEVEL_HIGH"))
		}
	case "mood":
		if value = g.pick([]string{"0", "5"}); f.text {
			value = g.pick(strings.Fields("BAD GOOD"))
		}
	case "closed":
		if value = g.pick([]string{"1", "-4"}); f.text {
			value = g.pick(strings.Fields("CLOSED_ONE CLOSED_NEG"))
		}
	case "float", "double":
		if value = strconv.FormatFloat(float64(g.IntN(4000)-2000)/4, 'f', -1, 64); g.in(8) && !f.text {
			value = g.pick([]string{"1.50", "2e3", "0.1", "1E-7"})
		}
	default:
		if value = g.integer(kind); zero {
			value = "0"
		}
	}
	if f.text {
		return `"` + value + `"`
	}
	return value
}

var update = flag.Bool("update", false, "write what TestCorpus finds to testdata")

// TestCorpus: what becomes of modules of all kinds of messages. testdata/corpus.txt has a line for each: what the
// proof says, and the paths that lose something. But for -long and -update, modules are those of the layouts, and of
// seeds whose samples have a type below a label that no earlier ones have.
func TestCorpus(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links a program")
	}
	dir, covers, names := t.TempDir(), map[string]bool{}, []string(nil)
	all, lossy, left := map[string]string{}, map[string]string{}, map[string]bool{}
	for seed := range uint64(seeds) {
		before := len(covers)
		main, files, request, reply := corpus(seed, covers)
		if seed >= uint64(len(layouts)) && len(covers) == before && !*long && !*update {
			continue
		}
		name, in := fmt.Sprintf("c%02d", seed), t.TempDir()
		names = append(names, name)
		files["request.json"], files["reply.json"] = request, reply
		for path, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(in, path)), 0o700))
			write(t, filepath.Join(in, path), text)
		}
		m, err := described([]string{"-proto", main, "-I", in, "-call", name + ".v1.Orders/Get", "-request",
			filepath.Join(in, "request.json"), "-reply", filepath.Join(in, "reply.json")}).module(t.Context(),
			filepath.Join(dir, name), "mine/"+name)
		if err != nil {
			all[name] = "no module: " + strings.ReplaceAll(err.Error(), in+string(filepath.Separator), "")
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			continue
		}
		left[name] = true
		for _, line := range m.Lossy {
			lossy[name] += " " + line + ";"
		}
	}
	for _, label := range labels {
		for _, typ := range append(append([]string{"message"}, scalarKinds...), wellKnownTypes...) {
			require.True(t, covers[label+" "+typ] || covers[label+" google.protobuf."+typ], "%s %s", label, typ)
		}
	}
	for name, why := range unbuilt(t, dir, slices.Sorted(maps.Keys(left))) {
		all[name] = "does not build: " + why
		delete(left, name)
	}
	for name, proof := range proofs(t, dir, slices.Sorted(maps.Keys(left))) {
		all[name] = proof.Err
		for _, line := range proof.Told {
			lossy[name] += " " + strings.NewReplacer(" in the sample, ", " > ", " as a plain struct", ";").Replace(line)
		}
	}
	found := ""
	for _, name := range names {
		first, _, _ := strings.Cut(all[name], "\n")
		if first == "" {
			first = "ok"
		}
		found += name + " " + first + lossy[name] + "\n"
	}
	golden := filepath.Join("testdata", "corpus.txt")
	if *update {
		write(t, golden, found)
	}
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	want := ""
	for line := range strings.Lines(string(data)) {
		if name, _, _ := strings.Cut(line, " "); slices.Contains(names, name) {
			want += line
		}
	}
	require.Equal(t, want, found, "go test -run TestCorpus -update writes it")
}

// unbuilt says why folders, which are to be packages of one module, do not compile. It removes those.
func unbuilt(t *testing.T, dir string, folders []string) map[string]string {
	t.Helper()
	files, err := source(t.Context())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(string(files["go.mod"]), "NAME", "mine", 1))
	write(t, filepath.Join(dir, "go.sum"), string(files["go.sum"]))
	for _, name := range folders {
		require.NoError(t, os.Remove(filepath.Join(dir, name, "go.mod")))
	}
	broken := map[string]string{}
	for loaded := false; !loaded; { // what can't be loaded comes before what does not compile
		out, err := goIn(t, dir, nil, "vet", "-trimpath", "./...")
		if err == nil {
			break
		}
		out = strings.ReplaceAll(out, dir+string(filepath.Separator), "")
		at := regexp.MustCompile(`(?m)^(?:vet: |\timports mine/)?(?:\./|/\S*/)?(c\d\d)/(.*)`) // absolute if in the cache
		lines := at.FindAllStringSubmatch(out, -1)
		require.NotEmpty(t, lines, out)
		for _, line := range lines {
			if broken[line[1]] == "" {
				broken[line[1]] = line[2]
				require.NoError(t, os.RemoveAll(filepath.Join(dir, line[1])))
			}
		}
		loaded = regexp.MustCompile(`(?m)^# mine/`).MatchString(out)
	}
	for _, name := range folders {
		if broken[name] == "" {
			write(t, filepath.Join(dir, name, "go.mod"), "") // which proofs removes
		}
	}
	return broken
}
