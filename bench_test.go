package rpcbench_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacks/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

// The flags of go test.
var (
	update  = flag.Bool("update", false, "write golden files")
	full    = flag.Bool("full", false, "run every stack and workload, and BenchmarkCross, with all figures")
	overTLS = flag.Bool("tls", false, "use TLS 1.3 in every row")
	only    = flag.String("stacks", "", "stacks of BenchmarkCall, separated by commas")
	few     = flag.Bool("few", false, "time few rows of all that -full has, and name the others, for TestRows")
	named   []rpcbench.Stack // those of -stacks
)

func TestMain(m *testing.M) {
	stacktest.Main(&checked{M: m}, stacks.All()...)
}

// checked is package testing's run of this package, which begins with the flags. It ends with what the rows say of the
// three approaches.
type checked struct {
	*testing.M
	rows []row
}

// Wants keeps rows narrow: a reader of a terminal asks for time and memory.
func (c *checked) Wants(unit string) bool {
	return *full || slices.Contains([]string{"ns/op", "cpu-ns/op", "B/op", "allocs/op"}, unit)
}

func (c *checked) Row(name string, figures map[string]float64) {
	c.rows = append(c.rows, row{name, runtime.GOMAXPROCS(0), figures})
}

func (c *checked) Run() int {
	if *only != "" {
		var err error
		if named, err = stacks.Find(strings.Split(*only, ",")...); err != nil {
			fmt.Fprintln(os.Stderr, "-stacks:", err)
			return 2
		}
	}
	if asked("bench") {
		if *overTLS {
			fmt.Println("tls: on") // a key: it forbids comparing with rows in clear
		}
		profiles := slices.DeleteFunc([]string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace"},
			func(name string) bool { return !asked(name) })
		if len(profiles) == 0 && !*full && !typed("test.benchtime") { // profiles need samples, and percentiles need ops
			_ = flag.Set("test.benchtime", "500ms")
		}
		if len(profiles) > 0 && !asked("run") {
			fmt.Fprintf(os.Stderr, "# rpcbench: no test runs, since -%s would have its calls too: give -run to run some\n",
				profiles[0])
			_ = flag.Set("test.run", "^$")
		}
	}
	code := c.M.Run()
	for _, line := range against(c.rows) {
		fmt.Println(line)
	}
	return code
}

// asked tells whether a flag of package testing has a value.
func asked(name string) bool { return flag.Lookup("test."+name).Value.String() != "" }

// typed tells whether a flag was given.
func typed(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

func BenchmarkGRPCProtobuf(b *testing.B)  { one(b, grpcprotobuf.New()) }
func BenchmarkHTTPJSON(b *testing.B)      { one(b, httpjson.New()) }
func BenchmarkHTTPJSONIter(b *testing.B)  { one(b, httpjsoniter.New()) }
func BenchmarkGRPCServeHTTP(b *testing.B) { one(b, grpcservehttp.New()) }
func BenchmarkConnectRPC(b *testing.B)    { one(b, connectrpc.New()) }
func BenchmarkConnectRPC2(b *testing.B)   { one(b, connectrpc2.New()) }
func BenchmarkHTTPProtobuf(b *testing.B)  { one(b, httpprotobuf.New()) }
func BenchmarkHTTPMsgpack(b *testing.B)   { one(b, httpmsgpack.New()) }
func BenchmarkHTTPXML(b *testing.B)       { one(b, httpxml.New()) }
func BenchmarkRawTCP(b *testing.B)        { one(b, rawtcp.New()) }

func one(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	bench(b, workload.Workload{}, stack)
}

// bench times a stack at a workload, over TLS if the flag says so.
func bench(b *testing.B, w workload.Workload, stack rpcbench.Stack) {
	b.Helper()
	w.TLS = *overTLS || w.TLS
	stacktest.Benchmark(b, stack, rpcbench.Workload(w))
}

// BenchmarkCall has the core stacks at workloads that decide between them, or with -full every stack and variant at
// each workload of rpcbench list, and a few more. A row's name has its connections if the stacks differ in them.
func BenchmarkCall(b *testing.B) {
	for i, w := range workload.Rows(*full) {
		all := selected(core())
		for j, s := range all {
			name := "workload=" + w.Name + "/stack=" + s.Name
			if w.Several() && w.Conns == 0 {
				name += fmt.Sprintf("/conns=%d", w.Connections(s.Traits))
			}
			b.Run(name, func(b *testing.B) {
				if !left(b, !w.Stream && (!*full || j != i%len(all))) { // not all stacks stream
					bench(b, w, s)
				}
			})
		}
	}
}

// untimed is a unit of rows that -few leaves out.
const untimed = "untimed"

// left tells whether a row is one of those.
func left(b *testing.B, is bool) bool {
	b.Helper()
	if *few && is {
		b.ReportMetric(0, untimed)
	}
	return *few && is
}

// core has the stacks behind "gRPC or JSON?".
func core() []rpcbench.Stack { return stacks.Core()[:3] }

// cross has clients and servers that all speak gRPC with protobuf.
func cross() (clients, servers []rpcbench.Stack) {
	return []rpcbench.Stack{grpcprotobuf.New(), connectrpc.GRPC(), connectrpc2.GRPC()},
		[]rpcbench.Stack{grpcprotobuf.New(), grpcservehttp.New(), connectrpc.GRPC(), connectrpc2.GRPC()}
}

// BenchmarkCross is clients of one library against servers of another: is it the client or the server? With -full.
func BenchmarkCross(b *testing.B) {
	if !*full {
		b.Skip("add -full")
	}
	clients, servers := cross()
	for i, client := range clients {
		for j, server := range servers {
			stack, err := crossed.Of(client, server)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("client="+client.Name+"/server="+server.Name, func(b *testing.B) {
				if !left(b, (i+j)%len(servers) > 0) {
					one(b, stack)
				}
			})
		}
	}
}

// selected returns the stacks of -stacks, or with -full all, or else those that a benchmark has by default.
func selected(unlessGiven []rpcbench.Stack) []rpcbench.Stack {
	switch {
	case len(named) > 0:
		return named
	case *full:
		return stacks.All()
	}
	return unlessGiven
}
