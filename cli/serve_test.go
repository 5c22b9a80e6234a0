package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	api "github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/stacks"
)

type said chan string

func (s said) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// served runs the command until end is called. It returns the address and the command line of each stack.
func served(t *testing.T, args ...string) (addrs, commands map[string]string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, ended := make(said, 1), make(chan error, 1)
	go func() {
		ended <- ours().run(ctx, append([]string{"serve"}, args...), stdout, io.Discard)
	}()
	end = func() {
		cancel()
		require.NoError(t, <-ended, "to be told to end is no error")
		ended <- nil
	}
	t.Cleanup(end)
	var text string
	select {
	case text = <-stdout:
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	}
	first, rest, _ := strings.Cut(text, "\n\n")
	addrs, commands = map[string]string{}, map[string]string{}
	for item := range strings.SplitSeq(first, ",") {
		name, addr, ok := strings.Cut(item, "=")
		require.True(t, ok, first)
		addrs[name] = addr
		_, after, ok := strings.Cut(rest, "# "+name+"\n")
		require.True(t, ok, name)
		commands[name], _, _ = strings.Cut(after, "\n")
	}
	return addrs, commands, end
}

// TestServe: each stack's own client calls what the command serves, and so does a client that nobody here wrote.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	addrs, commands, end := served(t)
	require.Len(t, addrs, len(stacks.All()))
	_, missing := exec.LookPath("curl")
	for _, stack := range stacks.All() {
		addr := addrs[stack.Name]
		require.True(t, strings.HasPrefix(addr, "127.0.0.1:"), "loopback unless told otherwise: %s", addr)
		f, err := api.Start(t.Context(), stack, api.Config{Server: addr})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		switch command := commands[stack.Name]; {
		case strings.HasPrefix(stack.Protocol, "grpc/"):
			require.Contains(t, command, "grpcurl -plaintext")
			require.Contains(t, command, " "+addr+" rpcbench.user.v1.UserService/CreateUser")
		case missing == nil:
			command = strings.TrimSuffix(command, " | od -c")
			out, _ := exec.CommandContext(t.Context(), "sh", "-c", command).Output() // over bare TCP curl waits until it may no longer
			require.Contains(t, string(out), api.UserID, command)
		}
	}
	end()
	for name, addr := range addrs {
		_, err := net.Dial("tcp", addr)
		require.Error(t, err, name)
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		why  string
		args []string
		want string
	}{
		{"an unknown stack", []string{"httpjsno"}, `rpcbench: unknown stack "httpjsno": rpcbench list names them`},
		{"what calibrate injects is nothing for a network", []string{"grpcprotobuf+garbage=10000000000"}, `unknown stack "grpcprotobuf+garbage=10000000000"`},
		{"work injected by name", []string{"grpcprotobuf+work=24h"}, `unknown stack "grpcprotobuf+work=24h"`},
		{"more stacks than ports", []string{"-port", "65535", "httpjson", "rawtcp"}, "rpcbench: serve: -port 65535: there are no 2 ports from there"},
		{"an address with a port", []string{"-addr", "127.0.0.1:http", "rawtcp"}, "rpcbench: rawtcp: listen: "},
	} {
		t.Run(c.why, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // or one that serves would never end
			defer cancel()
			err := ours().run(ctx, append([]string{"serve"}, c.args...), io.Discard, io.Discard)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestServePorts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	addrs, _, _ := served(t, "-port", port, "rawtcp")
	require.Equal(t, map[string]string{"rawtcp": "127.0.0.1:" + port}, addrs)
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	//lint:ignore SA1019 the alternative is a registry
	gzip := grpc.WithDecompressor(grpc.NewGZIPDecompressor()) // grpcprotobuf.gzip compresses whatever it answers
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), gzip)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// services asks a server for what it serves.
func services(t *testing.T, conn *grpc.ClientConn) (list []string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	})
	reply, err := stream.Recv()
	for _, s := range reply.GetListServicesResponse().GetService() {
		list = append(list, s.GetName())
	}
	return list, err
}

// Reflection and health are for people who call a server by hand. No benchmark's server has them.
func TestServeDescribesGRPC(t *testing.T) {
	addrs, _, _ := served(t)
	described := 0
	for _, stack := range stacks.All() {
		if !strings.HasPrefix(stack.Protocol, "grpc/") {
			continue
		}
		described++
		conn := dial(t, addrs[stack.Name])
		list, err := services(t, conn)
		require.NoError(t, err, stack.Name)
		require.Subset(t, list, []string{userService, "grpc.health.v1.Health"}, stack.Name)
		health, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
		require.NoError(t, err, stack.Name)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.GetStatus(), stack.Name)

		f, err := api.Start(t.Context(), stack, api.Config{})
		require.NoError(t, err)
		conn = dial(t, f.Addr)
		_, err = services(t, conn)
		require.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", stack.Name, err)
		_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
		require.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", stack.Name, err)
		require.NoError(t, conn.Close())
		require.NoError(t, f.Close())
	}
	require.Equal(t, 7, described)
}

// What is under way when the command is told to end has its answer.
func TestServeEndsGracefully(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	addrs, _, end := served(t, "httpjson", "grpcprotobuf", "grpcservehttp", "connectrpc.grpc")

	post, err := net.Dial("tcp", addrs["httpjson"])
	require.NoError(t, err)
	defer post.Close()
	const body = `{"email":"ann@example.com","name":"Anna","password":"secret"}`
	_, err = fmt.Fprintf(post, "POST /users HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	require.NoError(t, err)
	reader := bufio.NewReader(post)
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line, "the handler waits for the body")

	var streams []api.Stream
	calls := map[string]api.Call{}
	for _, name := range []string{"grpcprotobuf", "grpcservehttp", "connectrpc.grpc"} {
		stacks, err := stacks.Find(name)
		require.NoError(t, err)
		f, err := api.Start(t.Context(), stacks[0], api.Config{Server: addrs[name]})
		require.NoError(t, err)
		defer f.Close()
		stream, err := f.Client.(api.Streamer).OpenStream(t.Context())
		require.NoError(t, err)
		streams = append(streams, stream)
		calls[name], err = stream.Prepare(corpus.Sample(0, 0))
		require.NoError(t, err)
		require.NoError(t, calls[name](t.Context()))
	}

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	for _, addr := range addrs {
		for {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				break
			}
			require.NoError(t, conn.Close())
		}
	}
	_, err = io.WriteString(post, body)
	require.NoError(t, err)
	reply, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Contains(t, string(reply), api.UserID)
	for name, call := range calls {
		require.NoError(t, call(t.Context()), name)
	}
	select {
	case <-ended:
		t.Error("streams are still open")
	default:
	}
	for _, stream := range streams {
		require.NoError(t, stream.Close())
	}
	<-ended
}

// TestWire holds what docs/wire.md says of failures over HTTP.
func TestWire(t *testing.T) {
	addrs, _, _ := served(t, "httpjson", "httpxml", "connectrpc")
	const create = "/" + userService + "/CreateUser"
	large := strings.Repeat(" ", api.MaxBody+1)
	for _, c := range []struct {
		why, stack, path, body string
		status                 int
		want                   string
	}{
		{"a rule is broken, JSON", "httpjson", "/users", `{"email":"ann","name":"Anna"}`, 400, `{"code":"invalid","violations":[{"field":"email","rule":"email"},{"field":"password","rule":"min=4"}]}`},
		{"a rule is broken, XML", "httpxml", "/users", "<User/>", 400, "<Error><code>invalid</code><violations><field>email</field><rule>required</rule></violations>"},
		{"undecodable", "httpjson", "/users", "{", 400, `{"code":"malformed",`},
		{"too large", "httpjson", "/users", large, 413, `{"code":"too large",`},
		{"another path", "httpjson", "/nosuch", "{}", 404, "404 page not found"},
		{"an echo", "httpjson", "/echo", `{"string":"hello"}`, 200, `{"string":"hello"}`},
		{"a rule is broken, Connect", "connectrpc", create, `{"email":"ann"}`, 400, `"details":[{"type":"google.rpc.BadRequest"`},
		{"undecodable, Connect", "connectrpc", create, "{", 400, `{"code":"invalid_argument"`},
		{"too large, Connect", "connectrpc", create, large, 429, `{"code":"resource_exhausted"`},
		{"an echo, Connect", "connectrpc", "/" + userService + "/Echo", `{"string":"hello"}`, 200, `{"string":"hello"}`},
	} {
		t.Run(c.why, func(t *testing.T) {
			transport := new(http.Transport)
			defer transport.CloseIdleConnections()
			reply, err := (&http.Client{Transport: transport}).Post("http://"+addrs[c.stack]+c.path, "application/json", strings.NewReader(c.body))
			require.NoError(t, err)
			defer reply.Body.Close()
			body, err := io.ReadAll(reply.Body)
			require.NoError(t, err)
			require.Equal(t, c.status, reply.StatusCode)
			require.Contains(t, string(body), c.want)
		})
	}
}
