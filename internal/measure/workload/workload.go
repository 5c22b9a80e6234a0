// Package workload opens a stack at a workload and prepares its calls, for the rows of go test -bench, for the
// processes that measure for rpcbench run and explain, and for what counts bytes and allocations. All of them make the
// calls by an Open's Loop. The package also lists the workloads of run.
package workload

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Workload is an rpcbench.Workload, with what the engine does with it.
type Workload rpcbench.Workload

// MostRate is how many calls a second may be planned, so that of callers whose calls are delayed enough are free, and a
// link isn't full.
func (w Workload) MostRate() float64 {
	most := float64(loop.MaxRate)
	if d := w.delay(); d > 0 {
		most = min(most, busy*float64(w.AtOnce())/d.Seconds())
	}
	if d := w.carrying(); d > 0 {
		most = min(most, busy/d.Seconds())
	}
	return most
}

// TellsCores says whether CPU time over wall time of a process tells how many cores a call had: of one caller, whose
// server is in the process and whose replies come at once.
func (w Workload) TellsCores() bool {
	return w.AtOnce() == 1 && !w.Windowed() && w.Link == "" && w.Wait == 0
}

// AsksCPU says whether the question is what calls cost: of several callers. One caller asks what it waits for, unless
// it has one core, whose time is CPU time.
func (w Workload) AsksCPU() bool { return (w.Several() || w.Rate != 0) && !w.NewConn && w.Link == "" }

// Linked is the workload's link, if it has one.
func (w Workload) Linked() (tap.Link, bool) {
	link, err := tap.FindLink(string(w.Link))
	return link, err == nil
}

// Routed tells whether calls cross a network with a router, which package network makes.
func (w Workload) Routed() bool {
	link, _ := w.Linked()
	return link.Routed
}

// Blocks is how many of n blocks a process measures: fewer where starting takes most of the time, where a window takes
// longer than a slice, or where hardly anything varies.
func (w Workload) Blocks(n int) int {
	const turns = 89 // of slices, that a window over a router takes
	switch {
	case w.Routed():
		return max(1, (n+turns/2)/turns)
	case w.Link != "" || w.Wait >= longWait:
		return 2
	case w.Rate != 0:
		return min(max(1, n-9), 10)
	case w.Windowed():
		return min(2*n/5, 10)
	}
	return n
}

// Extra is about how long a window takes, or how much longer a slice of long calls takes than one of short calls, of
// such stacks.
func (w Workload) Extra(stacks ...rpcbench.Traits) time.Duration {
	switch {
	case w.Windowed():
		lead, length := w.Window(w.Likely(stacks...))
		return lead + length
	case w.Link != "":
		return max(3*time.Second, 5*w.delay())
	}
	if w.Wait > 0 { // no collection ends the slice in time
		return 250*time.Millisecond + 4*w.Wait
	}
	return 5 * (w.Likely(stacks...) - work) // of calls that lead in, and of the one that a slice lasts on for
}

// Warming is about how long it takes until the callers of a fixture of such a stack are warm.
func (w Workload) Warming(stacks ...rpcbench.Traits) time.Duration {
	if w.Link != "" && !w.Windowed() {
		return 0 // Extra has it
	}
	const handshake = 600 * time.Microsecond // of all cores
	callers, calls := w.callers()
	cold := w.Wait                            // of the calls that Start makes until all connections are open
	if link, _ := w.Linked(); link.Loss > 0 { // which takes the first packet of some connection
		cold += time.Second
	}
	if w.TLS {
		cold += time.Duration(cmp.Or(w.Conns, callers)) * handshake
	}
	if w.Payload == Drawn {
		return 6 * draws * work * 16 // whose messages are made first, and are larger
	}
	const longest = 500 * time.Millisecond // that a loop warms, and on to the end of a call
	call := w.Likely(stacks...)
	return cold + max(call, min(longest, time.Duration(w.warm(callers, calls))*call))
}

// work is about what a call takes of all cores, of client and server.
const work = 25 * time.Microsecond

// Likely is about how long a call of the slowest of such stacks takes, as far as that is known before one is made: of
// callers who call again at once. Each has its turn where its connection is busy with another's call, and where the
// link is.
func (w Workload) Likely(stacks ...rpcbench.Traits) time.Duration {
	const perByte = 15 * time.Nanosecond // of a message on its way to and fro, in the dearest form
	turns := 1
	for _, t := range stacks {
		turns = max(turns, w.turns(t))
	}
	waits := max(time.Duration(turns)*w.delay(), time.Duration(w.AtOnce())*w.carrying())
	return waits + time.Duration(w.AtOnce())*(work+time.Duration(w.Size())*perByte)
}

// Slow tells whether a handler or a link delays calls so long that a run takes minutes.
func (w Workload) Slow() bool { return w.delay() >= longWait }

// Size is about how many bytes a message has, if that is known.
func (w Workload) Size() int {
	return w.Bytes() + map[rpcbench.Payload]int{rpcbench.Flex2kB: 2000, rpcbench.Flex18kB: 18500}[w.Payload]
}

// delay is how long a handler and a link delay a call at least.
func (w Workload) delay() time.Duration {
	link, linked := w.Linked()
	if !linked {
		return w.Wait
	}
	trips := time.Duration(1)
	if w.NewConn {
		trips = 2 // or three, with TLS
	}
	return w.Wait + trips*link.RTT + time.Duration(2*8e9*float64(w.Size())/link.Rate)
}

// carrying is how long a link is busy with a message, each way, whoever else waits for it.
func (w Workload) carrying() time.Duration {
	const least = 100 // bytes of a small message, with what is around it
	link, linked := w.Linked()
	if !linked {
		return 0
	}
	return time.Duration(8e9 * float64(max(least, w.Size())) / link.Rate)
}

const (
	busy        = 0.8         // of the callers, or of a link's time, on average, at the highest rate that is planned
	each        = 4           // calls that a caller goes round: a reply that sticks to a connection is then the wrong one
	rateCallers = 100         // of planned calls, unless the workload says how many
	mostWait    = time.Second // of a handler: a start, which waits too, may take ten
	longWait    = 10 * time.Millisecond
	longStart   = 25 * time.Millisecond // half of what a planned start may be late
)

// Several says whether several callers call at a time. A single one may call in a goroutine that does more than that.
func (w Workload) Several() bool { return w.AtOnce() > 1 }

// Windowed says whether calls are counted in windows. Slices of 25 ms, which end with a collection, are of one caller
// in the server's process.
func (w Workload) Windowed() bool { return w.Several() || w.Apart || w.Rate != 0 }

// Counting names how calls are counted in windows. Older results have none: their windows were of 100 ms, however long
// a call took.
const Counting = "windows of ten calls of each caller, and of 100 ms at least"

// InTurn tells whether planned starts have to go round the callers, if a call takes that long.
func (w Workload) InTurn(call time.Duration) bool { return w.Rate > 0 && call > longStart }

// MostCall is how long a call may take that is measured in windows.
const MostCall = 3 * time.Second

// Window is how long callers call before they are measured, and how long they are, if a call takes that long: then the
// window has ten calls of each caller, or at a rate ten times what delays a call. The CPU clock of another process may
// be a tick late for each thread that runs: a tick of 4 ms for two of them is 8 % of 100 ms.
//
// Callers whose calls are long begin within the first call's time, and whoever measures adds up to another to the lead:
// those that reply in step would else be counted at the same moment of a call in each window.
func (w Workload) Window(call time.Duration) (lead, length time.Duration) {
	const calls = 10 // of each caller
	lead, length = 100*time.Millisecond, 100*time.Millisecond
	switch {
	case w.Rate > 0: // a thousand calls or more, on average
		call, lead = w.delay(), 300*time.Millisecond
		length = max(lead, time.Duration(1000/w.Rate*float64(time.Second)))
	case w.Link != "":
		lead, length = time.Second, 2*time.Second
	}
	if w.Routed() { // of what is lost there is little: p99 takes many calls
		lead, length = time.Second, max(length, 4*time.Second)
	}
	if longer := calls * call; longer > length {
		return max(lead, call), longer
	}
	return lead, length
}

// AtOnce is how many callers there are.
func (w Workload) AtOnce() int {
	callers, _ := w.callers()
	return callers
}

// callers returns how many callers there are, and how many different calls each makes in turn.
func (w Workload) callers() (callers, calls int) {
	switch {
	case w.Rate != 0:
		callers, calls = cmp.Or(w.Callers, rateCallers), each
	case w.Callers == 0:
		callers, calls = 1, corpus.Round
	default:
		callers, calls = w.Callers, each
	}
	if w.Payload == Drawn {
		calls = (draws + callers - 1) / callers
	}
	return callers, calls
}

// Connections is how many a client of the stack keeps open: as its library is wired, unless the workload says how many.
func (w Workload) Connections(t rpcbench.Traits) int {
	callers := w.AtOnce()
	if w.NewConn || t.Multiplexed && !t.Turns {
		callers = 1
	}
	return cmp.Or(w.Conns, callers)
}

// Bytes are the random ones that come with a user.
func (w Workload) Bytes() int {
	n, _ := Size(string(w.Payload))
	return n
}

// Data is how many bytes of data a call sends, without encoding and headers, and as many come back: of a stream, and of
// messages of 100 kB or more, where their flow matters. Of others it is 0.
func (w Workload) Data() int {
	const large, user = 100_000, len("anna.10@example.com" + "Anna10" + "pw-10")
	switch size := w.Size(); {
	case w.Stream && w.Structured():
		return size
	case w.Stream:
		return user + size
	case size >= large:
		return size
	}
	return 0
}

// Structured says whether a message is echoed, and no user created.
func (w Workload) Structured() bool { return flex(w.Payload, 0) != nil }

// Quicker are links of a higher rate, and then of a shorter round trip too.
func Quicker(text string) (links []string) {
	link, err := tap.FindLink(text)
	if err != nil {
		return nil
	}
	for _, rtt := range []time.Duration{link.RTT, 100 * time.Millisecond, 10 * time.Millisecond} {
		for _, rate := range []float64{1e6, 1e7, 1e8, 1e9} {
			if name := fmt.Sprintf("%v/%.0fMbps", rtt, rate/1e6); rate > link.Rate && rtt <= link.RTT {
				links = append(links, name)
			}
		}
	}
	return links
}
