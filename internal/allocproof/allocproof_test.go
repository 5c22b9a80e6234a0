package allocproof

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ops = 20

	jsonPath     = "encoding/json"
	jsoniterPath = "github.com/json-iterator/go"
	protobufPath = "google.golang.org/protobuf"
)

// The strings are longer than 16 bytes, or they would share blocks.
type user struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// exchange returns one op over a real connection: its client encodes and decodes by jsoniter, its server by
// encoding/json, whatever the client's name says.
func exchange(t *testing.T) func() {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var u user
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&u))
		assert.NoError(t, json.NewEncoder(w).Encode(u))
	}))
	t.Cleanup(ts.Close)
	u := &user{Name: "a name longer than sixteen bytes", Email: "somebody.or.other@example.com"}
	return func() {
		body, err := jsoniter.Marshal(u)
		require.NoError(t, err)
		resp, err := ts.Client().Post(ts.URL, "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, jsoniter.Unmarshal(reply, new(user)))
	}
}

func run(t *testing.T, fn func()) Profile {
	t.Helper()
	p, err := Run(fn)
	require.NoError(t, err)
	return p
}

// noGC keeps collections out of fn: one that starts within an allocation allocates a little itself, beneath the same
// functions.
func noGC(t *testing.T) {
	t.Helper()
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

func repeat(n int, op func()) func() {
	return func() {
		for range n {
			op()
		}
	}
}

func TestSides(t *testing.T) {
	op := exchange(t)
	op() // what a library keeps for ever is made here
	p := run(t, repeat(ops, op))
	for path, want := range map[string][2]bool{jsonPath: {false, true}, jsoniterPath: {true, false}, protobufPath: {}} {
		client, server := sides(p, path)
		for side, got := range []int64{client, server} {
			if want[side] {
				assert.GreaterOrEqual(t, got, int64(ops), "objects of %s; seen: %v", path, p.Packages())
				assert.Less(t, got, int64(100*ops), path)
			} else {
				assert.Zero(t, got, "objects of %s on side %d", path, side)
			}
		}
	}
}

func cloneOnGoroutine(done chan<- struct{}) {
	exact(3)
	close(done)
}

func TestRoots(t *testing.T) {
	noGC(t)
	p := run(t, func() {
		exact(1)
		var wg sync.WaitGroup
		wg.Go(func() { exact(2) })
		wg.Wait()
		done := make(chan struct{})
		go cloneOnGoroutine(done)
		<-done
	})
	want := map[string]int64{Client: 1, own("TestRoots.func1.1"): 2, own("cloneOnGoroutine"): 3}
	assert.Equal(t, want, p.Objects("bytes"))
	assert.Empty(t, p.Objects("encoding/xml"))
}

// exact allocates n objects beneath bytes.Clone, which is inlined, and n beneath slices.Clone, which is generic over a
// type whose name has slashes and dots. The profile has an entry per size.
func exact(n int) {
	data := make([]byte, 64)
	users := []json.Number{"1", "2", "3"}
	for i := range n {
		runtime.KeepAlive(bytes.Clone(data[:len(data)-i%2*32]))
		runtime.KeepAlive(slices.Clone(users))
	}
}

func TestExact(t *testing.T) {
	noGC(t)
	// 64 bytes are seldom sampled at the default rate, so this holds only at rate 1, and only if the last are published.
	for _, n := range []int{1, 100, 1000} {
		p := run(t, func() { exact(n) })
		for _, path := range []string{"bytes", "slices"} {
			client, other := sides(p, path)
			assert.EqualValues(t, n, client, path)
			assert.Zero(t, other, path)
		}
		assert.Equal(t, map[string]int64{Client: int64((n+1)/2*64 + n/2*32)}, p.Bytes("bytes"))
		client, _ := sides(p, jsonPath)
		assert.Zero(t, client, "a type argument is no frame")
		client, _ = sides(p, "github.com/rpcbench/rpcbench/internal/allocproof")
		assert.GreaterOrEqual(t, client, int64(2*n), "for however many frames between")
	}
}

func TestPaths(t *testing.T) {
	p := run(t, repeat(ops, exchange(t)))
	assert.Contains(t, p.Packages(), "net/http")
	assert.True(t, slices.IsSorted(p.Packages()))
	tests := []struct {
		why, path string
		want      bool
	}{
		{"the path itself", "net/http", true},
		{"a path above it", "net", true},
		{"a path above packages outside the standard library", "github.com/json-iterator", true},
		{"half a word", "net/htt", false},
		{"half a word outside the standard library", "github.com/json-itera", false},
		{"a word too many", "net/http/none", false},
		{"a slash at the end", "net/http/", false},
		{"nothing", "", false},
	}
	for _, test := range tests {
		client, other := sides(p, test.path)
		assert.Equal(t, test.want, client+other > 0, "%s: %q", test.why, test.path)
	}
}

func TestOwnObjectsLeftOut(t *testing.T) {
	p := run(t, func() {})
	for _, path := range []string{"github.com/google/pprof", "runtime/pprof", "compress/gzip"} {
		client, other := sides(p, path)
		assert.Zero(t, client+other, path)
	}
}

func TestRateRestored(t *testing.T) {
	old := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = old }()
	runtime.MemProfileRate = 12345
	run(t, func() { assert.Equal(t, 1, runtime.MemProfileRate) })
	assert.Equal(t, 12345, runtime.MemProfileRate)

	assert.PanicsWithValue(t, "fn", func() { _, _ = Run(func() { panic("fn") }) })
	assert.Equal(t, 12345, runtime.MemProfileRate, "after a panic")

	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Run(runtime.Goexit)
	}()
	<-done
	assert.Equal(t, 12345, runtime.MemProfileRate, "after Goexit, as t.FailNow has it")
}

func TestOneAtATime(t *testing.T) {
	noGC(t)
	never := func() { t.Error("fn of a refused Run was called") }
	p := run(t, func() {
		_, err := Run(never)
		assert.ErrorContains(t, err, "another Run is under way", "nested")
		refused := make(chan error)
		go func() {
			_, err := Run(never)
			refused <- err
		}()
		assert.ErrorContains(t, <-refused, "another Run is under way", "on another goroutine")
		exact(ops)
	})
	client, _ := sides(p, "bytes")
	assert.EqualValues(t, ops, client, "the refused ones' own objects are left out")
	run(t, func() {})
}

func TestDeepStack(t *testing.T) {
	noGC(t)
	var deep func(n int)
	deep = func(n int) {
		if n > 0 {
			deep(n - 1)
		} else {
			exact(1)
		}
	}
	client, _ := sides(run(t, func() { deep(110) }), "bytes")
	assert.EqualValues(t, 1, client, "root in sight")
	_, err := Run(func() { deep(200) })
	require.ErrorContains(t, err, "the root may be cut off: it begins in [")
	assert.Less(t, len(err.Error()), 1000)
}

func TestImportPath(t *testing.T) {
	tests := []struct{ why, function, want string }{
		{"function", "main.main", "main"},
		{"standard library", "encoding/json.Marshal", "encoding/json"},
		{"method of a pointer", "encoding/json.(*decodeState).object", "encoding/json"},
		{"closure", "github.com/json-iterator/go.(*Iterator).ReadString.func1", jsoniterPath},
		{"initialiser", "google.golang.org/protobuf/internal/impl.init.0", "google.golang.org/protobuf/internal/impl"},
		{"a dot after it is escaped", "gopkg.in/yaml%2ev3.(*Decoder).Decode", "gopkg.in/yaml.v3"},
		{"major version", "github.com/vmihailenco/msgpack/v5.Marshal", "github.com/vmihailenco/msgpack/v5"},
		{"type argument with a path", "slices.Clone[go.shape.[]a.b/c.T,go.shape.string]", "slices"},
		{"receiver with a type argument", "example.com/x.(*T[go.shape.struct { a/b.C }]).M", "example.com/x"},
		{"generated for a struct without name", "go.(*struct { a.b/c.D }).M", "go"},
		{"bad escape stays", "example.com/x%zz.F", "example.com/x%zz"},
		{"assembly without package", "memmove", "memmove"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, importPath(test.function), test.why)
	}
}

// sides splits the objects beneath a path into those of the goroutine that called Run and all others.
func sides(p Profile, path string) (client, other int64) {
	for root, objects := range p.Objects(path) {
		if root == Client {
			client += objects
		} else {
			other += objects
		}
	}
	return client, other
}
