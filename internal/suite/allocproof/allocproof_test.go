package allocproof

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/environ"
)

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
	assert.Contains(t, p.Packages(), "slices")
	assert.True(t, slices.IsSorted(p.Packages()))
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
		client, _ := sides(p, "encoding/json")
		assert.Zero(t, client, "a type argument is no frame")
		client, _ = sides(p, "github.com/rpcbench/rpcbench/internal/suite/allocproof")
		assert.GreaterOrEqual(t, client, int64(2*n), "for however many frames between")
	}
}

// TestRoom: how many small objects are seen depends on where the first of them lies in a block.
func TestRoom(t *testing.T) {
	noGC(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const times = 100
	race := strings.Contains(environ.Build(), "-race") // which counts each
	for _, c := range []struct {
		why             string
		sizes           []int
		apart, together int64 // of times objects
	}{
		{"one byte", []int{1}, times, 0},
		{"the whole room", []int{15}, times, 0},
		{"two that share", []int{5, 10}, times, 0},
		{"two that can't share", []int{9, 9}, 2 * times, times},
		{"an object of 16 bytes", []int{16}, times, times},
		{"one beside it", []int{16, 3}, 2 * times, times},
	} {
		for room, want := range map[int]int64{0: c.apart, Most: c.together} {
			if race {
				want = times * int64(len(c.sizes))
			}
			p := run(t, func() {
				for range times {
					Room(room)
					for _, size := range c.sizes {
						clone("sixteen letters."[:size])
					}
				}
			})
			client, _ := sides(p, "internal/stringslite") // of strings.Clone
			assert.Equal(t, want, client, "%s, room %d", c.why, room)
		}
	}
}

// clone allocates on the heap, where a compiler that knew its caller might not.
//
//go:noinline
func clone(s string) string { return strings.Clone(s) }

// TestWholeOfSizes: what one line allocates has a sample of each size, and those of 16 bytes are no others'.
func TestWholeOfSizes(t *testing.T) {
	noGC(t)
	data := make([]byte, 64)
	p := run(t, func() {
		for i := range 4 {
			runtime.KeepAlive(bytes.Clone(data[:16+i%2*48]))
		}
	})
	require.EqualValues(t, 2*64, p.Whole("bytes")[Client])
	require.EqualValues(t, 4, p.Objects("bytes")[Client])
}

// TestWhole: objects of 16 bytes may be blocks that others share.
func TestWhole(t *testing.T) {
	noGC(t)
	small, large := make([]byte, 16), make([]byte, 64)
	p := run(t, func() {
		for range 8 {
			runtime.KeepAlive(bytes.Clone(small))
		}
		runtime.KeepAlive(bytes.Clone(large))
	})
	require.EqualValues(t, 8*16+64, p.Bytes("bytes")[Client])
	require.EqualValues(t, 64, p.Whole("bytes")[Client])
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		why, pkgPath, within string
		want                 bool
	}{
		{"the path itself", "net/http", "net/http", true},
		{"a path above it", "net/http", "net", false},
		{"a path above packages elsewhere", "github.com/json-iterator/go", "github.com/json-iterator", true},
		{"half a word elsewhere", "github.com/json-iterator/go", "github.com/json-itera", false},
		{"a word too many", "net/http", "net/http/none", false},
		{"a package of a module", "connectrpc.com/connect/internal/x", "connectrpc.com/connect", true},
		{"the next major version", "connectrpc.com/connect/v2", "connectrpc.com/connect", false},
		{"a package of it", "connectrpc.com/connect/v2/connecthttp", "connectrpc.com/connect", false},
		{"the version before", "connectrpc.com/connect", "connectrpc.com/connect/v2", false},
		{"the tenth", "github.com/go-playground/validator/v10", "github.com/go-playground/validator", false},
		{"a package of the version itself", "connectrpc.com/connect/v2/connecthttp", "connectrpc.com/connect/v2", true},
		{"v1, which is no part of a module's path", "github.com/rpcbench/rpcbench/v1", "github.com/rpcbench/rpcbench", true},
		{"a word that begins so", "google.golang.org/grpc/v2x", "google.golang.org/grpc", true},
		{"further down", "google.golang.org/grpc/binarylog/v2", "google.golang.org/grpc", true},
	} {
		assert.Equal(t, c.want, Within(c.pkgPath, c.within), c.why)
	}
}

func TestOwnObjectsLeftOut(t *testing.T) {
	p := run(t, func() {})
	for _, path := range []string{"github.com/google/pprof", "runtime/pprof", "compress/gzip"} {
		assert.Empty(t, p.Objects(path), path)
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
		exact(20)
	})
	client, _ := sides(p, "bytes")
	assert.EqualValues(t, 20, client, "the refused ones' own objects are left out")
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
	require.ErrorIs(t, err, ErrDeep)
	assert.Less(t, len(err.Error()), 1000)
}

func TestImportPath(t *testing.T) {
	tests := []struct{ why, function, want string }{
		{"function", "main.main", "main"},
		{"standard library", "encoding/json.Marshal", "encoding/json"},
		{"method of a pointer", "encoding/json.(*decodeState).object", "encoding/json"},
		{"closure", "github.com/json-iterator/go.(*Iterator).ReadString.func1", "github.com/json-iterator/go"},
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
