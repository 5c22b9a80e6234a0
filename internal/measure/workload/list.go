package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Planned is a workload before its run begins.
type Planned struct {
	Workload
	Ordinary bool   // the run looks for its Rate, at which the base takes about a quarter of the machine
	Calls    string // what they are, where the title has the load too; "" is the whole title
}

// load is what a title has behind the calls: where they are planned, or where several callers call again at once.
func (p Planned) load() string {
	switch {
	case p.Ordinary:
		return "ordinary load"
	case p.Rate > 0:
		return fmt.Sprintf("%g a second", p.Rate)
	case p.Callers > 1:
		return fmt.Sprintf("saturated: %d callers", p.Callers)
	}
	return ""
}

// Ordinary is a workload at ordinary load. Until a rate is found for it, and where none is, it has a thousand calls a
// second, or as many as its callers can make.
func Ordinary(w Workload) Planned {
	return Planned{Workload: w.At(1000), Ordinary: true}
}

// At is the workload at a rate, or at as many calls a second as its callers can make.
func (w Workload) At(rate float64) Workload {
	w.Rate = rate
	w.Rate = min(rate, w.MostRate())
	return w
}

// planned are workloads with their loads behind their titles. The named ones have an ordinary load.
func planned(all []Workload, ordinary ...string) (planned []Planned) {
	for _, w := range all {
		p := Planned{Workload: w}
		if slices.Contains(ordinary, w.Name) {
			p = Ordinary(w)
		}
		if load := p.load(); load != "" {
			p.Calls, p.Title = w.Title, w.Title+", "+load
		}
		planned = append(planned, p)
	}
	return planned
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
		{Name: smallLoad, Title: "small calls", Apart: true},
		{Name: "structured-load-tls", Title: "structured, 2.0 kB, TLS", Payload: "flex.2kB", Apart: true, TLS: true},
		{Name: smallSaturated, Title: "small calls", Callers: 100, Apart: true},
		{Name: "structured-saturated-tls", Title: "structured, 2.0 kB, TLS", Payload: "flex.2kB", Callers: 30,
			Apart: true, TLS: true},
		{Name: Small, Title: "a small call, one core", Procs: 1},

		{Name: "structured-2kB", Title: "structured, 2.0 kB of JSON, one core", Payload: "flex.2kB", Procs: 1},
		{Name: "cold-tls", Title: "a new TLS connection, one call", NewConn: true, TLS: true, Procs: 1},
		{Name: "small-apart", Title: "one small call at a time", Apart: true},
		{Name: "small-1000-per-second", Title: "small calls", Rate: 1000, Apart: true},
		{Name: "small-load-one-core", Title: "small calls, GOMAXPROCS 1 each", Apart: true, Procs: 1},
		{Name: "small-load-wait", Title: "small calls, handlers wait 1 ms", Apart: true, Wait: time.Millisecond},
		{Name: "small-saturated-wait", Title: "small calls, handlers wait 1 ms", Callers: 100, Apart: true,
			Wait: time.Millisecond},
		{Name: "drawn-load", Title: "sizes as services send", Payload: Drawn, Apart: true},
		{Name: "mixed", Title: "mixed fields, 418 B of JSON", Payload: "flex.complex", Procs: 1},
		{Name: "structured-18kB", Title: "structured, 18.5 kB of JSON", Payload: "flex.18kB", Procs: 1},
		{Name: "bytes-800B", Title: "800 B of bytes (1.1 kB as JSON)", Payload: "800B", Procs: 1},
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
	for _, name := range []string{"structured-2kB", "bytes-10kB", "stream"} {
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
			all = append(all, w.Workload)
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
		{Name: ownLoad, Title: "your call", Apart: true},
		{Name: "call-saturated", Title: "your call", Callers: 100, Apart: true},
		{Name: ownSmall, Title: "your call, one core", Procs: 1},

		{Name: "call-load-tls", Title: "your call, TLS", Apart: true, TLS: true},
		{Name: "call-saturated-tls", Title: "your call, TLS", Callers: 30, Apart: true, TLS: true},
		{Name: "call-tls", Title: "your call over TLS, one core", TLS: true, Procs: 1},
		{Name: "call-cold-tls", Title: "a new TLS connection, your call", NewConn: true, TLS: true, Procs: 1},
		{Name: "call-apart", Title: "one call of yours at a time", Apart: true},
	}, ownLoad, "call-load-tls")
}

// Find returns the workload of a name.
func Find(name string) (Workload, error) {
	w, err := In(All(), name)
	return w.Workload, err
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
