package timing

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a simulated process on a shared machine: its speed drifts, it is held up in bursts that may last for
// several slices, and its collector stops it whenever so many bytes have been allocated, whoever allocated them: fewer,
// if any of the last collections met an operation that allocates fast.
type machine struct {
	random *rand.Rand
	at     time.Duration
	speed  float64       // of everything, drifting
	slow   time.Duration // until when a burst lasts
	heap   float64       // bytes since the last collection
	gcs    int
	rates  [remembered]float64 // bytes/ns at the last collections
	forced int                 // collections to meet the next operation

	drift, noise, bursts float64
}

const (
	heapLimit = 4 << 20
	gcTakes   = 700e3 // ns, as measured with one P
)

func newMachine(seed uint64) *machine {
	return &machine{random: rand.New(rand.NewPCG(seed, 0)), speed: 1, drift: 0.0021, noise: 0.035, bursts: 0.00004}
}

// op is an operation in lumps of 10, so that simulating many runs takes a moment.
func (m *machine) op(ns, bytes float64) func() error {
	const lump = 10
	return func() error {
		m.speed *= math.Exp(m.drift * m.random.NormFloat64())
		took := lump * ns * m.speed * (1 + m.noise*m.random.NormFloat64())
		if m.random.Float64() < m.bursts {
			m.slow = m.at + time.Duration(100e6*m.random.Float64())
		}
		if m.at < m.slow {
			took *= 1.5
		}
		m.heap += lump * bytes
		for m.forced > 0 || m.heap >= trigger(slices.Max(m.rates[:])) {
			m.forced, m.heap = max(0, m.forced-1), 0
			m.rates[m.gcs%remembered] = bytes / ns
			m.gcs++
			took += gcTakes * m.speed
		}
		m.at += time.Duration(took)
		return nil
	}
}

// trigger is at how many bytes a collection begins, so that it ends before there are heapLimit of them.
func trigger(rate float64) float64 { return heapLimit * (1 - rate/6) }

// truth is what an operation takes with its share of the collections.
func truth(ns, bytes float64) float64 { return ns + bytes/trigger(bytes/ns)*gcTakes }

func (m *machine) run(t *testing.T, byClock bool, blocks int, arms ...Arm) Record {
	t.Helper()
	p, err := New(arms, 25*time.Millisecond, m.random.Uint64())
	require.NoError(t, err)
	p.now = func() time.Duration { return m.at }
	p.cpu = func() (time.Duration, bool) { return m.at, true }
	p.gc = func() int { return m.gcs }
	p.force = func(n int) {
		m.forced = n
		p.forced <- struct{}{}
	}
	if byClock {
		cut(p)
	}
	for range blocks {
		require.NoError(t, p.Block(context.Background()))
	}
	return p.Record()
}

// interval is an estimate with its limits: median and order statistics at 95 % or a little more, by the normal
// approximation of their ranks.
type interval struct{ lo, mid, hi float64 }

func order(values []float64) interval {
	slices.Sort(values)
	n := len(values)
	k := int(float64(n)/2 - 0.98*math.Sqrt(float64(n)) + 0.5)
	return interval{values[k-1], median(values), values[n-k]}
}

// reading is a way to make an interval of a record: by pairs, and the ways that lose what pairing gives.
type reading func(r Record) interval

func read(r Record) interval {
	ratios, err := r.Ratios(1, 0)
	if err != nil {
		panic(err)
	}
	return order(ratios)
}

// shuffled reads the arm's slices against the base's of other blocks.
func shuffled(r Record) interval {
	other := Record{Arms: r.Arms}
	for i, j := range rand.New(rand.NewPCG(9, 0)).Perm(len(r.Blocks)) {
		other.Blocks = append(other.Blocks, []Slice{r.Blocks[i][0], r.Blocks[j][1]})
	}
	return read(other)
}

// contiguous reads the first half of the base's slices against the second half of the arm's, as runs one after the
// other would have them: the ratio of the medians, with the intervals of both.
func contiguous(r Record) interval {
	half := len(r.Blocks) / 2
	of := func(blocks [][]Slice, arm int) interval {
		var ns []float64
		for _, b := range blocks {
			ns = append(ns, b[arm].nsPerOp())
		}
		return order(ns)
	}
	base, arm := of(r.Blocks[:half], 0), of(r.Blocks[half:], 1)
	return interval{arm.lo / base.hi, arm.mid / base.mid, arm.hi / base.lo}
}

// verdict is what the interval says of the arm, by a margin of 2 %.
func (i interval) verdict() string {
	switch {
	case i.lo > 1:
		return "slower"
	case i.hi < 1:
		return "faster"
	case i.lo >= 1/1.02 && i.hi <= 1.02:
		return "equal"
	}
	return "undecided"
}

// outcome of many simulated runs.
type outcome struct {
	covered, width float64            // share of the runs; median half-width as a fraction
	bias           float64            // median error of the estimate as a fraction
	verdicts       map[string]float64 // shares of the runs
}

// simulate returns what each reading makes of the same runs.
func simulate(t *testing.T, byClock bool, armNs, armBytes float64, by ...reading) []outcome {
	t.Helper()
	const runs, baseNs, baseBytes, blocks = 200, 30_000, 9_000, 40
	ratio := truth(armNs, armBytes) / truth(baseNs, baseBytes)
	all, widths, errors := make([]outcome, len(by)), make([][]float64, len(by)), make([][]float64, len(by))
	for seed := range uint64(runs) {
		m := newMachine(seed)
		r := m.run(t, byClock, blocks, Arm{Name: "base", Op: m.op(baseNs, baseBytes)},
			Arm{Name: "arm", Op: m.op(armNs, armBytes)})
		for n, read := range by {
			i, o := read(r), &all[n]
			if i.lo <= ratio && ratio <= i.hi {
				o.covered += 1. / runs
			}
			widths[n] = append(widths[n], (i.hi-i.lo)/2/ratio)
			errors[n] = append(errors[n], i.mid/ratio-1)
			if o.verdicts == nil {
				o.verdicts = map[string]float64{}
			}
			o.verdicts[i.verdict()] += 1. / runs
		}
	}
	for n := range all {
		slices.Sort(widths[n])
		slices.Sort(errors[n])
		all[n].width, all[n].bias = median(widths[n]), median(errors[n])
		t.Logf("%+v", all[n])
	}
	return all
}

func TestPairedReadingOfASharedMachine(t *testing.T) {
	for _, test := range []struct {
		why          string
		ns, bytes    float64
		want, wanted string // of nearly all runs; and its opposite, of none
	}{
		{"the same", 30_000, 9_000, "equal", ""},
		{"5 % more work", 31_500, 9_000, "slower", "faster"},
		{"10 % less work", 27_000, 9_000, "faster", "slower"},
		{"as much work, twice the garbage", 30_000, 18_000, "slower", "faster"},
	} {
		t.Run(test.why, func(t *testing.T) {
			o := simulate(t, false, test.ns, test.bytes, read)[0]
			require.GreaterOrEqual(t, o.covered, 0.93)
			require.LessOrEqual(t, o.covered, 0.995, "an interval that always covers is too wide")
			require.Less(t, o.width, 0.01, "or the pairing is lost: the drift is in the interval")
			require.InDelta(t, 0, o.bias, 0.001)
			require.Greater(t, o.verdicts[test.want], 0.9)
			require.Zero(t, o.verdicts[test.wanted])
		})
	}
}

// The same records read as runs one after the other no longer hold the truth; read without their pairs they hold it
// only because they hardly say anything.
func TestUnpairedReadingsLose(t *testing.T) {
	all := simulate(t, false, 30_900, 9_000, read, contiguous, shuffled)
	good, apart, unpaired := all[0], all[1], all[2]
	require.Greater(t, good.verdicts["slower"], 0.9)
	require.Less(t, apart.covered, 0.85, "one after the other")
	require.NotZero(t, apart.verdicts["faster"], "the wrong one of the two")
	require.Greater(t, unpaired.width, 3*good.width, "pairs of different blocks")
	require.Less(t, unpaired.verdicts["slower"], 0.5)
}

// A slice that begins and ends wherever the collector stands pays for two collections or for three: that is its noise,
// and its median may forget them altogether. And it pays at the rate that the arm before it has taught the collector.
func TestSlicesThatEndWithACollection(t *testing.T) {
	const ns, bytes = 30_000, 18_000
	whole, cut := simulate(t, false, ns, bytes, read)[0], simulate(t, true, ns, bytes, read)[0]
	require.Greater(t, cut.width, 1.2*whole.width)
	require.InDelta(t, 0, whole.bias, 0.001)
	require.Greater(t, math.Abs(cut.bias), 0.002)

	// 1.5 kB per op are less than half a collection per slice of 25 ms.
	whole, cut = simulate(t, false, ns, 1_500, read)[0], simulate(t, true, ns, 1_500, read)[0]
	require.InDelta(t, 0, whole.bias, 0.002)
	require.Greater(t, math.Abs(cut.bias), 0.003)
}

func TestSliceEnds(t *testing.T) {
	for _, test := range []struct {
		why   string
		every int // operations of 1 ms between two collections; 0 is never
		least time.Duration
		most  time.Duration
	}{
		{"with the first collection past its length", 30, 26 * time.Millisecond, 60 * time.Millisecond},
		{"after a while if nothing is collected", 0, Longest * 25 * time.Millisecond, Longest*25*time.Millisecond +
			5*time.Millisecond},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := &fakeClock{}
			p := c.pairing(t, 25*time.Millisecond, 1, c.arm("a", time.Millisecond), c.arm("b", time.Millisecond))
			p.gc = func() int {
				if test.every == 0 {
					return 0
				}
				return len(c.ran) / test.every
			}
			for _, block := range run(t, p, 5).Blocks {
				for _, s := range block {
					require.GreaterOrEqual(t, s.Wall, test.least)
					require.LessOrEqual(t, s.Wall, test.most)
					if test.every > 0 {
						require.Positive(t, s.GC)
					}
				}
			}
		})
	}
}
