// Command proxied measures one stack's calls to a server that runs already, perhaps through a proxy, and prints them as
// a row of a benchmark. Server and proxy are processes of this machine. Their CPU time is read when a window of calls
// opens and when it closes. study/proxied.sh starts them, and calls this command:
//
//	proxied -way direct -stack httpjson -addr 127.0.0.1:PORT -rate 2000 -server PID
//
// A rate of 0 stands for a hundred callers that call again at once. If a call fails, the command says so in one line
// and prints no row.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/stacks"
)

const (
	callers    = 100
	shortest   = 500 * time.Millisecond // of windows: the CPU clock of another process may be some milliseconds late
	startLimit = 10 * time.Second
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proxied: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(2)
	}
}

// processes are those whose CPU time counts together.
type processes []int

func (p *processes) String() string { return fmt.Sprint(*p) }

func (p *processes) Set(pids string) error {
	for text := range strings.FieldsSeq(pids) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		*p = append(*p, pid)
	}
	_, err := p.used()
	return err
}

func (p *processes) used() (sum time.Duration, err error) {
	for _, pid := range *p {
		own, told := cpu.Of(pid)
		if !told {
			return 0, fmt.Errorf("the system tells no CPU time of process %d", pid)
		}
		sum += own
	}
	return sum, nil
}

// asked is what is measured.
type asked struct {
	way, addr     string
	stack         rpcbench.Stack
	workload      workload.Workload
	windows       int
	server, proxy processes
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var a asked
	f := flag.NewFlagSet("proxied", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the caller prints the error
	f.StringVar(&a.way, "way", "direct", "")
	name := f.String("stack", "httpjson", "")
	f.StringVar(&a.addr, "addr", "", "")
	f.Float64Var(&a.workload.Rate, "rate", 0, "")
	f.IntVar(&a.windows, "windows", 3, "")
	f.Var(&a.server, "server", "")
	f.Var(&a.proxy, "proxy", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	found, err := shell.Program{Stacks: stacks.All()}.Find(*name)
	if err != nil {
		return err
	}
	a.stack, a.workload.Callers = found[0], callers
	m := measured{figures: loop.NewFigures(true)}
	for i := range a.windows {
		if err := a.window(ctx, uint64(i), &m); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, a.row(m))
	return err
}

// measured adds up windows.
type measured struct {
	figures               *loop.Figures
	wall                  time.Duration
	client, server, proxy time.Duration // CPU time
	begun, reconnects     int64         // with the calls outside of windows
}

// window measures the calls of new connections for a while.
func (a asked) window(ctx context.Context, seed uint64, m *measured) (err error) {
	lead, length := a.workload.Window(0)
	length = max(length, shortest)
	bounded, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	o, err := a.workload.Open(bounded, a.stack, workload.Setup{Config: rpcbench.Config{Remote: a.addr},
		Figures: m.figures, Seed: seed, Starts: int(2 * a.workload.Rate * (lead + length).Seconds())})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	if err := o.Start(o.Warm); err != nil {
		return err
	}
	runtime.GC() // what starting left is not the callers'
	var unknown error
	wall, err := o.Loop.During(ctx, lead, length, func(open bool) {
		unknown = cmp.Or(unknown, m.edge(&a, open))
	})
	m.wall, m.begun, m.reconnects = m.wall+wall, m.begun+o.Loop.Begun(), m.reconnects+o.Beyond()
	return cmp.Or(err, unknown)
}

// edge takes away the CPU time at the beginning of a window, and adds that at its end.
func (m *measured) edge(a *asked, open bool) error {
	client, told := cpu.Time()
	server, unknown := a.server.used()
	proxy, unknownToo := a.proxy.used()
	if open {
		client, server, proxy = -client, -server, -proxy
	}
	m.client, m.server, m.proxy = m.client+client, m.server+server, m.proxy+proxy
	if !told {
		return errors.New("the system tells no CPU time of this process")
	}
	return cmp.Or(unknown, unknownToo)
}

// row is a line of a benchmark.
func (a asked) row(m measured) string {
	n := m.figures.Latency.Count()
	load, calls := "saturated", float64(n)
	if a.workload.Rate > 0 {
		load = strconv.FormatFloat(a.workload.Rate, 'f', -1, 64)
	}
	line := fmt.Sprintf("BenchmarkProxied/way=%s/load=%s/stack=%s-%d\t%d\t%.0f ns/op\t%.0f client-cpu-ns/op",
		a.way, load, a.stack.Name, runtime.GOMAXPROCS(0), n, float64(m.wall)/calls, float64(m.client)/calls)
	for _, other := range []struct {
		of   processes
		used time.Duration
		unit string
	}{{a.server, m.server, "server-cpu-ns/op"}, {a.proxy, m.proxy, "proxy-cpu-ns/op"}} {
		if other.of != nil {
			line += fmt.Sprintf("\t%.0f %s", float64(other.used)/calls, other.unit)
		}
	}
	for _, percent := range []int{50, 99} {
		if latency, ok := m.figures.Latency.Quantile(float64(percent) / 100); ok {
			line += fmt.Sprintf("\t%d p%d-ns", latency, percent)
		}
	}
	line += fmt.Sprintf("\t%.3g reconnects/op", float64(m.reconnects)/float64(m.begun))
	if m.figures.Planned > 0 {
		line += fmt.Sprintf("\t%.1f completed-%%", 100*calls/float64(m.figures.Planned))
	}
	return line + "\n"
}
