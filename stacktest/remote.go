package stacktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/remote"
)

const (
	serverFlag    = "server"
	childProcess  = "process"         // its value for a child of this process
	serverProcess = "RPCBENCH_SERVER" // in the environment of a child, which is a server and runs no test
)

// placement is the value of -server, and what else Main keeps for the benchmarks.
type placement struct {
	where string
	serve remote.StartFunc // nil: in this process
	seen  map[string]bool  // names of the rows that have begun; see Procs
}

func (p *placement) String() string     { return p.where }
func (p *placement) Set(v string) error { p.where = v; return nil }

// serverFlags registers the flag of Main.
func serverFlags() {
	flag.Var(&placement{seen: map[string]bool{}}, serverFlag, "where benchmarks have their servers: process, or the host:port that rpcbench serve prints; here if empty")
}

// placed is what -server says; without Main, nothing.
func placed() *placement {
	if f := flag.Lookup(serverFlag); f != nil {
		if p, ok := f.Value.(*placement); ok {
			return p
		}
	}
	return new(placement)
}

// config is the loops' config: tests have their servers in this process whatever the flag says.
func (p *placement) config(config rpcbench.Config) rpcbench.Config {
	if config.Serve == nil {
		config.Serve = p.serve
	}
	return config
}

// open says in one line what is wrong with the flag.
func (p *placement) open(stderr io.Writer, stacks []rpcbench.Stack) error {
	if p.where == "" {
		return nil
	}
	if p.where == childProcess {
		if len(stacks) == 0 {
			return errors.New("rpcbench: -server process: TestMain does not name the stacks of its servers: stacktest.Main(m, mystack.New())")
		}
		path, err := os.Executable()
		if err != nil {
			return fmt.Errorf("rpcbench: -server process: %w", err)
		}
		p.serve = remote.Process(path, serverProcess+"=1", stderr)
		return nil
	}
	_, port, err := net.SplitHostPort(p.where)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 {
		return fmt.Errorf("rpcbench: -server %q: it is process, or the host:port that rpcbench serve prints", p.where)
	}
	p.serve = remote.Dial(p.where, environ.Versions())
	return nil
}

// reach starts one server and ends it: if that fails, every row would.
func (p *placement) reach(stacks []rpcbench.Stack) error {
	if p.serve == nil || len(stacks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangLimit)
	defer cancel()
	s, err := p.serve(ctx, stacks[0], rpcbench.Config{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return fmt.Errorf("rpcbench: -server %s: %w", p.where, err)
	}
	return nil
}

// keys forbid comparing with servers elsewhere. The address is none: it changes from run to run.
func (p *placement) keys() string {
	switch p.where {
	case "":
		return ""
	case childProcess:
		return "server: process\n"
	}
	return "server: remote\nproved: no\n" // no test of this binary has seen the binary there
}

// finder finds the stack that a child is asked for.
func finder(stacks []rpcbench.Stack) remote.Find {
	return func(name string) (rpcbench.Stack, error) {
		for _, s := range stacks {
			if s.Name == name {
				return s, nil
			}
		}
		return rpcbench.Stack{}, fmt.Errorf("TestMain does not name the stack %q: stacktest.Main takes stacks", name)
	}
}

// serverUse is what the process of a server had used when the timed loop began.
type serverUse struct {
	fixture *rpcbench.Fixture
	session *remote.Session
	before  remote.Stats
}

// watchServer is to be called right before the timed loop. It returns nil, which reports nothing, where the server is in
// this process.
func watchServer(b *testing.B, f *rpcbench.Fixture) *serverUse {
	b.Helper()
	session, ok := f.Serving.(*remote.Session)
	if !ok {
		return nil
	}
	before, err := session.Stats(true) // what starting and warming left there is not the loop's either
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", f.Stack.Name, err)
	}
	return &serverUse{f, session, before}
}

// report is to be called right after the timed loop of n ops.
func (u *serverUse) report(b *testing.B, n int) {
	b.Helper()
	if u == nil {
		return
	}
	after, err := u.session.Stats(false)
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", u.fixture.Stack.Name, err)
	}
	if after.CPU > 0 {
		b.ReportMetric(float64(after.CPU-u.before.CPU)/float64(n), "server-cpu-ns/op")
	}
	// Whole numbers, as B/op and allocs/op are: what the questions allocate must not show.
	b.ReportMetric(float64((after.Bytes-u.before.Bytes)/uint64(n)), "server-B/op")
	b.ReportMetric(float64((after.Allocs-u.before.Allocs)/uint64(n)), "server-allocs/op")
}
