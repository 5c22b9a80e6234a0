package layers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

func TestLongestBeginningDecides(t *testing.T) {
	known := Known()
	for beginning := range known {
		require.LessOrEqual(t, len(beginning), 100, "no longer one is looked up")
	}
	for function, layer := range map[string]string{
		"encoding/json.(*decodeState).object":                                               "serialisation",
		"google.golang.org/grpc.(*Server).handleStream":                                     "RPC library",
		"google.golang.org/grpc/internal/transport.(*loopyWriter).run":                      "HTTP framing and headers",
		"google.golang.org/grpc/internal/transport.(*serverHandlerTransport).HandleStreams": "RPC library",
		"google.golang.org/grpc/encoding/proto.(*codecV2).Marshal":                          "serialisation",
		"google.golang.org/grpc/credentials.(*tlsCreds).ClientHandshake":                    "TLS",
		"connectrpc.com/connect.(*compressionPool).Compress":                                "compression",
		"connectrpc.com/connect/v2/connecthttp.(*compressionPool).Compress":                 "compression",
		"connectrpc.com/connect.(*protoBinaryCodec).Unmarshal":                              "serialisation",
		"connectrpc.com/connect/v2/connectproto.(*BinaryCodec).UnmarshalRead":               "serialisation",
		"connectrpc.com/connect.(*Client[go.shape.struct {}]).CallUnary":                    "RPC library",
		"connectrpc.com/connect/v2.(*Client).CallUnary":                                     "RPC library",
		"connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP":                        "RPC library",
		"github.com/rpcbench/rpcbench/internal/transport/connectapi2.vt.MarshalWrite":       "RPC library",
		"net/http.(*conn).serve":                                                            "HTTP framing and headers",
		"net.(*conn).Read":                                                                  "networking (syscalls)",
		"internal/runtime/syscall/linux.EpollWait":                                          "scheduling and wake-ups",
		"internal/runtime/syscall/linux.Syscall6":                                           "",
		"internal/sync.(*HashTrieMap[go.shape.interface {}]).Load":                          "",
		"sync.runtime_procPin":                                                              "",
		"github.com/rpcbench/rpcbench/proto/userservice/x.NewUserServiceHandler.func1":      "RPC library",
		"runtime.memmove":                                                             "",
		"bufio.(*Writer).Flush":                                                       "",
		"net.JoinHostPort":                                                            "",
		"runtime.lock2":                                                               "",
		"runtime.mallocgcTiny":                                                        "allocation and GC",
		"crypto/tls.(*Conn).Write":                                                    "TLS",
		"crypto/internal/fips140/aes/gcm.gcmAesEnc":                                   "TLS",
		"compress/flate.(*compressor).deflate":                                        "compression",
		"github.com/gabriel-vasile/mimetype.Detect":                                   "validation",
		"github.com/rpcbench/rpcbench.NewUserValidator[...].func1":                    "validation",
		"github.com/rpcbench/rpcbench.CheckUser":                                      "harness",
		"github.com/rpcbench/rpcbench/internal/measure/arms.(*Arm).call":              "harness",
		"github.com/rpcbench/rpcbench/internal/measure/loop.(*OneCaller).Call":        "harness",
		"github.com/rpcbench/rpcbench/internal/measure/latency.(*OneCaller).Call":     "harness", // recorded before
		"github.com/rpcbench/rpcbench/internal/latency.(*callers).caller":             "harness", // and before that
		"github.com/rpcbench/rpcbench/internal/transport/httpapi.(*caller[...]).call": "RPC library",
	} {
		require.Equal(t, layer, known.Layer(function), function)
	}
	require.Equal(t, []string{"serialisation", "RPC library", "HTTP framing and headers", "validation", "TLS",
		"compression", "networking (syscalls)", "scheduling and wake-ups", "allocation and GC", "harness", Other}, Names())
}

func TestInnermostFunctionWithALayerDecides(t *testing.T) {
	s, err := Of(testkit.Profile([]string{"rpcbench: 3 calls of BenchmarkX", "another", "rpcbench: 4 calls of BenchmarkX"},
		"client runtime.memmove<bufio.(*Writer).Write<net/http.(*Request).write<net.(*conn).Write",
		"server syscall.write<net.(*conn).Write<net/http.(*conn).serve",
		" unknown.A[go.shape.struct { X int }]<unknown.B",
		" unknown.A[go.shape.int]<unknown.C",
	))
	require.NoError(t, err)
	const ms = time.Millisecond
	require.Equal(t, Split{Row: "BenchmarkX", Calls: 7, Parts: Parts{
		{"HTTP framing and headers", "client", "net/http.(*Request).write", 1, 10 * ms, ""},
		{"networking (syscalls)", "server", "syscall.write", 1, 10 * ms, ""},
		{Other, Unlabelled, "unknown.A", 2, 20 * ms, ""},
	}}, s)
}

func TestBadProfiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	made := func(comments []string, samples ...string) []byte {
		var b bytes.Buffer
		require.NoError(t, testkit.Profile(comments, samples...).Write(&b))
		return b.Bytes()
	}
	zipped := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(data)
		require.NoError(t, errors.Join(err, w.Close()))
		return b.Bytes()
	}
	bomb := zipped(make([]byte, 4*most)) // of some kB
	own := []string{"rpcbench: 3 calls of BenchmarkX"}
	less := testkit.Profile(own, " runtime.mcall")
	less.Scale(-1)
	var difference bytes.Buffer
	require.NoError(t, less.Write(&difference))
	split := func(path string) (s Split, err error) {
		p, err := ReadFile(path)
		if err == nil {
			s, err = Of(p)
		}
		return s, err
	}
	good := made(own, "client net.(*conn).Read")
	_, err := split(file("good", good))
	require.NoError(t, err)
	var plain bytes.Buffer
	require.NoError(t, testkit.Profile(own, "client net.(*conn).Read").WriteUncompressed(&plain))
	_, err = split(file("not compressed", plain.Bytes()))
	require.NoError(t, err)
	steered, err := split(file("odd", made(own, "client net.(*conn).\x1b[2JRead")))
	require.NoError(t, err)
	require.Equal(t, "net.(*conn).?[2JRead", steered.Parts[0].Function, "a name can't steer a terminal")
	wall := testkit.Profile(own, " runtime.mcall")
	wall.SampleType[1].Type = "time" // as fgprof has it
	var passing bytes.Buffer
	require.NoError(t, wall.Write(&passing))
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"):                             "no such file",
		file("truncated", good[:len(good)/2]):                     "is no whole profile",
		file("text", []byte("ns/op")):                             "is no whole profile",
		file("nothing", nil):                                      "is no whole profile",
		file("stripped", made(own, " <", " <", " runtime.mcall")): "no function names: add them with go tool pprof",
		file("service", made(nil, " shop.tax<runtime.goexit")):    "it is the profile of a service",
		file("difference", difference.Bytes()):                    "it is a difference of two profiles: give one",
		file("empty", made(own)):                                  "the profile has no samples: a longer one",
		file("bomb", bomb):                                        "for less time, or merge fewer: go tool pprof -proto",
		file("wall", passing.Bytes()):                             "it is no CPU profile, but one of the time that passes (",
		file("bomb in bomb", zipped(bomb)):                        "is no whole profile",
		file("unlabelled", made(own, " net.(*conn).Read<main.y")): "no sample has the label side",
	} {
		var err error
		bytes := testkit.Allocated(func() { _, err = split(path) })
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, bytes, uint64(8*most), "bytes allocated for %s", path)
	}
}

// A profile of something else is named, and which one to take.
func TestOtherKinds(t *testing.T) {
	const (
		heap    = "one of the heap (alloc_objects, alloc_space, inuse_objects, inuse_space)"
		waiting = "one of mutexes or blocking (contentions, delay)"
	)
	for name, want := range map[string]string{"heap": heap, "allocs": heap, "mutex": waiting, "block": waiting,
		"goroutine": "one of goroutines (goroutine)", "threadcreate": "one of threads (threadcreate)",
	} {
		var b bytes.Buffer
		require.NoError(t, pprof.Lookup(name).WriteTo(&b, 0))
		p, err := profile.Parse(&b)
		require.NoError(t, err)
		_, err = Of(p)
		require.EqualError(t, err, "it is no CPU profile, but "+want+": take the one of /debug/pprof/profile")
	}
	other := testkit.Profile(nil, " shop.tax")
	other.SampleType = []*profile.ValueType{{Type: "co\x1bws", Unit: "count"}, {Type: "milk", Unit: "litres"}}
	_, err := Of(other)
	require.ErrorContains(t, err, "it is no CPU profile, but one of co?ws, milk: ")
}

// Other profilers than Go's write one of the two values that a CPU profile has, and go tool pprof reads them.
func TestOneValue(t *testing.T) {
	stacks := slices.Repeat([]string{" syscall.write<net.(*conn).Write<net/http.(*conn).serve"}, 7)
	for _, test := range []struct {
		why    string
		kept   int // of the values samples and cpu
		unit   string
		period *profile.ValueType
		every  int64
		want   string
	}{
		{"samples alone, of Go's profiler", 0, "", nil, 0, "7 samples, 70ms"},
		{"samples alone, 20 a second", 0, "", &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, 50e6, "7 samples, 350ms"},
		{"nanoseconds alone", 1, "nanoseconds", nil, 0, "7 samples, 70ms"},
		{"nanoseconds alone, 100 a second", 1, "nanoseconds", &profile.ValueType{Type: "cpu", Unit: "milliseconds"}, 10,
			"7 samples, 70ms"},
		{"microseconds alone", 1, "microseconds", nil, 0, "7 samples, 70ms"},
		{"samples alone, of time that passes", 0, "", &profile.ValueType{Type: "wall", Unit: "nanoseconds"}, 10e6,
			"it is no CPU profile, but one of the time that passes (samples): take the one of /debug/pprof/profile"},
	} {
		p := testkit.Profile(nil, stacks...)
		p.SampleType = p.SampleType[test.kept : test.kept+1]
		for _, s := range p.Sample {
			if s.Value = s.Value[test.kept : test.kept+1]; test.unit != "" {
				p.SampleType[0].Unit = test.unit
				s.Value[0] /= int64(unit(test.unit))
			}
		}
		p.PeriodType, p.Period = test.period, test.every
		all, err := Tally(p, Known().part)
		samples, cpu := all.Sum(All)
		got := fmt.Sprintf("%d samples, %v", samples, cpu)
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, test.want, got, test.why)
	}
}

// Recordings in one profile have the samples of all, and the calls that are told: not those of one if all are alike.
func TestMerge(t *testing.T) {
	var data bytes.Buffer
	own := []string{"rpcbench: 3 calls of a"}
	require.NoError(t, testkit.Profile(own, "client net.(*conn).Read", "server net.(*conn).Write").Write(&data))
	p, err := Merge("a", 6, data.Bytes(), data.Bytes())
	require.NoError(t, err)
	s, err := Of(p)
	require.NoError(t, err)
	const ms = time.Millisecond
	require.Equal(t, Split{Row: "a", Calls: 6, Parts: Parts{
		{"networking (syscalls)", "client", "net.(*conn).Read", 2, 20 * ms, ""},
		{"networking (syscalls)", "server", "net.(*conn).Write", 2, 20 * ms, ""},
	}}, s)
	_, err = Merge("a", 6, data.Bytes(), data.Bytes()[:50])
	require.Error(t, err)

	r, err := Start()
	require.NoError(t, err)
	_, err = Start()
	require.ErrorContains(t, err, "cpu profiling already in use")
	p, err = r.Stop("b", 12)
	require.NoError(t, err)
	require.Equal(t, []string{"rpcbench: 12 calls of b"}, p.Comments)
}
