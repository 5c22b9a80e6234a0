package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

const (
	ParentEnv = "RPCBENCH_TEST_PARENT"
	toldEnv   = "RPCBENCH_TEST_TOLD" // names a file that a child makes when it is at what a test waits for
)

// told lets children tell a test where they are.
func told(t *testing.T) (wait func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "told")
	t.Setenv(toldEnv, file)
	return func() {
		t.Helper()
		require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 10*time.Second, time.Millisecond)
	}
}

// TestMain is also the processes that the tests start.
func TestMain(m *testing.M) {
	switch done, err := Serve(os.Stdin, os.Stdout, List(stacks()), map[string]Job{Serves: Serving()}); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case done:
	case os.Getenv(ParentEnv) != "":
		parent()
	default:
		goleak.VerifyTestMain(m)
	}
}

// stacks are known to children. Some are httpjson with another server.
func stacks() []rpcbench.Stack {
	list := []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New(), connectrpc.GRPC()}
	for name, change := range map[string]func(rpcbench.Server) (rpcbench.Server, error){
		"procs" + strconv.Itoa(runtime.GOMAXPROCS(0)): func(s rpcbench.Server) (rpcbench.Server, error) { return s, nil },
		"noserver": func(rpcbench.Server) (rpcbench.Server, error) { return nil, errors.New("odd") },
		"oddclose": func(s rpcbench.Server) (rpcbench.Server, error) { return oddClose{s}, nil },
		"exits":    func(rpcbench.Server) (rpcbench.Server, error) { os.Exit(3); return nil, nil },
		"panics":   func(rpcbench.Server) (rpcbench.Server, error) { panic("broken") },
		"prints":   func(s rpcbench.Server) (rpcbench.Server, error) { fmt.Println("hello"); return s, nil },
		"hangs": func(rpcbench.Server) (rpcbench.Server, error) {
			_ = os.Mkdir(os.Getenv(toldEnv), 0o700)
			select {}
		},
	} {
		stack := httpjson.New()
		server := stack.Server
		stack.Name = name
		stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			s, err := server(config)
			if err != nil {
				return nil, err
			}
			return change(s)
		}
		list = append(list, stack)
	}
	for name, cause := range causes() {
		stack := httpjson.New()
		stack.Name = name
		stack.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, fmt.Errorf("odd: %w", cause) }
		list = append(list, stack)
	}
	return list
}

// causes of errors are known to parents, by names of stacks whose servers have them.
func causes() map[string]error {
	return map[string]error{"unsupported": errors.ErrUnsupported, "clock": timing.ErrClock, "files": syscall.EMFILE}
}

type oddClose struct{ rpcbench.Server }

func (s oddClose) Close() error { return errors.Join(s.Server.Close(), errors.New("odd")) }

// named is a stack of which a parent knows no more than the name.
func named(name string) rpcbench.Stack { return rpcbench.Stack{Name: name} }

func start(t *testing.T, stack rpcbench.Stack, tls bool) *Server {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each child takes a second to end under the race detector
	s, err := Start(t.Context(), stack, rpcbench.Config{TLS: tls}, false)
	require.NoError(t, err)
	return s
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

func TestAServerInAChild(t *testing.T) {
	cross, err := crossed.Of(grpcprotobuf.New(), connectrpc.GRPC())
	require.NoError(t, err)
	for _, stack := range []rpcbench.Stack{httpjson.New(), rawtcp.New(), cross} {
		for _, mode := range []string{"clear", "tls"} {
			t.Run(stack.Name+"/"+mode, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				s, stranger := start(t, stack, mode == "tls"), start(t, stack, true)
				defer stranger.Close()
				require.NotEqual(t, stranger.Addr, s.Addr, "two at a time")
				require.Zero(t, s.Accepted, "its own connection is not counted")
				config := rpcbench.Config{Conns: 3, TLS: mode == "tls", Remote: s.Addr, Certificate: s.Certificate}
				f, err := rpcbench.Start(t.Context(), stack, config)
				require.NoError(t, err)
				defer f.Close()
				host, port, err := net.SplitHostPort(f.Addr)
				require.NoError(t, err)
				require.Equal(t, "127.0.0.1", host)
				_, err = net.Dial("tcp", "127.0.0.2:"+port)
				require.Error(t, err, "it listens on the loopback interface alone")

				require.NoError(t, s.Ask())
				before := s.Report
				require.EqualValues(t, 3, before.Accepted, "by the listener there")
				require.EqualValues(t, 3, f.Accepted(), "by the client")
				_, err = f.Client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
				require.NoError(t, err)
				require.NoError(t, s.Ask())
				require.Greater(t, s.Bytes, before.Bytes)
				require.Greater(t, s.Allocs, before.Allocs)
				require.EqualValues(t, 1, s.Handled-before.Handled, "calls")
				require.Zero(t, s.Writes+s.Reads, "nothing wraps the connections of a server that is timed")

				state, ok := f.TLS()
				require.Equal(t, mode == "tls", ok)
				if ok {
					require.Equal(t, s.Certificate, state.PeerCertificates[0].Raw)
					config.Certificate = stranger.Certificate
					f, err := rpcbench.Start(t.Context(), stack, config)
					require.ErrorContains(t, err, "certificate", "another certificate than the server's is refused")
					require.Nil(t, f)
				}
				require.NoError(t, f.Close())
				require.NoError(t, s.Close())
				require.NoError(t, s.Close())
				_, err = net.Dial("tcp", f.Addr)
				require.Error(t, err, "nobody listens any more")
				require.NotEqual(t, os.Getpid(), s.process.cmd.Process.Pid)
				gone(t, s.process.cmd.Process.Pid)
			})
		}
	}
}

func TestGOMAXPROCSIsTheParents(t *testing.T) {
	t.Setenv("GOMAXPROCS", "77")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	s := start(t, named("procs3"), false) // what it is now, whatever this process was told when it began
	require.NoError(t, s.Close())
}

// TestProtocol: a child whose answers may mean something else, since its build is older or newer, is refused.
func TestProtocol(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the children are shell scripts")
	}
	const other = "its process speaks protocol %d, and this program 8: compare builds of one protocol"
	const none = "its process names no protocol, and this program speaks 8: it is too old, " +
		"or does not call cli.Main"
	for _, c := range []struct{ why, script, want string }{
		{"a newer one", "echo 9; read line", fmt.Sprintf(other, 9)},
		{"one whose connections had a link each", "echo 7; read line", fmt.Sprintf(other, 7)},
		{"one whose servers did not count calls", "echo 6; read line", fmt.Sprintf(other, 6)},
		{"one whose children counted when they were asked to measure", "echo 5; read line", fmt.Sprintf(other, 5)},
		{"one that knew no numbers", `echo '{"blocks":[[]]}'; read line`, none},
		{"one that knew no children, and prints its help", "echo Rpcbench compares; read line", none},
		{"one that prints nothing", "", none},
		{"one that says why it ends", "echo two stacks of a name >&2; exit 1", "two stacks of a name"},
	} {
		t.Run(c.why, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "child")
			require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700))
			_, err := Command{Path: script, Does: Measures}.Start(t.Context())
			require.EqualError(t, err, c.want)
		})
	}
}

// TestJobs: a child does the job that it was started for, about what it is asked, and no other. It tells its protocol
// whatever comes then.
func TestJobs(t *testing.T) {
	type question struct{ Of string }
	job := func(name string) Job {
		return NewJob(func(_ context.Context, all Stacks, asked question, lines <-chan []byte, answer func(any) error) error {
			stack, err := all(asked.Of)
			for line := range lines {
				if err == nil {
					err = answer(name + " " + stack.Name + " " + string(line))
				}
			}
			return err
		})
	}
	jobs := map[string]Job{"walk": job("walks"), "run": job("runs")}
	const noQuestion = "RPCBENCH_CHILD is set, which is for children of rpcbench, but standard input has no question " +
		"that this build reads: "
	for _, c := range []struct{ why, does, in, replies, failed string }{
		{"one job", "walk", `{"of":"rawtcp"}` + "\na\nb\n", `"walks rawtcp a" "walks rawtcp b"`, ""},
		{"another", "run", `{"of":"httpjson"}` + "\n\n", `"runs httpjson "`, ""},
		{"asked nothing more", "run", `{"of":"httpjson"}` + "\n", "", ""},
		{"a stack that is not there", "run", `{"of":"x"}` + "\n\n", "",
			`its process has no stack "x": cli.Main takes all stacks`},
		{"a job of another revision", "fly", `{"of":"rawtcp"}` + "\n\n", "",
			`RPCBENCH_CHILD is "fly", and the children of this build know run, walk`},
		{"no question", "walk", "", "", noQuestion + "EOF"},
		{"a question of another revision", "walk", `{"of":"rawtcp","twice":true}` + "\n\n", "",
			noQuestion + `json: unknown field "twice"`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Setenv(Variable, c.does)
			var out strings.Builder
			done, err := Serve(strings.NewReader(c.in), &out, List(stacks()), jobs)
			require.True(t, done)
			said := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Equal(t, strconv.Itoa(Protocol), said[0])
			var replies []string
			for _, line := range said[1:] {
				r := struct {
					Answer json.RawMessage
					Failed failure
				}{}
				require.NoError(t, json.Unmarshal([]byte(line), &r), line)
				if r.Answer == nil {
					require.EqualError(t, err, r.Failed.Said, "the parent is told")
					continue
				}
				replies = append(replies, string(r.Answer))
			}
			require.Equal(t, c.replies, strings.Join(replies, " "))
			if c.failed == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.failed)
			require.Len(t, said, 2, "nothing else is said")
		})
	}
	t.Setenv(Variable, "")
	done, err := Serve(strings.NewReader(""), io.Discard, nil, jobs)
	require.False(t, done, "no child")
	require.NoError(t, err)
}

// TestASignalEndsAChild as the end of its parent does.
func TestASignalEndsAChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		s := start(t, named("httpjson"), false)
		require.NoError(t, s.process.cmd.Process.Signal(sent))
		late := time.AfterFunc(limit, s.process.kill)
		require.ErrorIs(t, s.process.out.Decode(new(reply)), io.EOF, "it ends, and says nothing")
		late.Stop()
		require.NoError(t, s.Close(), "it closes its server, %v", sent)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		why   string
		stack rpcbench.Stack
		want  string
	}{
		{"work injected by name", named("grpcprotobuf+work=24h"),
			`server process: its process has no stack "grpcprotobuf+work=24h": cli.Main takes all stacks`},
		{"no server can be made, which of a crossed stack is the other one's",
			rpcbench.Stack{Name: "httpjson.to.noserver"},
			"server process: noserver: server: odd"},
		{"a child that ends", named("exits"), "server process: exit status 3"},
		{"a child that panics, whose trace would fill pages", named("panics"),
			"server process: panic: broken; goroutine 1 [running]:"},
		{"a child that prints", named("prints"), "server process: a child printed something else than a reply: " +
			"invalid character 'h' looking for beginning of value"},
	} {
		t.Run(c.why, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s, err := Start(t.Context(), c.stack, rpcbench.Config{}, false)
			require.EqualError(t, err, c.want)
			gone(t, s.process.cmd.Process.Pid)
		})
	}
}

// TestCausesAreTold: the error of a child has the cause by which its parent decides, and no other.
func TestCausesAreTold(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(causes())), "noserver") {
		_, err := Start(t.Context(), named(name), rpcbench.Config{}, false)
		require.ErrorContains(t, err, "server process: "+name+": server: odd")
		for of, cause := range causes() {
			require.Equal(t, of == name, errors.Is(err, cause), "%s: %v", of, err)
		}
	}
}

func TestClosingFails(t *testing.T) {
	s := start(t, named("oddclose"), false)
	err := s.Close()
	require.EqualError(t, err, "server process: close: odd", "what went wrong there is known here")
	require.Equal(t, err, s.Close())
}

func TestAChildThatDies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := start(t, named("httpjson"), false)
	f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{Remote: s.Addr})
	require.NoError(t, err)
	s.process.kill()
	for err == nil {
		err = s.Ask()
	}
	require.EqualError(t, err, "server process: signal: killed")
	gone(t, s.process.cmd.Process.Pid)
	_, err = f.Client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
	require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(err), err)
	require.NoError(t, f.Close())
	require.EqualError(t, s.Close(), "server process: signal: killed")
}

// parent has a server in a child, and waits to be killed.
func parent() {
	s, err := Start(context.Background(), named("httpjson"), rpcbench.Config{}, false)
	fmt.Println(s.Addr, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestStartIsCancelled(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	hanging := told(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		hanging()
		cancel()
	}()
	s, err := Start(ctx, named("hangs"), rpcbench.Config{}, false)
	require.EqualError(t, err, "server process: context canceled")
	gone(t, s.process.cmd.Process.Pid)
}

// Neither a child that never answers nor one that never ends keeps its parent waiting for ever.
func TestAParentDoesNotWaitForEver(t *testing.T) {
	for _, c := range []struct {
		why  string
		wait func(*Process) error
		took time.Duration
	}{
		{"for its protocol", func(p *Process) error { return p.greet() }, limit},
		{"for a reply", func(p *Process) error { return p.Ask("", new(Report)) }, time.Second},
		{"for the end", func(p *Process) error { return p.End() }, 4 * limit},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, child := net.Pipe()
				defer child.Close()
				go func() { _, _ = io.Copy(io.Discard, child) }()
				began := time.Now()
				p := &Process{cmd: new(exec.Cmd), out: json.NewDecoder(parent), in: keepOpen{parent}, limit: time.Second,
					kill: func() { _ = parent.Close() }}
				p.End = sync.OnceValue(p.end)
				require.Error(t, c.wait(p))
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

// keepOpen is a connection that has no halves to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// TestUnixSocketOfAChild: the child listens on a socket in a folder that goes with it, also if the child is killed.
func TestUnixSocketOfAChild(t *testing.T) {
	for _, killed := range []bool{false, true} {
		s, err := Start(t.Context(), named("httpjson"), rpcbench.Config{Unix: true}, false)
		require.NoError(t, err)
		f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{Unix: true, Remote: s.Addr})
		require.NoError(t, err)
		_, err = f.Client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.FileExists(t, s.Addr, "the server is elsewhere, and keeps its socket")
		if killed {
			s.process.kill()
		}
		require.Equal(t, killed, s.Close() != nil)
		require.NoDirExists(t, filepath.Dir(s.Addr))
	}
}
