package rpcbench_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacks/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

// TestMain tells the stack without calls only to a child that serves. -server is for the stacks alone.
func TestMain(m *testing.M) {
	known := stacks.All()
	if odd.Answer(madeUp) {
		return
	}
	if os.Getenv(child.Variable) == child.Serves {
		known = append(known, none())
	}
	stacktest.Main(checked{m}, known...)
}

// checked is package testing's run of this package, whose flags stacktest.Main checks first.
type checked struct{ *testing.M }

func (checked) Check() error {
	err := chosen.check()
	if bench := flag.Lookup("test.bench").Value.String(); err == nil && bench != "" && *chosen.tls {
		fmt.Println("tls: on") // a key: it forbids comparing with rows in clear
	}
	return err
}

func BenchmarkGRPCProtobuf(b *testing.B)  { one(b, grpcprotobuf.New()) }
func BenchmarkHTTPJSON(b *testing.B)      { one(b, httpjson.New()) }
func BenchmarkHTTPJSONIter(b *testing.B)  { one(b, httpjsoniter.New()) }
func BenchmarkGRPCServeHTTP(b *testing.B) { one(b, grpcservehttp.New()) }
func BenchmarkConnectRPC(b *testing.B)    { one(b, connectrpc.New()) }
func BenchmarkHTTPProtobuf(b *testing.B)  { one(b, httpprotobuf.New()) }
func BenchmarkHTTPMsgpack(b *testing.B)   { one(b, httpmsgpack.New()) }
func BenchmarkHTTPXML(b *testing.B)       { one(b, httpxml.New()) }
func BenchmarkRawTCP(b *testing.B)        { one(b, rawtcp.New()) }

// Run names the flags that no benchmark of the run has asked for.
func (c checked) Run() int {
	code := c.M.Run()
	if flag.Lookup("test.bench").Value.String() != "" {
		for _, name := range chosen.unheeded() {
			fmt.Fprintf(os.Stderr, "# rpcbench: -%s has no effect on the rows of this run\n", name)
		}
	}
	return code
}

func one(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	bench(b, rpcbench.Workload{}, stack)
}

// bench times a stack at a workload, over TLS if the flag says so.
func bench(b *testing.B, w rpcbench.Workload, stack rpcbench.Stack) {
	b.Helper()
	w.TLS = chosen.isTLS() || w.TLS
	stacktest.Benchmark(b, w, stack)
}

// BenchmarkVersus is every main value against -base, slice by slice.
func BenchmarkVersus(b *testing.B) {
	base := find(b, *chosen.base)[0]
	chosen.obeyed["base"] = true
	contestants := slices.DeleteFunc(selected(b, stacks.Main()), func(s rpcbench.Stack) bool {
		return s.Name == base.Name
	})
	stacktest.BenchmarkVersus(b, rpcbench.Workload{TLS: chosen.isTLS()}, base, contestants...)
}

// BenchmarkCreateUser is the small call again, with a key stack= that benchstat can compare by: of the core stacks, or
// of every stack and variant with -full.
func BenchmarkCreateUser(b *testing.B) {
	for _, s := range selected(b, core()) {
		b.Run("stack="+s.Name, func(b *testing.B) { one(b, s) })
	}
}

// core has the stacks behind "gRPC or JSON?".
func core() []rpcbench.Stack { return stacks.Main()[:3] }

// cross has clients and servers that all speak gRPC with protobuf.
func cross() (clients, servers []rpcbench.Stack) {
	return []rpcbench.Stack{grpcprotobuf.New(), connectrpc.GRPC()},
		[]rpcbench.Stack{grpcprotobuf.New(), grpcservehttp.New(), connectrpc.GRPC()}
}

// BenchmarkCross is clients of one library against servers of another: is it the client or the server? With -full.
func BenchmarkCross(b *testing.B) {
	if !chosen.isFull() {
		b.Skip("add -full")
	}
	clients, servers := cross()
	for _, client := range clients {
		for _, server := range servers {
			stack, err := rpcbench.Cross(client, server)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("client="+client.Name+"/server="+server.Name, func(b *testing.B) { one(b, stack) })
		}
	}
}

// BenchmarkPayload sends random bytes and gets them back. JSON carries them in base64, and scans every character.
func BenchmarkPayload(b *testing.B) {
	each(b, "payload", chosen.payloads.values(), func(payload string) (w rpcbench.Workload) {
		w.Payload, _ = workload.Size(payload) // which check has seen
		return w
	})
}

// BenchmarkParallel has many callers, each of which calls again as soon as its call ends.
func BenchmarkParallel(b *testing.B) {
	for _, s := range selected(b, core()) {
		for _, n := range callers() {
			atOnce(b, "stack="+s.Name, rpcbench.Workload{Callers: n}, s)
		}
	}
}

// BenchmarkEcho sends the flex message there and back, without validation.
func BenchmarkEcho(b *testing.B) {
	for _, s := range selected(b, core()) {
		for _, m := range []string{"flex.empty", "flex.complex"} {
			name := "stack=" + s.Name + "/msg=" + m
			b.Run(name+"/callers=1/conns=1", func(b *testing.B) { bench(b, rpcbench.Workload{Message: m}, s) })
			if m != "flex.empty" || chosen.isFull() {
				atOnce(b, name, rpcbench.Workload{Message: m, Callers: 50}, s)
			}
		}
	}
}

// atOnce is a row of several callers.
func atOnce(b *testing.B, name string, w rpcbench.Workload, s rpcbench.Stack) {
	chosen.obeyed["conns"] = true
	w.Conns = cmp.Or(*chosen.conns, min(w.Callers, 20))
	b.Run(fmt.Sprintf("%s/callers=%d/conns=%d", name, w.Callers, w.Conns), func(b *testing.B) { bench(b, w, s) })
}

// BenchmarkStream compares a call with a message on an open stream. JSON over HTTP/1.1 has no stream.
func BenchmarkStream(b *testing.B) {
	for _, s := range selected(b, []rpcbench.Stack{grpcprotobuf.New()}) {
		b.Run("stack="+s.Name+"/op=unary", func(b *testing.B) { one(b, s) })
		b.Run("stack="+s.Name+"/op=bothways", func(b *testing.B) { bench(b, rpcbench.Workload{Stream: true}, s) })
	}
}

// BenchmarkInvalid sends a user that is refused.
func BenchmarkInvalid(b *testing.B) { plain(b, rpcbench.Workload{Invalid: true}) }

// BenchmarkDeadline gives each call a context.WithTimeout of its own.
func BenchmarkDeadline(b *testing.B) { plain(b, rpcbench.Workload{Deadline: true}) }

// BenchmarkHeaders adds what production clients do: a bearer token and a user agent, the same for all calls, and a
// traceparent for each. HTTP/2 sends repeated headers once.
func BenchmarkHeaders(b *testing.B) { plain(b, rpcbench.Workload{Headers: true}) }

// BenchmarkTLS is over a warm connection. Bytes are those of the ciphertext.
func BenchmarkTLS(b *testing.B) { plain(b, rpcbench.Workload{TLS: true}) }

// BenchmarkCold makes a client and a connection for each call. With TLS each makes a full handshake with a key on
// P-256, since nothing is resumed.
func BenchmarkCold(b *testing.B) {
	values := []string{"off", "on"}
	if chosen.isTLS() {
		values = values[1:]
	}
	each(b, "tls", values, func(tls string) rpcbench.Workload {
		return rpcbench.Workload{NewConn: true, TLS: tls == "on"}
	})
}

// BenchmarkLink is over emulated links, where round trips decide, and not the format. A warm call waits for one. On a
// new connection net/http waits for two, and grpc-go for three: its client waits for the server's settings before it
// sends.
func BenchmarkLink(b *testing.B) {
	for _, link := range chosen.links.values() {
		name := strings.ReplaceAll(link, "/", ".") // a slash would end the value
		each(b, "link="+name+"/op", []string{"warm", "cold"}, func(op string) rpcbench.Workload {
			return rpcbench.Workload{Link: link, NewConn: op == "cold"}
		})
	}
}

// BenchmarkOpenLoop runs with -rates or -full. By default it has no row, since such a row would flag itself: on two
// cores waking a goroutine at a planned time takes about as long as a call. At 1,000 calls per second late-p99-ns was
// 113 to 415 µs, and p99-ns 520 to 1,144 µs (bench.txt of 2026-11-21-xeon-2vcpu-evening in the study). Higher rates
// are late too. Percentiles count from the planned start.
func BenchmarkOpenLoop(b *testing.B) {
	rates := chosen.rates.values()
	if len(rates) == 0 {
		b.Skip("add -full, or name rates with -rates")
	}
	each(b, "rate", rates, func(rate string) rpcbench.Workload { return rpcbench.Workload{Rate: perSecond(rate)} })
	for _, rate := range rates {
		b.Run("stack=none/rate="+rate, func(b *testing.B) { bench(b, rpcbench.Workload{Rate: perSecond(rate)}, none()) })
	}
}

// none is a stack whose calls do nothing, but for those of the start. Its row shows what the generator adds to every
// other row.
func none() rpcbench.Stack {
	s := rawtcp.New()
	s.Name = "none"
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return idle{c.(rpcbench.Users)}, err
	}
	return s
}

type idle struct{ rpcbench.Users }

func (c idle) Prepare(i, payload int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.Sample(i, payload))
}

func (c idle) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	if len(u.Name) == len("Anna1000") {
		return c.Users.PrepareUser(u)
	}
	return func(context.Context) error { return nil }, nil
}

func perSecond(rate string) float64 {
	n, _ := strconv.ParseFloat(rate, 64) // which check has seen
	return n
}

// plain runs a row for every stack.
func plain(b *testing.B, w rpcbench.Workload) {
	for _, s := range selected(b, core()) {
		b.Run("stack="+s.Name, func(b *testing.B) { bench(b, w, s) })
	}
}

// each runs a row for every stack and value.
func each(b *testing.B, key string, values []string, of func(value string) rpcbench.Workload) {
	for _, s := range selected(b, core()) {
		for _, v := range values {
			b.Run("stack="+s.Name+"/"+key+"="+v, func(b *testing.B) { bench(b, of(v), s) })
		}
	}
}

// selected returns the stacks of -stacks, or with -full all, or else those that a benchmark has by default.
func selected(b *testing.B, unlessGiven []rpcbench.Stack) []rpcbench.Stack {
	b.Helper()
	chosen.obeyed["stacks"] = true
	switch names := chosen.stacks.given(); {
	case len(names) > 0:
		return find(b, names...)
	case chosen.isFull():
		return stacks.All()
	}
	return unlessGiven
}

func find(b *testing.B, names ...string) []rpcbench.Stack {
	b.Helper()
	found, err := stacks.Find(names...)
	if err != nil {
		b.Fatal(err)
	}
	return found
}
