// Package replicate measures the same comparison in several processes. A process is one sample of memory layout and of
// luck, so each gives one observation, the median of its blocks' log-ratios, and the interval is made of those: blocks of
// different processes are never pooled.
package replicate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Spec is what one process measures.
type Spec struct {
	Arms   []string      `json:"arms"`  // names of stacks; the second of a name is called again
	Procs  int           `json:"procs"` // GOMAXPROCS; 0 is the default
	Slice  time.Duration `json:"slice"`
	Blocks int           `json:"blocks"`
	Seed   uint64        `json:"seed"`
	Step   bool          `json:"step,omitempty"` // wait for a line before each block, and answer one after it
}

// Fewest is how many processes an interval takes at least.
const Fewest = 8

// Interval is that of the mean log-ratio of processes, as ratios. The processes are given in the order in which they ran.
//
// Processes that ran one after the other share what the machine did meanwhile. So their ratios may be closer to each other
// than to those of a minute later, and Student's t interval, which takes them as independent, is then too narrow. Interval
// also makes the t interval of the means of two processes in a row, of four in a row, and so on down to four means, and
// returns the widest: batch means, with the size of the batch chosen by the data (A. M. Law, Simulation Modeling and
// Analysis, 5th ed., section 9.5.3). The interval reaches from 0 to infinity for less than two processes.
func Interval(ratios []float64, level float64) timing.Interval {
	const fewestBatches = 4
	widest := Independent(ratios, level)
	mean := math.Log(widest.Median)
	half := math.Log(widest.Hi) - mean
	for size := 2; len(ratios)/size >= fewestBatches; size *= 2 {
		var batches []float64
		for batch := range slices.Chunk(ratios[:len(ratios)/size*size], size) {
			batches = append(batches, Independent(batch, level).Median)
		}
		of := Independent(batches, level)
		half = max(half, math.Log(of.Hi)-math.Log(of.Median))
	}
	widest.Lo, widest.Hi = math.Exp(mean-half), math.Exp(mean+half)
	return widest
}

// Independent is Student's t interval of the mean log-ratio of processes that share nothing, as ratios.
func Independent(ratios []float64, level float64) timing.Interval {
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(r)
	}
	mean, sd := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	if n < 2 {
		return timing.Interval{Median: math.Exp(mean), Lo: 0, Hi: math.Inf(1), Level: level, Blocks: len(ratios)}
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+level)/2) * sd / math.Sqrt(n)
	return timing.Interval{Median: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half), Level: level, Blocks: len(ratios)}
}

// Steady is how far the base may move between the processes of a comparison that is decided. docs/method.md has the figures
// that it was chosen by.
const Steady = 0.15

// Moved is how far the base's time per op moved between processes, as a fraction: the longest over the shortest, without a
// tenth of the processes at either end.
func Moved(nsPerOp []float64) float64 {
	sorted := slices.Sorted(slices.Values(nsPerOp))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[n-1-n/10]/sorted[n/10] - 1
}

// Serve is the child's side: it reads a Spec from in, measures it with the stacks that find returns, and writes the
// record to out. A record that is incomplete is written too, beside the error. The end of in ends the measurement, since the
// parent has gone: nobody would read the record, and a child that went on would disturb what is measured next.
func Serve(ctx context.Context, in io.Reader, out io.Writer, find func(name string) (rpcbench.Stack, error)) (err error) {
	input := bufio.NewScanner(in)
	if !input.Scan() {
		return errors.New("rpcbench: measure: no specification on standard input: this command is for rpcbench itself")
	}
	var spec Spec
	if err := json.Unmarshal(input.Bytes(), &spec); err != nil {
		return fmt.Errorf("rpcbench: measure: specification: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	lines := make(chan bool) // closed when in has ended
	go func() {
		defer cancel()
		defer close(lines)
		for input.Scan() {
			select {
			case lines <- true:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer cancel()
	g := new(versus.Group)
	defer func() {
		if e := g.Close(); err == nil {
			err = e
		}
	}()
	for _, name := range spec.Arms {
		stack, err := find(name)
		if err != nil {
			return err
		}
		if err := g.Open(ctx, stack); err != nil {
			return err
		}
	}
	if err := g.Start(spec.Slice, spec.Seed); err != nil {
		return err
	}
	for i := 0; i < spec.Blocks && err == nil; i++ {
		if spec.Step {
			<-lines
		}
		if err = g.Block(ctx); err == nil && spec.Step {
			fmt.Fprintln(out)
		}
	}
	if e := json.NewEncoder(out).Encode(g.Record()); err == nil {
		err = e
	}
	return err
}

// Command starts processes that call Serve.
type Command []string

// process is a child, and what it said.
type process struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func (c Command) start(ctx context.Context, spec Spec) (*process, error) {
	p := &process{Cmd: exec.CommandContext(ctx, c[0], c[1:]...)}
	p.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	if spec.Procs > 0 {
		p.Env = append(p.Env, "GOMAXPROCS="+strconv.Itoa(spec.Procs))
	}
	p.Stderr = &p.stderr
	line, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		return nil, err
	}
	_, _ = p.in.Write(append(line, '\n')) // if it has died, its exit status says so
	return p, nil
}

// end reads the record, waits for the process, and prefers what it said to what its parent noticed.
func (p *process) end() (record timing.Record, err error) {
	err = json.NewDecoder(p.out).Decode(&record)
	_ = p.in.Close()
	if waitErr := p.Wait(); waitErr != nil {
		if said := strings.TrimSpace(p.stderr.String()); said != "" {
			return record, errors.New(said)
		}
		return record, waitErr
	}
	return record, err
}

// Run measures spec in a process of its own. With an error comes what was measured before it.
func (c Command) Run(ctx context.Context, spec Spec) (timing.Record, error) {
	p, err := c.start(ctx, spec)
	if err != nil {
		return timing.Record{}, err
	}
	return p.end()
}

// Apart measures the arms of spec in a process each, which take their blocks in turn and so stay paired in time: what one
// leaves behind can't reach another. Each process holds its arm twice; the two slices of a block count as one.
func (c Command) Apart(ctx context.Context, spec Spec) (record timing.Record, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var processes []*process
	defer func() { // those that an error has left
		cancel()
		for _, p := range processes {
			_, _ = p.end()
		}
	}()
	for _, name := range spec.Arms {
		own := spec
		own.Arms, own.Step = []string{name, name}, true
		p, err := c.start(ctx, own)
		if err != nil {
			return record, err
		}
		processes = append(processes, p)
	}
	record = timing.Record{Arms: spec.Arms, Length: 2 * spec.Slice, Seed: spec.Seed, Blocks: make([][]timing.Slice, spec.Blocks)}
	r := rand.New(rand.NewPCG(spec.Seed, 0))
	for b := range record.Blocks {
		record.Blocks[b] = make([]timing.Slice, len(processes))
		for turn, i := range r.Perm(len(processes)) {
			_, _ = io.WriteString(processes[i].in, "\n")
			if answer, err := processes[i].out.Peek(1); err != nil || answer[0] != '\n' { // its record, before its time
				_, err := processes[i].end()
				processes = slices.Delete(processes, i, i+1)
				return timing.Record{}, err
			}
			_, _ = processes[i].out.Discard(1)
			record.Blocks[b][i].Turn = turn
		}
	}
	for i := 0; len(processes) > 0; i++ {
		p := processes[0]
		processes = processes[1:]
		own, err := p.end()
		if err != nil {
			return timing.Record{}, err
		}
		for b, block := range own.Blocks {
			sum := &record.Blocks[b][i]
			for _, s := range block {
				sum.Ops, sum.Wall, sum.CPU = sum.Ops+s.Ops, sum.Wall+s.Wall, sum.CPU+s.CPU
				sum.GC, sum.Lead = sum.GC+s.GC, sum.Lead+s.Lead
			}
		}
	}
	return record, nil
}
