package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/rpcbench/rpcbench/internal/own"
	_ "github.com/rpcbench/rpcbench/proto/user/v1" // for TestProtoset
)

const header = `syntax = "proto3";
package NAME.v1;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/rpc/status.proto";
import "google/rpc/code.proto";
import "buf/validate/validate.proto";
import "google/api/annotations.proto";
service Orders {
  rpc Get(Request) returns (Reply) { option (google.api.http) = { get: "/v1/orders/{id}" }; }
  rpc Watch(Request) returns (stream Reply);
  rpc Drop(Request) returns (google.protobuf.Empty); rpc Fail(google.protobuf.Empty) returns (google.rpc.Status);
  rpc Pack(Request) returns (google.protobuf.Any);
}
service Values {
  rpc Name(google.protobuf.StringValue) returns (google.protobuf.StringValue);
  rpc Count(google.protobuf.UInt64Value) returns (google.protobuf.Int64Value);
  rpc Sum(google.protobuf.Int32Value) returns (google.protobuf.DoubleValue);
  rpc Raw(google.protobuf.BytesValue) returns (google.protobuf.BytesValue);
  rpc Yes(google.protobuf.DoubleValue) returns (google.protobuf.BoolValue);
  rpc When(google.protobuf.Timestamp) returns (google.protobuf.Duration);
  rpc Mask(google.protobuf.Duration) returns (google.protobuf.FieldMask);
  rpc Free(google.protobuf.FieldMask) returns (google.protobuf.Struct);
  rpc List(google.protobuf.Struct) returns (google.protobuf.ListValue);
  rpc Each(google.protobuf.Value) returns (google.protobuf.Value);
}
message Request { string id = 1 [(buf.validate.field).string.min_len = 1]; repeated string names = 2; double at = 3; }
`

// given is what a test writes: a reply's fields, samples, the first word of the package, which is shop if empty, and
// the method of Orders, or with its service, which is Get.
type given struct{ fields, request, reply, name, method string }

// in writes the files to a folder, and returns what the command line says of them.
func (g given) in(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	g.name = cmp.Or(g.name, "shop")
	text := strings.Replace(header, "NAME", g.name, 1)
	if strings.Contains(g.fields, "message Reply {") {
		text += g.fields
	} else {
		text += "message Reply {\n" + g.fields + "\n}\n"
	}
	if g.request == "" {
		g.request = `{"id":"a-1001-b"}`
	}
	for name, data := range map[string]string{g.name + ".proto": text, "request.json": g.request, "reply.json": g.reply} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	return []string{"-proto", g.name + ".proto", "-I", dir, "-call",
		g.name + ".v1." + strings.Replace("Orders/"+cmp.Or(g.method, "Get"), "Orders/Values/", "Values/", 1),
		"-request", filepath.Join(dir, "request.json"), "-reply", filepath.Join(dir, "reply.json")}
}

// publicModules are the folders of the modules that testdata/public names, by the names of their folders there. The
// test is skipped where they are not in the module cache: see the README there.
func publicModules(t *testing.T, names ...string) (dirs []string) {
	t.Helper()
	for _, name := range names {
		dir, err := goIn(t, filepath.Join("testdata", "public"), nil, "list", "-m", "-f", "{{.Dir}}", name)
		if dir = strings.TrimSpace(dir); err != nil || dir == "" {
			t.Skipf("%s is not in the module cache: go -C internal/scaffold/testdata/public mod download", name)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// TestPublicProtos: calls of three APIs that nobody here wrote.
func TestPublicProtos(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links programs")
	}
	dirs := publicModules(t, "cel.dev/expr", "go.etcd.io/etcd/api/v3", "k8s.io/cri-api")
	links := t.TempDir() // etcd's files import each other below etcd/api
	require.NoError(t, os.Mkdir(filepath.Join(links, "etcd"), 0o700))
	require.NoError(t, os.Symlink(dirs[1], filepath.Join(links, "etcd", "api")))
	var folders []string
	dir := t.TempDir()
	for _, c := range []struct{ why, folder, root, proto, call string }{
		{"maps, oneofs and well-known types", "cel", filepath.Join(dirs[0], "proto"),
			"cel/expr/conformance/conformance_service.proto", "cel.expr.conformance.ConformanceService/Check"},
		{"deep nesting, custom options", "etcd", links, "etcd/api/etcdserverpb/rpc.proto", "etcdserverpb.KV/Txn"},
		{"large", "cri", filepath.Join(dirs[2], "pkg", "apis", "runtime", "v1"), "api.proto",
			"runtime.v1.RuntimeService/ListContainers"},
	} {
		t.Run(c.why, func(t *testing.T) {
			samples := filepath.Join("testdata", "public", c.folder)
			args := []string{"-proto", c.proto, "-I", c.root, "-call", c.call,
				"-request", filepath.Join(samples, "request.json"), "-reply", filepath.Join(samples, "reply.json")}
			m, err := described(args).module(t.Context(), filepath.Join(dir, c.folder), "mine/"+c.folder)
			require.NoError(t, err)
			require.Empty(t, m.Lossy)
			folders = append(folders, c.folder)
			if *long {
				made, _ := initialized(t, args...)
				whole(t, made)
			}
		})
	}
	formatted(t, dir)
	for folder, said := range proofs(t, dir, folders) {
		require.Empty(t, said.Err, folder)
		require.Empty(t, said.Told, folder)
	}
}

var long = flag.Bool("long", false, "the suite on every stack of every module, and a measurement to its end")

// whole checks a module that init made as its owner would: offline, and with its own tests; but for -long, those of a
// stack of each family of types.
func whole(t *testing.T, dir string) {
	t.Helper()
	tests := "TestSamples|TestConformance/^(httpjson|grpcprotobuf)$"
	if *long {
		tests = "."
	}
	formatted(t, dir)
	said, err := goIn(t, dir, nil, "test", "-trimpath", "-vet=all", "-short", "-count=1", "-v", "-run="+tests, "./...")
	require.NoError(t, err, said)
	for _, stack := range []string{"httpjson", "grpcprotobuf"} {
		require.Contains(t, said, "--- PASS: TestConformance/"+stack+"/clear/traffic", "the module's tests run the suite")
	}
}

func formatted(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "gofmt", "-l", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "gofmt")
}

// TestSizes: without a .proto, structured data of the sizes goes round. TestRun proves such a module.
func TestSizes(t *testing.T) {
	for _, size := range []int{80, 100, 150, 500, 2000, 100_000} {
		v, err := inventedValue(size)
		require.NoError(t, err)
		require.Len(t, compact(v), size)
	}
	for _, size := range []int{10, 2 << 20} {
		_, err := inventedValue(size)
		require.Error(t, err)
	}
	dir := t.TempDir()
	m, err := (&call{own.Messages{RequestSize: "100B", ReplySize: "2kB"}}).module(t.Context(), dir, "own")
	require.NoError(t, err)
	for name, size := range map[string]int{"requests": 100, "replies": 2000} {
		data, err := os.ReadFile(filepath.Join(dir, "samples", name+".jsonl"))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(data), "\n")
		require.Len(t, first, size, name)
		require.Equal(t, size == 2000, strings.Count(first, `"city":`) > 5, "%s: a large one is structured: %s", name, first)
	}
	require.Equal(t, "made.Data/Get", m.Method)
	require.Equal(t, "structured data of 100 B and 2 kB, made", m.Made)
}

func glob(t *testing.T, pattern ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	require.NoError(t, err)
	return found
}

func goIn(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS="), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func contains(t *testing.T, path string, lines ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	plain := strings.Join(strings.Fields(string(text)), " ")
	for _, line := range lines {
		require.Contains(t, plain, strings.Join(strings.Fields(line), " "), path)
	}
}

// TestForms: plain structs have the names and forms of the samples' JSON, and what protobuf makes of them is the same.
// The module proves that as it is made.
func TestForms(t *testing.T) {
	t.Parallel()
	dir, told, before := t.TempDir(), map[string][]string{}, map[string][]string{} // before the proof
	for _, c := range []struct {
		why   string
		given given
		lines []string // of the plain structs
		lossy []string
	}{
		{"scalars as protobuf's JSON writes them", given{fields: `string id = 1; int64 total_cents = 2; uint32 count = 3;
			double price = 4; float weight = 5; bool paid = 6; bytes raw = 7; sint32 delta = 8; fixed64 big = 9;
			sfixed32 small = 10;`,
			reply: `{"id":"x","totalCents":"129900","count":7,"price":19.99,"weight":1.25,"paid":true,"raw":"aGVsbG8=",
				"delta":-17,"big":"18446744073709551615","small":-5}`},
			[]string{"TotalCents int64 `json:\"totalCents,string\"`", "Weight float32 `json:\"weight\"`",
				"Raw []byte `json:\"raw\"`", "Big uint64 `json:\"big,string\"`"}, nil},
		{"int64 as number, and snake_case, for a field that no sample has too",
			given{fields: `int64 total_cents = 1; string not_seen = 2; repeated int64 all_numbers = 3;`,
				reply: `{"total_cents":129900,"all_numbers":[1,2]}`},
			[]string{"TotalCents int64 `json:\"total_cents\"`", "NotSeen string `json:\"not_seen,omitempty\"`",
				"AllNumbers []int64"}, nil},
		{"numbers as text in lists, maps and wrappers", given{fields: `repeated int64 list = 1; map<string, uint64> map = 2;
			repeated google.protobuf.Int64Value wrapped = 3; google.protobuf.UInt64Value one = 4;`,
			reply: `{"list":["1","-23"],"map":{"a":"9"},"wrapped":["0","5"],"one":"0"}`},
			[]string{"List []string", "Map map[string]string", "Wrapped []string",
				"One *uint64 `json:\"one,string\"`"}, nil},
		{"enums by name", given{fields: `enum State { NEW = 0; PAID = 1; } State state = 1; repeated State past = 2;
			map<string, State> by = 3; optional State maybe = 4;`,
			reply: `{"state":"PAID","past":["NEW","PAID"],"by":{"x":"PAID"},"maybe":"NEW"}`},
			[]string{"State string", "Past []string", "By map[string]string", "Maybe *string"}, nil},
		{"enums by number", given{fields: `enum State { NEW = 0; PAID = 1; } State state = 1; repeated State past = 2;
			map<string, State> by = 3; optional State maybe = 4; oneof o { State arm = 5; }`,
			reply: `{"state":1,"past":[0,1],"by":{"x":1},"maybe":0,"arm":0}`},
			[]string{"State int32", "Past []int32", "By map[string]int32", "Maybe *int32", "Arm *int32"}, nil},
		{"presence: a zero is there", given{fields: `optional string note = 1; optional int64 n = 2; optional bool yes = 3;
			optional bytes raw = 4; optional double x = 5;`,
			reply: `{"note":"","n":"0","yes":false,"raw":"","x":0}`}, []string{"Note *string",
			"N *int64 `json:\"n,string\"`", "Raw *[]byte"}, nil},
		{"oneofs, a pointer for each arm", given{fields: `oneof pay { string card = 1; int64 cash = 2; bytes token = 3;
			Nested other = 4; google.protobuf.Empty free = 5; google.protobuf.Timestamp later = 6;
			google.protobuf.StringValue text = 7; } message Nested { oneof pay { string card = 1; int32 points = 2; } }`,
			reply: `{"other":{"points":0}}`}, []string{"Card *string", "Token *[]byte", "Other *Reply_Nested",
			"Free *struct{}", "Later *time.Time", "Text *string"}, nil},
		{"times whose text survives", given{fields: `google.protobuf.Timestamp at = 1;
			repeated google.protobuf.Timestamp all = 2;`, reply: `{"at":"2026-01-02T03:04:05.123456Z",
			"all":["2026-01-02T03:04:05Z"]}`},
			[]string{"At *time.Time", "All []time.Time"}, nil},
		{"times whose text does not survive, as protobuf writes them",
			given{fields: `google.protobuf.Timestamp at = 1; repeated google.protobuf.Timestamp all = 2;`,
				reply: `{"at":"2026-01-02T03:04:05.100Z","all":["2026-01-02T03:04:05.500Z"]}`},
			[]string{"At *string", "All []string"}, nil},
		{"times with an offset", given{fields: `google.protobuf.Timestamp at = 1;`,
			reply: `{"at":"2026-01-02T03:04:05+02:00"}`}, []string{"At *time.Time"}, nil},
		{"durations, masks, empty", given{fields: `google.protobuf.Duration d = 1; repeated google.protobuf.Duration ds = 2;
			google.protobuf.FieldMask m = 3; google.protobuf.Empty e = 4; google.protobuf.Duration odd = 5;`,
			reply: `{"d":"3.500s","ds":["1s"],"m":"id,parentId","e":{},"odd":"1.50s"}`}, []string{"D *string", "M *string",
			"E *struct{}"}, nil},
		{"wrappers, zero and absent", given{fields: `google.protobuf.StringValue a = 1; google.protobuf.BoolValue b = 2;
			google.protobuf.BytesValue c = 3; google.protobuf.DoubleValue d = 4; google.protobuf.Int32Value e = 5;
			google.protobuf.StringValue f = 6; repeated google.protobuf.BytesValue g = 7;`,
			reply: `{"a":"","b":false,"c":"","d":0,"e":0,"g":["AA=="]}`}, []string{"A *string", "C *[]byte", "F *string",
			"G [][]byte"}, nil},
		{"structs", given{fields: `google.protobuf.Struct s = 1; google.protobuf.Value v = 2;
			google.protobuf.ListValue l = 3; repeated google.protobuf.Value vs = 4;`,
			reply: `{"s":{"k":[1,"two",null,{"x":true}]},"v":[1.5],"l":["a"],"vs":[null,"b",{"c":1}]}`},
			[]string{"S any", "V any", "L any", "Vs []any"}, nil},
		{"nulls that are values", given{fields: `repeated Value row = 1; google.protobuf.NullValue plain = 2;
			optional google.protobuf.NullValue maybe = 3; repeated google.protobuf.NullValue all = 4;
			map<string, google.protobuf.NullValue> by = 5; message Value { oneof v { google.protobuf.NullValue none = 1;
			string text = 2; } Value inner = 3; }`,
			reply: `{"row":[{"text":"abcdef"},{"none":null},{},{"inner":{"none":null}}],"plain":null,"maybe":null,
				"all":[null,null],"by":{"a":null}}`},
			[]string{"None nullValue `json:\"none,omitempty\"`", "Maybe nullValue `json:\"maybe\"`", "All []nullValue",
				"By map[string]nullValue"}, nil},
		{"a null that others leave out", given{fields: `repeated N n = 1; message N { google.protobuf.Value v = 20;
			string s = 2; }`, reply: `{"n":[{"v":null,"s":"a"},{"s":"b"},{"v":[null],"s":"c"}]}`}, nil,
			[]string{"reply.n[].v: null is left out, as others leave the key out: 9 bytes less of JSON, and 5 of protobuf"}},
		{"nulls by name and number", given{fields: `google.protobuf.NullValue name = 1; google.protobuf.NullValue number = 2;
			oneof o { google.protobuf.NullValue arm = 3; string id = 4; }`,
			reply:   `{"name":"NULL_VALUE","number":0,"arm":"NULL_VALUE"} {"id":"abcdef"}`,
			request: `{"id":"a"} {"id":"b"}`}, []string{"Arm nullValue `json:\"arm,omitempty\"`"}, []string{
			`reply.arm: "NULL_VALUE" in the sample, null as a plain struct`,
			`reply.name: "NULL_VALUE" in the sample, null as a plain struct`,
			"reply.number: 0 in the sample, null as a plain struct"}},
		{"what is empty, null or zero without presence", given{fields: `string a = 1; repeated string b = 2;
			map<string, string> c = 3; bytes d = 4; google.protobuf.Struct e = 5; Nested f = 6; repeated Nested g = 7;
			message Nested { int32 n = 1; }`,
			reply: `{"a":null,"b":[],"c":{},"d":"","e":{},"f":null,"g":[{"n":0},{}]}`}, nil,
			[]string{"reply.g[].n: 0 in the sample, nothing as a plain struct"}},
		{"a zero in every sample stays", given{fields: `string a = 1; int64 b = 2; bool c = 3; E d = 4;
			enum E { NONE = 0; }`, reply: `{"a":"","b":"0","c":false,"d":"NONE"}`},
			[]string{"A string `json:\"a\"`", "B int64 `json:\"b,string\"`", "D string `json:\"d\"`"}, nil},
		{"more digits than there are", given{fields: `float f = 1; double d = 2; google.protobuf.Struct s = 3;`,
			reply: `{"f":0.123456789,"d":9007199254740993,"s":{"x":12345678901234567890}}`}, nil,
			[]string{"reply.d: 9007199254740993 in the sample, 9007199254740992 as a plain struct",
				"reply.f: 0.123456789 in the sample, 0.12345679 as a plain struct",
				"reply.s.x: 12345678901234567890 in the sample, 12345678901234567000 as a plain struct"}},
		{"other spellings of numbers", given{fields: `double d = 1; float f = 2; double e = 3;`,
			reply: `{"d":1.50,"f":1e3,"e":1E-7}`}, nil, nil},
		{"NaN and Infinity", given{fields: `double d = 1; repeated float f = 2; google.protobuf.DoubleValue w = 3;
			map<string, double> m = 4; optional double o = 5; oneof one { float arm = 6; }`,
			request: `{"at":"NaN"} {"at":"Infinity"} {"at":-1.5}`, reply: strings.Repeat(`{"d":"NaN","f":["NaN","-Infinity","1.5"],
				"w":"NaN","m":{"a":"Infinity"},"o":"NaN","arm":"NaN"}`, 3)},
			[]string{"D string", "F []string", "W *string", "M map[string]string", "O *string", "Arm *string"},
			[]string{"request.at: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here"}},
		{"NaN beside numbers", given{fields: `repeated double l = 1; repeated Point p = 2; message Point { float x = 1;
			google.protobuf.FloatValue y = 2; optional float z = 3; }`, reply: `{"l":[1.5,"NaN",-0,1e-7],
			"p":[{"x":1.25,"y":"NaN"},{"x":"NaN","y":0,"z":0},{"z":"Infinity"}]}`},
			[]string{"L []any", "X any `json:\"x,omitempty\"`", "Y any", "Z any"}, []string{
				"reply.l[]: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here",
				"reply.p[].x: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here",
				"reply.p[].y: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here",
				"reply.p[].z: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here"}},
		{"integers as fractions and with exponents", given{fields: `int32 a = 1; repeated int64 b = 2; E c = 3; enum E { Z = 0;
			ONE = 1; } google.protobuf.UInt64Value d = 4; map<string, fixed32> e = 5; uint32 f = 6; int64 g = 7;`,
			reply: `{"a":2.0,"b":["1e3","-2.0"],"c":1.0,"d":"1.8e1","e":{"x":4e9},"f":-0,"g":9007199254740993.0}`},
			[]string{"A int32 `json:\"a\"`", "G int64 `json:\"g\"`"}, []string{
				"reply.a: 2.0 in the sample, 2 as a plain struct",
				`reply.b[]: "1e3" in the sample, "1000" as a plain struct`,
				"reply.c: 1.0 in the sample, 1 as a plain struct",
				`reply.d: "1.8e1" in the sample, "18" as a plain struct`,
				"reply.e: 4e9 in the sample, 4000000000 as a plain struct",
				"reply.f: -0 in the sample, 0 as a plain struct",
				"reply.g: 9007199254740993.0 in the sample, 9007199254740993 as a plain struct"}},
		{"a negative zero as text", given{fields: `int64 a = 1; sint32 b = 2; repeated int64 c = 3; double d = 4;`,
			reply: `{"a":"-0","b":-0,"c":["5","-0","1e2"],"d":-0}`}, nil, []string{
			`reply.a: "-0" in the sample, "0" as a plain struct`, "reply.b: -0 in the sample, 0 as a plain struct",
			`reply.c[]: "-0" in the sample, "0" as a plain struct`}},
		{"numbers that a double has not", given{fields: `double d = 1; repeated double l = 2;`,
			reply: `{"d":1e-400,"l":[0.1234567890123456789012,0.10,1E-7,0.30000000000000004,100e20]}`}, nil,
			[]string{"reply.d: 1e-400 in the sample, 0 as a plain struct",
				"reply.l[]: 0.1234567890123456789012 in the sample, 0.12345678901234568 as a plain struct"}},
		{"bytes that look like hex", given{fields: `bytes id = 1; repeated bytes ids = 2; bytes raw = 3; bytes zero = 4;`,
			reply: `{"id":"5b8efff798038103d269b633813fc60c","ids":["EEE19B7EC3C1B174"],"raw":"deadBEEF12==","zero":"AAAAAAAA"}`}, nil,
			[]string{"reply.id: looks like hex, and is read as base64, as protobuf's JSON has bytes: convert it if it is hex",
				"reply.ids[]: looks like hex, and is read as base64, as protobuf's JSON has bytes: convert it if it is hex"}},
		{"a reply of a message that exists already", given{reply: "{}", method: "Drop"}, []string{"type Empty struct"}, nil},
		{"both of messages that exist already", given{request: "{}", reply: `{"code":5,"message":"abcdef"}`, method: "Fail"},
			[]string{"Message string"}, nil},
		{"text in place of messages", given{method: "Values/Name", request: `"a-1001-b"`, reply: `"Größe"`},
			[]string{"type StringValue = string"}, nil},
		{"numbers as text in place of messages", given{method: "Values/Count", request: `"18446744073709551615" "-0"`,
			reply: `"-17" "1e2"`}, []string{"type UInt64Value = string", "type Int64Value = string"},
			[]string{`request: "-0" in the sample, "0" as a plain struct`, `reply: "1e2" in the sample, "100" as a plain struct`}},
		{"numbers in place of messages", given{method: "Values/Sum", request: `4711 5.0`, reply: `1.50 -1e-7`},
			[]string{"type Int32Value = int32", "type DoubleValue = float64"},
			[]string{"request: 5.0 in the sample, 5 as a plain struct"}},
		{"no number in place of a message", given{method: "Values/Sum", request: `1 2`, reply: `"NaN" 1.5`},
			[]string{"type DoubleValue = any"},
			[]string{"reply: NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here"}},
		{"bytes in place of messages", given{method: "Values/Raw", request: `"aGVsbG8="`, reply: `"aGVsbG8="`},
			[]string{"type BytesValue = []byte"}, nil},
		{"a truth in place of a message", given{method: "Values/Yes", request: `1.5 0 2.25`, reply: `true false true`},
			[]string{"type DoubleValue = float64", "type BoolValue = bool"}, nil},
		{"times in place of messages", given{method: "Values/When", request: `"2026-01-02T03:04:05Z" "2026-01-02T05:04:05.5+02:00"`,
			reply: `"1.500s" "2s"`}, []string{"type Timestamp = time.Time", "type Duration = string"}, nil},
		{"a time that does not survive, in place of a message", given{method: "Values/When",
			request: `"2026-01-02T03:04:05.100Z" "2026-01-02T03:04:06Z"`, reply: `"1s" "2s"`},
			[]string{"type Timestamp = string"}, nil},
		{"masks in place of messages", given{method: "Values/Mask", request: `"1s" "2s"`, reply: `"id,parentId" "id"`},
			[]string{"type FieldMask = string"}, nil},
		{"an object of any fields in place of a message", given{method: "Values/Free", request: `"a,b" "c"`,
			reply: `{"a":[1,null,{"b":"c"}]} {}`}, []string{"type FieldMask = string", "type Struct = any"}, nil},
		{"lists in place of messages", given{method: "Values/List", request: `{"a":1} {"b":[]}`, reply: `[1,{"a":null}] []`},
			[]string{"type Struct = any", "type ListValue = any"}, nil},
		{"any values in place of messages", given{method: "Values/Each", request: `"x" {"b":[]} null`,
			reply: `null true "z"`}, []string{"type Value = any"}, nil},
		{"an Any that no sample has", given{fields: `google.protobuf.Any any = 1; string id = 2;`, reply: `{"id":"x"}`},
			nil, nil},
		{"text that is not ASCII", given{fields: `string a = 1; map<string, string> b = 2;`,
			reply: `{"a":"Größe „<&>“ \u2028 日本","b":{"ключ.x":"değer"}}`}, nil, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			row := folder(c.why)
			c.given.name = row
			out, args := filepath.Join(dir, row), c.given.in(t)
			m, err := described(args).module(t.Context(), out, "mine/"+row)
			require.NoError(t, err)
			contains(t, filepath.Join(out, "plain_gen.go"), c.lines...)
			require.Subset(t, c.lossy, m.Lossy)
			told[row], before[row] = c.lossy, m.Lossy
		})
	}
	if testing.Short() {
		t.Skip("links a program")
	}
	formatted(t, dir)
	for row, said := range proofs(t, dir, slices.Collect(maps.Keys(told))) {
		require.Empty(t, said.Err, row)
		require.Equal(t, told[row], append(before[row], said.Told...), row)
	}
	out, err := goIn(t, dir, nil, "vet", "-trimpath", "./...")
	require.NoError(t, err, out)
}

// said is what a proof says.
type said struct {
	Err  string
	Told []string

	Out, Errs string // what the module's program prints when it is told to prove, and its exit status
	Status    int
}

// requireProgram: a module's program says what its proof does.
func (s said) requireProgram(t *testing.T, name string) {
	t.Helper()
	if s.Err == "" {
		require.Zero(t, s.Status, "exit status of the program of %s, whose proof is well: %s", name, s.Errs)
		require.Equal(t, strings.Join(append(s.Told, ""), "\n"), s.Out, "what the program of %s tells", name)
		return
	}
	require.Positive(t, s.Status, "exit status of the program of %s, whose proof fails: %s", name, s.Err)
	require.Empty(t, s.Out, "what the program of %s tells of a proof that fails: %s", name, s.Err)
	require.NotEmpty(t, s.Errs, "what the program of %s says to a proof that fails: %s", name, s.Err)
}

const proves = "RPCBENCH_TEST_PROVES" // the module whose program is asked

// proofs makes dir a module, and one program of the folders below, which were modules. It returns what the proof of
// each says.
func proofs(t *testing.T, dir string, folders []string) (all map[string]said) {
	t.Helper()
	files, err := source(t.Context())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(string(files["go.mod"]), "NAME", "mine", 1))
	write(t, filepath.Join(dir, "go.sum"), string(files["go.sum"]))
	var imports, calls, mains string
	for _, name := range slices.Sorted(slices.Values(folders)) { // so that the program is the same each time
		imports += fmt.Sprintf("%q\n", "mine/"+name)
		calls += fmt.Sprintf("%q: %[1]s.Prove,\n", name)
		mains += fmt.Sprintf("%q: %[1]s.MainOfTheModule,\n", name)
		for _, path := range glob(t, dir, name, "*.go") {
			edit(t, path, "package main\n", "package "+name+"\n")
		}
		write(t, filepath.Join(dir, name, "export.go"), "package "+name+`
			func Prove() ([]string, error) {
				s, err := readSamples()
				if err != nil {
					return nil, err
				}
				return s.prove()
			}`)
		// Without its stacks, which take any types, a folder compiles in a third of the time.
		method := filepath.Join(dir, name, "method.go")
		data, err := os.ReadFile(method)
		require.NoError(t, err)
		text := regexp.MustCompile(`(?s)func \(s samples\) stacks.*?\n}\n`).ReplaceAllString(string(data), "")
		write(t, method, regexp.MustCompile(`\t"github.com/rpcbench/rpcbench/.*\n`).ReplaceAllString(text, ""))
		edit(t, filepath.Join(dir, name, "main.go"), "func main() {", "func MainOfTheModule() {",
			"cli.Main(s.stacks())", "panic(s)", "\t\"github.com/rpcbench/rpcbench/cli\"\n", "")
		for _, file := range []string{"bench_test.go", "go.mod", "go.sum"} {
			require.NoError(t, os.Remove(filepath.Join(dir, name, file)))
		}
	}
	write(t, filepath.Join(dir, "main.go"), proving(imports, calls, mains))
	out, err := goIn(t, dir, nil, "run", "-trimpath", ".") // which finds in the cache what is as it was
	require.NoError(t, err, out)
	require.NoError(t, json.Unmarshal([]byte(out), &all), out)
	for name, of := range all {
		of.requireProgram(t, name)
	}
	return all
}

// proving is a program that proves all, in its own process, and by the program of each.
func proving(imports, calls, mains string) string {
	return `package main
		import ("encoding/json"; "fmt"; "os"; "os/exec"; "strings"
		` + imports + `)
		func main() {
			if main := map[string]func(){` + mains + `}[os.Getenv("` + proves + `")]; main != nil {
				main()
				return
			}
			type said struct { Err string; Told []string; Out, Errs string; Status int }
			all := map[string]said{}
			for name, prove := range map[string]func() ([]string, error){` + calls + `} {
				func() {
					defer func() {
						if p := recover(); p != nil {
							all[name] = said{Err: fmt.Sprint("panic: ", p)}
						}
					}()
					told, err := prove()
					if err != nil {
						all[name] = said{Err: err.Error()}
						return
					}
					all[name] = said{Told: told}
				}()
			}
			for name, of := range all {
				cmd := exec.Command(os.Args[0], "prove")
				var out, errs strings.Builder
				cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "` + proves + `="+name), &out, &errs
				_ = cmd.Run()
				of.Out, of.Errs, of.Status = out.String(), errs.String(), cmd.ProcessState.ExitCode()
				all[name] = of
			}
			_ = json.NewEncoder(os.Stdout).Encode(all)
		}`
}

// folder is a row's reason as the name of a package, which the go command's errors begin with.
func folder(why string) string {
	return strings.ToLower(regexp.MustCompile("[^a-zA-Z0-9]").ReplaceAllString(why, ""))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// edit replaces texts in a file that has them, in turn: what was, and what is.
func edit(t *testing.T, path string, pairs ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, text, pairs[i], path)
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	write(t, path, text)
}

// TestBadInput: one line that says what is wrong, and nothing is left behind.
func TestBadInput(t *testing.T) {
	order := given{fields: "string id = 1; int32 n = 2;", reply: `{"id":"x"}`}
	for _, c := range []struct {
		why   string
		given given
		args  []string // that come after, or replace
		says  string
		usage bool
	}{
		{"a .proto that does not compile", given{fields: "strin id = 1;", reply: "{}"}, nil,
			"shop.proto:34:1: field shop.v1.Reply.id: unknown type strin", false},
		{"a syntax error", given{fields: "string id  1;", reply: "{}"}, nil, "shop.proto:34:12: syntax error", false},
		{"an import that is needed", given{fields: "google.type.Money price = 1;", reply: "{}"}, nil,
			"unknown type google.type.Money (not below -I: buf/validate/validate.proto, google/api/annotations.proto)",
			false},
		{"an edition of protoc alone", given{fields: "}\nexport message Reply {\nedition = \"2024\";", reply: "{}"}, nil,
			"shop.proto: edition 2024 is not read here: make a set by protoc -o x.binpb --include_imports, and give -protoset",
			false},
		{"no such file", order, []string{"-proto", "none.proto"}, "none.proto", false},
		{"no such file, before samples that aren't there", order, []string{"-proto", "none.proto", "-reply", "none.json"},
			"none.proto", false},
		{"no such method", order, []string{"-call", "shop.v1.Orders/Put"},
			`-call "shop.v1.Orders/Put": no such unary method: the files have shop.v1.Orders/Drop, ` +
				"shop.v1.Orders/Fail, shop.v1.Orders/Get, shop.v1.Orders/Pack, shop.v1.Values/Count, ", false},
		{"a method that streams", order, []string{"-call", "shop.v1.Orders/Watch"},
			"-call shop.v1.Orders/Watch: this method streams", false},
		{"a field that is not there", given{fields: "string id = 1;", reply: `{"id":"x","price":5}`}, nil,
			`reply.json:1:11: unknown field "price"`, false},
		{"a wrong type, deep inside", given{fields: "repeated N n = 1; message N { map<string, N> m = 1; int32 i = 2; }",
			reply: `{"n":[{},{"m":{"k":{"i":"abc"}}}]}`}, nil, `reply.json:1:25: invalid value for int32 field i: "abc"`,
			false},
		{"a number that is too large", given{fields: "int32 i = 1;", reply: `{"i":2147483648}`}, nil,
			"reply.json:1:6: invalid value for int32 field i: 2147483648", false},
		{"a fraction", given{fields: "int64 i = 1;", reply: `{"i":1.5}`}, nil, "reply.json:1:6: invalid value for int64 field i: 1.5", false},
		{"an unknown enum value", given{fields: "E e = 1; enum E { A = 0; }", reply: `{"e":"B"}`}, nil,
			`reply.json:1:6: invalid value for enum field e: "B"`, false},
		{"no time", given{fields: "google.protobuf.Timestamp t = 1;", reply: `{"t":"yesterday"}`}, nil,
			`reply.json:1: reply.t: "yesterday" is no google.protobuf.Timestamp: write 2026-01-02T15:04:05Z`, false},
		{"no duration", given{fields: "repeated google.protobuf.Duration d = 1;", reply: `{"d":["1s",1.5]}`}, nil,
			`reply.json:1: reply.d[]: 1.5 is no google.protobuf.Duration: write 1.5s`, false},
		{"text for a message", given{fields: "N n = 1; message N { M m = 1; message M {} }", reply: `{"n":{"m":"x"}}`}, nil,
			`reply.json:1: reply.n.m: "x" is no shop.v1.Reply.N.M, which is an object`, false},
		{"null in a list of messages", given{fields: "repeated N n = 1; message N {}", reply: `{"n":[null]}`}, nil,
			`reply.json:1: reply.n[]: null is no shop.v1.Reply.N, which is an object`, false},
		{"one for many", given{fields: "repeated int32 i = 1;", reply: `{"i":1}`}, nil,
			`reply.json:1: reply.i: 1 is no repeated int32, which is a list`, false},
		{"one message for many", given{fields: "repeated N n = 1; message N {}", reply: `{"n":{}}`}, nil,
			`reply.json:1: reply.n: {} is no repeated shop.v1.Reply.N, which is a list`, false},
		{"many for one", given{fields: "int32 i = 1;", reply: `{"i":[1]}`}, nil,
			`reply.json:1: reply.i: [1] is no int32`, false},
		{"a list for a map", given{fields: "map<string, int32> i = 1;", reply: `{"i":[]}`}, nil,
			`reply.json:1: reply.i: [] is no map, which is an object`, false},
		{"samples in a list", given{fields: "string s = 1;", reply: `[{"s":"x"},{"s":"y"}]`}, nil,
			`reply.json:1: reply: [{"s":"x"},{"s":"y"}] is no shop.v1.Reply, which is an object`, false},
		{"null in a list", given{fields: "repeated string s = 1;", reply: `{"s":[null]}`}, nil,
			"reply.json:1:7: invalid value for string field s: null", false},
		{"two arms of a oneof", given{fields: "oneof o { string a = 1; string b = 2; }", reply: `{"a":"x","b":"y"}`}, nil,
			"reply.json:1:10: error parsing \"b\", oneof shop.v1.Reply.o is already set", false},
		{"a field twice", given{fields: "string order_id = 1;", reply: `{"orderId":"x","order_id":"y"}`}, nil,
			"reply.json:1: reply.order_id: this key is orderId elsewhere in the samples", false},
		{"two forms of a number", given{fields: "repeated int64 n = 1;", reply: `{"n":["1",2]}`}, nil,
			"reply.json:1: reply.n[]: text in some samples, and numbers in others", false},
		{"an Any", given{fields: "google.protobuf.Any a = 1;", reply: `{"a":{"@type":"x/y"}}`}, nil,
			"reply.a: google.protobuf.Any holds types that the .proto does not name", false},
		{"nested deeper than 100", given{fields: "Reply r = 1;", reply: strings.Repeat(`{"r":`, 101) + "{}" +
			strings.Repeat("}", 101)}, nil, "reply.json:1: nested deeper than 100 levels", false},
		{"a fault in another line", given{fields: "string s = 1;", reply: "{}\n{}\n\n{\"s\":}\n"}, nil,
			"reply.json:4: not valid JSON: invalid character '}'", false},
		{"half of UTF-16", given{fields: "string s = 1;", reply: "\xff\xfe{\x00}"}, nil, "reply.json: not UTF-8", false},
		{"2 MiB", given{fields: "string s = 1;", reply: `{"s":"` + strings.Repeat("x", 2<<20) + `"}`}, nil,
			"reply.json:1: 2 MiB of JSON or more: every server is set to refuse such a body", false},
		{"broken JSON", given{fields: "string s = 1;", reply: `{"s":`}, nil,
			"reply.json:1: not valid JSON: unexpected EOF", false},
		{"no JSON", given{fields: "string s = 1;", reply: ` `}, nil, "reply.json: no JSON value in it: {} is", false},
		{"an empty file", given{fields: "string s = 1;", request: `{"id":"a"}`}, nil, "reply.json: no JSON value in it: {} is", false},
		{"a folder without JSON", order, []string{"-reply", "testdata"},
			"-reply: testdata: no file in it ends in .json, .jsonl, .ndjson", false},
		{"a root that is a file", order, []string{"-I", "own_test.go"}, "-I own_test.go: a file, in place of the", false},
		{"a key twice", given{fields: "string s = 1;", reply: `{"s":"a","s":"b"}`}, nil,
			`reply.json:1:10: duplicate field "s"`, false},
		{"half of a character", given{fields: "string s = 1;", reply: "{\n\"s\":\"\\ud800\"}"}, nil,
			"reply.json:1: unexpected EOF", false},
		{"a reply that is an Any", given{reply: "{}", method: "Pack"}, nil,
			"-call shop.v1.Orders/Pack: google.protobuf.Any holds types that the .proto does not name: put the type", false},
		{"no text in place of a message", given{request: `"x"`, reply: "{}", method: "Values/Name"}, nil,
			"reply.json:1:1: invalid value for string field value: {: JSON has the value of a google.protobuf.StringValue alone",
			false},
		{"two forms of whole numbers", given{request: `"1" "2"`, reply: `"1" 2`, method: "Values/Count"}, nil,
			"reply.json:1: reply: text in some samples, and numbers in others: use one form", false},
		{"a reply too few", given{fields: "string s = 1;", request: `{"id":"a"} {"id":"b"}`, reply: `{}`}, nil,
			"2 requests, but 1 reply: each", false},
		{"no folder for the module", order, []string{"-out", "none/mine"}, "-out none/mine: make the folder none first",
			true},
		{"a folder that is there", order, []string{"-out", "module"}, "-out module: it is there already", true},
	} {
		t.Run(c.why, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("TMPDIR", home)
			args := append(append([]string{"init"}, c.given.in(t)...), "-out", filepath.Join(home, "mine"))
			cmd := process(t, "", append(args, c.args...)...)
			said, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(said), c.says)
			require.Regexp(t, `^rpcbench: [^\n]*\n$`, string(said))
			require.Equal(t, map[bool]int{false: 1, true: 2}[c.usage], cmd.ProcessState.ExitCode())
			left, err := filepath.Glob(filepath.Join(home, "*"))
			require.NoError(t, err)
			for _, path := range left {
				require.Contains(t, path, "Test", "nothing is left behind") // folders of tests
			}
		})
	}
}

// inWorkspace is a folder with a go.work, and a sample.
func inWorkspace(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	write(t, filepath.Join(home, "go.work"), "go 1.26\n")
	write(t, filepath.Join(home, "sample.json"), `{"id":"a-1001-b","at":"2026-01-02T03:04:05Z"}`)
	return home
}

// next runs what init printed, with another command in place of go run . run.
func next(t *testing.T, home, said, instead string) (out string) {
	t.Helper()
	_, line, found := strings.Cut(said, "\nNext: ")
	require.True(t, found, said)
	require.Contains(t, line, "go run . run -out answer")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "go run . run -out answer", instead, 1))
	cmd.Dir = home
	listed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, listed)
	return string(listed)
}

// TestFolder: what init prints works below a workspace. See TestProtoset for a folder with a name that Go has given to
// another.
func TestFolder(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("loads a program")
	}
	home := inWorkspace(t)
	said, err := writes(t, "", home, "init", "-request", "sample.json", "-reply", "sample.json", "-out",
		"mod").CombinedOutput()
	require.NoError(t, err, string(said))
	require.Regexp(t, `(?s)/cli\n.*\nmine/mod\n$`, next(t, home, string(said), "go list -deps ."))
	for folder, name := range map[string]string{"go": "go", "Con": "con", "日本": "own", "example.com": "example-com"} {
		require.Equal(t, "rpcbench-"+name, moduleName(folder))
	}
}

// TestVary: copies differ from their sample, and are as long as that in JSON and in protobuf.
func TestVary(t *testing.T) {
	g := given{fields: `string s = 1; int64 i = 2; sint32 d = 3; double f = 4; float w = 5; uint64 u = 6; fixed32 x = 7;
		string uuid = 8; string time = 9; E e = 10; bytes b = 11; map<string, string> m = 12;
		google.protobuf.Timestamp t = 13; bool yes = 14; google.protobuf.Struct free = 15; int32 neg = 16;
		google.protobuf.Int64Value wrapped = 17; double long = 18; enum E { A = 0; B = 1; }`,
		reply: `{"s":"Größe 09 aZ","i":"1270","d":-64,"f":19.99,"w":1.25,"u":"128","x":4000000000,
			"uuid":"123e4567-e89b-12d3-a456-426614174000","time":"2026-01-02","e":"B","b":"AAEC","m":{"key":"value"},
			"t":"2026-01-02T03:04:05Z","yes":true,"free":{"a":12,"b":"text"},"neg":-300,"wrapped":"90","long":0.1234567890123456789012}`}
	s, reply := complete(t, g)
	require.Equal(t, "1 sample, whose letters and digits vary", s.made)
	require.Len(t, s.requests, enough)
	lengths := map[string]bool{}
	distinct := map[string]bool{}
	for _, v := range s.replies {
		text := compact(v)
		distinct[string(text)] = true
		m := dynamicpb.NewMessage(reply.Desc)
		require.NoError(t, protojson.Unmarshal(text, m))
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		lengths[fmt.Sprint(len(text), " ", len(data))] = true
		object, _ := v.(map[string]any)
		for key, want := range map[string]any{"uuid": "123e4567-e89b-12d3-a456-426614174000", "time": "2026-01-02",
			"e": "B", "t": "2026-01-02T03:04:05Z", "yes": true} {
			require.Equal(t, want, object[key], "%s stays", key)
		}
		require.Equal(t, "68", unsure(object["long"]), "a digit that may be of no account is the same in each copy")
		labels, _ := object["m"].(map[string]any)
		require.Len(t, labels["key"], 5)
	}
	require.Len(t, distinct, enough)
	require.Len(t, lengths, 1, "lengths of JSON and protobuf")
	changed := map[string]bool{}
	first, _ := s.replies[0].(map[string]any)
	for _, v := range s.replies[1:] {
		object, _ := v.(map[string]any)
		for key, value := range object {
			if !bytes.Equal(compact(value), compact(first[key])) {
				changed[key] = true
			}
		}
	}
	for _, key := range []string{"s", "i", "d", "f", "w", "u", "x", "m", "free", "neg", "wrapped", "long"} {
		require.True(t, changed[key], "%s varies", key)
	}
}

// TestSamples: what goes round, and what it is said to be.
func TestSamples(t *testing.T) {
	many := func(n int, of string) (all string) {
		for i := range n {
			all += fmt.Sprintf(of+"\n", i)
		}
		return all
	}
	for _, c := range []struct {
		why            string
		request, reply string
		made           string
		count          int
		key            string
	}{
		{"sixteen", many(16, `{"id":"a-%d"}`), many(16, `{"s":"b-%d"}`), "16 samples", 16, "id"},
		{"more than sixteen", many(20, `{"id":"a-%d"}`), many(20, `{"s":"b-%d"}`), "20 samples", 20, "id"},
		{"a few", many(3, `{"id":"abc-%d"}`), many(3, `{"s":"def-%d"}`),
			"3 samples, and copies whose letters and digits vary", 16, "id"},
		{"the same request twice", `{"id":"abcdef"}{"id":"abcdef"}`, many(2, `{"s":"ghijkl-%d"}`),
			"1 sample, whose letters and digits vary", 16, "id"},
		{"a short id, of which few copies differ", `{"id":"42"}`, `{"s":"ghijkl"}`, "1 sample, whose letters and digits vary",
			16, "id"},
		{"large ones", `{"id":"abcdef"}`, `{"s":"` + strings.Repeat("x", 700_000) + `"}`,
			"1 sample, whose letters and digits vary", 2, "id"},
		{"a path below a list", `{"names":["abcdef"]}`, `{"s":"ghijkl"}`, "1 sample, whose letters and digits vary", 16,
			"names"},
		{"several paths", many(4, `{"id":"2026-01-0%[1]d","names":["2026-01-01"]}`) + `{"id":"2026-01-01",
			"names":["2026-01-02"]}`, many(5, `{"s":"ghijkl%d"}`),
			"5 samples; nothing tells requests apart, so a repeated reply can't be told from a new one", 1, ""},
		{"a request that can't vary", `{}`, `{"s":"ghijkl"}`,
			"1 sample: nothing tells requests apart, so a repeated reply can't be told from a new one", 1, ""},
		{"a reply that can't vary", `{"id":"abcdef"}`, `{"s":""}`,
			"1 sample: nothing in the reply can vary, so a repeated reply can't be told from a new one", 1, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			s, _ := complete(t, given{fields: "string s = 1;", request: c.request, reply: c.reply})
			if c.why == "large ones" {
				require.Equal(t, []string{"2 samples go round, in place of 16, as they are large"}, s.told)
			}
			if c.why == "several paths" {
				require.Len(t, s.key, 2)
				return
			}
			require.Equal(t, c.made, s.made)
			require.Len(t, s.requests, c.count)
			require.Len(t, s.replies, c.count)
			key := ""
			for _, path := range s.key {
				key += string(path[len(path)-1].Desc.Name())
			}
			require.Equal(t, c.key, key)
		})
	}
}

// TestRepliesStayWithTheirRequests: in the samples, and in the copies of them, which are known by their lengths.
func TestRepliesStayWithTheirRequests(t *testing.T) {
	s, _ := complete(t, given{fields: "string s = 1;",
		request: `{"id":"abcdef"} {"id":"abcdef"} {"id":"abcdefg"} {"id":"abcdefgh"}`,
		reply:   `{"s":"0123456789"} {"s":"left out"} {"s":"0123456789a"} {"s":"0123456789ab"}`})
	require.Len(t, s.requests, enough)
	for i := range s.requests {
		request, _ := s.requests[i].(map[string]any)
		reply, _ := s.replies[i].(map[string]any)
		require.Len(t, request["id"], 6+i%3, "request %d", i)
		require.Len(t, reply["s"], 10+i%3, "reply %d", i)
	}
}

// TestModulesHaveEveryStack: a module compares what each package that serves a method of one's own makes of it.
func TestModulesHaveEveryStack(t *testing.T) {
	module, err := moduleFiles.ReadFile("module/method.go.tmpl")
	require.NoError(t, err)
	var packages, used []string
	for _, pattern := range []string{"../../*/*.go", "../../stacks/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if regexp.MustCompile(`(?m)^func Of\[`).Match(text) {
				packages = append(packages, filepath.Base(filepath.Dir(file)))
			}
		}
	}
	for _, m := range regexp.MustCompile(`(\w+)\.Of\(`).FindAllSubmatch(module, -1) {
		used = append(used, string(m[1]))
	}
	require.ElementsMatch(t, packages, used)
}

// described is the call of what given.in returns.
func described(args []string) *call {
	return &call{own.Messages{Protos: args[1:2], Roots: args[3:4], Call: args[5], Request: args[7], Reply: args[9]}}
}

// read compiles and reads what a test gives, and completes it.
func complete(t *testing.T, g given) (s samples, reply *protogen.Message) {
	t.Helper()
	c := described(g.in(t))
	all, requests, replies, err := c.descriptors(t.Context(), new(made), &s)
	require.NoError(t, err)
	_, q, a, err := method(all, c.Call)
	require.NoError(t, err)
	p, err := plugin(all, "own", q, a)
	require.NoError(t, err)
	w := newWalker()
	s.requests, err = w.read(message(p, q), "request", requests)
	require.NoError(t, err)
	s.replies, err = w.read(message(p, a), "reply", replies)
	require.NoError(t, err)
	s.told = w.dropNulls()
	s.complete(message(p, q), message(p, a))
	return s, message(p, a)
}

// TestFolders: files of a folder go by their names, as people count.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"10.json", "2.json", "1.jsonl", "b.txt", "3.ndjson"} {
		write(t, filepath.Join(dir, name), `{}`)
	}
	all, err := readSamples(dir)
	require.NoError(t, err)
	var names []string
	for _, s := range all {
		names = append(names, filepath.Base(s.name))
	}
	require.Equal(t, []string{"2.json:1", "1.jsonl:1", "10.json:1", "3.ndjson:1"}, names)
}

// TestLenient: what editors and shells make of paths and files is taken.
func TestLenient(t *testing.T) {
	text := `{"s":"ghijkl"}` + "\r\n"
	little, big := "\xff\xfe", "\xfe\xff"
	for _, r := range text {
		little, big = little+string(r)+"\x00", big+"\x00"+string(r)
	}
	t.Chdir(t.TempDir())
	for reply, root := range map[string]string{"\ufeff" + text: "", little: "", big: "."} {
		c := described(given{fields: "string s = 1;", reply: reply}.in(t))
		c.Protos, c.Roots, c.Call = []string{filepath.Join(c.Roots[0], c.Protos[0])}, nil, "/"+c.Call
		if root != "" {
			c.Roots = []string{root} // the file lies outside
		}
		m, err := c.module(t.Context(), t.TempDir(), "own")
		require.NoError(t, err, "a path from the root, a mark at the beginning of a file, a method as it is on the wire")
		require.Empty(t, m.Lossy)
	}
}

// TestProof: a module whose generated Go is wrong says where.
func TestProof(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links programs")
	}
	g := given{fields: `string id = 1; string name = 2; optional int32 zero = 3; map<string, int64> counts = 4;
		repeated N list = 5; oneof o { string a = 6; N n = 7; } google.protobuf.Timestamp at = 8;
		google.protobuf.Struct free = 9; message N { string id = 1; double x = 2; optional bytes raw = 3; }`,
		reply: `{"id":"abcde","name":"fghij","zero":0,"counts":{"k":"17"},"list":[{"id":"klmno","x":2.5,"raw":"AAEC"}],
			"n":{"id":"pqrst"},"at":"2026-01-02T03:04:05Z","free":{"x":[1,{"y":2}]}}`}
	dir, base := t.TempDir(), t.TempDir()
	_, err := described(g.in(t)).module(t.Context(), base, "mine")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "shopv1pb"), os.DirFS(filepath.Join(base, "shopv1pb"))))
	const unseen = ": the comparison of replies does not see a change of it, in sample 1"
	rows := []struct {
		why  string
		says string
		edit map[string][]string // by file: what is there, and what there is instead
	}{
		{"nothing", "", nil},
		{"a key", `reply 1: json: unknown field "name"`,
			map[string][]string{"plain_gen.go": {`json:"name"`, `json:"nam"`}}},
		{"presence that is lost", "reply: sample 1 is another message as a plain struct: map[reply.zero:0 in the sample",
			map[string][]string{
				"plain_gen.go": {"Zero   *int32            `json:\"zero\"`", "Zero int32 `json:\"zero,omitempty\"`"},
				"equal_gen.go": {"samePointer(a.Zero, b.Zero)", "a.Zero == b.Zero"}}},
		{"a copy of another size", "reply: copy 2 is of another size",
			map[string][]string{"samples/replies.jsonl": {`"fghij"`, `"fghijk"`}}},
		{"a comparison that says no", "reply: sample 1 is not equal to its copy",
			map[string][]string{"equal_gen.go": {"a.Name == b.Name", "a.Name != b.Name"}}},
		{"a comparison of nothing", "reply.Id" + unseen,
			map[string][]string{"equal_gen.go": {"func equalReply(a, b *Reply) bool {",
				"func equalReply(a, b *Reply) bool {\n\treturn true\n"}}},
		{"a comparison without optional", "reply.Zero" + unseen,
			map[string][]string{"equal_gen.go": {"samePointer(a.Zero, b.Zero)", "true"}}},
		{"a comparison of values alone", "reply.Zero" + unseen,
			map[string][]string{"equal_gen.go": {"samePointer(a.Zero, b.Zero)", "samePointer (a.Zero, b.Zero)",
				"samePointer(a.Zero, b.Zero)", "a.GetZero() == b.GetZero()"}}},
		{"a comparison without nanoseconds", "reply.At.Nanos" + unseen,
			map[string][]string{"equal_gen.go": {"a.Nanos == b.Nanos", "true"}}},
		{"a comparison without a number of a Struct", "reply.Free.Fields.Kind.ListValue.Values.Kind.NumberValue" + unseen,
			map[string][]string{"equal_gen.go": {"a.NumberValue == b.NumberValue", "b != nil"}}},
		{"a comparison that takes an arm for another", "reply.O" + unseen,
			map[string][]string{"equal_gen.go": {"case nil:\n\t\tif b.O != nil {\n\t\t\treturn false\n\t\t}\n", "",
				"if !ok || !(equalpbReply_N(a.N, b.N)) {", "if ok && !equalpbReply_N(a.N, b.N) {"}}},
		{"a comparison without the bytes of an element", "reply.List.Raw" + unseen,
			map[string][]string{"equal_gen.go": {"bytes.Equal(a.Raw, b.Raw)", "true"}}},
		{"a key that is always the same", "request: 16 requests have ",
			map[string][]string{"method_gen.go": {"key = key*31 + maphash.Comparable(seed, m.Id)", ""}}},
		{"a key of protobuf that is always the same", "request: 16 requests have 16 keys as plain structs and 1 in protobuf",
			map[string][]string{"method_gen.go": {"key = key*31 + maphash.Comparable(seed, m.GetId())", ""}}},
	}
	var folders []string
	for _, c := range rows {
		name := folder(c.why)
		folders = append(folders, name)
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(base)))
		for file, pairs := range c.edit {
			edit(t, filepath.Join(dir, name, file), pairs...)
		}
	}
	said := proofs(t, dir, folders)
	for _, c := range rows {
		t.Run(c.why, func(t *testing.T) {
			if c.says == "" {
				require.Empty(t, said[folder(c.why)].Err)
			}
			require.Contains(t, said[folder(c.why)].Err, c.says)
		})
	}
}

// TestAbsentBytes: a comparison tells optional bytes that are absent from empty ones. The proof changes no value so.
func TestAbsentBytes(t *testing.T) {
	dir := t.TempDir()
	g := given{fields: `optional bytes raw = 1; string name = 2;`, reply: `{"raw":"AAEC","name":"abcde"}`}
	_, err := described(g.in(t)).module(t.Context(), dir, "mine")
	require.NoError(t, err)
	contains(t, filepath.Join(dir, "equal_gen.go"), "(a.Raw == nil) == (b.Raw == nil)", "samePointerFunc(a.Raw, b.Raw")
}

// TestProtoset: a descriptor set of edition 2024, which has custom options and imports that are not there. Its path and
// its names are those of a file that the stacks link: unchanged they would panic at the start of the program. The
// module is made and proved below a workspace, in a folder with a name that Go has given to another, and what init
// prints works there.
func TestProtoset(t *testing.T) {
	t.Parallel()
	const path = "rpcbench/user/v1/user.proto"
	_, err := protoregistry.GlobalFiles.FindFileByPath(path)
	require.NoError(t, err, "the test links it")
	field := func(name string, n int32, kind descriptorpb.FieldDescriptorProto_Type,
		typ string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &n, Type: &kind,
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if typ != "" {
			f.TypeName = &typ
		}
		return f
	}
	text, sub := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String(path), Package: proto.String("rpcbench.user.v1"), Syntax: proto.String("editions"),
		Edition:    descriptorpb.Edition_EDITION_2024.Enum(),
		Dependency: []string{"google/protobuf/timestamp.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("User"),
			Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, text, ""), field("at", 2, sub, ".google.protobuf.Timestamp"),
			}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Users"),
			Method: []*descriptorpb.MethodDescriptorProto{
				{Name: proto.String("Get"), InputType: proto.String(".rpcbench.user.v1.User"),
					OutputType: proto.String(".rpcbench.user.v1.User")},
			}}},
	}
	_, err = protodesc.NewFile(file, nil)
	require.Error(t, err, "its import is not there")
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	require.NoError(t, err)
	home := inWorkspace(t)
	require.NoError(t, os.WriteFile(filepath.Join(home, "set"), data, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(home, "my own"), 0o700))
	said, err := process(t, home, "init", "-protoset", "set", "-call", "rpcbench.user.v1.Users.Get", "-request",
		"sample.json", "-reply", "sample.json", "-out", "my own/log").CombinedOutput()
	require.NoError(t, err, string(said))
	made := filepath.Join(home, "my own", "log")
	contains(t, filepath.Join(made, "plain_gen.go"), "Id *string", "At *time.Time")
	contains(t, filepath.Join(made, "rpcbenchuserv1pb", "user.pb.go"), "Id *string")
	if runtime.GOOS != "windows" {
		require.Contains(t, next(t, home, string(said), "go run -trimpath . list"), "grpcprotobuf")
	}
}

// TestDocument: the commands of docs/own-message.md, as they stand there, with init in place of run; the proofs of
// their modules, and the tests of the one that the last one makes.
func TestDocument(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links programs")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "own-message.md"))
	require.NoError(t, err)
	blocks := map[string][]string{}
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		blocks[block[1]] = append(blocks[block[1]], block[2])
	}
	home, folders := t.TempDir(), []string(nil)
	for name, text := range map[string]string{"orders.proto": blocks["proto"][0], "get.json": blocks["json"][0],
		"order.json": blocks["json"][1]} {
		write(t, filepath.Join(home, name), text)
	}
	lines := strings.Split(strings.TrimSpace(strings.Join(blocks["sh"], "")), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		args := strings.Fields(strings.NewReplacer("rpcbench run ", "init ", "rpcbench init ", "init ").
			Replace(line))
		out, err := writes(t, "", home, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
		folders = append(folders, args[len(args)-1])
	}
	schema, err := os.ReadFile(filepath.Join(home, "answer", "schema.proto"))
	require.NoError(t, err)
	require.Contains(t, string(schema), "rpc Call(Request) returns (Reply);")
	last := filepath.Join(home, folders[len(folders)-1])
	for _, system := range []string{"windows", "darwin"} {
		if *long {
			out, err := goIn(t, last, []string{"GOOS=" + system}, "vet", "./...")
			require.NoError(t, err, "%s: %s", system, out)
		}
	}
	whole(t, last)
	for _, apart := range [][]string{{folders[0], folders[2]}, {folders[1]}} { // whose messages have the same names
		for folder, said := range proofs(t, home, apart) {
			require.Empty(t, said.Err, folder)
			require.Empty(t, said.Told, folder)
		}
	}
}
