package count

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// gate is how many times as much as the base a contestant may count before count fails for it. 0 is no gate.
type gate float64

// counts are what the gate compares. Allocated bytes vary with pools that the collector empties, so they don't count.
// What a server sends and receives is what its client receives and sends.
var counts = []count{
	{"allocations", func(f *report.Counts) float64 { return f.Allocs }, allocations, false},
	{"the server's allocations", func(f *report.Counts) float64 { return f.ServerAllocs }, allocations, true},
	{"bytes sent", func(f *report.Counts) float64 { return f.Sent }, bytes, false},
	{"bytes received", func(f *report.Counts) float64 { return f.Received }, bytes, false},
	{"writes", func(f *report.Counts) float64 { return f.Writes }, writes, false},
	{"the server's writes", func(f *report.Counts) float64 { return f.ServerWrites }, writes, false},
}

// count is a figure of a call that the gate compares.
type count struct {
	name  string
	of    func(*report.Counts) float64
	noise noise
	apart bool // it is known only where the server has a process of its own
}

// noise is the growth that counts of equal builds have. On one core it's up to so much per call, and more where timing
// decides what goes into a write, and with TLS, where each write is a record of 22 bytes. Of few calls it is so much
// over all, and of some a share of the base: of those that open a connection, since handshakes differ in length, and of
// large messages, whose pieces depend on timing and whose garbage makes the collector empty pools.
type noise struct{ core, call, tls, all, opening, large float64 }

// What counts of equal builds showed on a busy machine, and about twice as much where they grow by less than one.
var (
	allocations = noise{core: 0.5, call: 0.75, all: 60, opening: 0.02, large: 0.15}
	bytes       = noise{core: 1, call: 1, tls: 25, all: 200, opening: 0.02, large: 0.0005}
	writes      = noise{core: 0.5, call: 0.9, all: 20, opening: 0.10, large: 0.50}
)

// of is how much of a base is noise at a workload.
func (n noise) of(w workload.Planned, base float64, calls int64) float64 {
	const large = 100_000 // bytes of a message
	call, share := n.core, 0.0
	if w.Procs != 1 || w.Apart {
		call = n.call
		if w.TLS {
			call = max(call, n.tls)
		}
	}
	if w.NewConn {
		share = n.opening
	}
	if w.Size() >= large {
		share = max(share, n.large)
	}
	return max(call, n.all/float64(max(1, calls)), share*base)
}

// exact says whether counts of a workload repeat. Where several callers share a connection, timing decides how many
// pings and writes there are, and a slow link leaves time for a few calls only.
func exact(w workload.Planned) bool { return !w.Several() && w.Link == "" }

// judge is what the gate says of workloads, and its error. An answer that it has no figure of fails, or a gate that
// sees nothing would stay green: so does a workload that was skipped and that somebody has chosen.
func (g gate) judge(s report.Summary, of []workload.Planned, chosen bool, skipped []string) (said string, err error) {
	if g == 0 {
		return "", nil
	}
	lines, over := g.lines(s.Answers, of)
	var none []string
	judges := false
	for _, a := range s.Answers {
		if a.Facts == nil || a.BaseFacts == nil {
			none = append(none, a.Does+", "+a.Stack)
		}
		w, err := workload.In(of, a.Workload)
		judges = judges || err == nil && exact(w)
	}
	if len(lines) > 0 && !judges {
		none = append(none, "one caller without a link: all such workloads were skipped")
	}
	for _, line := range skipped {
		if chosen && len(lines) > 0 {
			none = append(none, strings.TrimPrefix(line, "skipped: "))
		}
	}
	if len(none) > 0 {
		err = errors.New("count: the gate has no figure of " + strings.Join(none, "; "))
	}
	if len(over) > 0 {
		err = errors.Join(err, shell.Above{Err: errors.New("count: above the gate: " + strings.Join(over, "; "))})
	}
	return strings.Join(append(lines, ""), "\n"), err
}

// lines say what was counted of each answer. What is above the gate by more than noise is over. What has grown within
// the gate has a line too.
func (g gate) lines(answers []report.Answer, of []workload.Planned) (lines, over []string) {
	for _, a := range answers {
		name := a.Does + ", " + a.Stack
		w, err := workload.In(of, a.Workload)
		if a.Facts == nil || a.BaseFacts == nil {
			lines = append(lines, "gate: "+name+" was not counted")
			continue
		}
		var said, grown []string
		for _, count := range counts {
			own, base := count.of(a.Facts), count.of(a.BaseFacts)
			if count.apart && own == 0 && base == 0 { // the client's process has both sides
				continue
			}
			both := fmt.Sprintf("%s %.2f (base %.2f)", count.name, own, base)
			said = append(said, both)
			switch {
			case err != nil || !exact(w) || own-base < count.noise.of(w, base, min(a.Facts.Calls, a.BaseFacts.Calls)):
			case own > float64(g)*base:
				over = append(over, name+": "+both)
			default:
				grown = append(grown, both)
			}
		}
		if !exact(w) {
			said = append(said, "which depend on timing and pass")
		}
		lines = append(lines, "gate: "+name+": "+strings.Join(said, ", "))
		if a.Facts.Handled == 0 {
			lines = append(lines, "gate: "+name+": its server counts no calls, so nothing tells whether each is made: "+
				"NewUserValidator takes the server's ServerConfig, and an echo calls its CountAndWait")
		}
		if len(grown) > 0 {
			lines = append(lines, fmt.Sprintf("gate: %s has grown within %v: %s", name, float64(g), strings.Join(grown, ", ")))
		}
	}
	return lines, over
}
