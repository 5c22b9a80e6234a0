package results

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

const codecs = `cores: 2
Unit size-B better=lower assume=exact
BenchmarkHTTPJSON-2  100  40000 ns/op
BenchmarkCodec/codec=json/msg=user/op=marshal-2        100  400 ns/op  90 size-B  5 B/op
BenchmarkCodec/codec=protobuf/msg=user/op=marshal-2    100  300 ns/op  35 size-B  5 B/op
BenchmarkCodec/codec=json/msg=user/op=unmarshal-2      100  2400 ns/op  90 size-B  5 B/op
BenchmarkCodec/codec=json/msg=newsfeed/op=marshal-2    100  1000000 ns/op  200123 size-B  5 B/op
`

func TestTable(t *testing.T) {
	ops := Layout{Col: "codec", Table: "op", Units: []string{"size-B", "ns/op"}}
	var repeated strings.Builder
	for _, ns := range []string{"400", "404", "396", "401", "399", "500"} {
		repeated.WriteString("BenchmarkCodec/codec=json/msg=user/op=marshal-2 100 " + ns + " ns/op\n")
	}
	for _, c := range []struct {
		reason string
		layout Layout
		input  string
		want   string
	}{
		{"a table per unit and op; exact units have one", ops, codecs, `
size-B              json    protobuf
Codec msg=user      90      35
Codec msg=newsfeed  200123  –

ns/op, op=marshal   json    protobuf
Codec msg=user      400.0n  300.0n
Codec msg=newsfeed  1.000m  –

ns/op, op=unmarshal  json    protobuf
Codec msg=user       2.400µ  –
Codec msg=newsfeed   –       –

`},
		{"without tables the key is part of the row", Layout{Col: "codec", Units: []string{"ns/op"}}, codecs, `
ns/op                            json    protobuf
Codec msg=user op=marshal        400.0n  300.0n
Codec msg=user op=unmarshal      2.400µ  –
Codec msg=newsfeed op=marshal    1.000m  –

`},
		{"six runs have an interval", Layout{Col: "codec", Table: "op", Units: []string{"ns/op"}}, repeated.String(), `
ns/op, op=marshal  json
Codec msg=user     400.5n ±25%

`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, c.layout.Write(&out, strings.NewReader(c.input), "bench.txt"))
			require.Equal(t, strings.Fields(c.want), strings.Fields(out.String()))
			require.Equal(t, strings.Count(strings.TrimPrefix(c.want, "\n"), "\n"), strings.Count(out.String(), "\n"))
		})
	}
}

func TestBadInput(t *testing.T) {
	layout := Layout{Col: "codec", Table: "op", Units: []string{"size-B"}}
	for _, c := range []struct{ reason, input, want string }{
		{"nothing", "", `rpcbench: bench.txt: no benchmark has a key "codec": give it what go test -bench printed`},
		{"no such key", "BenchmarkHTTPJSON 1 2 ns/op\n", `rpcbench: bench.txt: no benchmark has a key "codec"`},
		{"a torn line", "BenchmarkCodec/codec=json 1\nBenchmarkCodec/codec=json x 2 ns/op\n", "rpcbench: bench.txt:1: "},
		{"a size that changes", codecs + "BenchmarkCodec/codec=json/msg=user/op=unmarshal-2 100 2400 ns/op 91 size-B\n",
			"rpcbench: bench.txt: size-B of Codec msg=user, codec=json: exact distribution expected, but values range from 90 to 91"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var out strings.Builder
			require.ErrorContains(t, layout.Write(&out, strings.NewReader(c.input), "bench.txt"), c.want)
			require.Empty(t, out.String())
		})
	}
	var out strings.Builder
	require.ErrorContains(t, layout.Write(&out, iotest.ErrReader(errors.New("gone")), "bench.txt"), "bench.txt:0: gone")
}
