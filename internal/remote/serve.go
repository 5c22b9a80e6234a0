// Package remote runs a stack's server in another process and asks it what it has used: [Process] in a child of this
// process, [Dial] wherever somebody has started [Listen], whose whole process is then asked: one run at a time.
//
// A control connection is one server, which lives as long as the connection. It begins with a request, a line of JSON,
// that the other side answers when the server listens. Lines that ask for [Stats] may follow. The control connection of a
// child is its standard input and output, that of an address is TCP. There is no password and no encryption: an address is
// for a network whose every user may start and stop servers there.
package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
)

const (
	maxSessions  = 16               // at a time; more wait to be accepted
	requestLimit = 10 * time.Second // for the request of a new connection
	sessionLimit = 24 * time.Hour   // which is also how long certificates last
)

// request is the first line of a control connection. A line has at most 64 KiB, which is bufio.Scanner's limit.
type request struct {
	Stack    string            `json:"stack"`
	TLS      bool              `json:"tls,omitempty"`
	Versions map[string]string `json:"versions,omitempty"` // as environ.Versions; absent where both sides are one program
}

// What the lines after it ask for.
const (
	askStats   = "stats"
	askCollect = "collect" // stats after a garbage collection
)

// answer is one to each line, and one more if the server ends with an error.
type answer struct {
	Error       string `json:"error,omitempty"`
	Port        string `json:"port,omitempty"`
	Certificate []byte `json:"certificate,omitempty"` // DER; the key stays where it was made
	Stats       *Stats `json:"stats,omitempty"`
}

// Stats is what the process of a server has used since it began, whatever for.
type Stats struct {
	PID      int           `json:"pid"`
	Accepted int64         `json:"accepted"`         // connections, by the listener of this server alone
	CPU      time.Duration `json:"cpu_ns,omitempty"` // user and system time; 0 where the system doesn't tell
	Bytes    uint64        `json:"bytes"`            // allocated on the heap, freed or not
	Allocs   uint64        `json:"allocs"`
}

// Find returns the stack of a name.
type Find func(name string) (rpcbench.Stack, error)

// Serve is the other side of Process: it runs one server on the loopback interface until in ends. Whoever is at the other
// end of out is told of errors.
func Serve(in io.Reader, out io.Writer, find Find) {
	_ = serve(context.Background(), in, out, "127.0.0.1", nil, find, func(request) {})
}

// Listen is the other side of Dial: it runs a server for each connection that ln accepts, on the interface that the
// connection came to, until ctx ends; it then closes ln, ends the servers and returns nil. A client whose versions are
// others than these, as environ.Versions has them, is refused. log is told of each session at its end, one at a time.
func Listen(ctx context.Context, ln net.Listener, versions map[string]string, find Find, log func(line string)) error {
	ctx, cancel := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	ln = netutil.LimitListener(ln, maxSessions)
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	var logging sync.Mutex
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		sessions.Go(func() {
			line := conn.RemoteAddr().String() + ": " + session(ctx, conn, versions, find)
			logging.Lock()
			defer logging.Unlock()
			log(line)
		})
	}
}

// session serves one TCP connection and says what became of it.
func session(ctx context.Context, conn net.Conn, versions map[string]string, find Find) string {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(requestLimit))
	what := "no server"
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err == nil {
		err = serve(ctx, conn, conn, host, versions, find, func(r request) {
			what = fmt.Sprintf("server of %.60q", r.Stack)
			_ = conn.SetDeadline(time.Now().Add(sessionLimit))
		})
	}
	if err != nil && ctx.Err() == nil {
		return what + ": " + err.Error()
	}
	return what + ": done"
}

// serve is a whole control connection; begun is called when its request is there.
func serve(ctx context.Context, in io.Reader, out io.Writer, host string, versions map[string]string, find Find,
	begun func(request)) (err error) {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	defer func() {
		if err != nil {
			_ = answers.Encode(answer{Error: strings.TrimPrefix(err.Error(), "rpcbench: ")}) // if anybody is still there
		}
	}()
	if !lines.Scan() {
		if lines.Err() != nil {
			return fmt.Errorf("request: %w", lines.Err())
		}
		return errors.New("request: none came")
	}
	var r request
	if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	begun(r)
	if err := same(versions, r.Versions); err != nil {
		return err
	}
	name := r.Stack
	if _, server, crossed := strings.Cut(name, ".to."); crossed { // see rpcbench.Cross
		name = server
	}
	stack, err := find(name)
	if err != nil {
		return err
	}
	serving, err := rpcbench.Serve(ctx, stack, rpcbench.Config{Addr: net.JoinHostPort(host, "0"), TLS: r.TLS})
	if err != nil {
		return err
	}
	defer func() {
		if e := serving.Close(); err == nil && e != nil {
			err = fmt.Errorf("close: %w", e)
		}
	}()
	_, port, err := net.SplitHostPort(serving.Addr())
	if err != nil {
		return err
	}
	reply := answer{Port: port, Certificate: serving.Certificate()}
	var memory runtime.MemStats // once, since it is large, and what is allocated between two questions is the calls'
	for {
		if err := answers.Encode(&reply); err != nil {
			return err
		}
		if !lines.Scan() {
			return lines.Err()
		}
		switch string(lines.Bytes()) {
		case askCollect:
			runtime.GC()
		case askStats:
		default:
			return fmt.Errorf("unknown command %.60q", lines.Bytes())
		}
		accepted, err := serving.Accepted()
		if err != nil {
			return err
		}
		used, _ := cpu.Time()
		runtime.ReadMemStats(&memory) // runtime/metrics counts small objects late
		reply = answer{Stats: &Stats{os.Getpid(), accepted, used, memory.TotalAlloc, memory.Mallocs}}
	}
}

// same says in what the two sides differ; nil versions are those of one program with itself. Modules that one side alone
// lists don't count: a command and a test list different ones of the same go.mod.
func same(here, there map[string]string) error {
	if here == nil {
		return nil
	}
	must := []string{"go", "goexperiment", "commit"}
	for _, name := range append(must, slices.Sorted(maps.Keys(here))...) {
		theirs, listed := there[name]
		if ours := here[name]; ours != theirs && (listed || slices.Contains(must, name)) {
			return fmt.Errorf("%s is %q at the server and %q at the client: build both with one Go from one commit", name, ours, theirs)
		}
	}
	return nil
}
