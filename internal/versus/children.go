package versus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// Spec is what a process measures. A child reads what has a name in JSON.
type Spec struct {
	Arms     []string          `json:"arms"` // names of stacks; the second of a name is called again
	Workload workload.Workload `json:"workload"`
	Slice    time.Duration     `json:"slice"`
	Seed     uint64            `json:"seed"`
	Profiled bool              `json:"profiled,omitempty"` // by Explain, with and without in turn
	Servers  map[string]string `json:"servers,omitempty"`  // host:port by stack, of servers that run already

	Procs  int `json:"-"` // GOMAXPROCS; 0 is the default
	Blocks int `json:"-"`
}

// Variable stands in the environment of a child. A program that finds it there calls Serve, and does nothing else.
const Variable = "RPCBENCH_MEASURE"

// Serve is the child's side. It reads a Spec from in and opens the stacks that find returns. Then it measures a block
// for each line of in, and writes the block to out, as a record on a line. It ends with in: a parent that was killed
// closes its end of the pipe, and a child that went on would disturb what is measured next.
func Serve(ctx context.Context, in io.Reader, out io.Writer, find func(name string) (rpcbench.Stack, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan []byte) // nil when in has ended
	go func() {
		defer cancel() // also amid a block
		defer close(lines)
		for input := bufio.NewScanner(in); input.Scan(); {
			select {
			case lines <- bytes.Clone(input.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	var spec Spec
	given := json.NewDecoder(bytes.NewReader(<-lines))
	given.DisallowUnknownFields() // what a parent of another revision asks for in them would not be measured
	if err := given.Decode(&spec); err != nil {
		return fmt.Errorf("rpcbench: measure: %s is set, which is for children of rpcbench, but standard input "+
			"has no specification that this build reads: %w", Variable, err)
	}
	var stacks []rpcbench.Stack
	for _, name := range spec.Arms {
		s, err := find(name)
		if err != nil {
			return err
		}
		stacks = append(stacks, s)
	}
	if spec.Profiled {
		return explain(ctx, spec.Workload, spec.Slice, stacks, lines, out)
	}
	g, err := Open(ctx, spec.Workload, spec.Slice, spec.Seed, spec.Servers, stacks...)
	for err == nil && <-lines != nil {
		if err = g.Block(ctx); err == nil {
			r := g.Record()
			r.Blocks = r.Blocks[len(r.Blocks)-1:]
			err = json.NewEncoder(out).Encode(r)
		}
	}
	return cmp.Or(err, g.Close())
}

// Program is a program that calls Serve.
type Program struct {
	Path   string
	Env    []string // what its processes have in their environment besides
	Layout int      // which link of its source this program is
}

// child is a process of a Program.
type child struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr bytes.Buffer
}

func (p Program) start(ctx context.Context, spec Spec) (*child, error) {
	c := &child{Cmd: exec.CommandContext(ctx, p.Path)}
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	c.Env = append(c.Env, Variable+"=1")
	if spec.Procs > 0 {
		c.Env = append(c.Env, "GOMAXPROCS="+strconv.Itoa(spec.Procs))
	}
	c.Env = append(c.Env, p.Env...)
	c.Stderr = &c.stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("rpcbench: measure: %w", err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("rpcbench: measure: %w", err)
	}
	c.in, c.out = in, json.NewDecoder(out)
	_ = json.NewEncoder(in).Encode(spec) // if it has died, its exit status says so
	return c, nil
}

// next lets the child measure once more, and reads its record.
func (c *child) next(record any, whole func() bool) error {
	_, _ = io.WriteString(c.in, "\n")
	err := c.out.Decode(record)
	switch {
	case err == nil && whole():
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return cmp.Or(c.end(), errors.New("rpcbench: measure: a child ended before its time"))
	}
	_ = c.Process.Kill()
	return errors.New("rpcbench: measure: a child printed something else than a block")
}

// end waits for the child to close its fixtures and to exit. It prefers what the child said to its exit status. Of a
// trace of goroutines, which fills pages, it keeps what the first two lines say.
func (c *child) end() error {
	_ = c.in.Close()
	err := c.Wait()
	said := slices.DeleteFunc(strings.Split(c.stderr.String(), "\n"), func(line string) bool {
		return strings.TrimSpace(line) == ""
	})
	if err != nil && len(said) > 0 {
		return errors.New(strings.Join(said[:min(2, len(said))], "; "))
	}
	return err
}

// Measure runs spec, and once more if that fails: a machine that is busy for a moment then costs a process, not a
// comparison. With a failure that was mended comes what it said.
func Measure(ctx context.Context, spec Spec, programs ...Program) (
	r timing.Record, p Process, mended string, err error) {
	for range 2 {
		if r, err = Run(ctx, spec, programs...); err == nil {
			p, err = ProcessOf(r)
		}
		if err == nil || ctx.Err() != nil {
			return r, p, mended, err
		}
		mended = strings.TrimPrefix(err.Error(), "rpcbench: ")
	}
	return r, p, "", err
}

// Run measures spec in a process of the program, and what others used of the machine meanwhile. With an error comes
// what was measured before it.
//
// Given a program for each arm, each arm has a process of its own. They take their blocks in turn and so stay paired
// in time: what one arm leaves behind can't reach another. Each process holds its arm twice, and the two slices of a
// block count as one.
func Run(ctx context.Context, spec Spec, programs ...Program) (record timing.Record, err error) {
	others := cpu.Others()
	record, err = inTurn(ctx, spec, programs...)
	record.Others = others()
	return record, err
}

func inTurn(ctx context.Context, spec Spec, programs ...Program) (record timing.Record, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var children []*child
	defer func() {
		if err != nil {
			cancel() // which kills them
		}
		for _, c := range children {
			err = cmp.Or(err, c.end())
		}
	}()
	apart := len(programs) > 1
	for i, program := range programs {
		own := spec
		if apart {
			own.Arms = []string{spec.Arms[i], spec.Arms[i]}
		}
		c, err := program.start(ctx, own)
		if err != nil {
			return record, err
		}
		children = append(children, c)
	}
	random := rand.New(rand.NewPCG(spec.Seed, 0))
	for range spec.Blocks {
		block := make([]timing.Slice, len(children))
		next := timing.Record{Arms: spec.Arms, Length: 2 * spec.Slice, Seed: spec.Seed,
			Latencies: make([]timing.Latency, len(children))}
		for turn, i := range random.Perm(len(children)) {
			var own timing.Record
			if err := children[i].next(&own, func() bool { return len(own.Blocks) == 1 }); err != nil {
				return record, err
			}
			if !apart {
				next, block = own, own.Blocks[0]
				break
			}
			next.Latencies[i] = joined(own.Latencies)
			sum := &block[i]
			for _, s := range own.Blocks[0] {
				*sum = timing.Slice{Turn: turn, Ops: sum.Ops + s.Ops, Wall: sum.Wall + s.Wall, CPU: sum.CPU + s.CPU,
					GC: sum.GC + s.GC, Lead: sum.Lead + s.Lead}
			}
		}
		next.Layout, next.Blocks = programs[len(programs)-1].Layout, append(record.Blocks, block)
		record = next
	}
	return record, nil
}

// joined is the latency of one arm from those of its two fixtures: percentiles are means of the two, or absent.
func joined(fixtures []timing.Latency) (l timing.Latency) {
	for i, own := range fixtures {
		n := time.Duration(i + 1)
		l.Calls, l.Sum = l.Calls+own.Calls, l.Sum+own.Sum
		for _, p := range []struct{ to, own *time.Duration }{{&l.P50, &own.P50}, {&l.P95, &own.P95}, {&l.P99, &own.P99}} {
			if mean := *p.to + (*p.own-*p.to)/n; i == 0 || min(*p.to, *p.own) > 0 {
				*p.to = mean
			} else {
				*p.to = 0
			}
		}
	}
	return l
}
