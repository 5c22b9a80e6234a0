package codecs_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsonstd"
	main "github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/message"
	"github.com/rpcbench/rpcbench/stacks/more/internal/codecs"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

type row struct {
	name string
	codec.Codec
}

func rows() []row {
	return []row{{"sonic", codecs.Sonic{}}, {"sonic.std", codecs.SonicStd{}}, {"cbor", codecs.CBOR{}}}
}

// runs skips a codec by name where the library is another.
func runs(tb testing.TB, r row) {
	tb.Helper()
	if why := codecs.SonicFallsBack; why != "" && r.Traits().Library == "github.com/bytedance/sonic" {
		tb.Skipf("%s: %s", r.name, why)
	}
}

// served is a stack over net/http with the codec, so that the suite proves which library encodes and what it loses.
func served(r row) rpcbench.Stack {
	s := httpapi.Stack("http"+r.name, "http/"+r.name, r, binding.Plain(), httpapi.Options{})
	if s.Traits.InvalidUTF8 == rpcbench.Kept { // by the encoder: the other side decides
		s.Traits.InvalidUTF8 = r.Traits().InvalidUTF8.Decoding
	}
	return s
}

func TestConformance(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			runs(t, r)
			stacktest.Conformance(t, served(r))
		})
	}
}

// TestMessagesComeBack: every message of the main module's rows comes back as it was encoded.
func TestMessagesComeBack(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			runs(t, r)
			for _, m := range main.Messages() {
				form := main.None().Form(m)
				data, err := r.Marshal(form.Value)
				require.NoError(t, err, m.Name)
				back := form.Fresh()
				require.NoError(t, r.Unmarshal(data, back), m.Name)
				require.Equal(t, form.Value, back, m.Name)
			}
		})
	}
}

// TestValuesAreCopies: a decoded value does not change with its body.
func TestValuesAreCopies(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			runs(t, r)
			u := rpcbench.Sample(0, 100)
			data, err := r.Marshal(&u)
			require.NoError(t, err)
			var back rpcbench.User
			require.NoError(t, r.Unmarshal(data, &back))
			copy(data, bytes.Repeat([]byte("x"), len(data)))
			require.Equal(t, u, back)
		})
	}
}

// TestInvalidUTF8: what becomes of it in either direction is as the codec declares.
func TestInvalidUTF8(t *testing.T) {
	const invalid, valid = "in\xffvalid", "in?valid"
	became := func(text string, err error) rpcbench.UTF8 {
		switch {
		case err != nil:
			return rpcbench.Rejected
		case strings.Contains(text, invalid):
			return rpcbench.Kept
		case strings.Contains(text, "in\ufffdvalid") || strings.Contains(text, `in\ufffdvalid`):
			return rpcbench.Replaced
		}
		return rpcbench.UTF8(text)
	}
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			runs(t, r)
			u := rpcbench.Sample(0, 0)
			u.Name = invalid
			data, err := r.Marshal(&u)
			require.Equal(t, r.Traits().InvalidUTF8.Encoding, became(string(data), err), "encoding")
			u.Name = valid
			data, err = r.Marshal(&u)
			require.NoError(t, err)
			var back rpcbench.User
			err = r.Unmarshal(bytes.Replace(data, []byte(valid), []byte(invalid), 1), &back)
			require.Equal(t, r.Traits().InvalidUTF8.Decoding, became(back.Name, err), "decoding")
		})
	}
}

func BenchmarkCodec(b *testing.B) {
	all := append([]row{{"json", jsonstd.Codec{}}}, rows()...)
	other := func(e message.Entry) bool { return e.Name != "user" && e.Name != "newsfeed" }
	for _, m := range slices.DeleteFunc(main.Messages(), other) {
		for _, op := range []string{"marshal", "unmarshal"} {
			for _, r := range all {
				b.Run("codec="+r.name+"/msg="+m.Name+"/op="+op, func(b *testing.B) {
					runs(b, r)
					form := main.None().Form(m)
					if op == "marshal" {
						stacktest.BenchmarkMarshal(b, r, form.Value)
					} else {
						stacktest.BenchmarkUnmarshal(b, r, form.Value, form.Fresh)
					}
				})
			}
		}
	}
}
