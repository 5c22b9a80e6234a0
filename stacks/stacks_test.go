package stacks_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/message"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func long() bool { return flag.Lookup("long").Value.String() == "true" }

// TestConformanceSideBySide runs the suite once more in a process that links every stack and has a fixture of each
// open. Variants run the code of their main value.
func TestConformanceSideBySide(t *testing.T) {
	if !long() {
		t.Skip("each stack has run the suite by itself: -long")
	}
	for _, stack := range stacks.All() {
		stacktest.Start(t, stack, rpcbench.Config{})
	}
	for _, stack := range stacks.Core() {
		t.Run(stack.Name, func(t *testing.T) { stacktest.Conformance(t, stack) })
	}
}

// TestSharedTypesHaveNoCodecMethods: a Marshal method on a type that several stacks encode would be picked up by one
// library and not by another.
func TestSharedTypesHaveNoCodecMethods(t *testing.T) {
	for _, shared := range []reflect.Type{
		reflect.TypeFor[*rpcbench.User](), reflect.TypeFor[*rpcbench.Response](),
		reflect.TypeFor[*rpcbench.Error](), reflect.TypeFor[*rpcbench.Violation](),
	} {
		require.Empty(t, codecMethods(shared), shared)
	}
	require.NotEmpty(t, codecMethods(reflect.TypeFor[marshaler]()), "the test finds one where there is one")
}

type marshaler struct{}

func (marshaler) MarshalText() ([]byte, error) { return nil, nil }

func codecMethods(t reflect.Type) (names []string) {
	for i := range t.NumMethod() {
		for _, word := range []string{"marshal", "encode", "decode", "gob"} {
			if name := t.Method(i).Name; strings.Contains(strings.ToLower(name), word) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestUnixSockets: every stack makes its calls over a Unix socket, with TLS and without, and leaves no file behind. Its
// server counts them.
// Those whose libraries stream over HTTP/2 stream there, and no others.
func TestUnixSockets(t *testing.T) {
	var streamers []string
	for _, s := range stacks.All() {
		for _, tls := range []bool{false, true} {
			var other atomic.Pointer[net.Conn] // a connection that is none of a Unix socket
			look := func(c net.Conn) net.Conn {
				if _, ok := c.(*net.UnixConn); !ok {
					other.Store(&c)
				}
				return c
			}
			f, err := rpcbench.Start(t.Context(), s, rpcbench.Config{Unix: true, TLS: tls, Conns: 2, WrapClient: look})
			require.NoError(t, err, s.Name)
			folder := filepath.Dir(f.Addr)
			require.DirExists(t, folder)
			call, err := testkit.As[rpcbench.Users](t, f).PrepareUser(rpcbench.SampleUser(1, 100_000))
			require.NoError(t, err, s.Name)
			before, made := f.Handled(), int64(3)
			for range 3 {
				require.NoError(t, call(t.Context()), s.Name)
			}
			if echoer, ok := f.Client.(rpcbench.Echoer); ok {
				_, err := echoer.Echo(t.Context(), &rpcbench.Flex{String: "echo"})
				require.NoError(t, err, s.Name)
				made++
			}
			if streamer, ok := f.Client.(rpcbench.Streamer); ok {
				streamers = append(streamers, s.Name)
				stream, err := streamer.OpenStream(t.Context())
				require.NoError(t, err, s.Name)
				call, err := stream.Prepare(rpcbench.SampleUser(2, 0))
				require.NoError(t, err, s.Name)
				require.NoError(t, call(t.Context()), s.Name)
				require.NoError(t, stream.Close(), s.Name)
				made++
			}
			require.Equal(t, made, f.Handled()-before, "%s: calls that the server has handled", s.Name)
			require.True(t, f.Accepted() == 2 || s.Traits.Reconnects, s.Name)
			require.NoError(t, f.Close(), s.Name)
			require.Nil(t, other.Load(), s.Name)
			require.NoDirExists(t, folder, s.Name)
			require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(call(t.Context())), "%s, closed", s.Name)
		}
	}
	require.ElementsMatch(t, slices.Repeat([]string{
		"grpcprotobuf", "grpcprotobuf.tuned", "grpcprotobuf.windows", "grpcprotobuf.vt", "grpcprotobuf.gzip",
		"grpcservehttp", "grpcservehttp.vt", "connectrpc.h2c", "connectrpc.grpc",
		"connectrpc2.h2c", "connectrpc2.grpc",
	}, 2), streamers, "with TLS and without")
}

// TestAllHasEveryStack: All lists what each function of a package of stacks makes, under the function's name.
func TestAllHasEveryStack(t *testing.T) {
	var made, listed []string
	for _, pattern := range []string{"../*/*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(\) rpcbench\.Stack `).FindAllSubmatch(text, -1) {
				name := filepath.Base(filepath.Dir(file)) + "." + strings.ToLower(string(m[1]))
				made = append(made, strings.TrimSuffix(name, ".new"))
			}
		}
	}
	for _, s := range stacks.All() {
		listed = append(listed, s.Name)
	}
	if !slices.Contains(listed, "httpjson.v2") { // Go 1.27 has it
		listed = append(listed, "httpjson.v2")
	}
	require.ElementsMatch(t, made, listed)
}

func TestFind(t *testing.T) {
	_, err := stacks.Find("httpjsn")
	require.ErrorContains(t, err, `unknown stack "httpjsn": the stacks are grpcprotobuf, httpjson, `)
	for _, s := range stacks.All() {
		require.ErrorContains(t, err, s.Name)
	}
	require.NotContains(t, err.Error(), "\n")
}

// TestCrossConforms: every client of BenchmarkCross against every server but its own, and the two versions of Connect
// against each other in each protocol. The suite is for -long, since both sides have run it by themselves. Of Connect's
// own protocol it runs once each way.
func TestCrossConforms(t *testing.T) {
	grpc := []rpcbench.Stack{grpcprotobuf.New(), connectrpc.GRPC(), connectrpc2.GRPC()}
	allCrossed(t, grpc, append(grpc, grpcservehttp.New()), long())
	both := []rpcbench.Stack{connectrpc.New(), connectrpc2.New()}
	allCrossed(t, both, both, long())
	for _, both := range [][]rpcbench.Stack{{connectrpc.Gzip(), connectrpc2.Gzip()},
		{connectrpc.H2C(), connectrpc2.H2C()}, {connectrpc.GRPCWeb(), connectrpc2.GRPCWeb()},
		{connectrpc.JSON(), connectrpc2.JSON()}, {connectrpc.VT(), connectrpc2.VT()}} {
		allCrossed(t, both, both, false)
	}
}

func allCrossed(t *testing.T, clients, servers []rpcbench.Stack, suite bool) {
	t.Helper()
	for _, client := range clients {
		for _, server := range servers {
			if client.Name == server.Name {
				continue
			}
			stack, err := crossed.Of(client, server)
			require.NoError(t, err)
			t.Run(stack.Name, func(t *testing.T) {
				if suite {
					stacktest.Conformance(t, stack)
				}
				client := stacktest.Start(t, stack, rpcbench.Config{}).Client
				u := rpcbench.SampleUser(0, 1000)
				reply, err := client.(rpcbench.Users).CreateUser(t.Context(), u)
				require.NoError(t, err)
				require.NoError(t, rpcbench.CheckUser(&u, &reply))
				echoer, ok := client.(rpcbench.Echoer)
				require.True(t, ok)
				_, err = echoer.Echo(t.Context(), message.Complex())
				require.NoError(t, err, "the suite skips the echo of a server that has none")
				if streamer, ok := client.(rpcbench.Streamer); ok {
					stream, err := streamer.OpenStream(t.Context())
					require.NoError(t, err)
					call, err := stream.Prepare(u)
					require.NoError(t, err)
					require.NoError(t, errors.Join(call(t.Context()), call(t.Context()), stream.Close()))
				}
				u.Email = ""
				_, err = client.(rpcbench.Users).CreateUser(t.Context(), u)
				e, ok := errors.AsType[*rpcbench.Error](err)
				require.True(t, ok, err)
				require.Equal(t, []rpcbench.Violation{{Field: "email", Rule: "required"}}, e.Violations)
				u.Avatar = make([]byte, 2*rpcbench.MaxBody)
				_, err = client.(rpcbench.Users).CreateUser(t.Context(), u)
				require.Equal(t, rpcbench.CodeTooLarge, rpcbench.CodeOf(err), err)
			})
		}
	}
}

// TestProtocolsRefuseEachOther: a client and a server that don't speak the same protocol part with one clear error, in
// time, and Cross does not let it come so far.
func TestProtocolsRefuseEachOther(t *testing.T) {
	for _, server := range stacks.Core() {
		f := stacktest.Start(t, server, rpcbench.Config{})
		for _, client := range stacks.Core() {
			if client.Protocol == server.Protocol {
				continue
			}
			t.Run(client.Name+" to "+server.Name, func(t *testing.T) {
				_, err := crossed.Of(client, server)
				require.ErrorContains(t, err, client.Protocol)
				require.ErrorContains(t, err, server.Protocol)
				c, err := client.Dial(rpcbench.ClientConfig{Addr: f.Addr, DialContext: new(net.Dialer).DialContext, Conns: 1})
				require.NoError(t, err)
				defer c.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = c.(rpcbench.Users).CreateUser(ctx, rpcbench.SampleUser(0, 0))
				e, ok := errors.AsType[*rpcbench.Error](err)
				require.True(t, ok, "%v", err)
				require.NotEqual(t, rpcbench.CodeDeadlineExceeded, e.Code, "the client waits in vain")
				require.NotContains(t, e.Error(), "\n")
			})
		}
	}
}
