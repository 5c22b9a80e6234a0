package stacktest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/users"
)

// BenchmarkParallel times callers that create users at the same time over config.Conns connections: a closed loop, in which a
// caller calls again as soon as it has its reply. Each caller goes round four users. ns/op is wall time over all ops. Beside it
// and the other figures of BenchmarkCreateUser, whose bytes are counted with all callers calling, it reports
//
//	req/s       ops per second
//	cpu-share   the part of the machine's CPU time that this process used, callers and servers together: near 1, the row says
//	            how much CPU a call takes, and no more callers would make more calls. Absent with fewer than a hundred ops
//	            per caller, and where the system doesn't tell
func BenchmarkParallel(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, callers int) {
	b.Helper()
	parallel{stack: stack, config: config, callers: callers, prepare: func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		return prepareOne(f, users.Sample(i%100, 0)) // these are of one length
	}}.benchmark(b)
}

// parallel is callers that make a call each, again and again.
type parallel struct {
	stack   rpcbench.Stack
	config  rpcbench.Config
	callers int
	prepare func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) // call i is of caller i/perCaller
	hang    time.Duration                                           // 0 is hangLimit
}

// perCaller is how many calls a caller goes round: a reply that sticks to a connection is then the wrong one.
const perCaller = 4

// calls prepares those of each caller. A multiplexed stack binds each to the next connection in turn. A caller keeps the
// connection of its first, so calls of no caller are prepared in between, and never made.
func (p parallel) calls(f *rpcbench.Fixture) ([][]rpcbench.Call, error) {
	calls := make([][]rpcbench.Call, p.callers)
	for j := range perCaller {
		for i := 0; i < p.callers || i%max(1, p.config.Conns) != 0; i++ {
			call, err := p.prepare(f, i*perCaller+j)
			if err != nil {
				return nil, err
			}
			if i < p.callers {
				calls[i] = append(calls[i], call)
			}
		}
	}
	return calls, nil
}

func (p parallel) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, p.stack)
	Procs(b)
	if p.hang == 0 {
		p.hang = hangLimit
	}
	if p.callers < 1 {
		b.Fatalf("rpcbench: %s: %d callers: at least one is needed", p.stack.Name, p.callers)
	}
	p.config = placed().config(b, p.stack, p.config)
	f := Start(b, p.stack, p.config)
	calls := p.warm(b, f)
	accepted := f.Accepted()
	server := watchServer(b, f)
	runtime.GC()
	b.ReportAllocs()

	var cpuStart time.Duration
	var cpuKnown bool
	run, err := p.together(f, calls, []int64{int64(b.N)}, p.hang, func() {
		b.ResetTimer()
		cpuStart, cpuKnown = cpu.Time()
	})
	b.StopTimer()
	cpuEnd, _ := cpu.Time()
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", p.stack.Name, err)
	}
	server.report(b, b.N)
	reportReconnects(b, p.stack, f.Accepted()-accepted, int64(b.N))
	reportPercentiles(b, run)
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(b.N), "cpu-ns/op")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	if cpuKnown && b.N >= 100*p.callers { // else the ends of the run would be much of it
		b.ReportMetric(cpuShare(cpuEnd-cpuStart, b.Elapsed(), runtime.NumCPU()), "cpu-share")
	}
	if printed(b) {
		p.countBytes(b)
	}
}

func (p parallel) warm(b *testing.B, f *rpcbench.Fixture) [][]rpcbench.Call {
	b.Helper()
	calls, err := p.calls(f)
	skipOrFail(b, p.stack, err)
	if _, err := p.together(f, calls, slices.Repeat([]int64{warmRounds}, p.callers), hangLimit, func() {}); err != nil {
		b.Fatalf("rpcbench: %s: warm-up: %v", p.stack.Name, err)
	}
	return calls
}

// countBytes reports what a call sends and receives while all callers call: over HTTP/2 the calls of a connection share pings
// and window updates.
func (p parallel) countBytes(b *testing.B) {
	b.Helper()
	wire := new(wireCounter)
	f := Start(b, p.stack, wire.on(p.config))
	calls := p.warm(b, f)
	n := warmRounds * p.callers
	wire.begin()
	if _, err := p.together(f, calls, []int64{int64(n)}, hangLimit, func() {}); err != nil {
		b.Fatalf("rpcbench: %s: counting bytes: %v", p.stack.Name, err)
	}
	wire.report(b, n)
}

// printed says whether package testing prints this run's figures: it tries others before, to find a b.N.
func printed(b *testing.B) bool {
	value := flag.Lookup("test.benchtime").Value.String()
	if count, ok := strings.CutSuffix(value, "x"); ok {
		n, _ := strconv.Atoi(count) // which package testing has checked
		return b.N == n
	}
	limit, _ := time.ParseDuration(value)
	return b.Elapsed() >= limit
}

// cpuShare is the part of the machine's CPU time that the process used.
func cpuShare(used, wall time.Duration, cores int) float64 {
	return float64(used) / float64(wall) / float64(cores)
}

// together makes n calls: n[0] between all callers, those that are quick making more of them, or n[i] by each. begin is called when all
// callers are ready. Its error is the first of a call, or its panic. When no call begins for as long as hang, the fixture is closed.
func (p parallel) together(f *rpcbench.Fixture, calls [][]rpcbench.Call, n []int64, hang time.Duration, begin func()) (*latency.Recorder, error) {
	run := latency.New()
	var (
		mu    sync.Mutex // of run and failed
		fail  error
		left  = make([]atomic.Int64, len(n))
		ready sync.WaitGroup
		done  sync.WaitGroup
		start = make(chan struct{})
	)
	for i := range n {
		left[i].Store(n[i])
	}
	ready.Add(len(calls))
	for i, round := range calls {
		mine := &left[i%len(n)]
		done.Go(func() {
			var batch [64]time.Duration // to be recorded together: a lock for each op would be the harness's
			var filled int
			record := func() {
				mu.Lock()
				defer mu.Unlock()
				for _, d := range batch[:filled] {
					run.Record(d)
				}
				filled = 0
			}
			failed := func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if fail == nil {
					fail = fmt.Errorf("caller %d: %w", i, err)
				}
				for i := range left {
					left[i].Store(0) // the others stop too
				}
			}
			defer record()
			defer func() {
				if v := recover(); v != nil { // in a goroutine it would end the process, and not name the stack
					failed(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
				}
			}()
			ctx := context.Background()
			ready.Done()
			<-start
			for made := 0; mine.Add(-1) >= 0; made++ {
				call := round[made%len(round)]
				began := time.Now()
				err := call(ctx)
				batch[filled] = time.Since(began)
				if err != nil {
					failed(err)
					return
				}
				if filled++; filled == len(batch) {
					record()
				}
			}
		})
	}
	ready.Wait()
	dog := watchCalls(f, hang, func() (all int64) {
		for i := range left {
			all += left[i].Load()
		}
		return all
	})
	begin()
	close(start)
	done.Wait()
	dog.Stop()
	if fail != nil && dog.bit.Load() {
		fail = fmt.Errorf("%w%s", fail, dog.note())
	}
	return run, fail
}
