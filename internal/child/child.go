// Package child runs the server of a stack in a child process, and asks that process for its CPU time and memory.
//
// The child is this binary again. An environment variable names the stack. The child writes a [Report] when its server
// listens, and another for each line of its standard input. It ends when that input ends, so it ends with its parent.
package child

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
)

// Variable stands in the environment of a child, and names the stack that the child serves.
const Variable = "RPCBENCH_SERVER"

const (
	tlsEnv  = "RPCBENCH_SERVER_TLS"  // "true" or "false"
	unixEnv = "RPCBENCH_SERVER_UNIX" // the path of its socket; "" is TCP
	collect = "collect\n"            // asks for a report after a garbage collection; other lines ask for one at once

	limit = 15 * time.Second // for a report and for the end; rpcbench.Start and Fixture.Close take less
)

// Report is what a child reports about itself, as a line of JSON.
type Report struct {
	Error       string        `json:"error,omitempty"` // why it ends
	Addr        string        `json:"addr"`
	Certificate []byte        `json:"certificate,omitempty"` // DER; the key stays in the child
	Accepted    int64         `json:"accepted"`              // connections, without the child's own
	CPU         time.Duration `json:"cpu_ns"`                // user and system time so far; 0 if unknown
	Bytes       uint64        `json:"bytes"`                 // allocated on the heap so far, freed or not
	Allocs      uint64        `json:"allocs"`
}

// Alone starts a server of stack without a client, and checks that it answers one call.
func Alone(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config) (*rpcbench.Fixture, error) {
	f, err := rpcbench.Start(ctx, stack, config)
	if err != nil {
		return nil, err
	}
	client := f.Client
	f.Client = nil // Close skips it then
	if err := client.Close(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Serve serves one of stacks until in ends, if this process is a child. Else it returns false at once.
func Serve(in io.Reader, out io.Writer, stacks []rpcbench.Stack) bool {
	name := os.Getenv(Variable)
	if name == "" {
		return false
	}
	reports := json.NewEncoder(out)
	err := fmt.Errorf("TestMain does not name the stack %q: stacktest.Main takes stacks", name)
	if i := slices.IndexFunc(stacks, func(s rpcbench.Stack) bool { return s.Name == name }); i >= 0 {
		err = serve(bufio.NewReader(in), reports, stacks[i])
	}
	if err != nil {
		_ = reports.Encode(Report{Error: strings.TrimPrefix(err.Error(), "rpcbench: ")}) // if anybody is still there
	}
	return true
}

func serve(in *bufio.Reader, reports *json.Encoder, stack rpcbench.Stack) error {
	socket := os.Getenv(unixEnv)
	f, err := Alone(context.Background(), stack,
		rpcbench.Config{TLS: os.Getenv(tlsEnv) == "true", Unix: socket != "", Addr: socket})
	if err != nil {
		return err
	}
	r := Report{Addr: f.Addr}
	if state, ok := f.TLS(); ok {
		r.Certificate = state.PeerCertificates[0].Raw
	}
	own := f.Accepted()
	var memory runtime.MemStats // allocated once: it is large, and allocations between two reports belong to the calls
	for err == nil {
		r.Accepted = f.Accepted() - own
		r.CPU, _ = cpu.Time()
		runtime.ReadMemStats(&memory) // runtime/metrics counts small objects late
		r.Bytes, r.Allocs = memory.TotalAlloc, memory.Mallocs
		_ = reports.Encode(&r) // it fails if the parent has ended, and then in ends too
		var line []byte
		if line, err = in.ReadSlice('\n'); string(line) == collect {
			runtime.GC()
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Server is a server in a child of this process. One goroutine at a time.
type Server struct {
	Report // the newest

	// Close ends the child and waits for its end. The error is the child's last report, or how the child ended.
	Close func() error

	cmd     *exec.Cmd
	folder  string // of its socket, "" without one
	reports *json.Decoder
	in      io.WriteCloser // closing it ends the child
	kill    func()
}

// Start starts this program as a child, which must call [Serve], to serve the stack with that name. The child has the
// current GOMAXPROCS of this process. ctx bounds the start.
func Start(ctx context.Context, stack string, config rpcbench.Config, stderr io.Writer) (*Server, error) {
	path, err := os.Executable()
	s := &Server{cmd: exec.Command(path)}
	var socket string
	if config.Unix { // in a folder of this process, which outlives a child that is killed
		folder, err := os.MkdirTemp("", "rpcbench")
		if err != nil {
			return nil, fmt.Errorf("server process: %w", err)
		}
		s.folder, socket = folder, filepath.Join(folder, "socket")
	}
	s.kill = func() { _ = s.cmd.Process.Kill() }
	s.Close = sync.OnceValue(s.end)
	s.cmd.Env = append(os.Environ(), Variable+"="+serverOf(stack), tlsEnv+"="+strconv.FormatBool(config.TLS),
		unixEnv+"="+socket, "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	s.cmd.Stderr = stderr
	out, outErr := s.cmd.StdoutPipe()
	in, inErr := s.cmd.StdinPipe()
	if err := cmp.Or(err, outErr, inErr, s.cmd.Start()); err != nil {
		return nil, errors.Join(fmt.Errorf("server process: %w", err), s.remove())
	}
	s.in, s.reports = in, json.NewDecoder(out)
	release := context.AfterFunc(ctx, s.kill)
	err = s.read()
	if !release() {
		_ = s.Close()
		err = fmt.Errorf("server process: %w", context.Cause(ctx))
	}
	return s, err
}

// serverOf returns the name of the stack whose server a stack has. For a result of rpcbench.Cross that is the second.
func serverOf(stack string) string {
	client, server, _ := strings.Cut(stack, ".to.")
	return cmp.Or(server, client)
}

// Ask asks the child for a report, after a garbage collection if afterCollection is set. The few allocations that a
// report costs are counted in the next report.
func (s *Server) Ask(afterCollection bool) error {
	question := "report\n"
	if afterCollection {
		question = collect
	}
	_, _ = io.WriteString(s.in, question) // if it fails, so does read
	return s.read()
}

// read reads a report. It ends a child that fails to report.
func (s *Server) read() error {
	defer time.AfterFunc(limit, s.kill).Stop()
	err := s.reports.Decode(&s.Report)
	if err == nil && s.Error == "" {
		return nil
	}
	return cmp.Or(s.Close(), fmt.Errorf("server process: %w", err))
}

func (s *Server) end() error {
	defer time.AfterFunc(limit, s.kill).Stop()
	_ = s.in.Close()
	for s.reports.Decode(&s.Report) == nil {
	}
	err := s.cmd.Wait()
	if s.Error != "" {
		err = errors.New(s.Error)
	}
	if err != nil {
		err = fmt.Errorf("server process: %w", err)
	}
	return cmp.Or(err, s.remove())
}

func (s *Server) remove() error {
	if s.folder == "" {
		return nil
	}
	return os.RemoveAll(s.folder)
}
