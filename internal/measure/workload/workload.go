// Package workload opens a stack at a workload and prepares its calls, for the rows of go test -bench, for the
// processes that measure for rpcbench run and explain, and for what counts bytes and allocations. All of them make the
// calls by an Open's Loop. The package also lists the workloads of run.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Workload is an rpcbench.Workload, with what the engine does with it.
type Workload rpcbench.Workload

// Planned is a workload before its run begins.
type Planned struct {
	Workload
	Ordinary bool // the run finds its Rate, at which the base takes about a quarter of the machine
}

// At is the workload with the rate that was found for it: if none was, a thousand calls a second, or as many as its
// callers can make.
func (p Planned) At(rates map[string]float64) Workload {
	if p.Ordinary {
		p.Rate = cmp.Or(rates[p.Name], 1000)
		p.Rate = min(p.Rate, p.MostRate())
	}
	return p.Workload
}

// Check is Workload.Check for what is measured in windows of a thousand planned calls, which last two seconds at most
// unless a call takes long.
func (p Planned) Check() error {
	switch {
	case p.Rate > 0 && p.Rate < LeastRate:
		return fmt.Errorf("%v calls a second are too few for a window of a thousand: give %d or more", p.Rate, LeastRate)
	case p.Rate != 0 && !(p.Rate > 0 && p.Rate <= loop.MaxRate):
		return refuse("%s lies between %d and %d calls per second: %v does not", Field("Rate"), LeastRate,
			int(loop.MaxRate), p.Rate)
	}
	if p.Ordinary {
		p.Rate = LeastRate // the least that may be found
	}
	if err := p.Workload.Check(); err != nil {
		return err
	}
	if most := p.MostRate(); p.Rate > most {
		needed := math.Ceil(float64(p.AtOnce()) * p.Rate / most)
		would := fmt.Sprintf("give %.0f callers or more for %v a second", needed, p.Rate)
		if needed > Most {
			would = fmt.Sprintf("%v a second would take %.0f, and %d are the most", p.Rate, needed, Most)
		}
		return refuse("%s can make %.0f calls a second, as each of %d takes %v and more: %s", Field("Callers"), most,
			p.AtOnce(), p.delay(), would)
	}
	return nil
}

// MostRate is how many calls a second may be planned, so that of callers whose calls are delayed enough are free.
func (w Workload) MostRate() float64 {
	const atOnce = 0.8 // of the callers, on average
	if d := w.delay(); d > 0 {
		return min(loop.MaxRate, atOnce*float64(w.AtOnce())/d.Seconds())
	}
	return loop.MaxRate
}

// planned are workloads, of which the named ones have an ordinary load.
func planned(all []Workload, ordinary ...string) (planned []Planned) {
	for _, w := range all {
		planned = append(planned, Planned{w, slices.Contains(ordinary, w.Name)})
	}
	return planned
}

// TellsCores says whether CPU time over wall time of a process tells how many cores a call had: of one caller, whose
// server is in the process and whose replies come at once.
func (w Workload) TellsCores() bool {
	return w.AtOnce() == 1 && !w.Windowed() && w.Link == "" && w.Wait == 0
}

// AsksCPU says whether the question is what calls cost: of several callers. One caller asks what it waits for, unless
// it has one core, whose time is CPU time.
func (w Workload) AsksCPU() bool { return (w.Several() || w.Rate != 0) && !w.NewConn && w.Link == "" }

// Blocks is how many of n blocks a process measures: fewer where starting takes most of the time, where a window takes
// longer than a slice, or where hardly anything varies.
func (w Workload) Blocks(n int) int {
	switch {
	case w.Link != "" || w.Wait >= longWait:
		return 2
	case w.Rate != 0:
		return min(max(1, n-9), 10)
	case w.Windowed():
		return min(2*n/5, 10)
	}
	return n
}

// Extra is about how long a window takes, or how much longer a slice of long calls takes than one of short calls.
func (w Workload) Extra() time.Duration {
	switch {
	case w.Windowed():
		lead, length := w.Window(w.Likely())
		return lead + length
	case w.Link != "":
		return max(3*time.Second, 5*w.delay())
	}
	if w.Wait > 0 { // no collection ends the slice in time
		return 250*time.Millisecond + 4*w.Wait
	}
	return 5 * (w.Likely() - work) // of calls that lead in, and of the one that a slice lasts on for
}

// Warming is about how long it takes until the callers of a fixture are warm.
func (w Workload) Warming() time.Duration {
	if w.Link != "" && !w.Windowed() {
		return 0 // Extra has it
	}
	const handshake = 600 * time.Microsecond // of all cores
	callers, calls := w.callers()
	cold := w.Wait // of the calls that Start makes until all connections are open
	if w.TLS {
		cold += time.Duration(cmp.Or(w.Conns, callers)) * handshake
	}
	if w.Payload == Drawn {
		return 6 * draws * work * 16 // whose messages are made first, and are larger
	}
	const longest = 500 * time.Millisecond // that a loop warms, and on to the end of a call
	return cold + max(w.Likely(), min(longest, time.Duration(w.warm(callers, calls))*w.Likely()))
}

// work is about what a call takes of all cores, of client and server.
const work = 25 * time.Microsecond

// Likely is about how long a call takes, as far as that is known before one is made: of callers who call again at once,
// each of whom has its turn.
func (w Workload) Likely() time.Duration {
	const perByte = 15 * time.Nanosecond // of a message on its way to and fro, in the dearest form
	turns := time.Duration(1)            // of callers who share connections that carry a call at a time
	if w.Conns > 0 {
		turns = time.Duration((w.AtOnce() + w.Conns - 1) / w.Conns)
	}
	return turns*w.delay() + time.Duration(w.AtOnce())*(work+time.Duration(w.Size())*perByte)
}

// Slow tells whether a handler or a link delays calls so long that a run takes minutes.
func (w Workload) Slow() bool { return w.delay() >= longWait }

// Size is about how many bytes a message has, if that is known.
func (w Workload) Size() int {
	return w.Bytes() + map[string]int{"flex.1kB": 2000, "flex.10kB": 18500}[w.Payload]
}

// delay is how long a handler and a link delay a call at least.
func (w Workload) delay() time.Duration {
	link, err := tap.FindLink(w.Link)
	if err != nil {
		return w.Wait // there is none
	}
	trips := time.Duration(1)
	if w.NewConn {
		trips = 2 // or three, with TLS
	}
	return w.Wait + trips*link.RTT + time.Duration(2*8e9*float64(w.Size())/link.Rate)
}

// LeastRate is the least Rate of a Planned workload. Most are the callers, the connections and the cores at most.
const (
	LeastRate = 500
	Most      = 1000
)

const (
	each        = 4           // calls that a caller goes round: a reply that sticks to a connection is then the wrong one
	rateCallers = 100         // of planned calls, unless the workload says how many
	mostWait    = time.Second // of a handler: a start, which waits too, may take ten
	longWait    = 10 * time.Millisecond
	longStart   = 25 * time.Millisecond // half of what a planned start may be late
	mostStreams = 250                   // calls that net/http's HTTP/2 server takes on a connection at a time
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

// Unseen says what the suite can't see of a stack, because of Traits.Varies. It is "" if that is nothing.
func Unseen(s rpcbench.Stack) string {
	switch s.Traits.Varies {
	case rpcbench.Numbered:
		return s.Name + " numbers its requests: no test sees whether the numbered part, of up to 64 bytes, holds more"
	case rpcbench.Masked:
		return s.Name + " masks its requests: no test reads them, only their lengths and the replies"
	}
	return ""
}

// checkStreams refuses more callers than a connection carries: further calls would wait, and the row be of that.
func (w Workload) checkStreams(t rpcbench.Traits) error {
	callers := w.AtOnce()
	n := (callers + w.Connections(t) - 1) / w.Connections(t)
	if t.HTTP == "2" && slices.Contains(t.ServerLibraries, "net/http") && n > mostStreams {
		return fmt.Errorf("net/http's HTTP/2 server takes %d calls on a connection, and here are %d callers on each: "+
			"give %d connections", mostStreams, n, (callers+mostStreams-1)/mostStreams)
	}
	return nil
}

// Check refuses numbers that make no sense, and what no stack can do.
func (w Workload) Check() error {
	for _, n := range []struct {
		name  Field
		value int
	}{
		{"Callers", w.Callers}, {"Conns", w.Conns}, {"Procs", w.Procs},
	} {
		if n.value < 0 || n.value > Most {
			return refuse("%s lies between 0 and %d: %d does not", n.name, Most, n.value)
		}
	}
	other := w.NewConn || w.Structured() || w.Invalid || w.Deadline || w.Headers || w.Rate != 0
	switch {
	case w.Payload != "" && !w.Structured() && w.Bytes() == 0:
		_, err := Size(w.Payload)
		return refuse("%s: %v, or name a structured message: flex.empty, flex.complex, flex.1kB, flex.10kB or drawn",
			Field("Payload"), err)
	case w.Payload == Drawn && (w.NewConn || w.Link != ""):
		return refuse("drawn %s takes a thousand calls: it goes without %s and %s", Field("Payload"), Field("NewConn"),
			Field("Link"))
	case w.Structured() && w.Invalid:
		return refuse("structured %s is no user: it goes without %s", Field("Payload"), Field("Invalid"))
	case w.Stream && (other || w.Callers > 1 || w.Conns > 1):
		return refuse("%s has one caller of valid users: it goes with %s, %s and %s alone", Field("Stream"), Field("TLS"),
			Field("Link"), Field("Payload"))
	case w.Wait < 0 || w.Wait > mostWait:
		return refuse("%s lies between 0 and %v: %v does not", Field("Wait"), mostWait, w.Wait)
	case w.NewConn && w.Conns > 1:
		return refuse("%s leaves no choice of %s: each call has a connection of its own", Field("NewConn"), Field("Conns"))
	case w.Rate != 0 && !(w.Rate >= loop.MinRate && w.Rate <= loop.MaxRate):
		return refuse("%s lies between %v and %v calls per second: %v does not", Field("Rate"), loop.MinRate,
			int(loop.MaxRate), w.Rate)
	case w.Link != "":
		_, err := tap.FindLink(w.Link)
		return err
	}
	return nil
}

// Bytes are the random ones that come with a user.
func (w Workload) Bytes() int {
	n, _ := Size(w.Payload)
	return n
}

// Structured says whether a message is echoed, and no user created.
func (w Workload) Structured() bool { return flex(w.Payload, 0) != nil }

// Size reads a payload: 100B, 1kB (1000 bytes), 1MB.
func Size(s string) (int, error) {
	digits, unit := s, ""
	if i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits, unit = s[:i], s[i:]
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	bytes := n * map[string]uint64{"B": 1, "kB": 1e3, "MB": 1e6}[unit]
	switch {
	case err != nil || bytes == 0 || digits[0] == '0':
		return 0, fmt.Errorf("%q is no size: write 100B, 1kB or 1MB", s)
	case bytes > rpcbench.MaxAvatar:
		return 0, fmt.Errorf("%s is too much: a message has %d B at most", s, rpcbench.MaxAvatar)
	}
	return int(bytes), nil
}

// Small is the workload of a small call's CPU work.
const Small = "small"

// Few and FewOwn are how many of All, and of Own, make the answer of a run that is not thorough.
const (
	Few    = 5
	FewOwn = 3
)

// All are the workloads of rpcbench run: situations in which services are, first those that most are in.
func All() []Planned {
	return planned([]Workload{
		{Name: smallLoad, Title: "small calls, ordinary load", Apart: true},
		{Name: "structured-load-tls", Title: "structured, 2.0 kB, ordinary load, TLS", Payload: "flex.1kB",
			Apart: true, TLS: true},
		{Name: smallSaturated, Title: "small calls, saturated: 100 callers", Callers: 100, Apart: true},
		{Name: "structured-saturated-tls", Title: "structured, saturated: 30 callers, TLS",
			Payload: "flex.1kB", Callers: 30, Apart: true, TLS: true},
		{Name: Small, Title: "a small call, one core", Procs: 1},

		{Name: "structured-1kB", Title: "structured, 2.0 kB of JSON, one core", Payload: "flex.1kB", Procs: 1},
		{Name: "cold-tls", Title: "a new TLS connection, one call", NewConn: true, TLS: true, Procs: 1},
		{Name: "small-apart", Title: "one small call at a time", Apart: true},
		{Name: "small-1000-per-second", Title: "small calls, 1,000 a second", Rate: 1000, Apart: true},
		{Name: "small-load-one-core", Title: "small, ordinary load, GOMAXPROCS 1 each", Apart: true, Procs: 1},
		{Name: "small-load-wait", Title: "small, ordinary load, handlers wait 1 ms", Apart: true, Wait: time.Millisecond},
		{Name: "small-saturated-wait", Title: "saturated: 100 callers, handlers wait 1 ms", Callers: 100, Apart: true,
			Wait: time.Millisecond},
		{Name: "drawn-load", Title: "sizes as services send, ordinary load", Payload: Drawn, Apart: true},
		{Name: "mixed", Title: "mixed fields, 418 B of JSON", Payload: "flex.complex", Procs: 1},
		{Name: "structured-10kB", Title: "structured, 18.5 kB of JSON", Payload: "flex.10kB", Procs: 1},
		{Name: "bytes-1kB", Title: "1 kB of bytes (1.4 kB as JSON)", Payload: "1kB", Procs: 1},
		{Name: "bytes-10kB", Title: "10 kB of bytes (13 kB as JSON)", Payload: "10kB", Procs: 1},
		{Name: "bytes-100kB", Title: "100 kB of bytes (133 kB as JSON)", Payload: "100kB", Procs: 1},
		{Name: "stream", Title: "a small message on a stream (JSON: a call)", Stream: true, Procs: 1},
		{Name: "cold", Title: "a new connection, one call", NewConn: true, Procs: 1},
		{Name: "cold-4g", Title: "a new connection over 4G, one call", NewConn: true, Link: "4g"},
		{Name: "headers", Title: "a small call, long headers", Headers: true, Procs: 1},
	}, smallLoad, "structured-load-tls", "small-load-one-core", "small-load-wait", "drawn-load")
}

const (
	smallLoad      = "small-load"
	smallSaturated = "small-saturated"
	ownSmall       = "call"
	ownLoad        = "call-load"
)

// Also are stacks that have rows of their own beside the contestants, and the workloads of these rows: clients that
// leave all to net/http, and what a method of one's own may win without a new protocol.
func Also() map[string][]string {
	return map[string][]string{"httpjson.default": {smallLoad, smallSaturated}, "httpjsoniter": {ownSmall}}
}

// Rows are the workloads of go test -bench beside a small call: those that decide between stacks, or in full also the
// others of All, and some that rpcbench list does not show. A row has the GOMAXPROCS of its label, so of workloads that
// differ in Procs alone the first one stays. A rate has no row, and a server apart has none.
func Rows(full bool) (rows []Workload) {
	all := []Workload{{Name: "tls", TLS: true}}
	for _, name := range []string{"structured-1kB", "bytes-10kB", "stream"} {
		w, _ := In(All(), name)
		all = append(all, w.Workload)
	}
	all = append(all, Workload{Name: "small-100-callers", Callers: 100})
	if full {
		all = append(all,
			Workload{Name: Small},
			Workload{Name: "small-50x20", Callers: 50, Conns: 20},
			Workload{Name: "mixed-50x20", Payload: "flex.complex", Callers: 50, Conns: 20},
			Workload{Name: "invalid", Invalid: true},
			Workload{Name: "deadline", Deadline: true},
			Workload{Name: "small-8x8", Callers: 8, Conns: 8},
			Workload{Name: "small-64x20", Callers: 64, Conns: 20},
			Workload{Name: "empty", Payload: "flex.empty"},
			Workload{Name: "empty-50x20", Payload: "flex.empty", Callers: 50, Conns: 20},
			Workload{Name: "bytes-100B", Payload: "100B"},
			Workload{Name: "link-4g", Link: "4g"})
		for _, w := range All() {
			if !w.Ordinary {
				all = append(all, w.Workload)
			}
		}
	}
	seen := map[Workload]bool{}
	for _, w := range all {
		w.Procs = 0
		same := w
		same.Name, same.Title = "", ""
		if !seen[same] && w.Rate == 0 && !w.Apart {
			seen[same], rows = true, append(rows, w)
		}
	}
	return rows
}

// Own are the workloads of a method of one's own. Its messages are the method's.
func Own() []Planned {
	return planned([]Workload{
		{Name: ownLoad, Title: "your call, ordinary load", Apart: true},
		{Name: "call-saturated", Title: "your call, saturated: 100 callers", Callers: 100, Apart: true},
		{Name: ownSmall, Title: "your call, one core", Procs: 1},

		{Name: "call-load-tls", Title: "your call, ordinary load, TLS", Apart: true, TLS: true},
		{Name: "call-saturated-tls", Title: "your call, saturated: 30 callers, TLS", Callers: 30, Apart: true, TLS: true},
		{Name: "call-tls", Title: "your call over TLS, one core", TLS: true, Procs: 1},
		{Name: "call-cold-tls", Title: "a new TLS connection, your call", NewConn: true, TLS: true, Procs: 1},
		{Name: "call-apart", Title: "one call of yours at a time", Apart: true},
	}, ownLoad, "call-load-tls")
}

// Find returns the workload of a name.
func Find(name string) (Workload, error) {
	w, err := In(All(), name)
	return w.At(nil), err
}

// In returns the workload of a name in a list.
func In(all []Planned, name string) (Planned, error) {
	i := slices.IndexFunc(all, func(w Planned) bool { return w.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, w := range all {
			names[i] = w.Name
		}
		return Planned{}, fmt.Errorf("unknown workload %q: there are %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

// Setup is what opening a workload needs besides. The zero value opens it by itself, with figures of its own.
type Setup struct {
	rpcbench.Config               // where the server is, and what to wrap connections with
	Figures         *loop.Figures // of the calls; nil makes new ones
	Starts          int           // that are planned, of a workload with a rate; 0 plans none
	Seed            uint64        // of the plan, and of when callers begin
	Spread          time.Duration // over which callers without a plan begin
	InTurn          bool          // a planned call was seen to take long
	Least           float64       // bytes that each call carries, by the fixture before; 0 if there was none
}

// Open is a workload that is open for one stack.
type Open struct {
	Fixture *rpcbench.Fixture
	Loop    loop.Loop // makes the calls
	Figures *loop.Figures
	Warm    int           // calls of each caller after which connections, pools and caches are warm
	Server  *child.Server // that has a process of its own; else nil
	Least   float64       // bytes that each call sends and receives: half of what those of a warm-up did

	vary    bool  // sizes of calls: a few of them may have a twentieth of the mean
	conns   int64 // of the fixture
	dials   int64 // of a call
	crossed crossed
}

// Beyond is how many connections the server has accepted that the workload does not declare. A stack that reconnects
// declares none.
func (o *Open) Beyond() int64 {
	if o.Fixture.Stack.Traits.Reconnects {
		return 0
	}
	return o.Fixture.Accepted() - o.conns - o.dials*o.Loop.Begun()
}

// Close closes the fixture, then the server in a process of its own. It returns an error if the calls stopped crossing
// the connections.
func (o *Open) Close() error {
	err := cmp.Or(o.missed(), o.Fixture.Close())
	if o.Server != nil {
		err = cmp.Or(err, o.Server.Close())
	}
	return err
}

// Serve starts the server of a workload that is apart, and tells config where it is. It returns nil if the workload is
// not apart, or if config tells already.
func (w Workload) Serve(ctx context.Context, stack rpcbench.Stack, config *rpcbench.Config) (*child.Server, error) {
	if !w.Apart || config.Remote != "" {
		return nil, nil
	}
	server, err := child.Start(ctx, stack, rpcbench.Config{TLS: w.TLS, Unix: w.Unix, Wait: w.Wait})
	if err != nil {
		return nil, err
	}
	config.Remote, config.Certificate = server.Addr, server.Certificate
	return server, nil
}

// Open starts what the workload needs of a stack, and prepares the calls. The calls of a stack without streams are
// single ones. Unless the workload asks for it, the contexts of calls have no deadline, since one costs a stack more
// than another.
func (w Workload) Open(ctx context.Context, stack rpcbench.Stack, setup Setup) (o *Open, err error) {
	err = cmp.Or(w.Check(), w.checkStreams(stack.Traits))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stack.Name, err)
	}
	o = &Open{Figures: setup.Figures, Least: setup.Least, vary: w.Payload == Drawn}
	config := setup.Config
	config.Conns, config.TLS, config.Unix = w.Connections(stack.Traits), w.TLS, w.Unix
	if w.Headers {
		config.Headers = corpus.Headers()
	}
	if w.Link != "" {
		link, _ := tap.FindLink(w.Link) // which Check has seen
		config.WrapClient = wrapped(link.Wrap, config.WrapClient)
	}
	if w.NewConn {
		o.dials, config.WrapClient = 1, wrapped(resetOnClose, config.WrapClient)
	}
	if config.WrapClient == nil && !stack.Traits.Reconnects { // which would take a lock for each dial of timed calls
		config.WrapClient = o.crossed.keep
	}
	if o.Server, err = w.Serve(ctx, stack, &config); err != nil {
		return nil, err
	}
	if config.Remote == "" { // else it was told when it was started
		config.Wait = w.Wait
	}
	if o.Fixture, err = rpcbench.Start(ctx, stack, config); err != nil {
		if o.Server != nil {
			err = errors.Join(err, o.Server.Close())
		}
		return nil, err
	}
	o.conns = int64(config.Conns)
	if err := w.prepare(o, setup); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", stack.Name, err), o.Close())
	}
	return o, nil
}

// prepare prepares the calls of each caller. A multiplexed stack binds each call to the next connection in turn. The
// calls are therefore those of a multiple of the connections, so that the calls of one caller share a connection. The
// surplus is never made.
func (w Workload) prepare(o *Open, setup Setup) error {
	callers, calls := w.callers()
	conns := int(o.conns)
	rounds := make([][]func(context.Context) error, (callers+conns-1)/conns*conns)
	p := prepared{Workload: w, fixture: o.Fixture}
	for j := range calls {
		for i := range rounds {
			call, err := p.call(i*calls + j)
			if err != nil {
				return err
			}
			rounds[i] = append(rounds[i], call)
		}
	}
	var plan [][]time.Duration
	if w.Rate > 0 && setup.Starts > 0 {
		inTurn := setup.InTurn || w.InTurn(w.delay())
		plan = loop.Plan(callers, w.Rate, setup.Starts, setup.Seed, inTurn)
	}
	if o.Figures == nil {
		o.Figures = loop.NewFigures(plan != nil)
	}
	o.Loop, o.Warm = loop.New(loop.Spec{Rounds: rounds[:callers], Plan: plan, Figures: o.Figures,
		Spread: setup.Spread, Seed: setup.Seed}), w.warm(callers, calls)
	return nil
}

// warm is how many calls of a round each caller makes until it is warm.
func (w Workload) warm(callers, calls int) int {
	warm := 4 * calls
	switch {
	case w.Link != "" && callers == 1 && !w.Windowed():
		return 0 // the lead-in takes seconds by itself
	case w.Link != "":
		return 1
	case w.NewConn:
		warm /= 4
	case w.Payload == Drawn:
		warm = calls
	}
	return warm
}
