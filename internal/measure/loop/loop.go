// Package loop goes round: it makes the calls of one caller or of several, and records the percentiles of their
// latencies. A percentile with fewer than ten samples above it is absent, since the next run would give another.
package loop

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Limits of the rate of planned starts, per second. Below MinRate a row would take minutes. Nobody reaches MaxRate.
const (
	MinRate = 1
	MaxRate = 1e6

	tooLate = 50 * time.Millisecond // after which a planned start is skipped

	warmLimit = 500 * time.Millisecond // after which a caller that warms begins no other call
)

// Loop goes round: each of its callers makes the calls of its round in turn, and calls again as soon as it has its
// reply, or at planned starts. One goroutine uses a loop at a time.
//
// Callers last from Start until they have made the calls of Run, or until the window of During is over. A call counts
// if it ends in the window, whenever it began, and its latency is whole. Leaving out calls that cross an edge would
// drop one latency's worth: of slow calls more than of quick ones.
//
// A latency counts from the planned start, if there is one: after a stall of 200 ms every call that was due meanwhile
// is slow. Without a plan a stall is a single slow call: coordinated omission (G. Tene,
// https://github.com/giltene/wrk2).
type Loop interface {
	// Start starts the callers, and returns when each has made warm calls, which don't count, or has made some of them for
	// half a second. Run or During comes next.
	// If one of the calls fails, Start leaves nothing running.
	Start(warm int) error

	// Warmed is how long a call took when callers were warm: the median over callers of the last call that Start made.
	// It is 0 without one.
	Warmed() time.Duration

	// Run makes n calls, or the planned ones, which all count, and then ends the callers. If ctx ends, it makes fewer.
	// The callers share the calls: a quick caller makes more.
	Run(ctx context.Context, n int64) error

	// During makes calls for a while that leads in, and then for a window, whose length it returns. It tells edge when
	// the window opens and when it closes. Calls that are under way then are made, and don't count.
	During(ctx context.Context, lead, length time.Duration, edge func(open bool)) (time.Duration, error)

	// Finish ends the callers when their calls under way have ended, and returns the error of the first call that failed.
	// Finish may be called again.
	Finish() error

	// Begun is how many calls have begun so far, those of the warm-up included. Any goroutine may ask for it.
	Begun() int64

	// InFlight returns how many calls of a Run were under way, on average: the sum of their latencies over the time until
	// the last one ended.
	InFlight() float64
}

// Figures are what loops find. Those of a loop are added to what the loops before it found.
type Figures struct {
	Latency  *Recorder // of the calls that count
	Lateness *Recorder // of planned starts: how much later the call began; of skipped ones too
	Skipped  int64     // planned starts that were more than 50 ms late, so that no call was made
	Planned  int64     // starts that were due in the windows of During

	Most atomic.Int64 // planned calls that were under way at once, at most
}

// NewFigures returns empty figures, with a Lateness for loops that have a plan.
func NewFigures(planned bool) *Figures {
	f := &Figures{Latency: NewRecorder()}
	if planned {
		f.Lateness = NewRecorder()
	}
	return f
}

// Spec is what a loop is made of.
type Spec struct {
	Rounds  [][]func(context.Context) error // the calls of each caller
	Plan    [][]time.Duration               // the starts of each caller's calls, of each Run or During; nil without a plan
	Figures *Figures                        // with a Lateness if there is a plan

	// Spread is the time over which several callers without a plan begin, each at a moment of its share. Callers whose
	// calls wait equally long would else go on replying all at once.
	Spread time.Duration
	Seed   uint64 // of these moments

	Patient bool // no planned start is skipped, however late
}

// New makes a loop. It is an [*OneCaller] if there is one caller and no plan.
func New(s Spec) Loop {
	if len(s.Rounds) == 1 && s.Plan == nil {
		return &OneCaller{round: s.Rounds[0], latency: s.Figures.Latency}
	}
	c := &callers{spec: s, warmed: make([]time.Duration, len(s.Rounds))}
	if s.Plan == nil && s.Spread > 0 {
		c.begins = begins(len(s.Rounds), s.Spread, s.Seed)
	}
	return c
}

// begins are when so many callers begin: one in each of as many equal parts of a time.
func begins(callers int, spread time.Duration, seed uint64) []time.Duration {
	random, at := rand.New(rand.NewPCG(seed, 1)), make([]time.Duration, callers)
	for i := range at {
		at[i] = time.Duration((float64(i) + random.Float64()) / float64(callers) * float64(spread))
	}
	return at
}

// Plan plans n starts at a mean rate per second, for so many callers. The gaps between the starts are exponential, and
// each start is a random caller's: so each caller has such a plan of its own, of its share of the rate. The seed
// decides.
//
// In turn, the starts go round the callers. Of long calls a random caller's next start would often come too early: with
// a call of 100 ms, and five starts a second for each caller, a quarter of them would be skipped.
func Plan(callers int, rate float64, n int, seed uint64, inTurn bool) [][]time.Duration {
	random, at := rand.New(rand.NewPCG(seed, 0)), 0.0
	plan := make([][]time.Duration, callers)
	for start := range n {
		at += random.ExpFloat64() / rate
		i := random.IntN(callers)
		if inTurn {
			i = start % callers
		}
		plan[i] = append(plan[i], time.Duration(at*float64(time.Second)))
	}
	return plan
}
