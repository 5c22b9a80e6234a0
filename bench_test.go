package rpcbench_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/connectrpc"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/grpcservehttp"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/httpmsgpack"
	"github.com/rpcbench/rpcbench/httpprotobuf"
	"github.com/rpcbench/rpcbench/httpxml"
	"github.com/rpcbench/rpcbench/internal/floor"
	"github.com/rpcbench/rpcbench/internal/roster"
	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the generated parts of README.md")
	flag.String("stacks", "", "comma-separated names of the stacks of BenchmarkCreateUser and BenchmarkVersus; all, or the main ones, unless given")
	flag.String("base", "httpjson", "name of the stack that BenchmarkVersus compares the others with")
	stacktest.Main(m)
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

func one(b *testing.B, stack rpcbench.Stack) {
	stacktest.BenchmarkCreateUser(b, stack, rpcbench.Config{})
}

// BenchmarkCreateUser is every stack, variants included.
func BenchmarkCreateUser(b *testing.B) {
	for _, s := range stacks(b, roster.All()) {
		b.Run("stack="+s.Name, func(b *testing.B) { one(b, s) })
	}
}

// BenchmarkVersus is every main value against -base, slice by slice.
func BenchmarkVersus(b *testing.B) {
	base := find(b, flag.Lookup("base").Value.String())[0]
	contestants := slices.DeleteFunc(stacks(b, roster.Main()), func(s rpcbench.Stack) bool { return s.Name == base.Name })
	stacktest.BenchmarkVersus(b, base, contestants...)
}

func stacks(b *testing.B, unlessGiven []rpcbench.Stack) []rpcbench.Stack {
	if names := flag.Lookup("stacks").Value.String(); names != "" {
		return find(b, strings.Split(names, ",")...)
	}
	return unlessGiven
}

func find(b *testing.B, names ...string) []rpcbench.Stack {
	found, err := roster.Find(names...)
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// BenchmarkCross is clients of one library against servers of another: is it the client or the server?
func BenchmarkCross(b *testing.B) {
	clients, servers := roster.Cross()
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

// BenchmarkFloor is what no stack can go below, and what empty handlers of the two servers cost.
func BenchmarkFloor(b *testing.B) { floor.Benchmark(b) }
