// Package child starts processes that serve a stack, measure it, or hold its memory, and talks with them.
//
// A child is this binary again, as a [Process]. It answers each line of its standard input with a line, and ends when
// that input ends, so it ends with its parent.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Report is what a child reports about itself, as a line of JSON.
type Report struct {
	Addr        string `json:"addr"`
	Certificate []byte `json:"certificate,omitempty"` // DER; the key stays in the child
	Accepted    int64  `json:"accepted"`              // connections, without the child's own
	Bytes       uint64 `json:"bytes"`                 // allocated on the heap so far, freed or not
	Allocs      uint64 `json:"allocs"`
	Handled     int64  `json:"handled"`         // calls, those of its own start included
	Writes      int64  `json:"writes,omitzero"` // to connections, and reads, of a server that counts them
	Reads       int64  `json:"reads,omitzero"`
}

// ServerOnly starts a server of stack without a client, and checks that it answers one call.
func ServerOnly(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config) (*rpcbench.Fixture, error) {
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

// service is what a child is asked to serve.
type service struct {
	Stack  string        `json:"stack"`
	TLS    bool          `json:"tls"`
	Socket string        `json:"socket"`        // its path; "" is TCP
	Addr   string        `json:"addr,omitzero"` // of TCP; "" is any port of loopback
	Wait   time.Duration `json:"wait,omitzero"`
	Counts bool          `json:"counts,omitzero"` // writes and reads
}

// Serving is the job of a child that serves a stack: the child's side of Start.
func Serving() Job { return NewJob(serve) }

func serve(ctx context.Context, stacks Stacks, asked service, lines <-chan []byte, reply func(any) error) error {
	stack, err := stacks(asked.Stack)
	if err != nil {
		return err
	}
	config := rpcbench.Config{TLS: asked.TLS, Unix: asked.Socket != "", Addr: cmp.Or(asked.Socket, asked.Addr),
		Wait: asked.Wait}
	var wired tap.Counter
	if asked.Counts {
		config.WrapServer = wired.Wrap
	}
	f, err := ServerOnly(ctx, stack, config)
	if err != nil {
		return err
	}
	r := Report{Addr: f.Addr}
	if state, ok := f.TLS(); ok {
		r.Certificate = state.PeerCertificates[0].Raw
	}
	own := f.Accepted()
	var memory runtime.MemStats // allocated once: it is large, and allocations between two reports belong to the calls
	for range lines {
		r.Accepted = f.Accepted() - own
		runtime.ReadMemStats(&memory) // runtime/metrics counts small objects late
		r.Bytes, r.Allocs = memory.TotalAlloc, memory.Mallocs
		r.Handled, r.Writes, r.Reads = f.Handled(), wired.Writes.Load(), wired.Reads.Load()
		_ = reply(&r) // it fails if the parent has ended, and then lines end too
	}
	return closes(asked.Stack, f.Close)
}

// Server is a server in a child of this process. One goroutine at a time.
type Server struct {
	Report // the newest

	// Close ends the child and waits for its end. The error is what the child said last, or how it ended.
	Close func() error

	process *Process
	folder  string // of its socket, "" without one
}

// Start starts this program as a child, which must call [Serve], to serve the stack of that name, or the one whose
// server a crossed stack has. The child has the current GOMAXPROCS of this process. With counts it counts what its
// server writes and reads, which nothing does that is timed. ctx bounds the start.
func Start(ctx context.Context, stack rpcbench.Stack, config rpcbench.Config, counts bool) (*Server, error) {
	name, _ := crossed.Server(stack)
	s, asked := &Server{}, service{Stack: name, TLS: config.TLS,
		Addr: config.Addr, Wait: config.Wait, Counts: counts}
	if config.Unix { // in a folder of this process, which outlives a child that is killed
		folder, err := os.MkdirTemp("", "rpcbench")
		if err != nil {
			return nil, fmt.Errorf("server process: %w", err)
		}
		s.folder, asked.Socket = folder, filepath.Join(folder, "socket")
	}
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, kill)
	p, err := Command{Does: Serves, Procs: runtime.GOMAXPROCS(0), Asked: asked, Limit: ToClose()}.Start(life)
	s.process, s.Close = p, sync.OnceValue(s.end)
	if err = said(err); err == nil {
		err = s.Ask()
	}
	if !release() {
		err = fmt.Errorf("server process: %w", context.Cause(ctx))
	}
	if hang, hangs := errors.AsType[*Hang](err); hangs {
		hang.Stack = asked.Stack
	}
	if err != nil {
		kill()
		_ = s.Close()
	}
	return s, err
}

// Used is the CPU time of the child so far, which the child is not asked for: that would stop its world.
func (s *Server) Used() (time.Duration, bool) { return cpu.Of(s.process.cmd.Process.Pid) }

// Switches are the child's voluntary context switches so far; 0 if the system does not tell.
func (s *Server) Switches() int64 { return cpu.Switches(s.process.cmd.Process.Pid) }

// Ask asks the child for a report. The few allocations that a report costs are counted in the next report.
func (s *Server) Ask() error { return said(s.process.Ask("", &s.Report)) }

// Quit ends the child, which is to tell what its goroutines do.
func (s *Server) Quit() (goroutines string) {
	s.process.quit("it was ended")
	if hang, hangs := errors.AsType[*Hang](s.Close()); hangs {
		goroutines = hang.Goroutines
	}
	return goroutines
}

func (s *Server) end() (err error) {
	if s.process != nil {
		err = said(s.process.End())
	}
	if s.folder != "" {
		err = cmp.Or(err, os.RemoveAll(s.folder))
	}
	return err
}

func said(err error) error {
	if err != nil {
		err = fmt.Errorf("server process: %w", err)
	}
	return err
}
