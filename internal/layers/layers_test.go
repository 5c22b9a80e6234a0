package layers

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

var fresh = flag.String("fresh", "", "folder of go test -bench -profiles, whose profiles replace those of testdata")

func TestLongestBeginningDecides(t *testing.T) {
	_, known := parse(rulesText)
	for function, layer := range map[string]string{
		"encoding/json.(*decodeState).object":                                                           "serialisation",
		"google.golang.org/grpc.(*Server).handleStream":                                                 "RPC library",
		"google.golang.org/grpc/internal/transport.(*loopyWriter).run":                                  "HTTP framing and headers",
		"google.golang.org/grpc/internal/transport.(*serverHandlerTransport).HandleStreams":             "RPC library",
		"google.golang.org/grpc/encoding/proto.(*codecV2).Marshal":                                      "serialisation",
		"google.golang.org/grpc/credentials.(*tlsCreds).ClientHandshake":                                "TLS",
		"connectrpc.com/connect.(*compressionPool).Compress":                                            "compression",
		"net/http.(*conn).serve":                                                                        "HTTP framing and headers",
		"net.(*conn).Read":                                                                              "networking (syscalls)",
		"internal/runtime/syscall/linux.EpollWait":                                                      "scheduling and wake-ups",
		"internal/runtime/syscall/linux.Syscall6":                                                       "",
		"internal/sync.(*HashTrieMap[go.shape.interface {}]).Load":                                      "",
		"sync.runtime_procPin":                                                                          "",
		"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect.NewUserServiceHandler.func1": "RPC library",
		"runtime.memmove":       "",
		"bufio.(*Writer).Flush": "",
		"net.JoinHostPort":      "",
		"runtime.lock2":         "",
		"runtime.mallocgcTiny":  "allocation and GC",
		"github.com/rpcbench/rpcbench.NewValidator[...].func1":              "validation",
		"github.com/rpcbench/rpcbench.Check":                                "harness",
		"github.com/rpcbench/rpcbench/internal/httpapi.(*caller[...]).call": "RPC library",
	} {
		require.Equal(t, layer, known.layer(function), function)
	}
	require.Equal(t, []string{"serialisation", "RPC library", "HTTP framing and headers", "validation", "TLS", "compression",
		"networking (syscalls)", "scheduling and wake-ups", "allocation and GC", "harness", Other}, Names())
}

// made returns a profile of samples that are given as "side function<caller<caller".
func made(comments []string, samples ...string) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, Comments: comments}
	for _, text := range samples {
		side, stack, _ := strings.Cut(text, " ")
		sample := &profile.Sample{Value: []int64{1, 10_000_000}}
		if side != "" {
			sample.Label = map[string][]string{"side": {side}}
		}
		for name := range strings.SplitSeq(stack, "<") {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, sample.Location = append(p.Function, f), append(p.Location, l), append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

func TestInnermostFunctionWithALayerDecides(t *testing.T) {
	s, err := Of(made([]string{"rpcbench: 3 calls of BenchmarkX", "another", "rpcbench: 4 calls of BenchmarkX"},
		"client runtime.memmove<bufio.(*Writer).Write<net/http.(*Request).write<net.(*conn).Write",
		"server syscall.write<net.(*conn).Write<net/http.(*conn).serve",
		" unknown.A[go.shape.struct { X int }]<unknown.B",
		" unknown.A[go.shape.int]<unknown.C",
	))
	require.NoError(t, err)
	const ms = time.Millisecond
	require.Equal(t, Split{Row: "BenchmarkX", Calls: 7, Parts: []Part{
		{"HTTP framing and headers", "client", "net/http.(*Request).write", 1, 10 * ms},
		{"networking (syscalls)", "server", "syscall.write", 1, 10 * ms},
		{Other, Unlabelled, "unknown.A", 2, 20 * ms},
	}}, s)
}

// Profiles of every stack are in testdata, to see that the rules know what their libraries do.
func TestRulesKnowEveryStack(t *testing.T) {
	if *fresh != "" {
		record(t)
	}
	files, err := filepath.Glob("testdata/*.pprof")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 24)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, err := ReadFile(file)
			require.NoError(t, err)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			p, err := profile.ParseData(data)
			require.NoError(t, err)
			total, totalCPU := int64(0), time.Duration(0)
			for _, sample := range p.Sample {
				total, totalCPU = total+sample.Value[0], totalCPU+time.Duration(sample.Value[1])
			}
			all, cpu := s.Sum(func(Part) bool { return true })
			require.Equal(t, total, all, "the parts add up to the profile")
			require.Equal(t, totalCPU, cpu)
			share := func(of func(Part) bool) float64 {
				samples, _ := s.Sum(of)
				return float64(samples) / float64(all)
			}
			for _, p := range s.Parts {
				require.Contains(t, Names(), p.Layer)
			}
			require.LessOrEqual(t, share(func(p Part) bool { return p.Layer == Other }), 0.05, "what no rule knows: %v", s.Parts)
			for _, side := range []string{"client", "server"} {
				require.Greater(t, share(func(p Part) bool { return p.Side == side }), 0.15, side)
			}
			for layer, needed := range map[string]bool{
				"networking (syscalls)": true, "allocation and GC": true, "scheduling and wake-ups": true,
				"compression": strings.Contains(file, "gzip"), "TLS": strings.Contains(file, "TLS"),
				"RPC library":              strings.Contains(file, "grpc") || strings.Contains(file, "connect"),
				"HTTP framing and headers": !strings.Contains(file, "rawtcp"),
			} {
				got := share(func(p Part) bool { return p.Layer == layer })
				if needed {
					require.Greater(t, got, 0.01, layer)
				} else if layer == "TLS" || layer == "HTTP framing and headers" {
					require.Zero(t, got, layer)
				}
			}
		})
	}
}

// record puts the profiles of the folder of -fresh in testdata, without the lines and addresses that nobody reads.
func record(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*fresh, "*.pprof"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		p, err := profile.ParseData(data)
		require.NoError(t, err)
		for _, sample := range p.Sample {
			for _, l := range sample.Location {
				l.Mapping = nil
			}
		}
		p.Mapping = nil
		require.NoError(t, p.Aggregate(true, true, false, false, false, false))
		var b bytes.Buffer
		require.NoError(t, p.Compact().Write(&b))
		require.NoError(t, os.WriteFile(filepath.Join("testdata", filepath.Base(file)), b.Bytes(), 0o644))
	}
}

func TestBadProfiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		return path
	}
	encoded := func(p *profile.Profile) []byte {
		var b bytes.Buffer
		require.NoError(t, p.Write(&b))
		return b.Bytes()
	}
	var heap bytes.Buffer
	require.NoError(t, pprof.Lookup("heap").WriteTo(&heap, 0))
	own := []string{"rpcbench: 3 calls of BenchmarkX"}
	good := encoded(made(own, "client net.(*conn).Read"))
	_, err := ReadFile(file("good", good))
	require.NoError(t, err)
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"):                                      "no such file",
		file("truncated", good[:len(good)/2]):                              "is no whole profile",
		file("text", []byte("ns/op")):                                      "is no whole profile",
		file("heap", heap.Bytes()):                                         "it is no CPU profile",
		file("other", encoded(made(nil, "client net.(*conn).Read"))):       "the profile is not one of rpcbench's: make it with go test -bench -profiles",
		file("empty", encoded(made(own))):                                  "the profile has no samples: a longer -benchtime gives some",
		file("unlabelled", encoded(made(own, " net.(*conn).Read<main.y"))): "no sample has the label side",
	} {
		_, err := ReadFile(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "rpcbench: ")
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
	}
}

// A file of some kB can't take all memory, at one level of compression or at two.
func TestProfilesThatExplode(t *testing.T) {
	zipped := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	bomb := zipped(make([]byte, 16*most))
	for why, data := range map[string][]byte{
		"has 4 MiB and more, uncompressed: a shorter -benchtime": bomb,
		"is no whole profile": zipped(bomb),
	} {
		path := filepath.Join(t.TempDir(), "bomb")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadFile(path)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*most), "bytes allocated meanwhile")
	}
}

func TestRecording(t *testing.T) {
	r, err := Start()
	require.NoError(t, err)
	_, err = Start()
	require.ErrorContains(t, err, "cpu profiling already in use")
	p, err := r.Stop("BenchmarkX/stack=a", 12)
	require.NoError(t, err)
	require.Equal(t, []string{"rpcbench: 12 calls of BenchmarkX/stack=a"}, p.Comments)
}
