package codecs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// A decoded value does not change with its input, nor does anything that a codec does later change it.
func TestValuesAreCopies(t *testing.T) {
	eachRow(t, func(t *testing.T, o *ops) {
		for _, name := range []string{"flex.complex", "addressbook"} {
			form := o.Form(entry(t, name))
			valid := o.encoded(t, form.Value)
			in := bytes.Clone(valid)
			v := o.decoded(t, in, form)
			for i := range in {
				in[i] = 'x'
			}
			before := o.decoded(t, valid, form)
			require.Empty(t, difference(before, v), name)

			v = o.decoded(t, valid, form) // as well as one that was decoded before
			body, err := o.Codec.Marshal(form.Value)
			require.NoError(t, err)
			bodyBefore := bytes.Clone(body)
			for _, other := range codecs.Messages() {
				if other.Size > 20_000 {
					continue
				}
				form := o.Form(other)
				o.decoded(t, o.encoded(t, form.Value), form)
			}
			o.requireEqual(t, form.Value, v)
			if o.Reuses != "buffer" {
				require.Equal(t, bodyBefore, body, "a body that was encoded before")
			}
		}
	})
}

func TestInvalidUTF8(t *testing.T) {
	const placeholder = "in?valid" // of as many bytes, so that lengths stay right
	eachRow(t, func(t *testing.T, o *ops) {
		form := o.Form(entry(t, "user"))
		u := rpcbench.SampleUser(0, 0)
		u.Name = corpus.InvalidUTF8
		became := func(text, escape string, err error) rpcbench.UTF8 {
			switch {
			case err != nil:
				return rpcbench.UTF8Rejected
			case strings.Contains(text, corpus.InvalidUTF8):
				return rpcbench.UTF8Kept
			case strings.Contains(text, "in\ufffdvalid") || strings.Contains(text, escape):
				return rpcbench.UTF8Replaced
			}
			return rpcbench.UTF8(fmt.Sprintf("%q", text))
		}
		data, err := o.Codec.Marshal(native(form, &u))
		require.Equal(t, o.Codec.Traits().InvalidUTF8, became(string(unzipped(t, data)), `in\ufffdvalid`, err), "encoding")

		u.Name = placeholder
		data = o.encoded(t, native(form, &u))
		plain := unzipped(t, data)
		content := bytes.Replace(plain, []byte(placeholder), []byte(corpus.InvalidUTF8), 1)
		require.Contains(t, string(content), corpus.InvalidUTF8)
		if !bytes.Equal(plain, data) {
			content = zip(t, content)
		}
		v := zero(form)
		err = o.Codec.Unmarshal(content, v)
		name := binding.Field(reflect.ValueOf(v).Elem(), "name").String()
		require.Equal(t, o.Decodes, became(name, "no escape", err), "decoding")
	})
}

// unzipped is data without the compression that it may have.
func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

// TestGzipCompresses: users in a list, short strings, take at most half the bytes of JSON.
func TestGzipCompresses(t *testing.T) {
	length := func(name string) int {
		row := rowOf(t, name)
		return len(newOps(row).encoded(t, row.Form(entry(t, "addressbook")).Value))
	}
	require.Less(t, length("json.gzip"), length("json")/2, "json.gzip does not compress")
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	require.NoError(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

// What a row times is the library that it declares: in each op functions of that library allocate, or methods that it
// has generated, and functions of no other library that encodes.
func TestLibrary(t *testing.T) {
	const times = 64
	const module = "github.com/rpcbench/rpcbench"
	rivals := []string{
		"encoding/json", "encoding/json/v2", "encoding/xml", "encoding/gob", "compress/gzip",
		"github.com/json-iterator/go", "github.com/goccy/go-json",
		"google.golang.org/protobuf/proto", "google.golang.org/protobuf/encoding/protojson",
		"github.com/vmihailenco/msgpack/v5", "github.com/tinylib/msgp",
		"github.com/bytedance/sonic", "github.com/fxamacker/cbor/v2",
	}
	within := allocproof.Within
	test := func(t *testing.T, o *ops, form codecs.Form, encode func() error, decode func(data []byte) error) {
		data := o.encoded(t, form.Value) // what a library builds once, it builds now
		require.NoError(t, decode(data))
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects beneath whatever function it starts in
		profile, err := allocproof.Run(func() {
			for range times {
				if err := encode(); err != nil {
					panic(err)
				}
				if err := decode(data); err != nil {
					panic(err)
				}
			}
		})
		require.NoError(t, err)
		objects := func(path string) int64 { return profile.Objects(path)[allocproof.Client] }
		traits := o.Codec.Traits()
		own := []string{traits.Library}
		if o.By == "generated code" {
			own = []string{reflect.TypeOf(form.Value).Elem().PkgPath()}
			require.True(t, within(own[0], module), "generated here")
			require.Zero(t, objects("reflect"), "generated code does without")
		}
		if traits.Library == "encoding/json" {
			own = append(own, environ.JSONEngine())
		}
		for _, library := range own {
			require.GreaterOrEqual(t, objects(library), int64(times), "functions of %s run in each op; seen: %s", library,
				profile.Packages())
		}
		if o.Reuses == "compressors" {
			own = append(own, "compress/gzip")
		}
		for _, rival := range rivals {
			if !slices.ContainsFunc(own, func(path string) bool { return within(path, rival) || within(rival, path) }) &&
				!within(traits.Library, rival) {
				// One at random is the runtime's, which caches what a type assertion in proto.Reset finds.
				require.Less(t, objects(rival), int64(times)/4, "functions of %s run; the declared library is %s", rival,
					traits.Library)
			}
		}
	}
	eachRow(t, func(t *testing.T, o *ops) {
		form := o.Form(entry(t, "flex.complex"))
		test(t, o, form, func() error { _, err := o.Codec.Marshal(form.Value); return err }, func(data []byte) error {
			return o.Codec.Unmarshal(data, form.Fresh())
		})
	})
}
