package codecs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/study/codecs"
)

type word struct{ Word string }

// fakeCodec is encoding/json with a fault from some op on, counted over both directions.
type fakeCodec struct {
	codec.Codec
	ops, from int
	marshal   func([]byte) ([]byte, error)
	unmarshal func(*word) error
	adds      bool // to what is there already, as protobuf's repeated fields do
}

func (c *fakeCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	c.ops++
	if c.marshal == nil || c.ops < c.from || err != nil {
		return data, err
	}
	return c.marshal(data)
}

func (c *fakeCodec) Unmarshal(data []byte, v any) error {
	before := v.(*word).Word
	err := json.Unmarshal(data, v)
	if c.adds {
		v.(*word).Word += before
	}
	c.ops++
	if c.unmarshal == nil || c.ops < c.from || err != nil {
		return err
	}
	return c.unmarshal(v.(*word))
}

// rowOf100 is a row of 100 ops, and the error that it ends with.
func rowOf100(t *testing.T, c *fakeCodec, op string, fresh func() any) (row testing.BenchmarkResult, err error) {
	t.Helper()
	benchtime := flag.Lookup("test.benchtime").Value
	before := benchtime.String()
	defer func() { require.NoError(t, benchtime.Set(before)) }()
	require.NoError(t, benchtime.Set("100x"))
	row = testing.Benchmark(func(b *testing.B) {
		c.ops = 0
		err = errors.Join(err, measure(b, c, codecs.Form{Value: &word{"abc"}, Fresh: fresh}, op))
	})
	return row, err
}

// TestCodecRows: a codec that fails, or doesn't do the same in each op, has no row.
func TestCodecRows(t *testing.T) {
	var zipped bytes.Buffer // how much compress/gzip makes of it depends on the release
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(`{"Word":"abc"}`))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	const from = warmUps + 50 // in the loop
	broken := errors.New("broken")
	longer := func(data []byte) ([]byte, error) { return append(data, ' '), nil }
	once := 0 // ops that were
	one := new(word)
	fresh := func() any { return new(word) }
	for _, c := range []struct {
		reason, op string
		codec      fakeCodec
		fresh      func() any
		want       string
	}{
		{"a good one", "marshal", fakeCodec{}, fresh, ""},
		{"a good one", "unmarshal", fakeCodec{}, fresh, ""},
		{"a pool of values that are empty again", "unmarshal", fakeCodec{adds: true},
			func() any { *one = word{}; return one }, ""},
		{"a value that is there already", "unmarshal", fakeCodec{adds: true}, func() any { return one },
			"bytes that differ from the 14 it was decoded from"},
		{"an error", "marshal", fakeCodec{from: from, marshal: func([]byte) ([]byte, error) { return nil, broken }}, fresh,
			"broken"},
		{"an error", "unmarshal", fakeCodec{from: from, unmarshal: func(*word) error { return broken }}, fresh, "broken"},
		{"longer bodies", "marshal", fakeCodec{from: from, marshal: longer}, fresh,
			"the last body, of 15 bytes, is not the first, of 14"},
		{"other bodies", "marshal", fakeCodec{from: from, marshal: func(data []byte) ([]byte, error) {
			return bytes.ToUpper(data), nil
		}}, fresh, "the last body, of 14 bytes, is not the first, of 14"},
		{"a longer body, neither the first nor the last", "marshal",
			fakeCodec{from: from, marshal: func(data []byte) ([]byte, error) {
				if once++; once == 1 {
					return longer(data)
				}
				return data, nil
			}}, fresh, "100 bodies of 1401 bytes in all, not of 14 each"},
		{"a value that is left out", "unmarshal",
			fakeCodec{from: from, unmarshal: func(w *word) error { w.Word = ""; return nil }}, fresh,
			"the decoded value encodes to 11 bytes that differ from the 14 it was decoded from"},
	} {
		t.Run(c.op+"/"+c.reason, func(t *testing.T) {
			row, err := rowOf100(t, &c.codec, c.op, c.fresh)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 14.0, row.Extra["size-B"], `of {"Word":"abc"}`)
			require.Equal(t, float64(zipped.Len()), row.Extra["gzip-B"])
		})
	}
}

// BenchmarkPs has a row of each loop, whose codec notes the GOMAXPROCS it sees. TestARowHasThePsOfItsLabel runs it in a
// child process.
func BenchmarkPs(b *testing.B) {
	if os.Getenv(forChildren) == "" {
		b.Skip("a test runs it")
	}
	for _, op := range []string{"marshal", "unmarshal"} {
		b.Run(op, func(b *testing.B) {
			seen := map[int]bool{}
			note := func() { seen[runtime.GOMAXPROCS(0)] = true }
			c := &fakeCodec{marshal: func(data []byte) ([]byte, error) { note(); return data, nil },
				unmarshal: func(*word) error { note(); return nil }}
			err := measure(b, c, codecs.Form{Value: new(word), Fresh: func() any { return new(word) }}, op)
			fmt.Fprintln(os.Stderr, b.Name(), seen, err)
		})
	}
}

const forChildren = "RPCBENCH_TEST_CHILD"

// TestARowHasThePsOfItsLabel: every op of a row runs with its GOMAXPROCS, also the first row's after another's.
func TestARowHasThePsOfItsLabel(t *testing.T) {
	testkit.Alone(t)
	t.Setenv(forChildren, "1")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkPs$", "-test.cpu=3,1",
		"-test.benchtime=20x")
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Run(), said.String())
	var want strings.Builder
	for _, op := range []string{"marshal", "unmarshal"} {
		for _, procs := range []int{3, 3, 1, 1} { // first one op, then the row
			fmt.Fprintf(&want, "BenchmarkPs/%s map[%d:true] <nil>\n", op, procs)
		}
	}
	rows := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(said.String(), "") // without the warning of a busy machine
	require.Equal(t, want.String(), rows)
}

// TestRows: names, keys and units are API. -full has every codec and every message.
func TestRows(t *testing.T) {
	testkit.Alone(t)
	names := func(codecs []codecs.Row, messages []string, ops ...string) (all []string) {
		for _, m := range messages {
			for _, op := range ops {
				for _, c := range codecs {
					all = append(all, "codec="+c.Name+"/msg="+m+"/op="+op)
				}
			}
		}
		return all
	}
	var messages []string
	for _, m := range codecs.Messages() {
		messages = append(messages, m.Name)
	}
	const both = "marshal unmarshal"
	for _, c := range []struct {
		reason, pattern, full string
		want                  []string
	}{
		{"the default run, without the large message", "/codec=/msg=user$", "-full=false",
			names(append(codecs.Main(), codecs.None()), []string{"user"}, strings.Fields(both)...)},
		{"the large message", "/codec=/msg=newsfeed$", "-full=false",
			names(codecs.Main(), []string{"newsfeed"}, strings.Fields(both)...)},
		{"a pattern picks codecs and messages", "/codec=(protobuf|cbor)$/msg=small.3B$", "-full",
			names([]codecs.Row{rowOf(t, "protobuf"), rowOf(t, "cbor")}, []string{"small.3B"}, strings.Fields(both)...)},
		{"full has every codec", "/codec=/msg=small.3B$/op=marshal$", "-full",
			names(rows(), []string{"small.3B"}, "marshal")},
		{"and every message", "/codec=protobuf$/msg=/op=marshal$", "-full",
			names([]codecs.Row{rowOf(t, "protobuf")}, messages, "marshal")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.benchtime=1x", c.full,
				"-test.bench=^BenchmarkCodec$"+c.pattern).CombinedOutput()
			require.NoError(t, err, string(out))
			var got []string
			row := regexp.MustCompile(`(?m)^BenchmarkCodec/(\S+?)(?:-\d+)?\s+1\s+\S+ ns/op\s+\S+ gzip-B\s+\S+ size-B\s+\S+ B/op\s+\S+ allocs/op$`)
			for _, found := range row.FindAllStringSubmatch(string(out), -1) {
				got = append(got, found[1])
			}
			require.Equal(t, c.want, got, string(out))
			require.Contains(t, string(out),
				"\n# codec=protobuf: google.golang.org/protobuf by reflection, keeps nothing, copies, ")
			require.Contains(t, string(out), "\nUnit size-B better=lower assume=exact\n")
		})
	}
}
