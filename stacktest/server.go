package stacktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
)

const (
	serverFlag   = "server"
	childProcess = "process" // its value for a child of this process

	acceptLimit = 2 * time.Second // for a server to accept what its client has opened
)

// placement is the value of -server, and what else Main keeps for the benchmarks.
type placement struct {
	where     string
	elsewhere map[string]string // host:port of servers that are no children, by stack
	child     *process.Server   // of the row that runs
	seen      map[string]bool   // names of the rows that have begun; see Procs
}

func (p *placement) String() string     { return p.where }
func (p *placement) Set(v string) error { p.where = v; return nil }

// serverFlags registers the flag of Main.
func serverFlags() {
	flag.Var(&placement{seen: map[string]bool{}}, serverFlag,
		"where benchmarks have their servers: process, or what rpcbench serve prints (stack=host:port,…); here if empty")
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

// open reads the flag and calls each server once: if that fails now, every row would. Its error is one line.
func (p *placement) open(stacks []rpcbench.Stack) (err error) {
	if p.where == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("rpcbench: -server: %w", err)
		}
	}()
	if len(stacks) == 0 {
		return errors.New("TestMain does not name the stacks of its servers: stacktest.Main(m, mystack.New())")
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangLimit)
	defer cancel()
	if p.where == childProcess {
		s, err := process.Start(ctx, stacks[0].Name, false, os.Stderr)
		if err != nil {
			return err
		}
		return s.Close()
	}
	p.elsewhere = map[string]string{}
	for item := range strings.SplitSeq(p.where, ",") {
		name, addr, _ := strings.Cut(item, "=")
		i := slices.IndexFunc(stacks, func(s rpcbench.Stack) bool { return s.Name == name })
		if i < 0 || addr == "" || p.elsewhere[name] != "" {
			return fmt.Errorf("%q is neither process nor stack=host:port, as rpcbench serve prints it, each stack once", item)
		}
		p.elsewhere[name] = addr
		f, err := rpcbench.Start(ctx, stacks[i], rpcbench.Config{Server: addr})
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", item, err)
		}
	}
	if n := len(stacks) - len(p.elsewhere); n > 0 {
		fmt.Fprintf(os.Stderr, "rpcbench: -server names no server of %d stacks: their rows are skipped\n", n)
	}
	return nil
}

// keys forbid comparing with servers elsewhere. Their addresses are no key: they change from run to run.
func (p *placement) keys() string {
	switch p.where {
	case "":
		return ""
	case childProcess:
		return "server: process\n"
	}
	return "server: remote\nproved: no\n" // no test of this binary has seen the servers there
}

// config is the config of a row of stack, with the server where the flag says. It starts a child for the row, or skips the
// row if the flag names no server for it. Tests have their servers in this process whatever the flag says.
func (p *placement) config(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) rpcbench.Config {
	b.Helper()
	switch name := process.ServerOf(stack.Name); {
	case p.where == "" || config.Server != "":
	case p.where == childProcess:
		s, err := process.Start(b.Context(), name, config.TLS, os.Stderr)
		if err != nil {
			b.Fatalf("rpcbench: %s: %v", stack.Name, err)
		}
		b.Cleanup(func() {
			p.child = nil
			if err := s.Close(); err != nil {
				b.Errorf("rpcbench: %s: close: %v", stack.Name, err)
			}
		})
		p.child = s
		config.Server, config.Certificate = s.Addr, s.Certificate
	case p.elsewhere[name] == "":
		b.Skipf("rpcbench: -server names no server of %s", name)
	case config.TLS:
		b.Skip("rpcbench: the servers that -server names are in clear: run rows over TLS without it, or with -server process")
	default:
		config.Server = p.elsewhere[name]
	}
	return config
}

// serverUse is what the child of a row had used when the timed loop began.
type serverUse struct {
	fixture *rpcbench.Fixture
	child   *process.Server
	before  process.Report
}

// watchServer is to be called right before the timed loop, with the first fixture of the row. It returns nil, which reports
// nothing, where the server is no child.
func watchServer(b *testing.B, f *rpcbench.Fixture) *serverUse {
	b.Helper()
	u := &serverUse{fixture: f, child: placed().child}
	if u.child == nil || u.child.Addr != f.Addr {
		return nil
	}
	u.before = u.now(b, true) // what starting and warming left there is not the loop's either
	return u
}

// report is to be called right after the timed loop of n ops.
func (u *serverUse) report(b *testing.B, n int) {
	b.Helper()
	if u == nil {
		return
	}
	after := u.now(b, false)
	if after.CPU > 0 {
		b.ReportMetric(float64(after.CPU-u.before.CPU)/float64(n), "server-cpu-ns/op")
	}
	// Whole numbers, as B/op and allocs/op are: what the questions allocate must not show.
	b.ReportMetric(float64((after.Bytes-u.before.Bytes)/uint64(n)), "server-B/op")
	b.ReportMetric(float64((after.Allocs-u.before.Allocs)/uint64(n)), "server-allocs/op")
}

// now asks the child, and again until it has accepted as many connections as the fixture has opened: one side may know of a
// connection a little later than the other. It fails the row if that never comes.
func (u *serverUse) now(b *testing.B, afterCollection bool) process.Report {
	b.Helper()
	for began := time.Now(); ; {
		if err := u.child.Ask(afterCollection); err != nil {
			b.Fatalf("rpcbench: %s: %v", u.fixture.Stack.Name, err)
		}
		opened := u.fixture.Accepted()
		if u.child.Accepted == opened {
			return u.child.Report
		}
		if time.Since(began) > acceptLimit {
			b.Fatalf("rpcbench: %s: the server's process accepted %d connections, its client opened %d",
				u.fixture.Stack.Name, u.child.Accepted, opened)
		}
	}
}
