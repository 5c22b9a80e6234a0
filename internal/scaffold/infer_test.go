package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/stretchr/testify/require"
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// samplesIn are the samples of a folder that match a pattern.
func samplesIn(t *testing.T, folder, pattern string) (all []sample) {
	t.Helper()
	for _, path := range glob(t, folder, pattern) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, sample{data, filepath.Base(path)})
	}
	return all
}

func compiled(t *testing.T, text string) protoreflect.MessageDescriptors {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"x.proto": text})})}
	files, err := c.Compile(t.Context(), "x.proto")
	require.NoError(t, err, text)
	return files[0].Messages()
}

// goesRound compiles the text, and reads the samples with its types, which have each value.
func goesRound(t *testing.T, s *schema) {
	t.Helper()
	messages := compiled(t, string(s.text))
	for name, side := range map[string][]sample{"Request": s.requests, "Reply": s.replies} {
		for _, sample := range side {
			m := dynamicpb.NewMessage(messages.ByName(protoreflect.Name(name)))
			require.NoError(t, protojson.Unmarshal(sample.data, m), "%s\n%s\n%s", sample.name, sample.data, s.text)
			data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
			require.NoError(t, err)
			require.Empty(t, lost(name, decoded(t, sample.data), decoded(t, data)), "%s\n%s", sample.data, s.text)
		}
	}
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// lost is the path of a value that is another. Null and absent are one, and so are an absent list and an empty one.
func lost(at string, want, got any) string {
	wrong := fmt.Sprintf("%s: %v became %v", at, want, got)
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for key, v := range want {
			if at := lost(at+"."+key, v, object[key]); at != "" {
				return at
			}
		}
		for key, v := range object {
			if _, ok := want[key]; !ok && fmt.Sprint(v) != "[]" && fmt.Sprint(v) != "map[]" {
				return wrong
			}
		}
		return ""
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return wrong
		}
		for i, v := range want {
			if at := lost(fmt.Sprintf("%s[%d]", at, i), v, list[i]); at != "" {
				return at
			}
		}
		return ""
	case nil:
		if got == nil || fmt.Sprint(got) == "[]" || fmt.Sprint(got) == "map[]" {
			return ""
		}
	case json.Number:
		if text, whole := got.(string); whole && text == strings.Replace(want.String(), "-0", "0", 1) {
			return ""
		}
		x, _ := want.Float64()
		if n, ok := got.(json.Number); ok {
			if y, err := n.Float64(); err == nil && x == y {
				return ""
			}
		}
	default:
		if want == got {
			return ""
		}
	}
	return wrong
}

// TestInferPublic: of ten public APIs the types are those of the .proto that a person wrote before.
func TestInferPublic(t *testing.T) {
	for _, path := range glob(t, "testdata", "samples", "*", "want.proto") {
		folder := filepath.Dir(path)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			s, err := infer(samplesIn(t, folder, "request*.json"), samplesIn(t, folder, "reply*.json"))
			require.NoError(t, err)
			goesRound(t, s)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			want, got := compiled(t, string(text)), compiled(t, string(s.text))
			for _, name := range []protoreflect.Name{"Request", "Reply"} {
				require.Equal(t, shapes(want.ByName(name)), shapes(got.ByName(name)), name)
			}
		})
	}
}

// shapes are the types of a message's fields and of those within, by their paths in JSON.
func shapes(m protoreflect.MessageDescriptor) map[string]string {
	all := map[string]string{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		v, typ := f, f.Cardinality().String()
		if f.IsMap() {
			v, typ = f.MapValue(), "map by "+f.MapKey().Kind().String()
		}
		typ += fmt.Sprint(" ", v.Kind(), ", presence ", f.HasPresence())
		if v.Message() != nil && v.Message().ParentFile().Package() == "google.protobuf" {
			typ += fmt.Sprint(" ", v.Message().Name(), ", optional ", f.HasOptionalKeyword())
		} else if v.Message() != nil {
			for at, typ := range shapes(v.Message()) {
				all[f.JSONName()+"."+at] = typ
			}
		}
		all[f.JSONName()] = typ
	}
	return all
}

var hard = []struct {
	why     string
	replies string   // a line each
	text    []string // lines of the .proto
	told    []string
}{
	{"whole numbers, and fractions of any form", `{"a":1,"b":1.0,"c":1e2,"d":7,"e":-0}
		{"a":-9223372036854775808,"b":2,"c":3,"d":0.5,"e":0}`, []string{"int64 a = 1;", "double b = 2;", "double c = 3;",
		"double d = 4;", "int64 e = 5;"}, nil},
	{"beyond 63 bits", `{"u":18446744073709551615,"n":9223372036854775808,"x":18446744073709551616}
		{"u":0,"n":-1,"x":1}`, []string{"uint64 u = 1;", "double n = 2;", "double x = 3;"}, nil},
	{"a double has fewer digits", `{"a":9007199254740993,"b":{"c":0.12345678901234567890},"d":9007199254740993}
		{"a":1.5,"b":{"c":1},"d":"x"}`, []string{"double a = 1;"},
		[]string{"reply.a: a double, and 9007199254740993 has more digits (replies.jsonl:1)",
			"reply.b.c: a double, and 0.12345678901234567890 has more digits (replies.jsonl:1)",
			"reply.d: a double, and 9007199254740993 has more digits (replies.jsonl:1)",
			"reply.d: google.protobuf.Value: number in 1, string in 1 (replies.jsonl:2)"}},
	{"absent, null, both", `{"a":1,"b":null,"c":null,"l":null,"o":null,"v":1}
		{"a":2,"b":"x","l":[1],"o":{"x":1},"v":null}
		{"b":"y","c":"","l":[]}`, []string{"// optional: absent in 1 of 3\n  optional int64 a = 1;",
		"// optional: null in 1 of 3\n  optional string b = 2;",
		"// optional: absent in 1 of 3, null in 1 of 3\n  optional string c = 3;",
		"// null in 1 of 3\n  repeated int64 l = 4;", "// optional: absent in 1 of 3, null in 1 of 3\n  O o = 5;"}, nil},
	{"a Value keeps null", `{"v":1,"n":null}
		{"v":null,"n":null}
		{"v":"x"}`, []string{"  // number in 1, null in 1, string in 1\n  google.protobuf.Value v = 1;",
		"// optional: absent in 1 of 3\n  // always null\n  optional google.protobuf.Value n = 2;"}, nil},
	{"lists", `{"e":[],"n":[1,null],"l":[[1],[]],"o":[{},{}],"m":[{"a":1},{"b":"x"}]}`, []string{
		"// always empty\n  repeated google.protobuf.Value e = 1;", "repeated google.protobuf.Value n = 2;",
		"// a list of lists\n  repeated google.protobuf.ListValue l = 3;", "repeated google.protobuf.Value o = 4;",
		"repeated M m = 5;"}, []string{"reply.e[]: google.protobuf.Value: always empty",
		"reply.n[]: google.protobuf.Value: number in 1, null in 1 (replies.jsonl:1)",
		"reply.l[]: google.protobuf.ListValue: a list of lists", "reply.o[]: google.protobuf.Value: always empty"}},
	{"keys that are no names", `{"@timestamp":1,"+1":2,"3h":3,"x-request-id":4,"ключ":5,"日本":6,"_id":7,"a b":8,"$ref":9}`,
		[]string{`int64 timestamp = 1 [json_name = "@timestamp"];`, `key_1 = 2 [json_name = "+1"];`,
			`key_3h = 3 [json_name = "3h"];`, `x_request_id = 4 [json_name = "x-request-id"];`,
			`key = 5 [json_name = "ключ"];`, `key_2 = 6 [json_name = "日本"];`, `id = 7 [json_name = "_id"];`,
			`a_b = 8 [json_name = "a b"];`, `ref = 9 [json_name = "$ref"];`}, nil},
	{"names that would collide", `{"userID":1,"userId":"x","USERID":true,"user_id":{"a":1},"service.name":2,
		"service_name":3,"ab":1,"a_b":2,"aB":3,"log":{"1":1},"log_entry":{"a":1},"getAb":1,"get_ab":2}`, []string{
		`int64 user_id_2 = 1 [json_name = "userID"];`, `string user_id_3 = 2 [json_name = "userId"];`,
		`bool userid_4 = 3 [json_name = "USERID"];`, `UserId user_id = 4 [json_name = "user_id"];`,
		`service_name_2 = 5 [json_name = "service.name"];`, `service_name = 6 [json_name = "service_name"];`,
		`LogEntry_ log_entry = 11`}, nil},
	{"keys that mean something to protobuf or to Go", `{"message":{"string":1,"optional":2,"map":{"1":2}},"request":{"reply":
		{"request":{"made":1}}},"google":{"protobuf":[null]},"reset":1,"string":2,"protoMessage":3,"ProtoReflect":4,
		"descriptor":5,"package":6,"reserved":7,"true":8,"inf":9,"type":10,"func":11,"Samples":{"call":1}}`,
		[]string{"repeated google.protobuf.Value protobuf = 1;", "Google google = 3;"}, nil},
	{"acronyms are words", `{"podIP":1,"podIPs":1,"HTTPServer":1,"apiVersion":1,"last4":1}`, []string{
		`pod_ip = 1 [json_name = "podIP"]`, `pod_ips = 2 [json_name = "podIPs"]`, `http_server = 3`, "api_version = 4;",
		"last4 = 5;"}, nil},
	{"an object with a key that no field can have", `{"a":{"[x]":1},"b":[{"":1}],"c":{"k\u0000":1,"x":1.5}}`, []string{
		"google.protobuf.Value a = 1;", "repeated google.protobuf.Value b = 2;", "google.protobuf.Value c = 3;"},
		[]string{`reply.a: google.protobuf.Value: no field can have the key "[x]" (replies.jsonl:1)`,
			`reply.b[]: google.protobuf.Value: no field can have the key "" (replies.jsonl:1)`,
			`reply.c: google.protobuf.Value: no field can have the key "k\u0000" (replies.jsonl:1)`}},
	{"maps by ids, in one sample too", `{"n":{"1":1,"17":2},"u":{"123e4567-e89b-12d3-a456-426614174000":{"a":1}},
		"d":{"2024-01-01":1.5},"m":{"a@example.com":true},"v":{"v1.2.0-rc.1":"x","created":"y","1.0":"z"},
		"p":{"app.example.com/name":"x","tier":"y"},"h":{"deadbeef01":[1]},"3h":{"3h":1}}`, []string{
		"map<string, int64> n = 1;", "map<string, U> u = 2;", "map<string, double> d = 3;", "map<string, bool> m = 4;",
		"map<string, string> v = 5;", "map<string, string> p = 6;", "map<string, google.protobuf.ListValue> h = 7;",
		"Key3h key_3h = 8"}, nil},
	{"maps by keys that differ, and messages with optional keys", `{"map":{"web":1,"db":2},"opt":{"a":"x","b":"y"},
		"one":{"run":{"t":1}},"hdr":{"etag":"1","x-id":"2","date":"3"},"nul":{"a":null}}
		{"map":{"mail":3},"opt":{"a":"x"},"one":{"stop":{"x":"","y":true}},"hdr":{"date":"4","x-b":"5"},"nul":{"b":1}}`,
		[]string{"map<string, int64> map = 1;", "Opt opt = 2;", "One one = 3;", "map<string, string> hdr = 4;",
			"map<string, google.protobuf.Value> nul = 5;"}, nil},
	{"a map within a map or a list is a Struct", `{"a":{"1":{"2":3}},"l":[{"10":1},{"20":2}]}`, []string{
		"map<string, google.protobuf.Struct> a = 1;", "repeated google.protobuf.Struct l = 2;"},
		[]string{"reply.a{}: google.protobuf.Struct: its keys are ids", "reply.l[]: google.protobuf.Struct: its keys are ids"}},
	{"an array at the top", `[{"a":1}]
		[]`, []string{"repeated Items items = 1;", "int64 a = 1;"},
		[]string{"reply: an array at the top became the key items, which JSON then has too"}},
	{"a thousand keys of one type are data", "{\"m\":{" + thousand("1") + "}}", []string{"map<string, int64> m = 1;"}, nil},
	{"a thousand keys of two types are fields", "{\"m\":{\"s\":\"\"," + thousand("1") + "}}",
		[]string{"int64 kxxx = 1001;"}, nil},
	{"one sample of a hundred", strings.Repeat("{\"a\":\"x\"}\n", 56) + "{\"a\":1}\n" +
		strings.Repeat("{\"a\":\"x\"}\n", 43), []string{"// string in 99, number in 1\n  google.protobuf.Value a = 1;"},
		[]string{"reply.a: google.protobuf.Value: string in 99, number in 1 (replies.jsonl:57)"}},
	{"a deep tree ends in a Value", strings.Repeat(`{"a":[`, 60) + strings.Repeat("]}", 60), nil,
		[]string{"reply" + strings.Repeat(".a[]", 26) + ": google.protobuf.Value: below 25 messages"}},
	{"an empty object everywhere", "{}\n{}", []string{"message Reply {}", "message Request {}"}, nil},
	{"ten lines are told", `{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null,"g":null,"h":null,"i":null,"j":null,
		"k":null,"l":null}`, nil, append(slices.Collect(func(yield func(string) bool) {
		for _, key := range "abcdefghij" {
			yield(fmt.Sprintf("reply.%c: google.protobuf.Value: always null", key))
		}
	}), "and 2 more")},
}

func thousand(value string) string {
	var all []string
	for i := range 1000 {
		name := strings.NewReplacer("0", "x", "1", "a", "2", "b", "3", "c", "4", "d", "5", "e", "6", "f", "7", "g", "8", "h",
			"9", "i").Replace(fmt.Sprintf("%03d", 999-i))
		all = append(all, fmt.Sprintf("%q:%s", "k"+name, value))
	}
	return strings.Join(all, ",")
}

// values are JSON values as of a file with one after another.
func values(t *testing.T, text string) (all []sample) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	for d.More() {
		var raw json.RawMessage
		require.NoError(t, d.Decode(&raw))
		all = append(all, sample{raw, fmt.Sprintf("replies.jsonl:%d", len(all)+1)})
	}
	return all
}

func TestInferHard(t *testing.T) {
	for _, c := range hard {
		t.Run(c.why, func(t *testing.T) {
			s, err := infer(nil, values(t, c.replies))
			require.NoError(t, err)
			goesRound(t, s)
			for _, line := range c.text {
				require.Contains(t, string(s.text), line)
			}
			if c.told != nil {
				require.Equal(t, c.told, s.told)
			}
			for _, line := range strings.Split(string(s.text), "\n") {
				require.True(t, len(line) <= 100 || !strings.Contains(line, "// "), line)
			}
		})
	}
}

func TestInferRefuses(t *testing.T) {
	for why, c := range map[string]struct{ replies, err string }{ // replies are apart by |
		"no JSON":                {"{}|{\"a\":1,\n}", "r2.json: no JSON value, at byte 9: invalid character '}'"},
		"nothing":                {"", "r1.json: no JSON value, at byte 0: unexpected end"},
		"two values":             {"{} {}", "r1.json: no JSON value, at byte 4: invalid character '{' after"},
		"a scalar at the top":    {`{}|"abc"`, `r2.json: "abc" at the top: a message is an object or an array`},
		"null at the top":        {"null", "r1.json: null at the top"},
		"an array and an object": {"[]|[]|{}", "r3.json: an object at the top, and an array in r1.json"},
		"a key twice":            {`{"a":[{"b":1,"c":2,"b":1}]}`, "r1.json: reply.a[].b: this key is twice in one object"},
		"no UTF-8":               {"{\"a\":\"\xff\"}", "r1.json: not UTF-8"},
		"half of a pair":         {`{"a":"\ud800"}`, "r1.json: half of a surrogate pair"},
		"beyond a double":        {`{"a":{"b c":[1e999]}}`, `r1.json: reply.a."b c"[]: 1e999 is beyond a double`},
		"a key of an extension":  {`{"a":1}|{"[x]":1}`, `r2.json: reply."[x]": no field can have this key: rename it`},
		"an empty key":           {`{"":1}`, `r1.json: reply."": no field can have this key`},
		"a key that tags ignore": {`[{"a":1}]|{"a\n😀":1}`, `r2.json: an object at the top`},
	} {
		t.Run(why, func(t *testing.T) {
			var all []sample
			for i, v := range strings.Split(c.replies, "|") {
				all = append(all, sample{[]byte(v), fmt.Sprintf("r%d.json", i+1)})
			}
			_, err := infer(nil, all)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestInferKeys: no field has a key that encoding/json does not find in a tag.
func TestInferKeys(t *testing.T) {
	for _, key := range append(oddKeys, "-", "`", `"`, `\`, ",", "a,b", "😀", "\x7f", "हिन्दी", "été", "a'b") {
		tag := reflect.StructTag("json:" + strconv.Quote(key))
		one := reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: tag}})
		data, err := json.Marshal(reflect.Zero(one).Interface())
		require.NoError(t, err)
		found := string(data) == string(compact(map[string]int{key: 0}))
		require.Equal(t, found && key != "[x]", !unnamable(key), "%q: %s", key, data)
	}
}

var oddKeys = []string{"a", "b", "A", "a_b", "aB", "a.b", "a_b_2", "entry", "1", "17", "2024-01-01", "+1", "x-y", "", "[x]",
	"ключ", "日本", "message", "Reply", "google", "optional", "string", "true", "a b", "_", "__", "a_entry", "$", "items"}

// TestInferRandom: any samples have a .proto that reads them, or one line says why not.
func TestInferRandom(t *testing.T) {
	scalars := []string{"1", "-1", "0", "1.5", "1e3", "9007199254740993", "18446744073709551615", `"x"`, `""`, "true", "null"}
	var random *rand.Rand
	var value func(deep int) string
	object := func(deep int) string {
		var members []string
		for range random.IntN(5) {
			key := oddKeys[random.IntN(len(oddKeys))]
			members = append(members, fmt.Sprintf("%q:%s", key, value(deep+1)))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	value = func(deep int) string {
		switch n := random.IntN(8); {
		case n < 2 && deep < 6:
			return object(deep)
		case n < 4 && deep < 6:
			var list []string
			for range random.IntN(4) {
				list = append(list, value(deep+1))
			}
			return "[" + strings.Join(list, ",") + "]"
		}
		return scalars[random.IntN(len(scalars))]
	}
	made := 0
	for seed := range uint64(200) {
		random = rand.New(rand.NewPCG(seed, 1))
		var text string
		for range 1 + random.IntN(4) {
			text += object(0) + "\n"
		}
		s, err := infer(values(t, text), values(t, text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			continue
		}
		made++
		goesRound(t, s)
	}
	require.Greater(t, made, 100)
}

// TestInferGo: what protoc-gen-go makes of each .proto compiles.
func TestInferGo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles Go")
	}
	dir := t.TempDir()
	files, err := source(t.Context())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(string(files["go.mod"]), "NAME", "mine", 1))
	write(t, filepath.Join(dir, "go.sum"), string(files["go.sum"]))
	made := func(name string, requests, replies []sample) {
		s, err := infer(requests, replies)
		require.NoError(t, err)
		write(t, filepath.Join(dir, "made.proto"), string(s.text))
		all, err := compile(t.Context(), []string{"made.proto"}, []string{dir})
		require.NoError(t, err)
		p, err := plugin(all, "mine/"+name, ".made.Request", ".made.Reply")
		require.NoError(t, err)
		for _, f := range p.Files {
			if f.Generate {
				gengo.GenerateFile(p, f)
			}
		}
		require.Empty(t, p.Response().GetError())
		for _, f := range p.Response().GetFile() {
			path := filepath.Join(dir, strings.TrimPrefix(f.GetName(), "mine/"))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			write(t, path, f.GetContent())
		}
	}
	for _, path := range glob(t, "testdata", "samples", "*") {
		if requests := samplesIn(t, path, "request*.json"); filepath.Ext(path) == "" {
			made(filepath.Base(path), requests, samplesIn(t, path, "reply*.json"))
		}
	}
	for _, c := range hard {
		made(folder(c.why), nil, values(t, c.replies))
	}
	out, err := goIn(t, dir, nil, "build", "./...")
	require.NoError(t, err, out)
}
