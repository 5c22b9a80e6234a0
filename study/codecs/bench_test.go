package codecs_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/stacktest"
	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/codecs"
)

var full = flag.Bool("full", false, "run every codec and message")

func TestMain(m *testing.M) { stacktest.Main(units{m}) }

// units prints what benchstat asks of the units that stacktest does not know.
type units struct{ *testing.M }

func (u units) Run() int {
	code := u.M.Run()
	if flag.Lookup("test.bench").Value.String() != "" {
		fmt.Print("Unit size-B better=lower assume=exact\nUnit gzip-B better=lower assume=exact\n")
	}
	return code
}

// BenchmarkCodec is the wire formats by themselves, without a connection. Codecs of one message stand together, since
// they are what is compared.
func BenchmarkCodec(b *testing.B) {
	all, messages := codecs.Main(), slices.DeleteFunc(codecs.Messages(), func(e catalogue.Entry) bool {
		return e.Name != "user" && e.Name != "newsfeed"
	})
	if *full {
		all, messages = rows(), codecs.Messages()
	}
	for _, c := range all {
		fmt.Printf("# codec=%s: %s\n", c.Name, traits(c))
	}
	for _, m := range messages {
		for _, op := range []string{"marshal", "unmarshal"} {
			timed := all
			if m.Name == "user" {
				timed = append(slices.Clip(all), codecs.None()) // what timing through the interface costs
			}
			for _, c := range timed {
				b.Run("codec="+c.Name+"/msg="+m.Name+"/op="+op, func(b *testing.B) {
					form := c.Form(m) // here, so that no other row has it on its heap
					if err := measure(b, c.New(), form, op); err != nil {
						b.Fatalf("%s: %v", b.Name(), err)
					}
				})
			}
		}
	}
}

// traits are what a codec declares, and its tests have checked; that decoded values are copies is so for all.
func traits(row codecs.Row) string {
	t := row.New().Traits()
	engine := ""
	var lossy []string
	for _, value := range t.Lossy {
		lossy = append(lossy, string(value))
	}
	if t.Library == "encoding/json" {
		engine = " on the engine of " + environ.JSONEngine()
	}
	return fmt.Sprintf("%s%s by %s, keeps %s, copies, invalid UTF-8 %s and %s, loses %s",
		t.Library, engine, row.By, row.Reuses, t.InvalidUTF8, row.Decodes,
		cmp.Or(strings.Join(lossy, ", "), "nothing"))
}

// warmUps is how many ops precede the timed ones: libraries fill pools, and build tables when they first see a type.
const warmUps = 16

// measure times an op of c, and reports the body's length, and its length after gzip at the default level. An error is
// of an op, or says that bodies differ in length, that the last differs from the first, or that the last value does not
// encode to the body it was decoded from. measure does without b.Loop, whose 3 ns are half of what the fastest codec
// takes.
func measure(b *testing.B, c codec.Codec, form codecs.Form, op string) error {
	stacktest.Procs(b)
	body, err := c.Marshal(form.Value)
	body = bytes.Clone(body) // which c would overwrite
	last, back, total := body, form.Value, 0
	loop := func(n int) (err error) {
		var data []byte
		length := 0
		for i := 0; i < n && err == nil; i++ {
			data, err = c.Marshal(form.Value)
			length += len(data)
		}
		last, total = data, length
		return err
	}
	if op == "unmarshal" {
		loop = func(n int) (err error) {
			var v any
			for i := 0; i < n && err == nil; i++ {
				v = form.Fresh()
				err = c.Unmarshal(body, v)
			}
			back = v
			return err
		}
	}
	if err == nil {
		err = loop(warmUps)
	}
	if err != nil {
		return err
	}
	runtime.GC() // garbage of the warm-up is not billed to the loop
	b.ReportAllocs()
	b.ResetTimer()
	err = loop(b.N)
	b.StopTimer()
	switch {
	case err != nil:
		return err
	case !bytes.Equal(last, body):
		return fmt.Errorf("the last body, of %d bytes, is not the first, of %d", len(last), len(body))
	case op == "marshal" && total != b.N*len(body): // one in the middle was longer or shorter
		return fmt.Errorf("%d bodies of %d bytes in all, not of %d each", b.N, total, len(body))
	}
	again, err := c.Marshal(back)
	if err == nil && !bytes.Equal(again, body) {
		err = fmt.Errorf("the decoded value encodes to %d bytes that differ from the %d it was decoded from", len(again),
			len(body))
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(body) // a Buffer takes all
	_ = w.Close()
	b.ReportMetric(float64(len(body)), "size-B")
	b.ReportMetric(float64(zipped.Len()), "gzip-B")
	return err
}
