package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
)

// serving is a process that serves.
type serving struct {
	addrs, commands map[string]string // of each stack
	cmd             *exec.Cmd
	stdout          *bufio.Reader
	stderr          bytes.Buffer
}

// start starts the command in a process of its own, which ends with the test, and reads what it prints. The error has
// what it says on standard error.
func start(t *testing.T, args ...string) (*serving, error) {
	t.Helper()
	testkit.Alone(t)
	s := &serving{addrs: map[string]string{}, commands: map[string]string{}}
	s.cmd = testkit.Again(t, asMain+"=1", append([]string{"serve"}, args...)...)
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Wait() }) // an error: it was ended with the test, or before
	s.stdout = bufio.NewReader(stdout)
	line := func() string {
		text, _ := s.stdout.ReadString('\n')
		return strings.TrimSuffix(text, "\n")
	}
	first := line()
	if first == "" {
		_ = s.cmd.Wait()
		return nil, errors.New(s.stderr.String())
	}
	require.Empty(t, line())
	for item := range strings.SplitSeq(first, ",") {
		name, addr, ok := strings.Cut(item, "=")
		require.True(t, ok, first)
		require.Equal(t, "# "+name, line())
		s.addrs[name], s.commands[name] = addr, line()
		for strings.HasSuffix(s.commands[name], "\\") { // the shell's sign that a command goes on
			s.commands[name] += "\n" + line()
		}
	}
	require.Regexp(t, `^# Next: .* rpcbench run -server `, line())
	return s, nil
}

func served(t *testing.T, args ...string) *serving {
	t.Helper()
	s, err := start(t, args...)
	require.NoError(t, err)
	return s
}

// TestServe: each stack's own client calls what the command serves, and so does a client that nobody here wrote, where
// there is a command line for one. Reflection is for people who call a server by hand: no benchmark's server has it.
func TestServe(t *testing.T) {
	t.Parallel()
	s := served(t)
	require.Len(t, s.addrs, len(stacks.All()))
	_, missing := exec.LookPath("curl")
	said := map[string]int{}
	for _, stack := range stacks.All() {
		addr, command := s.addrs[stack.Name], s.commands[stack.Name]
		require.True(t, strings.HasPrefix(addr, "127.0.0.1:"), "loopback unless told otherwise: %s", addr)
		f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{Remote: addr})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		program, _, _ := strings.Cut(command, " ")
		if stack.Name != "httpjson.v2" { // which not every Go has
			said[program]++
		}
		switch program {
		case "grpcurl":
			require.True(t, strings.HasPrefix(stack.Protocol, "grpc/"), stack.Name)
			require.Contains(t, command, " "+addr+" rpcbench.user.v1.UserService/CreateUser")
			list, err := services(t, addr)
			require.NoError(t, err, stack.Name)
			const itself = "grpc.reflection.v1.ServerReflection"
			require.ElementsMatch(t, []string{userService, itself, strings.Replace(itself, "v1", "v1alpha", 1)}, list,
				stack.Name)
			f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{})
			require.NoError(t, err)
			_, err = services(t, f.Addr)
			require.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", stack.Name, err)
			require.NoError(t, f.Close())
		case "#":
			require.Equal(t, "# "+stack.Protocol+" at "+addr, command)
		default:
			require.Equal(t, rpcbench.HTTP1, stack.Traits.HTTP, stack.Name)
			if missing == nil {
				out, _ := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
				require.Contains(t, string(out), rpcbench.UserID, command)
			}
		}
	}
	require.Equal(t, map[string]int{"grpcurl": 9, "curl": 15, "#": 9}, said)
}

// TestServeStacksOfOthers: a command line that would fail is not printed.
func TestServeStacksOfOthers(t *testing.T) {
	bare := func(s rpcbench.Server) rpcbench.Server { return testkit.Server{Server: s} }
	grpc := testkit.WithServer(grpcprotobuf.New(), bare)
	json, call := httpjson.New(), methodStacks()[0]
	json.Protocol = "http/protojson"
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, out, "127.0.0.1", 0, []rpcbench.Stack{grpc, json, call})
		ended <- errors.Join(err, out.Close()) // which ends the scan
	}()
	lines := bufio.NewScanner(in)
	for _, want := range []string{"", "", "# grpcprotobuf", "# grpc/proto at 127.0.0.1:", // it takes no reflection
		"# httpjson", "# http/protojson at 127.0.0.1:", "# base", "# http/json at 127.0.0.1:"} {
		require.True(t, lines.Scan(), want)
		require.Contains(t, lines.Text(), want)
	}
	cancel()
	require.NoError(t, <-ended)
}

// Somebody may take a free port before the command does: then another one is tried.
func TestServePorts(t *testing.T) {
	for range 20 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port := ln.Addr().(*net.TCPAddr).Port
		require.NoError(t, ln.Close())
		next := fmt.Sprint("127.0.0.1:", port+1)
		s, err := start(t, "-port", strconv.Itoa(port), "rawtcp", "httpjson")
		if err != nil && (port == 65535 || strings.Contains(err.Error(), "address already in use")) {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, map[string]string{"rawtcp": ln.Addr().String(), "httpjson": next}, s.addrs)
		return
	}
	t.Fatal("no two ports in a row were free")
}

// services asks a server for what it serves.
func services(t *testing.T, addr string) (list []string, err error) {
	t.Helper()
	//lint:ignore SA1019 the alternative is a registry
	gzip := grpc.WithDecompressor(grpc.NewGZIPDecompressor()) // grpcprotobuf.gzip compresses whatever it answers
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), gzip)
	require.NoError(t, err)
	defer conn.Close()
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
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

// TestServeEndsAtOnce: neither a silent connection, nor a request that has not come whole, nor an open stream is waited
// for. Servers that wait do so for 5 or 10 seconds, and a process ends in milliseconds.
func TestServeEndsAtOnce(t *testing.T) {
	for name, signal := range map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			s := served(t, "httpjson", "grpcprotobuf", "grpcservehttp", "connectrpc.grpc", "connectrpc2.grpc", "rawtcp")

			post, err := net.Dial("tcp", s.addrs["httpjson"])
			require.NoError(t, err)
			defer post.Close()
			_, err = io.WriteString(post,
				"POST /users HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
			require.NoError(t, err)
			line, err := bufio.NewReader(post).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 100 Continue\r\n", line, "the handler waits for the body")

			for _, name := range []string{"grpcprotobuf", "grpcservehttp", "connectrpc.grpc", "connectrpc2.grpc"} {
				found, err := stacks.Find(name)
				require.NoError(t, err)
				f, err := rpcbench.Start(t.Context(), found[0], rpcbench.Config{Remote: s.addrs[name]})
				require.NoError(t, err)
				defer f.Close()
				stream, err := f.Client.(rpcbench.Streamer).OpenStream(t.Context())
				require.NoError(t, err)
				defer stream.Close()
				call, err := stream.Prepare(rpcbench.SampleUser(0, 0))
				require.NoError(t, err)
				require.NoError(t, call(t.Context()))
			}
			for _, addr := range s.addrs {
				silent, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				defer silent.Close()
			}

			require.NoError(t, s.cmd.Process.Signal(signal))
			waits := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() }) // for a connection or a call
			defer waits.Stop()
			_, _ = io.Copy(io.Discard, s.stdout) // until it has ended
			require.NoError(t, s.cmd.Wait(), "to be told to end is no error")
			require.Empty(t, s.stderr.String())
		})
	}
}

// TestWire holds what docs/wire.md says of failures over HTTP.
func TestWire(t *testing.T) {
	addrs := served(t, "httpjson", "httpjson.decoder", "httpxml", "connectrpc", "connectrpc2").addrs
	const create = "/" + userService + "/CreateUser"
	large := strings.Repeat(" ", rpcbench.MaxBody+1)
	const connect = "connectrpc connectrpc2"
	for _, c := range []struct {
		why, stacks, path, body string
		status                  int
		want                    string
	}{
		{"a rule is broken, JSON", "httpjson", "/users", `{"email":"ann","name":"Anna"}`, 400,
			`{"code":"invalid","violations":[{"field":"email","rule":"email"},{"field":"password","rule":"min=4"}]}`},
		{"a rule is broken, XML", "httpxml", "/users", "<User/>", 400,
			"<Error><code>invalid</code><violations><field>email</field><rule>required</rule></violations>"},
		{"undecodable", "httpjson", "/users", "{", 400, `{"code":"malformed",`},
		{"too_large", "httpjson", "/users", large, 413, `{"code":"too_large",`},
		{"only blanks make it too large", "httpjson.decoder", "/users",
			`{"email":"ann@example.com","name":"Anna","password":"secret"}` + large, 200, `"id":"1000000"`},
		{"another path", "httpjson", "/nosuch", "{}", 404, "404 page not found"},
		{"a path that could be shorter", "httpjson", "//users/../users", "{}", 307, ""},
		{"an echo", "httpjson", "/echo", `{"string":"hello"}`, 200, `{"string":"hello"}`},
		{"a rule is broken, Connect", connect, create, `{"email":"ann"}`, 400,
			`"details":[{"type":"google.rpc.BadRequest"`},
		{"undecodable, Connect", connect, create, "{", 400, `{"code":"invalid_argument"`},
		{"too large, Connect", connect, create, large, 429, `{"code":"resource_exhausted"`},
		{"an echo, Connect", connect, "/" + userService + "/Echo", `{"string":"hello"}`, 200, `{"string":"hello"}`},
	} {
		for stack := range strings.FieldsSeq(c.stacks) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addrs[stack]+c.path,
				strings.NewReader(c.body))
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/json")
			var transport http.Transport // which follows no redirection
			reply, err := transport.RoundTrip(request)
			require.NoError(t, err, c.why+", "+stack)
			defer reply.Body.Close()
			body, err := io.ReadAll(reply.Body)
			transport.CloseIdleConnections()
			require.NoError(t, err, c.why+", "+stack)
			require.Equal(t, c.status, reply.StatusCode, c.why+", "+stack)
			require.Contains(t, string(body), c.want, c.why+", "+stack)
		}
	}
	for _, c := range []struct{ why, header, body, want string }{
		{"a malformed chunk", "Transfer-Encoding: chunked", "zz\r\n", `(?s)^HTTP/1.1 500 .*\n\{"code":"unknown"`},
		{"a body that ends early", "Content-Length: 100", "{", `(?s)^HTTP/1.1 499 .*\n\{"code":"canceled"`},
	} {
		for stack := range strings.FieldsSeq(connect) {
			conn, err := net.Dial("tcp", addrs[stack])
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", create,
				c.header, c.body)
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			reply, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Regexp(t, c.want, string(reply), c.why+", "+stack)
		}
	}
}
