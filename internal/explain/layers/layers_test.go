package layers

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
)

var long = flag.Bool("long", false, "profile calls of every stack")

func TestLongestBeginningDecides(t *testing.T) {
	_, known := parse(rulesText)
	_, owners := parse(ownersText)
	for _, beginning := range slices.AppendSeq(slices.Collect(maps.Keys(known)), maps.Keys(owners)) {
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
		"github.com/rpcbench/rpcbench.NewValidator[...].func1":                        "validation",
		"github.com/rpcbench/rpcbench.Check":                                          "harness",
		"github.com/rpcbench/rpcbench/internal/measure/arms.(*Arm).call":              "harness",
		"github.com/rpcbench/rpcbench/internal/measure/loop.(*OneCaller).Call":        "harness",
		"github.com/rpcbench/rpcbench/internal/measure/latency.(*OneCaller).Call":     "harness", // recorded before
		"github.com/rpcbench/rpcbench/internal/latency.(*callers).caller":             "harness", // and before that
		"github.com/rpcbench/rpcbench/internal/transport/httpapi.(*caller[...]).call": "RPC library",
	} {
		require.Equal(t, layer, known.layer(function), function)
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
	require.Equal(t, Split{Row: "BenchmarkX", Calls: 7, Parts: []Part{
		{"HTTP framing and headers", "client", "net/http.(*Request).write", 1, 10 * ms},
		{"networking (syscalls)", "server", "syscall.write", 1, 10 * ms},
		{Other, Unlabelled, "unknown.A", 2, 20 * ms},
	}}, s)
}

// TestRulesKnowEveryStack profiles calls of every stack: a new release of a library may work in functions that no rule
// knows. The first stacks are profiled over TLS too.
func TestRulesKnowEveryStack(t *testing.T) {
	if !*long {
		t.Skip("takes two seconds of CPU for each stack: -long")
	}
	all := stacks.All()
	for i, s := range append(all, all[:3]...) {
		tls := i >= len(all)
		t.Run(fmt.Sprintf("%s, TLS %v", s.Name, tls), func(t *testing.T) {
			p := profiled(t, s, tls)
			split, err := Of(p)
			require.NoError(t, err)
			total := int64(0)
			for _, sample := range p.Sample {
				total += sample.Value[0]
			}
			samples, _ := split.Sum(func(Part) bool { return true })
			require.Equal(t, total, samples, "the parts add up to the profile")
			share := func(of func(Part) bool) float64 {
				n, _ := split.Sum(of)
				return float64(n) / float64(total)
			}
			for _, side := range []string{"client", "server"} {
				require.Greater(t, share(func(p Part) bool { return p.Side == side }), 0.15, side)
			}
			bare := strings.HasPrefix(s.Name, "rawtcp")
			for layer, is := range map[string]bool{
				"networking (syscalls)": true, "allocation and GC": true, "scheduling and wake-ups": true,
				"compression": s.Traits.Compression != "", "TLS": tls, "HTTP framing and headers": !bare,
				"RPC library": strings.Contains(s.Name, "grpc") || strings.Contains(s.Name, "connect"),
			} {
				got := share(func(p Part) bool { return p.Layer == layer })
				if is {
					require.Positive(t, got, layer)
				} else if layer == "TLS" || layer == "HTTP framing and headers" {
					require.Zero(t, got, layer)
				}
			}
			unknown := func(p Part) bool { return p.Layer == Other }
			require.LessOrEqual(t, share(unknown), 0.05, "what no rule knows: %v", split.Parts)

			p.Comments = nil // which makes the profile one of a service
			split, err = Of(p)
			require.NoError(t, err)
			if bare {
				require.Zero(t, share(InRPCs), "no library that is known serves it")
				return
			}
			require.Greater(t, share(InRPCs), 0.4, "RPC libraries are at work")
			require.LessOrEqual(t, share(unknown), 0.05*share(InRPCs), "what no rule knows of the RPCs: %v", split.Parts)
		})
	}
}

// profiled is a profile of calls that take two seconds of CPU, however long a busy machine needs for them.
func profiled(t *testing.T, s rpcbench.Stack, tls bool) *profile.Profile {
	t.Helper()
	ctx := pprof.WithLabels(t.Context(), pprof.Labels("side", "client"))
	pprof.SetGoroutineLabels(ctx)
	o, err := workload.Workload{TLS: tls}.Open(ctx, s, workload.Setup{})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	r, err := Start()
	require.NoError(t, err)
	require.NoError(t, o.Loop.Start(0))
	before, known := cpu.Time()
	for used := time.Duration(0); err == nil && used < 2*time.Second; {
		_, err = o.Loop.During(t.Context(), 0, time.Second/4, func(bool) {})
		now, _ := cpu.Time()
		if used = now - before; !known {
			used = 2 * time.Second // as elsewhere than on Unix
		}
	}
	p, stopErr := r.Stop(s.Name, o.Figures.Latency.Count())
	require.NoError(t, cmp.Or(err, stopErr))
	return p
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
	var heap bytes.Buffer
	require.NoError(t, pprof.Lookup("heap").WriteTo(&heap, 0))
	own := []string{"rpcbench: 3 calls of BenchmarkX"}
	less := testkit.Profile(nil, " runtime.mcall")
	less.Scale(-1)
	var difference bytes.Buffer
	require.NoError(t, less.Write(&difference))
	good := made(own, "client net.(*conn).Read")
	_, err := ReadFile(file("good", good))
	require.NoError(t, err)
	var plain bytes.Buffer
	require.NoError(t, testkit.Profile(own, "client net.(*conn).Read").WriteUncompressed(&plain))
	_, err = ReadFile(file("not compressed", plain.Bytes()))
	require.NoError(t, err)
	steered, err := ReadFile(file("odd", made(own, "client net.(*conn).\x1b[2JRead")))
	require.NoError(t, err)
	require.Equal(t, "net.(*conn).?[2JRead", steered.Parts[0].Function, "a name can't steer a terminal")
	steered, err = ReadFile(file("odd service", made(nil, " shop.\x1b[2Jtax<runtime.goexit")))
	require.NoError(t, err)
	require.Equal(t, "shop.?[2Jtax", steered.Parts[0].Function, "of a service neither")
	wall := testkit.Profile(nil, " runtime.mcall")
	wall.SampleType[1].Type = "time" // as fgprof has it
	var passing bytes.Buffer
	require.NoError(t, wall.Write(&passing))
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"):                             "no such file",
		file("truncated", good[:len(good)/2]):                     "is no whole profile",
		file("text", []byte("ns/op")):                             "is no whole profile",
		file("heap", heap.Bytes()):                                "it is no CPU profile",
		file("nothing", nil):                                      "is no whole profile",
		file("C++", made(nil, " std::vector::push_back<main")):    "it is no profile of a Go program",
		file("stripped", made(nil, " <", " <", " runtime.mcall")): "no function names: add them with go tool pprof",
		file("difference", difference.Bytes()):                    "it is a difference of two profiles: give one",
		file("empty", made(own)):                                  "the profile has no samples: a longer one",
		file("bomb", bomb):                                        "for less time, or merge fewer: go tool pprof -proto",
		file("wall", passing.Bytes()):                             "it is no CPU profile",
		file("bomb in bomb", zipped(bomb)):                        "is no whole profile",
		file("unlabelled", made(own, " net.(*conn).Read<main.y")): "no sample has the label side",
	} {
		var err error
		bytes := testkit.Allocated(func() { _, err = ReadFile(path) })
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, bytes, uint64(8*most), "bytes allocated for %s", path)
	}
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
			"it is no CPU profile"},
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
		p.Function[0].Name = "runtime.write" // of a program in Go
		s, err := Of(p)
		samples, cpu := s.Sum(func(Part) bool { return true })
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
	require.Equal(t, Split{Row: "a", Calls: 6, Parts: []Part{
		{"networking (syscalls)", "client", "net.(*conn).Read", 2, 20 * ms},
		{"networking (syscalls)", "server", "net.(*conn).Write", 2, 20 * ms},
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

// Stacks of a service are given as "function<caller<caller", whose part as "layer function", or "layer+ function" below
// an encoder.
func TestWhoseWork(t *testing.T) {
	const (
		grpc = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
		http = "<net/http.HandlerFunc.ServeHTTP<net/http.serverHandler.ServeHTTP<net/http.(*conn).serve"
		conn = "<connectrpc.com/connect.NewUnaryHandler[...].func1<connectrpc.com/connect.(*Handler).ServeHTTP" + http
		body = "<google.golang.org/protobuf/proto.Unmarshal<google.golang.org/grpc/encoding/proto.(*codecV2).Unmarshal"
	)
	for _, test := range []struct{ why, stack, want string }{
		{"a library's own work",
			"runtime.memmove<bufio.(*Writer).Write<google.golang.org/grpc/internal/transport.(*bufWriter).Write",
			"HTTP framing and headers google.golang.org/grpc/internal/transport.(*bufWriter).Write"},
		{"the collector helps a library", "runtime.mallocgc" + grpc, "allocation and GC runtime.mallocgc"},
		{"a handler", "runtime.memmove<shop.(*Server).Buy<shop.pb._Shop_Buy_Handler" + grpc,
			"your handlers shop.(*Server).Buy"},
		{"the deepest of a handler's functions", "shop.tax<shop.(*Server).Buy" + grpc, "your handlers shop.tax"},
		{"a handler of connect", "shop.tax" + conn, "your handlers shop.tax"},
		{"a middleware", "middleware.count" + http, "your handlers middleware.count"},
		{"generated code around a handler", "shop._Shop_Buy_Handler" + grpc, "RPC library shop._Shop_Buy_Handler"},
		{"interceptors, inlined", "shop.log<google.golang.org/grpc.NewServer.chainUnaryServerInterceptors.func1",
			"your handlers shop.log"},
		{"a handler's call", "google.golang.org/grpc.(*ClientConn).Invoke<shop.(*Server).Buy" + grpc,
			"RPC library google.golang.org/grpc.(*ClientConn).Invoke"},
		{"a library's benchmark is a service", "google.golang.org/grpc/benchmark.(*testServer).UnaryCall" + grpc,
			"your handlers google.golang.org/grpc/benchmark.(*testServer).UnaryCall"},

		{"a handler of net/rpc", "shop.tax<shop.(*Server).Buy<reflect.Value.call<net/rpc.(*service).call",
			"your handlers shop.tax"},
		{"a handler of connect v2", "shop.tax<shop.buy<connectrpc.com/connect/v2.(*Server).Call<" +
			"connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http, "your handlers shop.tax"},
		{"connect v2's own work", "runtime.memmove<connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http,
			"RPC library connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP"},
		{"connect v2's codec", "runtime.memmove<connectrpc.com/connect/v2/connectproto.(*BinaryCodec).UnmarshalRead<" +
			"connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http,
			"serialisation+ connectrpc.com/connect/v2/connectproto.(*BinaryCodec).UnmarshalRead"},
		{"a handler of connect-go", "shop.buy<github.com/bufbuild/connect-go.NewUnaryHandler[...].func1.1<shop.log<" +
			"github.com/bufbuild/connect-go.NewUnaryHandler[...].func2" + http, "your handlers shop.buy"},
		{"an interceptor of connect-go", "shop.log<github.com/bufbuild/connect-go.NewUnaryHandler[...].func2" + http,
			"your handlers shop.log"},
		{"a handler of grpc-go's own health service",
			"shop.(*Server).Check<google.golang.org/grpc/health/grpc_health_v1._Health_Check_Handler" + grpc,
			"your handlers shop.(*Server).Check"},
		{"grpc-go's implementation of it", "google.golang.org/grpc/health.(*Server).Check" +
			"<google.golang.org/grpc/health/grpc_health_v1._Health_Check_Handler" + grpc,
			"your handlers google.golang.org/grpc/health.(*Server).Check"},
		{"a store's service that somebody implements",
			"shop.(*Fake).Publish<cloud.google.com/go/pubsub/v2/apiv1/pubsubpb._Publisher_Publish_Handler" + grpc,
			"your handlers shop.(*Fake).Publish"},
		{"a handler of an http.Handler of fasthttp", "shop.buy<github.com/valyala/fasthttp.(*Server).serveConn",
			"your handlers shop.buy"},

		{"a codec", "runtime.memmove" + body + grpc, "serialisation+ google.golang.org/protobuf/proto.Unmarshal"},
		{"a codec that allocates", "runtime.mallocgc" + body + grpc, "allocation and GC+ runtime.mallocgc"},
		{"generated code below a codec", "shop.skip<shop.(*Buy).Unmarshal" + body + grpc,
			"serialisation+ shop.(*Buy).Unmarshal"},
		{"a message's own method below an encoder", "shop.Price.text<shop.Price.String<encoding/json.Marshal" + http,
			"serialisation+ encoding/json.Marshal"},
		{"a handler of HTTP encodes its reply", "encoding/json.Marshal<shop.buy" + http,
			"serialisation+ encoding/json.Marshal"},
		{"a handler of gRPC encodes for itself", "encoding/json.Marshal<shop.(*Server).Buy" + grpc,
			"your handlers+ shop.(*Server).Buy"},
		{"a handler of connect encodes for itself", "encoding/json.Marshal<shop.buy" + conn, "your handlers+ shop.buy"},
		{"a handler of twirp encodes for itself",
			"encoding/json.Marshal<shop.(*Server).Buy<shop.pb.(*shopServer).serveBuyProtobuf.func2" + http,
			"your handlers+ shop.(*Server).Buy"},
		{"twirp's generated code decodes",
			"google.golang.org/protobuf/proto.Unmarshal<shop.pb.(*shopServer).serveBuyProtobuf" + http,
			"serialisation+ google.golang.org/protobuf/proto.Unmarshal"},
		{"thrift's generated code decodes", "runtime.memmove<github.com/apache/thrift/lib/go/thrift.(*TBinaryProtocol)." +
			"ReadString<shop.(*Buy).Read<shop.(*buyProcessor).Process<github.com/apache/thrift/lib/go/thrift." +
			"(*TSimpleServer).processRequests",
			"serialisation+ github.com/apache/thrift/lib/go/thrift.(*TBinaryProtocol).ReadString"},
		{"a handler of thrift encodes for itself", "encoding/json.Marshal<shop.buy<shop.(*buyProcessor).Process<" +
			"github.com/apache/thrift/lib/go/thrift.(*TSimpleServer).processRequests", "your handlers+ shop.buy"},
		{"Kitex's generated code decodes", "runtime.memmove<shop.(*Buy).FastReadField1<shop.(*Buy).FastRead<" +
			"github.com/cloudwego/kitex/pkg/remote/codec/thrift.thriftCodec.Unmarshal<" +
			"github.com/cloudwego/kitex/pkg/remote/trans.(*svrTransHandler).Read",
			"serialisation+ shop.(*Buy).FastRead"},
		{"a gateway finds its marshaler", "github.com/grpc-ecosystem/grpc-gateway/v2/runtime.MarshalerForRequest<shop.pb.x<" +
			"github.com/grpc-ecosystem/grpc-gateway/v2/runtime.(*ServeMux).ServeHTTP" + http,
			"RPC library github.com/grpc-ecosystem/grpc-gateway/v2/runtime.MarshalerForRequest"},
		{"a job encodes", "runtime.mallocgc<encoding/json.Marshal<shop.nightly", "everything else+ shop.nightly"},
		{"an encoder alone", "encoding/json.Marshal", "everything else+ encoding/json.Marshal"},
		{"an encoder reads from a socket",
			"syscall.read<net.(*conn).Read<net/http.(*body).Read<encoding/json.(*Decoder).Decode<shop.buy" + http,
			"networking (syscalls) syscall.read"},
		{"an encoder writes to a middleware", "zip.deflate<zip.(*Writer).Write<encoding/json.(*Encoder).Encode<shop.buy" +
			http, "your handlers zip.deflate"},

		{"a database's socket",
			"syscall.read<net.(*conn).Read<github.com/jackc/pgx/v5/pgconn.(*PgConn).Exec<shop.(*Server).Buy" + grpc,
			"other sockets github.com/jackc/pgx/v5/pgconn.(*PgConn).Exec"},
		{"an unknown driver", "syscall.read<net.(*conn).Read<driver.exec<database/sql.(*DB).QueryContext<shop.job",
			"other sockets database/sql.(*DB).QueryContext"},
		{"a queue's socket", "github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs",
			"other sockets github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs"},
		{"a library whose package has a dot",
			"syscall.write<github.com/nats-io/nats%2ego.(*Conn).Publish<shop.(*Server).Buy" + grpc,
			"other sockets github.com/nats-io/nats.go.(*Conn).Publish"},
		{"a store behind HTTP", "syscall.write<net.(*conn).Write<net/http.(*Client).Do<" +
			"github.com/aws/aws-sdk-go-v2/service/s3.(*Client).PutObject<shop.job",
			"other sockets github.com/aws/aws-sdk-go-v2/service/s3.(*Client).PutObject"},

		{"a connection of somebody's under a library",
			"syscall.read<net.(*conn).Read<mux.(*Conn).Read<google.golang.org/grpc/internal/transport.readFrame",
			"networking (syscalls) syscall.read"},
		{"somebody's code in a place that no rule knows",
			"runtime.mallocgc<stats.count<google.golang.org/grpc/internal/transport.readFrame", "other stats.count"},

		{"the scheduler", "runtime.futex<runtime.findRunnable<runtime.mcall", "scheduler and collector runtime.futex"},
		{"C", "ZSTD_compress<runtime.cgocall<zstd.Compress<shop.job", "everything else zstd.Compress"},
		{"a job", "runtime.mallocgc<sort.Slice<shop.nightly[go.shape.int]", "everything else shop.nightly"},
		{"the profiler", "runtime/pprof.profileWriter", "everything else runtime/pprof.profileWriter"},
	} {
		s, err := Of(testkit.Profile(nil, " "+test.stack, " runtime.mcall"))
		require.NoError(t, err)
		got := s.Parts[0].Layer
		if s.Parts[0].Side == Encoding {
			got += "+"
		}
		require.Equal(t, test.want, got+" "+s.Parts[0].Function, "%s: %s", test.why, test.stack)
	}
}

// Each client of a store is known by a function that its releases have, and what it sends is no RPC's.
func TestClientsOfStores(t *testing.T) {
	for function := range strings.FieldsSeq(`
database/sql.(*Rows).Next github.com/lib/pq.(*conn).query github.com/go-sql-driver/mysql.(*mysqlConn).readPacket
github.com/jackc/pgx/v5.(*Conn).Query github.com/microsoft/go-mssqldb.(*Stmt).sendQuery
github.com/mattn/go-sqlite3.(*SQLiteStmt).exec modernc.org/sqlite.(*conn).step
github.com/ClickHouse/clickhouse-go/v2.(*connect).query github.com/gocql/gocql.(*Conn).exec
go.mongodb.org/mongo-driver/mongo.(*Collection).Find go.mongodb.org/mongo-driver/v2/x/mongo/driver.Operation.Execute
gorm.io/gorm.(*processor).Execute github.com/redis/go-redis/v9.(*baseClient).process
github.com/go-redis/redis/v8.(*baseClient).process github.com/gomodule/redigo/redis.(*conn).Do
github.com/valkey-io/valkey-go.(*pipe).Do github.com/bradfitz/gomemcache/memcache.(*Client).Get
github.com/IBM/sarama.(*Broker).send github.com/Shopify/sarama.(*Broker).send github.com/segmentio/kafka-go.(*Conn).do
github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs github.com/confluentinc/confluent-kafka-go/v2/kafka.(*handle).poll
github.com/nats-io/nats.go.(*Conn).publish github.com/rabbitmq/amqp091-go.(*Channel).send
github.com/streadway/amqp.(*Channel).send github.com/apache/pulsar-client-go/pulsar.(*producer).Send
github.com/eclipse/paho.mqtt.golang.(*client).Publish github.com/aws/aws-sdk-go/aws/request.(*Request).Send
cloud.google.com/go/storage.(*Writer).Write github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime.Pipeline.Do
github.com/minio/minio-go/v7.(*Client).do github.com/elastic/elastic-transport-go/v8/elastictransport.(*Client).Perform
github.com/opensearch-project/opensearch-go.(*Client).Perform github.com/olivere/elastic/v7.(*Client).PerformRequest
github.com/go-ldap/ldap/v3.(*Conn).Search net/smtp.(*Client).Data`) {
		const serve = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
		s, err := Of(testkit.Profile(nil, " syscall.write<net.(*conn).Write<"+function+"<shop.(*Server).Buy"+serve,
			" runtime.mcall"))
		require.NoError(t, err)
		require.Equal(t, "other sockets", s.Parts[0].Layer, function)
		require.Equal(t, function, s.Parts[0].Function)
	}
}

// Methods that generators give to messages are encoders, whoever calls them.
func TestMethodsOfMessagesEncode(t *testing.T) {
	const serve = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
	for _, name := range []string{"Marshal", "Unmarshal", "MarshalJSON", "MarshalVT", "UnmarshalVT", "SizeVT",
		"MarshalToSizedBufferVT", "MarshalMsg", "UnmarshalMsg", "EncodeMsg", "DecodeMsg", "Msgsize", "FastRead", "FastWrite",
		"FastWriteNocopy", "BLength"} {
		s, err := Of(testkit.Profile(nil, " shop.(*Buy)."+name+serve, " runtime.mcall"))
		require.NoError(t, err)
		require.Equal(t, "serialisation", s.Parts[0].Layer, name)
	}
	s, err := Of(testkit.Profile(nil, " shop.(*Buy).Marshaler"+serve, " runtime.mcall"))
	require.NoError(t, err)
	require.Equal(t, "your handlers", s.Parts[0].Layer, "no encoder")
}

// Of a library that nobody has seen call a handler, the profile says so, and the samples are RPCs.
func TestUnseenHandlers(t *testing.T) {
	const serve = "/lib/go/thrift.(*TSimpleServer).Serve"
	s, err := Of(testkit.Profile(nil, " shop.tax<git.apache.org/thrift.git"+serve, " runtime.mcall"))
	require.NoError(t, err)
	require.Equal(t, "git.apache.org/thrift.git/lib/go/thrift", s.Unseen)
	require.Equal(t, "shop.tax", s.Parts[0].Function)
	require.True(t, InRPCs(s.Parts[0]))
	s, err = Of(testkit.Profile(nil, " shop.tax<github.com/apache/thrift"+serve, " runtime.mcall"))
	require.NoError(t, err)
	require.Empty(t, s.Unseen)
}

// Profiles of servers from elsewhere are in testdata/services. docs/service.md says how they were made.
func TestRulesKnowServices(t *testing.T) {
	files, err := filepath.Glob("testdata/services/*.pprof")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		s, err := ReadFile(file)
		require.NoError(t, err)
		rpcs, _ := s.Sum(InRPCs)
		unknown, _ := s.Sum(func(p Part) bool { return p.Layer == Other })
		require.Greater(t, rpcs, int64(500), file)
		require.LessOrEqual(t, float64(unknown), 0.05*float64(rpcs), "what no rule knows of the RPCs of %s: %v", file,
			s.Parts)
		if service := strings.TrimSuffix(filepath.Base(file), ".pprof"); service != "grpc-go" {
			require.NotContains(t, rulesText+ownersText, service, "a rule that is for this service alone")
		}
	}
	require.NotContains(t, rulesText+ownersText, "google.golang.org/grpc/benchmark")
}
