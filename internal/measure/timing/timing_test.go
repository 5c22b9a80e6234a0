package timing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClock stands still but for the operations made with it.
type fakeClock struct {
	at    time.Duration
	reads int
	own   time.Duration // CPU time of reading what the machine did
	ran   []string      // names of the arms, one entry per operation
}

func (c *fakeClock) now() time.Duration {
	c.reads++
	return c.at
}

func (c *fakeClock) arm(name string, cost time.Duration) Arm {
	return Arm{Name: name, Op: func() error {
		c.at += cost
		c.ran = append(c.ran, name)
		return nil
	}}
}

func (c *fakeClock) pairing(t *testing.T, slice time.Duration, seed uint64, arms ...Arm) *Pairing {
	t.Helper()
	p, err := New(arms, slice, seed)
	require.NoError(t, err)
	p.now = c.now
	p.cpu = func() (time.Duration, bool) { return c.at*2 + c.own, true }
	p.gc = func() int { return len(c.ran) / 10 }
	p.heap = func() int64 { return 5 }
	p.machine = func() (busy, idle time.Duration) {
		c.own += 9 * time.Millisecond // of no window
		return 7 * c.at, c.at
	}
	p.force = func(int) { p.forced <- struct{}{} }
	clear(arms) // which are the caller's
	return p
}

// cut makes slices end by the clock alone, wherever the collector stands, after a lead-in of one op.
func cut(p *Pairing) {
	n := 0
	p.gc = func() int { n++; return n }
	p.force = func(int) { p.forced <- struct{}{} }
}

func run(t *testing.T, p *Pairing, blocks int) Record {
	t.Helper()
	for range blocks {
		require.NoError(t, p.Block(t.Context()))
	}
	return p.Record()
}

func TestNewRefuses(t *testing.T) {
	ok := func() error { return nil }
	tests := []struct {
		why   string
		arms  []Arm
		slice time.Duration
		want  string
	}{
		{"nothing to compare", nil, time.Second, "timing: got 0 of the two or more arms to compare"},
		{"nothing to compare it with", []Arm{{Name: "a", Op: ok}}, time.Second,
			"timing: got 1 of the two or more arms to compare"},
		{"no time", []Arm{{Name: "a", Op: ok}, {Name: "b", Op: ok}}, 0, `timing: the clock is too coarse: it steps by \S+s, so slices take \S+s or more, not 0s`},
		{"too short for any clock", []Arm{{Name: "a", Op: ok}, {Name: "b", Op: ok}}, 999, `timing: the clock is too coarse: it steps by \S+s, so slices take \S+s or more, not 999ns`},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			_, err := New(test.arms, test.slice, 1)
			require.Error(t, err)
			require.Regexp(t, "^"+test.want+"$", err.Error())
		})
	}
}

func TestBlockIsOneSliceOfEveryArm(t *testing.T) {
	c := &fakeClock{}
	p := c.pairing(t, time.Millisecond, 7,
		c.arm("fast", 3*time.Microsecond), c.arm("slow", 70*time.Microsecond),
		c.arm("slower than a slice", 5*time.Millisecond))
	require.Empty(t, p.Record().Blocks)

	for i := range 20 {
		if i == 1 {
			// The warm-up came first and left no trace in the record: operations ran that no slice counts.
			counted := 0
			for _, s := range p.Record().Blocks[0] {
				counted += s.Ops
			}
			require.Equal(t, []string{"fast", "slow", "slower than a slice"},
				slices.Compact(slices.Clone(c.ran[:len(c.ran)-counted]))[:3])
		}
		before, ran := c.at, len(c.ran)
		require.NoError(t, p.Block(t.Context()))
		r := p.Record()
		require.Len(t, r.Blocks, i+1)
		block := r.Blocks[i]
		require.Len(t, block, 3)
		if i == 0 {
			continue
		}

		byTurn := make([]string, 3)
		var wall time.Duration
		for arm, s := range block {
			require.Empty(t, byTurn[s.Turn], "two arms in one turn")
			byTurn[s.Turn] = r.Arms[arm]
			wall += s.Lead + s.Wall
			require.GreaterOrEqual(t, s.Wall, r.Length)
		}
		require.Equal(t, byTurn, slices.Compact(slices.Clone(c.ran[ran:])), "turns are those that ran, each arm once")
		require.Equal(t, c.at-before, wall, "walls add up to what passed")
		require.Equal(t, time.Duration(block[0].Ops)*3*time.Microsecond, block[0].Wall, "exact, though read once per batch")
		require.Equal(t, time.Duration(block[1].Ops)*70*time.Microsecond, block[1].Wall)
		ops := block[2].Ops
		require.LessOrEqual(t, ops, 2, "one, and one more if the first has not collected")
		require.Equal(t, Slice{
			Turn: block[2].Turn, Ops: ops, Wall: time.Duration(ops) * 5 * time.Millisecond,
			CPU: time.Duration(ops) * 10 * time.Millisecond, GC: block[2].GC, Lead: block[2].Lead, Heap: 5,
		}, block[2])
		require.Less(t, block[0].Wall, r.Length+2*r.Length/readings,
			"ends at the first reading past its length and a collection")
	}
	r := p.Record()
	require.Equal(t, []string{"fast", "slow", "slower than a slice"}, r.Arms)
	require.Equal(t, time.Millisecond, r.Length)
	require.Equal(t, uint64(7), r.Seed)
	require.Equal(t, 3000.0, r.NsPerOp(0))
}

func TestClockIsReadSeldom(t *testing.T) {
	c := &fakeClock{}
	first := true
	slowStart := Arm{Name: "connects in the warm-up", Op: func() error {
		c.at += time.Microsecond
		if first {
			c.at += time.Second
			first = false
		}
		return nil
	}}
	p := c.pairing(t, 10*time.Millisecond, 1, slowStart, c.arm("b", time.Microsecond))
	run(t, p, 3)
	c.reads = 0
	run(t, p, 1)
	require.LessOrEqual(t, c.reads, 2*2*(readings+3),
		"of 10000 operations in each slice, and as many at most that lead in")
	require.GreaterOrEqual(t, c.reads, 2*(readings/2), "often enough to end in time")
}

// The arm that runs leads in: its ops, which don't count, go on through the forced collections and until one more has
// ended.
func TestLeadIn(t *testing.T) {
	for _, test := range []struct {
		why   string
		ops   int // until the forced collections are over
		every int // ops to a collection
		want  int // ops that lead in
		asked []int
	}{
		{"nothing to force", 1, 10, 10, []int{4}},
		{"collections end meanwhile, and one after", 15, 10, 20, []int{4}},
		{"the last one that is forced does not count", 20, 10, 30, []int{4}},
		{"none comes", 15, 1e9, 15 + 51 + 15, []int{4, 1}},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := &fakeClock{}
			var p *Pairing
			led, until := 0, 0
			var asked []int
			arm := func(name string) Arm {
				op := c.arm(name, time.Millisecond).Op
				return Arm{Name: name, Op: func() error {
					if led++; led == until {
						p.forced <- struct{}{}
					}
					return op()
				}}
			}
			p = c.pairing(t, 25*time.Millisecond, 1, arm("a"), arm("b"))
			p.force = func(n int) {
				if n > 1 {
					led, asked = 0, nil
				}
				asked, until = append(asked, n), led+test.ops
			}
			p.gc = func() int { return led / test.every }
			for _, s := range run(t, p, 3).Blocks[2] {
				require.Equal(t, time.Duration(test.want)*time.Millisecond, s.Lead)
				require.Equal(t, time.Duration(s.Ops)*time.Millisecond, s.Wall, "it is not in the slice")
			}
			require.Equal(t, test.asked, asked)
		})
	}
}

// Whatever ends a lead-in, no forced collection goes on: it would be in a slice, or be taken for the next arm's.
func TestNoForcedCollectionIsLeft(t *testing.T) {
	broken := errors.New("broken")
	for why, end := range map[string]func() error{
		"an op failed": func() error { return broken },
		"one panicked": func() error { panic(broken) },
	} {
		t.Run(why, func(t *testing.T) {
			c := &fakeClock{}
			ended := make(chan struct{})
			p := c.pairing(t, time.Millisecond, 1, Arm{Name: "a", Op: func() error { close(ended); return end() }},
				c.arm("b", time.Millisecond))
			var over atomic.Bool
			p.force = func(int) {
				go func() {
					<-ended
					runtime.GC()
					over.Store(true)
					p.forced <- struct{}{}
				}()
			}
			func() {
				defer func() { _ = recover() }()
				require.ErrorIs(t, p.Block(t.Context()), broken)
			}()
			require.True(t, over.Load(), "%s, and a forced collection goes on", why)
			require.Empty(t, p.forced, "%s: the end of a forced collection, which the next arm would take for its own", why)
		})
	}
}

func TestOrder(t *testing.T) {
	turns := func(seed uint64, blocks int) (orders []string) {
		c := &fakeClock{}
		p := c.pairing(t, time.Second, seed, c.arm("a", time.Second), c.arm("b", time.Second), c.arm("c", time.Second))
		for _, block := range run(t, p, blocks).Blocks {
			orders = append(orders, fmt.Sprint(block[0].Turn, block[1].Turn, block[2].Turn))
		}
		return orders
	}
	require.Equal(t, turns(1, 100), turns(1, 100), "a seed decides the orders")
	require.Equal(t, turns(1, 100)[:50], turns(1, 50), "and the number of blocks does not")
	require.NotEqual(t, turns(1, 100), turns(2, 100))

	// Six orders, 6000 blocks: each 1000 times, with a standard deviation of 29.
	count := map[string]int{}
	for _, order := range turns(3, 6000) {
		count[order]++
	}
	require.Len(t, count, 6)
	for order, n := range count {
		require.InDelta(t, 1000, n, 150, "turns %s", order)
	}
	// Neighbouring seeds start with all orders, too.
	clear(count)
	for seed := range uint64(600) {
		count[turns(seed, 1)[0]]++
	}
	for order, n := range count {
		require.InDelta(t, 100, n, 50, "turns %s", order)
	}
}

func TestFailedOperationKeepsBlocks(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		why        string
		after      int // blocks that go well; -1 is the warm-up
		want       string
		wantBlocks int
	}{
		{"in the warm-up", -1, `timing: arm "b", warm-up: broken`, 0},
		{"in the first block", 0, `timing: arm "b", block 0: broken`, 0},
		{"in the fourth block", 3, `timing: arm "b", block 3: broken`, 3},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := &fakeClock{}
			ops := 0 // one leads in, and one is the slice
			b := Arm{Name: "b", Op: func() error {
				c.at += time.Second
				if ops++; ops == 2*(test.after+1)+1 {
					return broken
				}
				return nil
			}}
			p := c.pairing(t, time.Millisecond, 1, c.arm("a", time.Second), b)
			cut(p)
			var err error
			for err == nil {
				err = p.Block(t.Context())
			}
			require.EqualError(t, err, test.want)
			require.ErrorIs(t, err, broken)
			require.Len(t, p.Record().Blocks, test.wantBlocks)

			require.NoError(t, p.Block(t.Context()), "the operation is well again")
			r := p.Record()
			require.Len(t, r.Blocks, test.wantBlocks+1)
			for _, block := range r.Blocks {
				require.Len(t, block, 2)
				require.NotZero(t, block[0].Ops)
				require.NotZero(t, block[1].Ops)
			}
		})
	}
}

// Whichever op of a block fails, it is the last one of its block: those that lead in, those of a slice, and those that
// wait for a collection.
func TestEachOpThatFails(t *testing.T) {
	broken := errors.New("broken")
	pairing := func(fails int) (p *Pairing, made *int) {
		c, made := &fakeClock{}, new(int)
		arm := func(name string) Arm {
			op := c.arm(name, 20*time.Microsecond).Op // several between two readings of the clock
			return Arm{Name: name, Op: func() error {
				if *made++; *made == fails {
					return broken
				}
				return op()
			}}
		}
		p = c.pairing(t, 4*time.Millisecond, 1, arm("a"), arm("b"))
		require.NoError(t, p.Block(t.Context()), "with op %d to fail", fails)
		return p, made
	}
	p, made := pairing(0)
	before := *made
	require.NoError(t, p.Block(t.Context()))
	require.Greater(t, *made-before, 2*200, "ops of a block: two slices of 4 ms, of 20 µs each")
	for fails := before + 1; fails <= *made; fails++ {
		p, until := pairing(fails)
		require.ErrorIs(t, p.Block(t.Context()), broken, "op %d of %d to %d fails", fails, before+1, *made)
		require.Equal(t, fails, *until, "ops until the block ended, where the last of them failed")
		require.Len(t, p.Record().Blocks, 1, "blocks without that of the op %d that failed", fails)
	}
}

func TestCancelledBetweenSlices(t *testing.T) {
	c := &fakeClock{}
	ctx, cancel := context.WithCancel(t.Context())
	stop := false
	arm := func(name string) Arm {
		a := c.arm(name, time.Second)
		return Arm{Name: name, Op: func() error {
			if stop {
				cancel()
			}
			return a.Op()
		}}
	}
	p := c.pairing(t, time.Millisecond, 1, arm("a"), arm("b"))
	cut(p)
	require.NoError(t, p.Block(ctx))
	require.NoError(t, p.Block(ctx))
	stop = true
	ran := len(c.ran)
	err := p.Block(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Regexp(t, `^timing: arm "[ab]", block 2: context canceled$`, err.Error())
	require.Equal(t, ran+2, len(c.ran), "the slice that was running ends as usual, the next one does not start")
	require.Len(t, p.Record().Blocks, 2)

	fresh := c.pairing(t, time.Millisecond, 1, arm("a"), arm("b"))
	ran = len(c.ran)
	require.ErrorIs(t, fresh.Block(ctx), context.Canceled, "no warm-up either")
	require.Equal(t, ran, len(c.ran))
}

func TestRecordIsASnapshot(t *testing.T) {
	c := &fakeClock{}
	p := c.pairing(t, time.Second, 1, c.arm("a", time.Second), c.arm("b", time.Second))
	r := run(t, p, 2)
	r.Blocks[0][0].Ops = -1
	r.Blocks[0] = append(r.Blocks[0], Slice{Ops: -1})
	r.Arms[0] = "changed"
	again := run(t, p, 1)
	require.Len(t, r.Blocks, 2)
	require.Len(t, again.Blocks, 3)
	require.Equal(t, []string{"a", "b"}, again.Arms)
	require.Positive(t, again.Blocks[0][0].Ops)
	require.Positive(t, again.Blocks[1][0].Ops)
}

func TestBlockDoesNotAllocate(t *testing.T) {
	op := func() error { return nil }
	p, err := New([]Arm{{Name: "a", Op: op}, {Name: "b", Op: op}}, 250*time.Microsecond, 1)
	require.NoError(t, err)
	ctx := t.Context()
	block := func() {
		if err := p.Block(ctx); err != nil {
			t.Error(err)
		}
	}
	block() // warm-up
	require.Zero(t, testing.AllocsPerRun(20, block), "but for the growth of the record, which is rare")
}

func TestRecordAsJSON(t *testing.T) {
	want := Record{Arms: []string{"a"}, Length: 9, Seed: 7, Blocks: [][]Slice{{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}}}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	require.Contains(t, string(data), `"length":9,"seed":7,"blocks":[[[1,2,3,4,5,6,7,8,9,10,11]]]`)
	var got Record
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, want, got)
}

// BenchmarkOverhead is the instrument around operations that do nothing for 300 µs: outside-% is the part of the
// slices' time that is not the operations' own. They read the clock themselves, which is why they are that long.
func BenchmarkOverhead(b *testing.B) {
	start := time.Now()
	var inside time.Duration
	garbage, counts := make([]byte, 0), false
	op := func() error {
		began := time.Since(start)
		garbage = make([]byte, 64<<10)
		now := began
		for now-began < 300*time.Microsecond {
			now = time.Since(start)
		}
		if counts {
			inside += now - began
		}
		return nil
	}
	p, err := New([]Arm{{Name: "a", Op: op}, {Name: "b", Op: op}}, 25*time.Millisecond, 1)
	require.NoError(b, err)
	used := p.cpu
	require.NoError(b, p.Block(b.Context()))
	p.cpu = func() (time.Duration, bool) { // is read where a slice begins, and where it ends
		counts = !counts
		return used()
	}
	blocks := len(p.Record().Blocks)
	for b.Loop() {
		if err := p.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	var total time.Duration
	for _, block := range p.Record().Blocks[blocks:] {
		for _, s := range block {
			total += s.Wall
		}
	}
	runtime.KeepAlive(garbage)
	b.ReportMetric(100*float64(total-inside)/float64(total), "outside-%")
}

// An arm is told which of its ops count: those of the slice, and not those that lead in.
func TestArmsKnowWhatCounts(t *testing.T) {
	c := &fakeClock{}
	counted, counts := 0, false
	arm := c.arm("a", time.Millisecond)
	op := arm.Op
	arm.Timed = func(on bool) { counts = on }
	arm.Op = func() error {
		if counts {
			counted++
		}
		return op()
	}
	p := c.pairing(t, 25*time.Millisecond, 1, arm, c.arm("b", time.Millisecond))
	recorded := 0
	for _, block := range run(t, p, 3).Blocks {
		recorded += block[0].Ops
	}
	require.False(t, counts, "calls of an arm count after its slice, of which %d counted", counted)
	require.Equal(t, recorded, counted, "neither the ops that lead in nor the slices before the first block")
}

// An arm with a window of its own has what it says of its operations, and the rest as others have it.
func TestWindow(t *testing.T) {
	c := &fakeClock{}
	p := c.pairing(t, time.Millisecond, 1, c.arm("a", time.Millisecond), c.arm("b", time.Millisecond))
	windows, told, broken := 0, true, error(nil)
	for arm := range p.arms {
		op := p.arms[arm].Op
		p.arms[arm].Op = nil
		p.arms[arm].Server = func() (time.Duration, bool) { return 3 * c.at, told }
		p.arms[arm].Switches = func() int64 { return int64(17 * c.at / time.Millisecond) }
		p.arms[arm].Window = func(_ context.Context, edge func(bool)) (int, time.Duration, error) {
			windows++
			_ = ops(op, 30)
			edge(true)
			_ = ops(op, 20)
			edge(false)
			_ = ops(op, 10)
			return 17, 19 * time.Millisecond, broken
		}
	}
	for _, block := range run(t, p, 2).Blocks {
		for _, s := range block {
			require.Equal(t, Slice{Turn: s.Turn, Ops: 17, Wall: 19 * time.Millisecond, CPU: 100 * time.Millisecond, GC: 2,
				Lead: 30 * time.Millisecond, Heap: 5, Server: 60 * time.Millisecond,
				Busy: 140 * time.Millisecond, Idle: 20 * time.Millisecond, Switches: 340}, s)
		}
	}
	require.Equal(t, Load{Free: 0.125, Others: 0.25, Switches: 20}, p.Record().Load(1))
	require.Equal(t, 4, windows, "no window is discarded")
	told = false
	s := run(t, p, 1).Blocks[2][0]
	require.Zero(t, s.CPU+s.Server, "CPU time of arm a, where that of its server is not told")
	broken = errors.New("broken")
	require.ErrorIs(t, p.Block(t.Context()), broken)
}
