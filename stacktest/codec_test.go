package stacktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
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

type fakeStreamCodec struct{ *fakeCodec }

func (c fakeStreamCodec) Encode(w io.Writer, v any) error {
	data, err := c.Marshal(v)
	_, writeErr := w.Write(data)
	return errors.Join(err, writeErr)
}

func (c fakeStreamCodec) Decode(r io.Reader, v any) error {
	data, err := io.ReadAll(r)
	return errors.Join(err, c.Unmarshal(data, v))
}

type fakeAppender struct{ *fakeCodec }

func (c fakeAppender) Append(dst []byte, v any) ([]byte, error) {
	data, err := c.Marshal(v)
	return append(dst, data...), err
}

// fakeReleaser keeps one value.
type fakeReleaser struct {
	*fakeCodec
	kept  *word
	reset bool
}

func (c *fakeReleaser) Release(v any) {
	c.kept = v.(*word)
	if c.reset {
		*c.kept = word{}
	}
}

func (c *fakeReleaser) fresh() any {
	if c.kept == nil {
		return new(word)
	}
	return c.kept
}

// merge adds to what is there already, as protobuf's repeated fields do.
func (c *fakeReleaser) Unmarshal(data []byte, v any) error {
	var next word
	err := c.fakeCodec.Unmarshal(data, &next)
	v.(*word).Word += next.Word
	return err
}

// BenchmarkCodecs holds rows of fakes; TestCodecRows runs them in a child process.
func BenchmarkCodecs(b *testing.B) {
	if os.Getenv(inChild) == "" {
		b.Skip("run by TestCodecRows")
	}
	const from = codecWarmUps + 50 // in the loop
	v := &word{"abc"}
	fresh := func() any { return new(word) }
	longer := func(data []byte) ([]byte, error) { return append(data, ' '), nil }
	changed := func(data []byte) ([]byte, error) { return bytes.ToUpper(data), nil }
	broken := func([]byte) ([]byte, error) { return nil, errors.New("broken") }
	dropped := func(w *word) error { w.Word = ""; return nil }
	marshal := func(name string, c *fakeCodec) {
		b.Run("case="+name, func(b *testing.B) { c.ops = 0; BenchmarkMarshal(b, c, v, nil) })
		b.Run("case="+name+".stream", func(b *testing.B) { c.ops = 0; BenchmarkMarshal(b, fakeStreamCodec{c}, v, nil) })
		b.Run("case="+name+".append", func(b *testing.B) { c.ops = 0; BenchmarkMarshal(b, fakeAppender{c}, v, nil) })
		b.Run("case="+name+".call", func(b *testing.B) {
			c.ops = 0
			BenchmarkMarshal(b, c, v, func(dst []byte) ([]byte, error) {
				if dst != nil {
					return nil, errors.New("a kept buffer")
				}
				return c.Marshal(v)
			})
		})
		b.Run("case="+name+".append.call", func(b *testing.B) {
			c.ops = 0
			BenchmarkMarshal(b, fakeAppender{c}, v, func(dst []byte) ([]byte, error) {
				if cap(dst) == 0 {
					return nil, errors.New("no buffer")
				}
				return fakeAppender{c}.Append(dst, v)
			})
		})
	}
	unmarshal := func(name string, c *fakeCodec) {
		b.Run("case="+name, func(b *testing.B) { c.ops = 0; BenchmarkUnmarshal(b, c, v, fresh, nil) })
		b.Run("case="+name+".stream", func(b *testing.B) { c.ops = 0; BenchmarkUnmarshal(b, fakeStreamCodec{c}, v, fresh, nil) })
		b.Run("case="+name+".call", func(b *testing.B) {
			c.ops = 0
			BenchmarkUnmarshal(b, c, v, fresh, func(data []byte) (any, error) { w := new(word); return w, c.Unmarshal(data, w) })
		})
	}
	marshal("good.marshal", &fakeCodec{})
	marshal("error.marshal", &fakeCodec{from: from, marshal: broken})
	marshal("longer", &fakeCodec{from: from, marshal: longer})
	marshal("changed", &fakeCodec{from: from, marshal: changed})
	unmarshal("good.unmarshal", &fakeCodec{})
	unmarshal("error.unmarshal", &fakeCodec{from: from, unmarshal: func(*word) error { return errors.New("broken") }})
	unmarshal("dropped", &fakeCodec{from: from, unmarshal: dropped})
	for name, reset := range map[string]bool{"good.pool": true, "merged": false} {
		b.Run("case="+name, func(b *testing.B) {
			c := &fakeReleaser{fakeCodec: &fakeCodec{}, reset: reset}
			BenchmarkUnmarshal(b, c, v, c.fresh, nil)
		})
	}
}

// TestCodecRows: a codec that fails, or doesn't do the same in each op, has no row.
func TestCodecRows(t *testing.T) {
	rows := func(name string) (output string, count int, err error) {
		out, err := child(t, "-test.bench=^BenchmarkCodecs$/^case="+regexp.QuoteMeta(name)+"$", "-test.benchtime=100x")
		parsed, _ := results(t, out)
		for _, r := range parsed {
			for unit, want := range map[string]float64{"size-B": 14, "gzip-B": 38} {
				got, ok := value(r, unit)
				require.True(t, ok, out)
				require.Equal(t, want, got, "%s of {\"Word\":\"abc\"}", unit)
			}
		}
		return out, len(parsed), err
	}
	for _, name := range []string{
		"good.marshal", "good.marshal.stream", "good.marshal.append", "good.marshal.call", "good.marshal.append.call",
		"good.unmarshal", "good.unmarshal.stream", "good.unmarshal.call", "good.pool",
	} {
		out, n, err := rows(name)
		require.NoError(t, err, out)
		require.Equal(t, 1, n, out)
	}
	for name, want := range map[string]string{
		"error.marshal":          "op 48: broken",
		"error.marshal.stream":   "op 48: broken",
		"error.marshal.append":   "op 48: broken",
		"error.marshal.call":     "op 48: broken",
		"longer":                 "op 48: the body of 15 bytes is not the first one, of 14",
		"longer.stream":          "op 48: the body of 15 bytes is not the first one, of 14",
		"longer.append":          "op 48: the body of 15 bytes is not the first one, of 14",
		"longer.append.call":     "op 48: the body of 15 bytes is not the first one, of 14",
		"changed":                "op 100: the body of 14 bytes is not the first one, of 14",
		"changed.stream":         "op 100: the body of 14 bytes is not the first one, of 14",
		"changed.append":         "op 100: the body of 14 bytes is not the first one, of 14",
		"changed.call":           "op 100: the body of 14 bytes is not the first one, of 14",
		"error.unmarshal":        "op 48: broken",
		"error.unmarshal.stream": "op 48: broken",
		"dropped":                "what was decoded encodes to 11 other bytes than the 14 it came from",
		"dropped.stream":         "what was decoded encodes to 11 other bytes than the 14 it came from",
		"dropped.call":           "what was decoded encodes to 11 other bytes than the 14 it came from",
		"merged":                 "other bytes than the 14 it came from",
	} {
		t.Run(name, func(t *testing.T) {
			out, n, err := rows(name)
			require.Error(t, err, out)
			require.Contains(t, out, want)
			require.Zero(t, n, "no row of it")
		})
	}
}
