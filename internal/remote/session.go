package remote

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
)

const (
	answerLimit = 10 * time.Second
	endLimit    = 15 * time.Second // for the other side to end; longer than rpcbench.Serving's Close takes at most
)

// StartFunc is the type of rpcbench.Config's Serve. What it returns is a *Session.
type StartFunc = func(context.Context, rpcbench.Stack, rpcbench.Config) (rpcbench.Serving, error)

// Process starts servers in a new process each: the program at path, whose main must call Serve on its standard input and
// output when it finds env, a name=value, in its environment. It has the GOMAXPROCS that this process has at that moment,
// and ends when this one does. Its standard error is stderr.
func Process(path, env string, stderr io.Writer) StartFunc {
	return func(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config) (rpcbench.Serving, error) {
		const where = "server process"
		if err := remotely(config); err != nil {
			return nil, err
		}
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), env, "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
		cmd.Stderr = stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, also(err, in.Close()))
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		s := &Session{where: where, in: in, abort: func() { _ = cmd.Process.Kill() }, wait: cmd.Wait}
		return s.begin(ctx, out, "127.0.0.1", request{Stack: stack.Name, TLS: config.TLS})
	}
}

// Dial starts servers where Listen runs at addr, which refuses versions other than its own.
func Dial(addr string, versions map[string]string) StartFunc {
	return func(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config) (rpcbench.Serving, error) {
		where := "server at " + addr
		if err := remotely(config); err != nil {
			return nil, err
		}
		conn, err := (&net.Dialer{Timeout: answerLimit}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // which a TCP connection always has
		s := &Session{where: where, in: sending{conn.(*net.TCPConn)}, abort: func() { _ = conn.Close() }, wait: conn.Close}
		return s.begin(ctx, conn, host, request{stack.Name, config.TLS, versions})
	}
}

// remotely says what of config is for a server in this process alone.
func remotely(config rpcbench.Config) error {
	if config.Addr != "" || config.WrapServer != nil {
		return errors.New("server elsewhere: Config.Addr and Config.WrapServer are for a server in this process")
	}
	return nil
}

// sending is the half of a connection whose end the other side sees while it still answers.
type sending struct{ *net.TCPConn }

func (s sending) Close() error { return s.CloseWrite() }

// Session is a server elsewhere. It is safe for concurrent use.
type Session struct {
	where       string // of errors
	addr        string
	certificate []byte
	accepted    atomic.Int64 // when it was last asked

	mu    sync.Mutex // one question at a time
	lines *bufio.Scanner
	in    io.WriteCloser // its end is the server's
	abort func()         // ends the other side, or at least the wait for it
	wait  func() error   // after the last line
	stop  func() error
}

func (s *Session) begin(ctx context.Context, out io.Reader, host string, r request) (rpcbench.Serving, error) {
	s.lines = bufio.NewScanner(out)
	s.stop = sync.OnceValue(s.end)
	line, _ := json.Marshal(r) // strings and a bool
	release := context.AfterFunc(ctx, s.abort)
	a, err := s.ask(string(line))
	if !release() {
		_ = s.stop()
		return nil, fmt.Errorf("%s: %w", s.where, ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	s.addr, s.certificate = net.JoinHostPort(host, a.Port), a.Certificate
	return s, nil
}

func (s *Session) Addr() string        { return s.addr }
func (s *Session) Certificate() []byte { return s.certificate }

func (s *Session) Accepted() (int64, error) {
	_, err := s.Stats(false)
	return s.accepted.Load(), err
}

// Stats asks the server, which first collects garbage if told to. What its answer costs, a few allocations, is in the next.
func (s *Session) Stats(collect bool) (Stats, error) {
	line := askStats
	if collect {
		line = askCollect
	}
	a, err := s.ask(line)
	if err == nil && a.Stats == nil {
		err = s.failed(errNotOurs)
	}
	if err != nil {
		return Stats{}, err
	}
	s.accepted.Store(a.Stats.Accepted)
	return *a.Stats, nil
}

// Close ends the server, and returns when it has ended; its error is the server's, or of the process that it was.
func (s *Session) Close() error {
	if err := s.stop(); err != nil {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return nil
}

func (s *Session) end() error {
	defer time.AfterFunc(endLimit, s.abort).Stop()
	_ = s.in.Close()
	s.mu.Lock() // which an ask under way gives up, now that no answer can come
	defer s.mu.Unlock()
	var said error
	for said == nil && s.lines.Scan() {
		_, said = read(s.lines.Bytes())
	}
	return also(said, s.wait())
}

// ask sends a line and returns its answer. A session that fails to answer is over.
func (s *Session) ask(line string) (answer, error) {
	a, err := s.exchange(line)
	if err != nil {
		return a, s.failed(err)
	}
	return a, nil
}

// failed ends the session.
func (s *Session) failed(err error) error {
	return fmt.Errorf("%s: %w", s.where, also(err, s.stop()))
}

func (s *Session) exchange(line string) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer time.AfterFunc(answerLimit, s.abort).Stop()
	_, _ = io.WriteString(s.in, line+"\n") // when nobody reads it, there is no answer
	if !s.lines.Scan() {
		return answer{}, fmt.Errorf("no answer: %w", cmp.Or(s.lines.Err(), io.EOF))
	}
	return read(s.lines.Bytes())
}

var errNotOurs = errors.New("what answers there is not rpcbench")

func read(line []byte) (a answer, err error) {
	if err := json.Unmarshal(line, &a); err != nil {
		return a, errNotOurs
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// also joins two errors, either of which may be nil, on one line.
func also(first, second error) error {
	if first == nil || second == nil {
		return cmp.Or(first, second)
	}
	return fmt.Errorf("%w; %w", first, second)
}
