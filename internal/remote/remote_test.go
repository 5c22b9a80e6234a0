package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/connectrpc"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/rawtcp"
)

const (
	childEnv  = "RPCBENCH_TEST_SERVER"
	parentEnv = "RPCBENCH_TEST_PARENT"
)

// TestMain is also the processes that the tests start.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childEnv) != "":
		Serve(os.Stdin, os.Stdout, find)
	case os.Getenv(parentEnv) != "":
		parent()
	default:
		goleak.VerifyTestMain(m)
	}
}

func find(name string) (rpcbench.Stack, error) {
	switch name {
	case "exits":
		os.Exit(3)
	case "hangs":
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			fmt.Fprintln(os.Stderr, "hanging")
			_, err = ln.Accept()
		}
		return rpcbench.Stack{}, err
	case "procs" + strconv.Itoa(runtime.GOMAXPROCS(0)): // known only to a process of so many
		return httpjson.New(), nil
	case "accepts nothing": // and so lets a bubble's time pass
		return rpcbench.Stack{Name: name, Server: func(rpcbench.ServerConfig) (rpcbench.Server, error) {
			return idle(make(chan struct{})), nil
		}}, nil
	case "noserver":
		return odd(name, func(rpcbench.Server) (rpcbench.Server, error) { return nil, errors.New("odd") }), nil
	case "oddclose":
		return odd(name, func(s rpcbench.Server) (rpcbench.Server, error) { return oddClose{s}, nil }), nil
	}
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New(), connectrpc.GRPC()} {
		if stack.Name == name {
			return stack, nil
		}
	}
	return rpcbench.Stack{}, fmt.Errorf("rpcbench: no stack is called %s", name)
}

// odd is httpjson with another server.
func odd(name string, change func(rpcbench.Server) (rpcbench.Server, error)) rpcbench.Stack {
	stack := httpjson.New()
	stack.Name = name
	server := stack.Server
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		s, err := server(config)
		if err != nil {
			return nil, err
		}
		return change(s)
	}
	return stack
}

type idle chan struct{}

func (s idle) Serve(net.Listener) error { <-s; return net.ErrClosed }
func (s idle) Close() error             { close(s); return nil }

type oddClose struct{ rpcbench.Server }

func (s oddClose) Close() error { return errors.Join(s.Server.Close(), errors.New("odd")) }

// named is httpjson under another name.
func named(name string) rpcbench.Stack {
	stack := httpjson.New()
	stack.Name = name
	return stack
}

func process(t *testing.T, stderr io.Writer) StartFunc {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each child takes a second to end under the race detector
	return Process(path, childEnv+"=1", stderr)
}

func someVersions() map[string]string {
	return map[string]string{"go": "go1.26.0", "commit": "0123456789ab", "example.com/a": "v1.0.0", "example.com/server": "v1.0.0"}
}

// listen runs Listen until the test ends, and returns its address and what it logs.
func listen(t *testing.T) (addr string, logged <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	lines := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Listen(ctx, ln, someVersions(), find, func(line string) { lines <- line }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return ln.Addr().String(), lines
}

// gone fails unless the process has ended and somebody has waited for it.
func gone(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.Signal(0))
	}
	require.ErrorIs(t, err, os.ErrProcessDone)
}

func call(t *testing.T, f *rpcbench.Fixture) {
	t.Helper()
	call, err := f.Client.Prepare(users.Sample(0, 0))
	require.NoError(t, err)
	require.NoError(t, call(t.Context()))
}

func TestServersElsewhere(t *testing.T) {
	cross, err := rpcbench.Cross(grpcprotobuf.New(), connectrpc.GRPC())
	require.NoError(t, err)
	for _, where := range []string{"process", "address"} {
		for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New(), cross} {
			for _, mode := range []string{"clear", "tls"} {
				t.Run(where+"/"+stack.Name+"/"+mode, func(t *testing.T) {
					addr, logged := listen(t)
					defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
					serve := Dial(addr, someVersions())
					if where == "process" {
						serve = process(t, os.Stderr)
					}
					f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{Conns: 3, TLS: mode == "tls", Serve: serve})
					require.NoError(t, err)
					defer f.Close()
					session := f.Serving.(*Session)
					host, port, err := net.SplitHostPort(f.Addr)
					require.NoError(t, err)
					require.Equal(t, "127.0.0.1", host)
					_, err = net.Dial("tcp", "127.0.0.2:"+port)
					require.Error(t, err, "it listens on the interface of its control connection alone")

					collections := numGC()
					before, err := session.Stats(true)
					require.NoError(t, err)
					if where == "address" {
						require.Greater(t, numGC(), collections)
					}
					require.EqualValues(t, 3, before.Accepted, "by the listener there")
					require.EqualValues(t, 3, f.Accepted())
					call(t, f)
					after, err := session.Stats(false)
					require.NoError(t, err)
					require.Greater(t, after.Bytes, before.Bytes)
					require.Greater(t, after.Allocs, before.Allocs)
					_, known := cpu.Time()
					require.Equal(t, known, before.CPU > 0)
					require.GreaterOrEqual(t, after.CPU, before.CPU)

					state, ok := f.TLS()
					require.Equal(t, mode == "tls", ok)
					if ok {
						require.Equal(t, session.Certificate(), state.PeerCertificates[0].Raw)
						stranger, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{TLS: true, Serve: lying{f.Addr}.serve})
						require.ErrorContains(t, err, "certificate", "another certificate than the server's is refused")
						require.Nil(t, stranger)
					}
					require.NoError(t, f.Close())
					require.NoError(t, f.Close())
					require.EqualValues(t, 3, f.Accepted(), "what was known last")
					_, err = net.Dial("tcp", f.Addr)
					require.Error(t, err, "nobody listens any more")
					if where == "process" {
						require.NotEqual(t, os.Getpid(), before.PID)
						gone(t, before.PID)
					} else {
						require.Regexp(t, `^127\.0\.0\.1:\d+: server of "`+stack.Name+`": done$`, <-logged)
					}
				})
			}
		}
	}
}

// The server of a crossed stack is the other one's, in a process of its own too.
func TestACrossHasTheOthersServer(t *testing.T) {
	cross, err := rpcbench.Cross(httpjson.New(), named("noserver"))
	require.NoError(t, err)
	_, err = rpcbench.Start(t.Context(), cross, rpcbench.Config{Serve: process(t, os.Stderr)})
	require.ErrorContains(t, err, "server: odd", "what making that server says")
}

func numGC() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// lying says that its certificate is the one of the server at addr.
type lying struct{ addr string }

func (l lying) serve(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config) (rpcbench.Serving, error) {
	config.Serve = nil
	own, err := rpcbench.Serve(ctx, stack, config)
	return lyingServing{own, l.addr}, err
}

type lyingServing struct {
	rpcbench.Serving
	addr string
}

func (l lyingServing) Addr() string { return l.addr }

func TestTwoServersAtATime(t *testing.T) {
	var pids []int
	for range 2 {
		f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{Serve: process(t, os.Stderr)})
		require.NoError(t, err)
		defer f.Close()
		stats, err := f.Serving.(*Session).Stats(false)
		require.NoError(t, err)
		require.NotContains(t, pids, stats.PID)
		pids = append(pids, stats.PID)
	}
}

func TestGOMAXPROCSIsTheParents(t *testing.T) {
	t.Setenv("GOMAXPROCS", "77")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	f, err := rpcbench.Start(t.Context(), named("procs3"), rpcbench.Config{Serve: process(t, os.Stderr)})
	require.NoError(t, err, "what it is now, whatever this process was told when it began")
	require.NoError(t, f.Close())
}

func TestFailures(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	addr, _ := listen(t)
	versions := func(changes map[string]string) StartFunc {
		v := someVersions()
		maps.Copy(v, changes)
		return Dial(addr, v)
	}
	const build = " at the client: build both with one Go from one commit"
	for _, c := range []struct {
		why    string
		stack  string
		config rpcbench.Config
		want   string // after the stack's name
	}{
		{"an unknown stack, of a child", "mine", rpcbench.Config{Serve: process(t, os.Stderr)}, "server process: no stack is called mine"},
		{"an unknown stack, of an address", "mine", rpcbench.Config{Serve: Dial(addr, someVersions())},
			"server at " + addr + ": no stack is called mine"},
		{"no server can be made", "noserver", rpcbench.Config{Serve: process(t, os.Stderr)}, "server process: server: odd"},
		{"a child that ends", "exits", rpcbench.Config{Serve: process(t, os.Stderr)}, "server process: no answer: EOF; exit status 3"},
		{"a program that is not there", "httpjson", rpcbench.Config{Serve: Process("/nonexistent/rpcbench", "X=1", nil)},
			"server process: fork/exec /nonexistent/rpcbench: "},
		{"an address to listen at", "httpjson", rpcbench.Config{Addr: "127.0.0.1:0", Serve: process(t, os.Stderr)},
			"server elsewhere: Config.Addr and Config.WrapServer are for a server in this process"},
		{"the server's connections to wrap", "httpjson", rpcbench.Config{
			WrapServer: func(c net.Conn) net.Conn { return c }, Serve: Dial(addr, someVersions()),
		}, "server elsewhere: Config.Addr and Config.WrapServer are for a server in this process"},
		{"nobody listens", "httpjson", rpcbench.Config{Serve: Dial(nobody.Addr().String(), someVersions())},
			"server at " + nobody.Addr().String() + ": dial tcp " + nobody.Addr().String() + ": "},
		{"something else listens", "httpjson", rpcbench.Config{Serve: Dial(answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), nil)},
			"what answers there is not rpcbench"},
		{"something that closes", "httpjson", rpcbench.Config{Serve: Dial(answering(t, ""), nil)}, "no answer: "},
		{"another Go", "httpjson", rpcbench.Config{Serve: versions(map[string]string{"go": "go1.27.0"})},
			"server at " + addr + `: go is "go1.26.0" at the server and "go1.27.0"` + build},
		{"another commit", "httpjson", rpcbench.Config{Serve: versions(map[string]string{"commit": "ba9876543210"})},
			`commit is "0123456789ab" at the server and "ba9876543210"` + build},
		{"no commit", "httpjson", rpcbench.Config{Serve: versions(map[string]string{"commit": ""})},
			`commit is "0123456789ab" at the server and ""` + build},
		{"an experiment", "httpjson", rpcbench.Config{Serve: versions(map[string]string{"goexperiment": "jsonv2"})},
			`goexperiment is "" at the server and "jsonv2"` + build},
		{"another version of a module", "httpjson", rpcbench.Config{Serve: versions(map[string]string{"example.com/a": "v1.0.1"})},
			`example.com/a is "v1.0.0" at the server and "v1.0.1"` + build},
		{"no versions", "httpjson", rpcbench.Config{Serve: Dial(addr, nil)}, `go is "go1.26.0" at the server and ""` + build},
	} {
		t.Run(c.why, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f, err := rpcbench.Start(t.Context(), named(c.stack), c.config)
			require.Nil(t, f)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "rpcbench: "+c.stack+": server "), "the stack comes first: %v", err)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

// Modules that one side alone lists are no difference.
func TestVersionsThatAgree(t *testing.T) {
	client := someVersions()
	delete(client, "example.com/server")
	client["example.com/client"] = "v1.0.0"
	require.NoError(t, same(someVersions(), client))
	require.NoError(t, same(nil, client), "a child is the same program")
}

// answering is the address of a server that reads a line and answers so.
func answering(t *testing.T, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = io.WriteString(conn, answer)
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	return ln.Addr().String()
}

func TestClosingFails(t *testing.T) {
	f, err := rpcbench.Start(t.Context(), named("oddclose"), rpcbench.Config{Serve: process(t, os.Stderr)})
	require.NoError(t, err)
	err = f.Close()
	require.EqualError(t, err, "server process: close: odd", "what went wrong there is known here")
	require.Equal(t, err, f.Close())
}

func TestAChildThatDies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{Serve: process(t, os.Stderr)})
	require.NoError(t, err)
	session := f.Serving.(*Session)
	stats, err := session.Stats(false)
	require.NoError(t, err)
	child, err := os.FindProcess(stats.PID)
	require.NoError(t, err)
	require.NoError(t, child.Kill())
	for err == nil {
		_, err = session.Stats(false)
	}
	require.EqualError(t, err, "server process: no answer: EOF; signal: killed")
	gone(t, stats.PID)
	_, err = f.Client.CreateUser(t.Context(), users.Sample(0, 0))
	require.Equal(t, rpcbench.Unavailable, rpcbench.CodeOf(err), err)
	require.EqualError(t, f.Close(), "server process: signal: killed")
	require.EqualValues(t, 1, f.Accepted(), "what was known last")
}

// parent has a server in a child, and waits to be killed.
func parent() {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	f, err := rpcbench.Start(context.Background(), httpjson.New(), rpcbench.Config{Serve: Process(path, childEnv+"=1", os.Stderr)})
	if err != nil {
		panic(err)
	}
	stats, err := f.Serving.(*Session).Stats(false)
	fmt.Println(stats.PID, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAChildEndsWithItsParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, theirs, err := os.Pipe() // which parent and child both hold
	require.NoError(t, err)
	defer stderr.Close()
	cmd.Stderr = theirs
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, ok := strings.CutSuffix(line, " <nil>\n")
	require.True(t, ok, line)
	_, err = strconv.Atoi(pid)
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, stderr.SetReadDeadline(time.Now().Add(time.Minute)))
	said, err := io.ReadAll(stderr)
	require.NoError(t, err, "the child still runs")
	require.Empty(t, string(said))
}

func TestStartIsCancelled(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	stderr, theirs, err := os.Pipe()
	require.NoError(t, err)
	defer stderr.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = stderr.Read(make([]byte, 1)) // it is asked for its stack
		cancel()
	}()
	f, err := rpcbench.Start(ctx, named("hangs"), rpcbench.Config{Serve: process(t, theirs)})
	require.Nil(t, f)
	require.EqualError(t, err, "rpcbench: hangs: server process: context canceled")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, theirs.Close())
	_, err = io.Copy(io.Discard, stderr)
	require.NoError(t, err, "nobody holds it any more")
}

// What is no session ends, and is said in the log; the others go on.
func TestListenRefuses(t *testing.T) {
	addr, logged := listen(t)
	f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{Serve: Dial(addr, someVersions())})
	require.NoError(t, err)
	defer f.Close()
	for _, c := range []struct{ why, sent, want string }{
		{"nothing", "", "no server: request: none came"},
		{"an empty line", "\n", "no server: request: unexpected end of JSON input"},
		{"garbage", "GET / HTTP/1.1\r\n\r\n", "no server: request: invalid character 'G' looking for beginning of value"},
		{"a line without end", strings.Repeat("x", 1<<20), "no server: request: bufio.Scanner: token too long"},
		{"a request without versions", `{"stack":"httpjson"}` + "\n", `server of "httpjson": go is "go1.26.0" at the server and ""`},
		{"an unknown command", `{"stack":"httpjson","versions":{"go":"go1.26.0","commit":"0123456789ab"}}` + "\ndance\n",
			`server of "httpjson": unknown command "dance"`},
	} {
		t.Run(c.why, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer conn.Close()
			_, _ = io.WriteString(conn, c.sent) // it may be closed before the end
			_ = conn.(*net.TCPConn).CloseWrite()
			said, err := io.ReadAll(conn)
			if len(c.sent) < 1<<16 { // else a reset may come before the answer
				require.NoError(t, err)
				require.Contains(t, string(said), `{"error":`)
			}
			require.Contains(t, <-logged, c.want)
			call(t, f)
		})
	}
}

func TestListenEndsItsServers(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var logged []string
	ended := make(chan error, 1)
	go func() { ended <- Listen(ctx, ln, nil, find, func(line string) { logged = append(logged, line) }) }()
	f, err := rpcbench.Start(t.Context(), rawtcp.New(), rpcbench.Config{Serve: Dial(ln.Addr().String(), nil)})
	require.NoError(t, err)
	silent, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	cancel()
	require.NoError(t, <-ended)
	_, err = f.Client.CreateUser(t.Context(), users.Sample(0, 0))
	require.Equal(t, rpcbench.Unavailable, rpcbench.CodeOf(err), err)
	_, err = f.Serving.Accepted()
	require.ErrorContains(t, err, "no answer: ")
	_ = f.Close()
	for _, addr := range []string{f.Addr, ln.Addr().String()} {
		_, err = net.Dial("tcp", addr)
		require.Error(t, err, addr)
	}
	require.NotEmpty(t, logged)
}

// pipes is a listener whose connections are ends of net.Pipe, which work in a bubble.
type pipes struct {
	conns chan net.Conn
	close func()
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return pipe{c}, nil
}

func (p pipes) Close() error   { p.close(); return nil }
func (p pipes) Addr() net.Addr { return new(net.TCPAddr) }

type pipe struct{ net.Conn }

func (pipe) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// onPipes runs Listen in a bubble until body returns.
func onPipes(t *testing.T, body func(t *testing.T, conns chan net.Conn, logged <-chan string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conns, logged := make(chan net.Conn, 2*maxSessions), make(chan string, 2*maxSessions)
		ln := pipes{conns, sync.OnceFunc(func() { close(conns) })}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Listen(ctx, ln, nil, find, func(line string) { logged <- line }) }()
		body(t, conns, logged)
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestListenDoesNotWaitForEver(t *testing.T) {
	onPipes(t, func(t *testing.T, conns chan net.Conn, logged <-chan string) {
		client, server := net.Pipe()
		defer client.Close()
		conns <- server
		began := time.Now()
		require.Equal(t, "pipe: no server: request: read pipe: i/o timeout", <-logged)
		require.Equal(t, requestLimit, time.Since(began))
	})
}

// A session lasts longer than its client had to begin it, but not for ever.
func TestSessionsLast(t *testing.T) {
	onPipes(t, func(t *testing.T, conns chan net.Conn, logged <-chan string) {
		client, server := net.Pipe()
		defer client.Close()
		conns <- server
		lines := bufio.NewScanner(client)
		for _, line := range []string{`{"stack":"accepts nothing"}`, "stats"} {
			_, err := io.WriteString(client, line+"\n")
			require.NoError(t, err)
			require.True(t, lines.Scan(), lines.Err())
			require.NotContains(t, lines.Text(), "error")
			<-time.After(sessionLimit / 3)
		}
		began := time.Now()
		require.Equal(t, `pipe: server of "accepts nothing": read pipe: i/o timeout`, <-logged)
		require.Equal(t, sessionLimit-2*(sessionLimit/3), time.Since(began))
	})
}

func TestListenHasALimit(t *testing.T) {
	onPipes(t, func(t *testing.T, conns chan net.Conn, logged <-chan string) {
		clients := make([]net.Conn, maxSessions+1)
		for i := range clients {
			var server net.Conn
			clients[i], server = net.Pipe()
			defer clients[i].Close()
			conns <- server
		}
		synctest.Wait()
		require.Len(t, conns, 1, "one more has to wait")
		require.NoError(t, clients[0].Close())
		<-logged
		synctest.Wait()
		require.Empty(t, conns)
	})
}

func TestClientsDoNotWaitForEver(t *testing.T) {
	open := func(client net.Conn) *Session {
		return &Session{where: "server", in: keepOpen{client}, abort: func() { _ = client.Close() }, wait: func() error { return nil }}
	}
	t.Run("for an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer server.Close()
			began := time.Now()
			_, err := open(client).begin(t.Context(), client, "127.0.0.1", request{})
			require.ErrorContains(t, err, "server: no answer: ")
			require.Equal(t, answerLimit, time.Since(began))
		})
	})
	t.Run("for the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer server.Close()
			go func() {
				_, _ = server.Read(make([]byte, 1024))
				_, _ = io.WriteString(server, "{}\n")
			}()
			s := open(client)
			_, err := s.begin(t.Context(), client, "127.0.0.1", request{})
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, s.Close())
			require.Equal(t, endLimit, time.Since(began))
		})
	})
}

// keepOpen is one end of a connection that has no halves to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

func TestAServerThatForgetsItsStats(t *testing.T) {
	var sent bytes.Buffer
	s := &Session{where: "server", in: keepOpen{&sent}, abort: func() {}, wait: func() error { return nil }}
	_, err := s.begin(t.Context(), strings.NewReader("{}\n{}\n"), "127.0.0.1", request{Stack: "httpjson"})
	require.NoError(t, err)
	_, err = s.Stats(false)
	require.EqualError(t, err, "server: what answers there is not rpcbench")
	require.Equal(t, "{\"stack\":\"httpjson\"}\nstats\n", sent.String())
	_, err = s.Stats(true)
	require.Error(t, err)
	require.True(t, strings.HasSuffix(sent.String(), "collect\n"))
}
