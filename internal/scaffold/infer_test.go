package scaffold

import (
	"encoding/json"
	"fmt"
	"maps"
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
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/rpcbench/rpcbench/internal/own"
)

// inferred are the samples of a folder, and what infer makes of them.
func inferred(t *testing.T, folder string) *schema {
	t.Helper()
	all := map[string][]sample{}
	for _, side := range []string{"request", "reply"} {
		for _, path := range glob(t, folder, side+"*.json") {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			all[side] = append(all[side], sample{data, filepath.Base(path)})
		}
	}
	s, err := infer(all["request"], all["reply"])
	require.NoError(t, err)
	return s
}

// lines are samples apart by |.
func lines(text string) (all []sample) {
	for i, v := range strings.Split(text, "|") {
		all = append(all, sample{[]byte(v), fmt.Sprintf("r.jsonl:%d", i+1)})
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

// goesRound compiles the .proto, and reads the samples with its types, which have each value.
func goesRound(t *testing.T, s *schema) {
	t.Helper()
	messages := compiled(t, string(s.text))
	for name, side := range map[protoreflect.Name][]sample{"Request": s.requests, "Reply": s.replies} {
		for _, sample := range side {
			m := dynamicpb.NewMessage(messages.ByName(name))
			require.NoError(t, protojson.Unmarshal(sample.data, m), "%s\n%s\n%s", sample.name, sample.data, s.text)
			data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
			require.NoError(t, err)
			var want, got any
			require.NoError(t, json.Unmarshal(sample.data, &want))
			require.NoError(t, json.Unmarshal(data, &got))
			require.Equal(t, same(want), same(got), "%s\n%s", sample.data, s.text)
		}
	}
}

// same is a value without what protobuf's JSON does not tell apart: null, empty and absent, and numbers of 64 bits in
// strings.
func same(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = same(v[key])
		}
		if maps.DeleteFunc(v, func(_ string, inner any) bool { return inner == nil }); len(v) > 0 {
			return v
		}
		return nil
	case []any:
		for i := range v {
			v[i] = same(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			return x
		}
	}
	return v
}

// TestInferPublic: of ten public APIs the types are those of the .proto that a person wrote before.
func TestInferPublic(t *testing.T) {
	for _, path := range glob(t, "testdata", "samples", "*", "want.proto") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			s := inferred(t, filepath.Dir(path))
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

// hard samples, and parts of the .proto and what is told, or of the error.
var hard = []struct {
	why, replies string
	want         []string
}{
	{"whole numbers, and fractions of any form", `{"a":1,"b":1.0,"c":1e2,"d":7,"e":-0} |
		{"a":-9223372036854775808,"b":2,"c":3,"d":0.5,"e":0}`, []string{"int64 a = 1;", "double b = 2;", "double c = 3;",
		"double d = 4;", "int64 e = 5;"}},
	{"beyond 63 bits", `{"u":18446744073709551615,"n":9223372036854775808,"x":18446744073709551616,"z":9223372036854775808} |
		{"u":0,"n":-1,"x":1,"z":-0}`, []string{"uint64 u = 1;", "double n = 2;", "double x = 3;", "double z = 4;"}},
	{"absent, null, both", `{"a":1,"b":null,"c":null,"l":null,"o":null,"m":null} | {"a":2,"b":"x","l":[1],"o":{"x":1},
		"m":{"1":2}} | {"b":"y","c":"","l":[]}`, []string{"  // optional: absent in 1 of 3\n  optional int64 a = 1;",
		"  // optional: null in 1 of 3\n  optional string b = 2;",
		"  // optional: absent in 1 of 3, null in 1 of 3\n  optional string c = 3;",
		"  // null in 1 of 3\n  repeated int64 l = 4;", "  // optional: absent in 1 of 3, null in 1 of 3\n  O o = 5;",
		"  // absent in 1 of 3, null in 1 of 3\n  // a map: its keys are ids\n  map<string, int64> m = 6;"}},
	{"a Value keeps null", `{"v":1,"n":null} | {"v":null,"n":null} | {"v":"x"}`, []string{
		"  // number in 1, null in 1, string in 1\n  google.protobuf.Value v = 1;",
		"  // optional: absent in 1 of 3\n  // always null\n  optional google.protobuf.Value n = 2;"}},
	{"lists", `{"e":[],"n":[1,null],"l":[[1],[]],"o":[{},{}],"m":[{"a":1},{"b":2}]}`, []string{
		"  // always empty\n  repeated google.protobuf.Value e = 1;", "repeated google.protobuf.Value n = 2;",
		"  // a list of lists\n  repeated google.protobuf.ListValue l = 3;", "repeated google.protobuf.Value o = 4;",
		"repeated M m = 5;", "\nreply.e[]: google.protobuf.Value: always empty\n",
		"\nreply.n[]: google.protobuf.Value: number in 1, null in 1 (r.jsonl:1)\n",
		"\nreply.l[]: google.protobuf.ListValue: a list of lists\n"}},
	{"null is no list of Value", `{"a":[1,"x"],"b":[[]]} | {"a":null,"b":null}`, []string{
		"  // array in 1, null in 1\n  google.protobuf.Value a = 1;", "repeated google.protobuf.ListValue b = 2;",
		"\nreply.a: google.protobuf.Value: array in 1, null in 1 (r.jsonl:2)\nreply.b[]"}},
	{"keys that are no names", `{"@timestamp":1,"+1":2,"3h":3,"x-request-id":4,"ключ":5,"日本":6,"_id":7,"a b":8,"$ref":9}`,
		[]string{`int64 timestamp = 1 [json_name = "@timestamp"];`, `key_1 = 2 [json_name = "+1"];`,
			`key_3h = 3 [json_name = "3h"];`, `x_request_id = 4 [json_name = "x-request-id"];`,
			`key = 5 [json_name = "ключ"];`, `key_2 = 6 [json_name = "日本"];`, `id = 7 [json_name = "_id"];`,
			`a_b = 8 [json_name = "a b"];`, `ref = 9 [json_name = "$ref"];`}},
	{"names that would collide", `{"userID":1,"userId":"x","user_id":{"a":1},"service.name":2,"service_name":3,"ab":1,
		"a_b":2,"log":{"1":1},"log_entry":{"a":1}}`, []string{`int64 user_id_2 = 1 [json_name = "userID"];`,
		`string user_id_3 = 2 [json_name = "userId"];`, `UserId user_id = 3 [json_name = "user_id"];`,
		`service_name_2 = 4 [json_name = "service.name"];`, `service_name = 5 [json_name = "service_name"];`,
		`ab = 6;`, `a_b_2 = 7 [json_name = "a_b"];`, `LogEntry_ log_entry = 9`}},
	{"keys that mean something in a .proto or in Go", `{"message":{"string":1,"optional":2,"map":{"1":2}},"request":{"reply":
		{"request":{"made":1}}},"google":{"protobuf":[null]},"reset":1,"string":2,"protoMessage":3,"ProtoReflect":4,
		"descriptor":5,"package":6,"reserved":7,"true":8,"type":10,"func":11,"Samples":{"call":1},"get_a":1,"a":2}`,
		[]string{"repeated google.protobuf.Value protobuf = 1;", "Google google = 3;", "proto_reflect_2 = 7"}},
	{"acronyms are words", `{"podIP":1,"podIPs":1,"HTTPServer":1,"apiVersion":1,"last4":1}`, []string{" pod_ip = 1",
		" pod_ips = 2", " http_server = 3", " api_version = 4;", " last4 = 5;"}},
	{"keys that no field can have", `{"a":{"[x]":1},"b":[{"":1}],"c":{"k\u0000":1,"x":1.5}}`, []string{
		"google.protobuf.Value a = 1;", "repeated google.protobuf.Value b = 2;", "google.protobuf.Value c = 3;",
		"\nreply.a: google.protobuf.Value: no field can have the key \"[x]\" (r.jsonl:1)\n"}},
	{"ids are a map's keys, in one sample too", `{"n":{"1":1,"17":2},"u":{"123e4567-e89b-12d3-a456-426614174000":{"a":1}},
		"d":{"2024-01-01":1.5},"m":{"a@example.com":true},"v":{"v1.2.0-rc.1":"x","created":"y","1.0":"z"},
		"p":{"app.example.com/name":"x","tier":"y"},"h":{"deadbeef01":[1]},"3h":{"3h":1}}`, []string{"map<string, int64> n",
		"map<string, U> u", "map<string, double> d", "map<string, bool> m", "map<string, string> v",
		"map<string, string> p", "map<string, google.protobuf.ListValue> h", "Key3h key_3h"}},
	{"a map's keys differ, and a message's are optional", `{"map":{"web":1,"db":2},"opt":{"a":"x","b":"y"},
		"one":{"run":{"t":1}},"hdr":{"etag":"1","x-id":"2","date":"3"},"nul":{"a":null},"tag":{"type":"x","iban":"y"},
		"std":{"a":1,"b":2},"rec":{"a":1,"b":2}} | {"map":{"mail":3},"opt":{"a":"x"},"one":{"stop":{"x":"","y":true}},
		"hdr":{"date":"4","x-b":"5"},"nul":{"b":1},"tag":{"type":"x","number":"z"},"std":{"a":1,"b":2,"2024":3},
		"rec":{"b":1,"c":2}} | {"rec":{"a":1,"c":2}}`, []string{"map<string, int64> map", "Opt opt = 2;", "One one = 3;",
		"map<string, string> hdr", "map<string, google.protobuf.Value> nul", "Tag tag =", "Std std =", "Rec rec ="}},
	{"a map within a map or a list is a Struct", `{"a":{"1":{"2":3}},"l":[{"10":1},{"20":2}]}`, []string{
		"map<string, google.protobuf.Struct> a = 1;", "repeated google.protobuf.Struct l = 2;",
		"\nreply.a{}: google.protobuf.Struct: its keys are ids\nreply.l[]: google.protobuf.Struct: its keys are ids\n"}},
	{"an array at the top", `[{"a":1}] | []`, []string{"repeated Items items = 1;", "int64 a = 1;",
		"\nreply: an array at the top became the key items, which JSON then has too\n"}},
	{"a thousand keys of one type", `{"m":{` + numbered(1000, "1") + "}}", []string{"map<string, int64> m = 1;"}},
	{"eight objects of one shape, a hundred of any", `{"a":{` + numbered(8, `{"x":1}`) + `},"b":{` + numbered(7, `{"x":1}`) +
		`},"c":{` + numbered(99, `{"x#":1}`) + `},"d":{` + numbered(100, `{"x#":1}`) + "}}",
		[]string{"map<string, A> a", "B b = 2;", "C c = 3;", "map<string, D> d"}},
	{"a thousand keys of two types", `{"m":{"s":"",` + numbered(1000, "1") + "}}", []string{"int64 b999 = 1001;"}},
	{"one sample of a hundred", strings.Repeat(`{"a":"x"} | `, 56) + `{"a":1}` + strings.Repeat(` | {"a":"x"}`, 43),
		[]string{"  // string in 99, number in 1\n  google.protobuf.Value a = 1;",
			"\nreply.a: google.protobuf.Value: string in 99, number in 1 (r.jsonl:57)\n"}},
	{"a deep tree ends in a Value", strings.Repeat(`{"a":[`, 45) + strings.Repeat("]}", 45), []string{
		"\nreply" + strings.Repeat(".a[]", 26) + ": google.protobuf.Value: below 25 messages\n"}},
	{"an empty object everywhere", "{} | {}", []string{"message Reply {}", "message Request {}"}},
	{"ten lines are told", `{"a":null,"b":null,"c":[],"d":{},"e":null,"f":0,"g":null,"h":null,"i":null,"j":null,"k":null,
		"l":null,"m":null}`, []string{"reply.k: google.protobuf.Value: always null\nand 2 more\n"}},
	{"no JSON", `{} | {"a":1,}`, []string{"r.jsonl:2: no JSON value, at byte 9: invalid character '}'"}},
	{"nothing", "", []string{"r.jsonl:1: no JSON value, at byte 0: unexpected end"}},
	{"two values", "{} {}", []string{"r.jsonl:1: no JSON value, at byte 4: invalid character '{' after"}},
	{"a scalar at the top", `{} | "abc"`, []string{`r.jsonl:2: "abc" at the top: a message is an object or an array`}},
	{"null at the top", "null", []string{"r.jsonl:1: null at the top"}},
	{"an array and an object", "[] | {}", []string{"r.jsonl:2 has an object at the top, and r.jsonl:1 an array"}},
	{"a key twice", `{"a":[{"b":1,"c":2,"b":1}]}`, []string{"r.jsonl:1: reply.a[].b: this key is twice in one object"}},
	{"half of a pair", `{"a":"\ud800"}`, []string{"r.jsonl:1: half of a surrogate pair"}},
	{"beyond a double", `{"a":{"b c":[1e999]}}`, []string{`r.jsonl:1: reply.a."b c"[]: 1e999 is beyond a double`}},
	{"an extension", `{"a":1} | {"[x]":1}`, []string{`r.jsonl:2: reply."[x]": no field can have this key: rename it`}},
	{"an empty key", `{"":1}`, []string{`r.jsonl:1: reply."": no field can have this key`}},
}

// numbered are members of an object, whose # are numbers.
func numbered(n int, value string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(`"b#":`+value, "#", strconv.Itoa(i))
	}
	return strings.Join(all, ",")
}

func TestInferHard(t *testing.T) {
	for _, c := range hard {
		t.Run(c.why, func(t *testing.T) {
			s, err := infer(nil, lines(c.replies))
			said := fmt.Sprint(err)
			require.NotContains(t, said, "\n")
			if err == nil {
				goesRound(t, s)
				said = string(s.text) + "\n" + strings.Join(s.told, "\n") + "\n"
			}
			for _, part := range c.want {
				require.Contains(t, said, part)
			}
		})
	}
}

// TestInferNumbers: a field's number is none that protobuf reserves.
func TestInferNumbers(t *testing.T) {
	s, err := infer(nil, lines(`{"a":"",`+numbered(19_000, "1")+`}`))
	require.NoError(t, err)
	compiled(t, string(s.text))
}

var oddKeys = []string{"a", "b", "A", "a_b", "aB", "a.b", "a_b_2", "1", "17", "2024-01-01", "+1", "x-y", "", "[x]",
	"ключ", "日本", "message", "Reply", "google", "optional", "true", "a b", "_", "__", "a_entry", "$", "items"}

// TestInferKeys: encoding/json finds each key that a field may have in a tag.
func TestInferKeys(t *testing.T) {
	for _, key := range append(oddKeys, "-", "`", `"`, `\`, ",", "a,b", "😀", "\x7f", "हिन्दी", "été", "a'b") {
		tag := reflect.StructTag("json:" + strconv.Quote(key))
		one := reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: tag}})
		if !unnamable(key) {
			require.Equal(t, compact(map[string]int{key: 0}), compact(reflect.Zero(one).Interface()))
		}
	}
}

// TestInferRandom: any samples have a .proto that reads them, or one line says why not.
func TestInferRandom(t *testing.T) {
	scalars := strings.Fields(`1 -1 0 1.5 1e3 9007199254740993 18446744073709551615 "x" "" true null`)
	var value func(random *rand.Rand, deep int) string
	several := func(random *rand.Rand, deep int, key string) string {
		all := make([]string, random.IntN(5))
		keys := random.Perm(len(oddKeys))
		for i := range all {
			if key != "" {
				key = strconv.Quote(oddKeys[keys[i]]) + ":"
			}
			all[i] = key + value(random, deep+1)
		}
		return strings.Join(all, ",")
	}
	value = func(random *rand.Rand, deep int) string {
		switch n := random.IntN(8); {
		case deep == 0 || n < 2 && deep < 6:
			return "{" + several(random, deep, ":") + "}"
		case n < 4 && deep < 6:
			return "[" + several(random, deep, "") + "]"
		}
		return scalars[random.IntN(len(scalars))]
	}
	made := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		text := value(random, 0)
		for range random.IntN(4) {
			text += " | " + value(random, 0)
		}
		s, err := infer(lines(text), lines(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			continue
		}
		made++
		goesRound(t, s)
	}
	require.Greater(t, made, 100)
}

// TestInferModules: the modules of all folders and hard cases have their proof, as with a .proto of the user's.
func TestInferModules(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links a program")
	}
	all := map[string]*schema{}
	for _, path := range glob(t, "testdata", "samples", "*", "want.proto") {
		all[filepath.Base(filepath.Dir(path))] = inferred(t, filepath.Dir(path))
	}
	for _, c := range hard {
		if s, err := infer(nil, lines(c.replies)); err == nil {
			all[folder(c.why)] = s
		}
	}
	dir := t.TempDir()
	for name, s := range all {
		in := t.TempDir()
		write(t, filepath.Join(in, name+".proto"), strings.Replace(string(s.text), "package made;", "package "+name+";", 1))
		m := own.Messages{Protos: []string{name + ".proto"}, Roots: []string{in}, Call: name + ".Samples/Call",
			Reply: filepath.Join(in, "replies")}
		pairs := len(s.replies)
		if len(s.requests) > 0 {
			m.Request, pairs = filepath.Join(in, "requests"), min(pairs, len(s.requests))
		}
		for name, side := range map[string][]sample{"requests": s.requests, "replies": s.replies} {
			text := ""
			for _, s := range side[:min(pairs, len(side))] {
				text += string(s.data) + "\n"
			}
			write(t, filepath.Join(in, name), text)
		}
		_, err := (&call{m}).module(t.Context(), filepath.Join(dir, name), "mine/"+name)
		require.NoError(t, err, name)
	}
	for name, said := range proofs(t, dir, slices.Collect(maps.Keys(all))) {
		require.Empty(t, said.Err, name)
	}
}
