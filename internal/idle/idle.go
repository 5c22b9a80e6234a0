// Package idle measures memory at rest: what a connection, a stream or a waiting call takes of a process while nothing
// happens. Server and client are processes of their own. A figure is the slope of what a process holds over how many it
// holds, so that what it holds anyway is in none.
//
// Nothing wraps the connections: a library may know the connections of package net, and read others in another way.
package idle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// State is what is held.
type State string

// States.
const (
	Connections State = "connections" // each after one call
	Streams     State = "streams"     // each after one message, on a few connections
	Calls       State = "calls"       // whose handlers wait, on a few connections if these carry several at a time
)

var states = []State{Connections, Streams, Calls}

const (
	pairs  = 6     // of processes, for each figure
	least  = 10    // of Number, for a tenth of it
	beyond = 20000 // of Number: an address has some 28,000 ports for what it dials
	spare  = 100   // files that a process has open besides

	longest = 2 * time.Minute // for a reply of a child: longer than its openLimit
)

// Check says why so many can't be held.
func Check(number int) error { return check(number, environ.Files()) }

func check(number, has int) error {
	switch {
	case number < least:
		return fmt.Errorf("%d is too few: a slope over a tenth, a half and all needs %d or more", number, least)
	case number > beyond:
		return fmt.Errorf("%d is too many: an address has ports for no more than %d connections: give less", number, beyond)
	case number+spare > has:
		return fmt.Errorf("%d needs %d open files in a process, and %d are allowed: raise the limit with "+
			"ulimit -n %[2]d, or give %[4]d or less", number, number+spare, has, max(has-spare, 0))
	}
	return nil
}

// Refused says why a stack has no memory at rest.
func Refused(s rpcbench.Stack) error {
	if s.Traits.Reconnects {
		return fmt.Errorf("%s opens and closes connections as it needs them, and holds none: leave it out", s.Name)
	}
	return nil
}

// Arm is a contestant, and the program of its build.
type Arm struct {
	plan.Contestant
	Program versus.Program
}

// Plan is what is measured. The first arm is the base.
type Plan struct {
	Number int
	Arms   []Arm
	Show   func(what string, left time.Duration)

	pairs int // 0 is the constant; tests have fewer
}

func (p Plan) contestants() (all plan.Contestants) {
	for _, arm := range p.Arms {
		all = append(all, arm.Contestant)
	}
	return all
}

// part is a state in clear or over TLS.
type part struct {
	State State `json:"state"`
	TLS   bool  `json:"tls"`
}

func (p part) String() string {
	title := map[State]string{
		Connections: "connections, each after one call",
		Streams:     fmt.Sprintf("open streams, on %d connections", conns),
		Calls:       "calls whose handlers wait",
	}[p.State]
	if p.TLS {
		title += ", TLS"
	}
	return title
}

func parts() (all []part) {
	for _, state := range states {
		all = append(all, part{state, false}, part{state, true})
	}
	return all
}

// points are how many are held when memory is read.
func points(number int) []int { return []int{number / 10, number / 2, number} }

// takes is about how long a pair of processes takes.
func takes(number int) time.Duration {
	return 250*time.Millisecond + time.Duration(number)*500*time.Microsecond
}

// Takes is about how long all takes.
func (p Plan) Takes() time.Duration {
	return takes(p.Number) * time.Duration(pairs*len(parts())*len(p.Arms))
}

// pair is what each of the sides held at each of the points.
type pair [2][]Held

var sides = []string{"server", "client"}

// turn is that of an arm in a part.
type turn struct {
	part
	name string
}

// Measure starts the pairs in rounds, in each of which every part of every arm has its turn. A part that fails is not
// tried again, and the others go on. If the context ends, it returns what whole rounds have found, of which it takes
// two to tell a spread.
func (p Plan) Measure(ctx context.Context, seed uint64) (found Result, err error) {
	all, gone := map[turn][]pair{}, map[turn]bool{}
	var turns []turn
	for _, part := range parts() {
		for _, arm := range p.Arms {
			turns = append(turns, turn{part, arm.String()})
		}
	}
	random, left, rounds := rand.New(rand.NewPCG(seed, 0)), p.Takes(), cmp.Or(p.pairs, pairs)
	defer p.Show("", 0)
	for round := range rounds {
		for _, i := range random.Perm(len(turns)) {
			turn := turns[i]
			p.Show(turn.part.String()+", "+turn.name, left)
			if left -= takes(p.Number); gone[turn] {
				continue
			}
			one, failed := p.pair(ctx, turn.part, p.Arms[i%len(p.Arms)])
			switch {
			case ctx.Err() != nil:
				found.Left = append(found.Left, fmt.Sprintf("%d of %d rounds, since it was interrupted", rounds-round, rounds))
				found.add(p, all, gone, round)
				return found, errors.Join(ctx.Err(), err)
			case failed == nil:
				all[turn] = append(all[turn], one)
				continue
			}
			gone[turn] = true
			why := strings.TrimSuffix(failed.Error(), ": "+errors.ErrUnsupported.Error())
			if !errors.Is(failed, errors.ErrUnsupported) {
				err = errors.Join(err, fmt.Errorf("idle: %s, %s: %s", turn.part, turn.name, why))
				continue
			}
			missing := fmt.Sprintf("%s: %s has %s", part{turn.State, false}, turn.name, why) // over TLS too
			if !slices.Contains(found.Left, missing) {
				found.Left = append(found.Left, missing)
			}
		}
	}
	found.add(p, all, gone, rounds)
	return found, err
}

// add adds the rows of what so many rounds have measured, unless something of it has failed.
func (r *Result) add(p Plan, all map[turn][]pair, gone map[turn]bool, rounds int) {
	r.Number, r.Points, r.Base = p.Number, points(p.Number), p.Arms[0].String()
	for _, part := range parts() {
		for _, arm := range p.Arms {
			own, base := turn{part, arm.String()}, turn{part, r.Base}
			if gone[own] || rounds < 2 {
				continue
			}
			r.Rows = append(r.Rows, p.rows(part, own.name, all[own][:rounds], all[base][:min(rounds, len(all[base]))])...)
		}
	}
}

// pair measures once.
func (p Plan) pair(ctx context.Context, part part, arm Arm) (one pair, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := func(asked question) (*child.Process, error) {
		return child.Command{Path: arm.Program.Path, Env: arm.Program.Env, Does: child.Holds, Asked: asked,
			Limit: longest}.Start(ctx)
	}
	asked := question{Stack: arm.Stack, State: part.State, TLS: part.TLS, Most: p.Number}
	server, err := start(asked)
	if err != nil {
		return one, err
	}
	defer func() {
		cancel() // which kills both: nobody waits until thousands of connections are closed
		_ = server.End()
	}()
	var here, there reply
	if err = server.Ask("", &there); err != nil {
		return one, err
	}
	asked.Addr, asked.Certificate = there.Addr, there.Certificate
	client, err := start(asked)
	if err != nil {
		return one, err
	}
	defer func() {
		cancel()
		_ = client.End()
	}()
	for _, n := range points(p.Number) {
		if err = cmp.Or(client.Ask(strconv.Itoa(n), &here), server.Ask("", &there)); err != nil {
			return one, err
		}
		one[0], one[1] = append(one[0], there.Held), append(one[1], here.Held)
		if opened := there.Accepted - 1; part.State == Connections && opened != n { // one is of the client's first call
			return one, fmt.Errorf("the server accepted %d connections, and its client should hold %d", opened, n)
		}
	}
	return one, nil
}

// slope is the one of the line through points that least squares make, in y for each of x.
func slope(x []int, y []float64) float64 {
	var meanX, meanY, sum, squares float64
	for i := range x {
		meanX, meanY = meanX+float64(x[i])/float64(len(x)), meanY+y[i]/float64(len(x))
	}
	for i := range x {
		dx := float64(x[i]) - meanX
		sum, squares = sum+dx*(y[i]-meanY), squares+dx*dx
	}
	return sum / squares
}

// rows are those of a contestant's server and client, compared with the base's.
func (p Plan) rows(of part, name string, own, base []pair) (rows []Row) {
	for i, side := range sides {
		r := Row{part: of, Stack: name, Side: side, Figures: map[string]Figure{}}
		for _, one := range own {
			r.Held = append(r.Held, one[i])
		}
		for _, m := range metrics {
			slopes := func(all []pair) (each []float64) {
				for _, one := range all {
					var y []float64
					for _, h := range one[i] {
						y = append(y, m.of(h))
					}
					each = append(each, slope(points(p.Number), y))
				}
				return each
			}
			figure := newFigure(slopes(own))
			if name != p.Arms[0].String() && len(base) == len(own) {
				figure.compare(slopes(base))
			}
			r.Figures[m.unit] = figure
		}
		rows = append(rows, r)
	}
	return rows
}

// newFigure has the mean of what each pair says, with Student's interval.
func newFigure(each []float64) Figure {
	mean, half := verdict.Student(each)
	return Figure{Mean: mean, Lo: mean - half, Hi: mean + half, Each: each}
}

// compare adds the ratio to the base's, by the pairs of the same round. There is none if a pair has found nothing that
// grows.
func (f *Figure) compare(base []float64) {
	if min(slices.Min(f.Each), slices.Min(base)) <= 0 {
		return
	}
	of := verdict.OfRounds(base, f.Each)
	f.Ratio, f.RatioLo, f.RatioHi, f.NoiseFloor, f.Verdict = of.Ratio, of.Lo, of.Hi, of.NoiseFloor, of.Verdict
}
