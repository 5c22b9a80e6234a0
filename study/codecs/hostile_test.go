package codecs_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// deviation is what does not come back as it was sent.
type deviation struct {
	codecs string // separated by blanks
	value  rpcbench.Loss
	what   string
	why    string
}

const (
	notEncoded = "can't be encoded"
	notDecoded = "can't be decoded"
)

// deviations are all there are: one that is not here fails the test, and so does one here that no longer happens.
var deviations = []deviation{
	{"json json.stream json.gzip json.v2 jsoniter jsoniter.fastest goccy sonic sonic.std", rpcbench.LossNaN, notEncoded,
		"JSON has no such number, RFC 8259 section 6; protojson writes it as a string"},
	{"json json.stream json.gzip json.v2 jsoniter jsoniter.fastest goccy sonic sonic.std", rpcbench.LossInfinities,
		notEncoded,
		"as NaN"},
	{"json json.stream json.gzip jsoniter jsoniter.fastest goccy sonic sonic.std xml msgpack msgpack.generated cbor " +
		"protobuf.vt", rpcbench.LossNegativeZero, "double: -0 came as 0; float: -0 came as 0",
		"it is left out like any zero, by omitempty or by a generated comparison with 0; google.golang.org/protobuf " +
			"compares bits"},
	{"cbor", rpcbench.LossNaN, "double: NaN came as NaN",
		"it writes every NaN as 7e00, which is of 16 bits"},
	{"jsoniter.fastest",
		rpcbench.LossFloatDigits, "double: 3.141592653589793 came as 3.141593; float: 2.7182817 came as 2.718282",
		"this configuration writes six digits after the point"},
	{"jsoniter.fastest", rpcbench.LossFloatDigits, "double: 0.30000000000000004 came as 0.3",
		"the same"},
	{"jsoniter.fastest", rpcbench.LossFloatDigits, "double: 5e-324 came as 0",
		"the same"},
	{"jsoniter.fastest", rpcbench.LossFloatDigits, "float: 1e-45 came as 0",
		"the same"},
	{"goccy", codecs.LargestFloat, notDecoded,
		"it reads a float32 as a float64, and refuses 3.4028235e+38, which is how it writes the largest, as out of range"},
	{"xml", rpcbench.LossControlCharacters, `string: "\x00\x01\t\r\n\x1f\x7f" came as "��\t\r\n�\x7f"`,
		"XML 1.0 has no such characters, section 2.2; encoding/xml writes U+FFFD"},
	{"xml", rpcbench.LossControlCharacters, `name: "\x00\x01\t\r\n\x1f\x7f" came as "��\t\r\n�\x7f"`,
		"the same"},
	{"xml", rpcbench.LossNonCharacters, `name: "\ufeff\ufffe\uffff�" came as "\ufeff���"`,
		"the same"},
}

func TestHostileValues(t *testing.T) {
	var found, want []string
	eachRow(t, func(t *testing.T, o *ops) {
		declared := o.Codec.Traits().Lossy
		known := map[rpcbench.Loss]bool{}
		try := func(value rpcbench.Loss, what string) {
			known[value] = true
			require.Equal(t, slices.Contains(declared, value), what != "",
				"Traits.Lossy has to name what is lost, no more and no less: %s %s", value, what)
			if what != "" {
				found = append(found, fmt.Sprintf("%s: %s: %s", o.Name, value, what))
			}
		}
		flex, user := o.Form(entry(t, "flex.complex")), o.Form(entry(t, "user"))
		for _, c := range corpus.Flexes() {
			try(c.Name, o.becomes(flex, native(flex, c.Flex)))
		}
		for _, c := range corpus.Users() {
			try(c.Name, o.becomes(user, native(user, &c.User)))
		}
		for _, value := range declared {
			require.True(t, known[value], "no value would show the loss of %s", value)
		}
		for _, d := range deviations {
			require.NotEmpty(t, d.why)
			if slices.Contains(strings.Fields(d.codecs), o.Name) {
				want = append(want, fmt.Sprintf("%s: %s: %s", o.Name, d.value, d.what))
			}
		}
	})
	require.ElementsMatch(t, want, found, "the table of deviations has to say what libraries lose, no more and no less")
}

// Lists and bytes that are empty come as nil in a new value, by every codec: omitempty leaves them out, proto3 has no
// more to say, and what msgp generates writes them, but makes nothing of them. TestHostileValues takes the two for
// equal.
func TestEmptyAgainstNil(t *testing.T) {
	eachRow(t, func(t *testing.T, o *ops) {
		form := o.Form(entry(t, "flex.complex"))
		for _, plain := range []*rpcbench.Flex{{}, {Bytes: []byte{}, First: []*rpcbench.Pair{}}} {
			v := reflect.ValueOf(o.decoded(t, o.encoded(t, native(form, plain)), form)).Elem()
			require.True(t, binding.Field(v, "bytes").IsNil(), "bytes of %+v", plain)
			require.True(t, binding.Field(v, "first").IsNil(), "a list of %+v", plain)
		}
	})
}

// becomes says what becomes of a value, "" if it comes back.
func (o *ops) becomes(form codecs.Form, v any) string {
	data, err := o.Codec.Marshal(v)
	if err != nil {
		return notEncoded
	}
	came := zero(form)
	if err := o.Codec.Unmarshal(data, came); err != nil {
		return notDecoded
	}
	return difference(v, came)
}
