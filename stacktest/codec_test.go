package stacktest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codec"
)

type word struct{ Word string }

// fakeCodec is encoding/json with a fault from some op on, counted over both directions.
type fakeCodec struct {
	ops, from int
	marshal   func([]byte) ([]byte, error)
	unmarshal func(*word) error
}

func (c *fakeCodec) ContentType() string { return "application/json" }

func (c *fakeCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	c.ops++
	if c.marshal == nil || c.ops < c.from || err != nil {
		return data, err
	}
	return c.marshal(data)
}

func (c *fakeCodec) Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	c.ops++
	if c.unmarshal == nil || c.ops < c.from || err != nil {
		return err
	}
	return c.unmarshal(v.(*word))
}

func (*fakeCodec) Traits() codec.Traits { return codec.Traits{} }

// merging is a codec that adds to what is there already, as protobuf's repeated fields do.
type merging struct{ *fakeCodec }

func (c merging) Unmarshal(data []byte, v any) error {
	var next word
	err := c.fakeCodec.Unmarshal(data, &next)
	v.(*word).Word += next.Word
	return err
}

// BenchmarkCodecs holds rows of fakes; TestCodecRows runs them in a child process.
func BenchmarkCodecs(b *testing.B) {
	forChildren(b)
	const from = codecWarmUps + 50 // in the loop
	v := &word{"abc"}
	fresh := func() any { return new(word) }
	longer := func(data []byte) ([]byte, error) { return append(data, ' '), nil }
	odd := func() func([]byte) ([]byte, error) { // one op that is neither the first nor the last
		was := false
		return func(data []byte) ([]byte, error) {
			if was {
				return data, nil
			}
			was = true
			return longer(data)
		}
	}
	changed := func(data []byte) ([]byte, error) { return bytes.ToUpper(data), nil }
	broken := func([]byte) ([]byte, error) { return nil, errors.New("broken") }
	dropped := func(w *word) error { w.Word = ""; return nil }
	marshal := func(name string, c *fakeCodec) {
		b.Run("case="+name, func(b *testing.B) { c.ops = 0; BenchmarkMarshal(b, c, v) })
	}
	unmarshal := func(name string, c *fakeCodec) {
		b.Run("case="+name, func(b *testing.B) { c.ops = 0; BenchmarkUnmarshal(b, c, v, fresh) })
	}
	marshal("good.marshal", &fakeCodec{})
	marshal("error.marshal", &fakeCodec{from: from, marshal: broken})
	marshal("longer", &fakeCodec{from: from, marshal: longer})
	marshal("changed", &fakeCodec{from: from, marshal: changed})
	marshal("odd", &fakeCodec{from: from, marshal: odd()})
	unmarshal("good.unmarshal", &fakeCodec{})
	unmarshal("error.unmarshal", &fakeCodec{from: from, unmarshal: func(*word) error { return errors.New("broken") }})
	unmarshal("dropped", &fakeCodec{from: from, unmarshal: dropped})
	one := new(word)
	for name, fresh := range map[string]func() any{
		"good.pool": func() any { *one = word{}; return one },
		"merged":    func() any { return one },
	} {
		b.Run("case="+name, func(b *testing.B) { BenchmarkUnmarshal(b, merging{&fakeCodec{}}, v, fresh) })
	}
}

// TestCodecRows: a codec that fails, or doesn't do the same in each op, has no row.
func TestCodecRows(t *testing.T) {
	var zipped bytes.Buffer // how much compress/gzip makes of it depends on the release
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(`{"Word":"abc"}`))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for _, name := range []string{"good.marshal", "good.unmarshal", "good.pool"} {
		row := figuresOf(t, "-test.bench=^BenchmarkCodecs$/^case="+regexp.QuoteMeta(name)+"$", "-test.benchtime=100x")
		require.Equal(t, 14.0, row["size-B"], `of {"Word":"abc"}`)
		require.Equal(t, float64(zipped.Len()), row["gzip-B"])
	}
	for name, want := range map[string]string{
		"error.marshal":   "broken",
		"longer":          "the last body, of 15 bytes, is not the first, of 14",
		"changed":         "the last body, of 14 bytes, is not the first, of 14",
		"odd":             "100 bodies of 1401 bytes in all, not of 14 each",
		"error.unmarshal": "broken",
		"dropped":         "the decoded value encodes to 11 bytes that differ from the 14 it was decoded from",
		"merged":          "bytes that differ from the 14 it was decoded from",
	} {
		t.Run(name, func(t *testing.T) {
			bench := "-test.bench=^BenchmarkCodecs$/^case=" + regexp.QuoteMeta(name) + "$"
			out, err := child(t, bench, "-test.benchtime=100x")
			require.Error(t, err, out)
			require.Contains(t, out, want)
			require.NotRegexp(t, `\d ns/op`, out, "no figures of it")
		})
	}
}
