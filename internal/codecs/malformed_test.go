package codecs_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codecs"
)

// What can go wrong with input that is no encoded message. An error is right, and so is any value.
const (
	panics    = "panics"
	allocates = "allocates out of proportion to the input"
	overflows = "exhausts the stack, which ends the process"
)

// failure is what a library does wrong with malformed input.
type failure struct{ codec, input, what string }

// failures are all there are, with what README adds: one that is not here fails the test, and so does one here that no
// longer happens.
var failures = []struct {
	failure
	detail string
}{
	{failure{"msgpack", "an array that is said to have 2^20 elements", allocates}, "16 MB for a dozen bytes, and 64 GiB for as many as a length can say"},
	{failure{"msgpack", "bytes that are said to be 2^26", allocates}, "64 MB for a dozen bytes, and 4 GiB for as many as a length can say"},
	{failure{"msgpack", "a string or an extension that is said to have 2^26 bytes", allocates}, "2 MB for the first; but the buffer is kept, and is larger by a quarter for each that follows"},
	{failure{"msgpack", "arrays within each other", overflows}, "8 MiB of them, in a field that is not known"},
	{failure{"msgpack", "maps in place of keys within each other", overflows}, "8 MiB of them, in a field that is not known"},
}

const (
	largest  = 8 << 20     // bytes of a body
	slack    = largest     // that input of any size may cost
	atMost   = 256         // bytes that a byte of input may cost
	prefixes = 2000        // of a message; of a longer one, so many at random, and fewer the longer it is
	flips    = 300         // of a message's bits, one at a time and eight; likewise
	tried    = 4 << 20     // bytes of a message altogether
	repeats  = 200         // of an input after which a library may keep what it allocated
	hang     = time.Minute // which no input takes: the longest takes a second
	depth    = largest / 16
)

// malformed are the messages whose bytes are spoilt: one of each type.
func malformed() []string {
	return []string{"user", "small.25B", "flex.complex", "addressbook", "tree.sparse.100B", "article.50", "newsfeed"}
}

func TestMalformed(t *testing.T) {
	var found []failure
	var ran []string
	eachRow(t, func(t *testing.T, o *ops) {
		ran = append(ran, o.Name)
		for _, name := range malformed() {
			form := o.Form(entry(t, name))
			valid := o.encoded(t, form.Value)
			inputs := slices.Concat(truncated(valid), flipped(valid), hostileInputs(o.Row, keys(entry(t, name).New())))
			for _, in := range inputs {
				if slices.ContainsFunc(found, func(f failure) bool { return f.codec == o.Name && f.input == in.name }) {
					continue // one more of them might be one too many
				}
				what := o.survives(in, form)
				if what == "" && in.worse != nil {
					in.data = in.worse
					what = o.survives(in, form)
				}
				if what != "" {
					t.Logf("%s: %s: %.100q", in.name, what, in.data)
					found = append(found, failure{o.Name, in.name, what})
				}
			}
			o.requireEqual(t, form.Value, o.decoded(t, valid, form)) // and what was refused has left nothing behind
		}
	})
	requireFailures(t, found, ran, false)
}

// requireFailures compares what was found of the codecs that ran with the part of the table that is about the stack, or
// with the other.
func requireFailures(t *testing.T, found []failure, ran []string, stack bool) {
	t.Helper()
	var want []failure
	for _, f := range failures {
		if slices.Contains(ran, f.codec) && (f.what == overflows) == stack {
			want = append(want, f.failure)
		}
	}
	require.ElementsMatch(t, want, found, "the table of failures has to say what libraries do wrong, no more and no less")
}

// survives decodes, and says what goes wrong. It does not depend on the inputs before this one.
func (o *ops) survives(in input, form codecs.Form) (what string) {
	if in.kept {
		// Nothing may empty the library's pool between two of them, but the race detector, which drops what is put back at random.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		for range repeats {
			if what = o.survivesOnce(in, form); what != "" {
				break
			}
		}
		return what
	}
	if what = o.survivesOnce(in, form); what == allocates {
		// Perhaps it was a buffer that earlier inputs have made large. Two collections empty the library's pool.
		runtime.GC()
		runtime.GC()
		what = o.survivesOnce(in, form)
	}
	return what
}

func (o *ops) survivesOnce(in input, form codecs.Form) (what string) {
	defer func() {
		if p := recover(); p != nil {
			what = panics
		}
	}()
	defer time.AfterFunc(hang, func() { panic(o.Name + " hangs: " + in.name) }).Stop()
	v := form.Fresh()
	before := allocated()
	err := o.Codec.Unmarshal(in.data, v)
	if used := allocated() - before; used > slack+atMost*uint64(min(max(len(in.data), in.content), depth)) {
		what = allocates
	}
	if err == nil {
		_, _ = o.Codec.Marshal(v) // what came is a value that can be looked at
	}
	return what
}

// allocated is how many bytes this process has, without stopping the world; small objects are counted late.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func truncated(valid []byte) (all []input) {
	random := rand.New(rand.NewPCG(1, 0))
	count := min(len(valid), prefixes, 1+tried/(1+len(valid)))
	for n := range count {
		if len(valid) > count {
			n = random.IntN(len(valid))
		}
		all = append(all, input{name: "truncated", data: valid[:n]})
	}
	return all
}

func flipped(valid []byte) (all []input) {
	random := rand.New(rand.NewPCG(2, 0))
	for i := range min(flips, 1+tried/(1+len(valid))) {
		data := bytes.Clone(valid)
		for range 1 + 7*(i%2) {
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		}
		all = append(all, input{name: "flipped bits", data: data})
	}
	return all
}

var update = flag.Bool("update", false, "write golden files")

// The table as README has it, with the versions of this build's go.mod.
func TestFailuresFile(t *testing.T) {
	var text strings.Builder
	for _, f := range failures {
		library := ""
		for _, row := range codecs.All() {
			if row.Name == f.codec {
				library = row.New().Traits().Library
			}
		}
		if library == "" {
			t.Skip(f.codec + " is not in this build")
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s: %s |\n", f.codec, version(t, library), f.input, f.what, f.detail)
	}
	file := filepath.Join("testdata", "failures.md")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(golden), text.String(), "go test ./internal/codecs -run FailuresFile -update")
}

// version is a library as go.mod has it, or the standard library's Go.
func version(t *testing.T, library string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	found := ""
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(f) >= 2 && strings.HasPrefix(library+"/", f[0]+"/") {
			found = f[0] + " " + f[1]
		}
	}
	return cmp.Or(found, library)
}
