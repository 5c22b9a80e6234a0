package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacktest"
)

// job is what a child is asked, whatever it does.
type job struct {
	Arms        []string          `json:"arms"`
	Workload    workload.Workload `json:"workload"`
	Slice       time.Duration     `json:"slice"`
	Seed        uint64            `json:"seed"`
	Servers     map[string]string `json:"servers"`
	Stack       string            `json:"stack"`
	State       idle.State        `json:"state"`
	TLS         bool              `json:"tls"`
	Most        int               `json:"most"`
	Addr        string            `json:"addr"`
	Certificate []byte            `json:"certificate"`
}

// child's question, with how many lines followed it.
type asked = testkit.Question[job]

// ofAsked has children refuse what they are asked, or answer it.
const ofAsked, refuses, answers = "RPCBENCH_TEST_ASKED", "refuses", "answers"

// points are those of idle with twenty. Its clients refuse the last, so that there is one round.
var points = []int{2, 10, 20}

func answerAsked(_ []asked, q asked, round int) (any, error) {
	switch {
	case os.Getenv(ofAsked) == refuses, q.Does == child.Holds && round == len(points) && q.Spec.Addr != "":
		return nil, errors.ErrUnsupported
	case q.Does == child.Holds:
		held := append([]int{0}, points...)[round-1]
		return map[string]any{"addr": "a server", "certificate": []byte(q.Spec.State), "accepted": held + 1}, nil
	case q.Does == child.Counts:
		return workload.Facts{Calls: 1000, Handled: 1}, nil
	case q.Does == child.Profiles:
		return knownExplained(q.Spec.Arms, int64(round)), nil
	}
	r := timing.Record{Arms: q.Spec.Arms, Blocks: make([][]timing.Slice, 1)}
	for i := range q.Spec.Arms {
		took := time.Duration(1000 * (1 + i/2))
		r.Blocks[0] = append(r.Blocks[0], timing.Slice{Ops: 1, Wall: took, CPU: took})
	}
	return r, nil
}

// line is what is typed behind a verb, and what children are asked for it.
type line struct {
	typed string
	want  []asked
	does  string // refuses, unless it is given
	says  string // of its error
}

// made are the lines of flags that make workloads: each flag alone, and each sweep with all that goes with it.
func made() map[string]map[string][]workload.Workload {
	const typed, wait = "-tls -unix -apart -payload 3kB -wait 3ms -link 2ms/1Gbps ", 3 * time.Millisecond
	sweep := func(each ...workload.Workload) (all []workload.Workload) {
		for _, w := range each {
			w.TLS, w.Unix, w.Apart, w.Payload, w.Wait, w.Link = true, true, true, "3kB", wait, "2ms/1Gbps"
			all = append(all, w)
		}
		return all
	}
	one := func(w workload.Workload) []workload.Workload { return []workload.Workload{w} }
	return map[string]map[string][]workload.Workload{
		"tls": {"-tls": one(workload.Workload{TLS: true})}, "unix": {"-unix": one(workload.Workload{Unix: true})},
		"apart":   {"-apart": one(workload.Workload{Apart: true})},
		"payload": {"-payload 3kB": one(workload.Workload{Payload: "3kB"})},
		"wait":    {"-wait 3ms": one(workload.Workload{Wait: wait})},
		"link":    {"-link 2ms/1Gbps": one(workload.Workload{Link: "2ms/1Gbps"})},
		"headers": {"-headers": one(workload.Workload{Headers: true})},
		"stream": {"-stream": one(workload.Workload{Stream: true}), typed + "-stream -gomaxprocs 3,4": sweep(
			workload.Workload{Stream: true, Procs: 3}, workload.Workload{Stream: true, Procs: 4})},
		"new-connections": {"-new-connections": one(workload.Workload{NewConn: true})},
		"gomaxprocs": {"-gomaxprocs 3": one(workload.Workload{Procs: 3}), "-gomaxprocs 0": one(workload.Workload{}),
			typed + "-headers -callers 40 -new-connections -gomaxprocs 3,4": sweep(
				workload.Workload{Headers: true, Callers: 40, NewConn: true, Procs: 3},
				workload.Workload{Headers: true, Callers: 40, NewConn: true, Procs: 4})},
		"callers": {"-callers 3": one(workload.Workload{Callers: 3}),
			typed + "-headers -conns 5 -gomaxprocs 3 -rate 800 -callers 41,42": sweep(
				workload.Workload{Headers: true, Conns: 5, Procs: 3, Rate: 800, Callers: 41},
				workload.Workload{Headers: true, Conns: 5, Procs: 3, Rate: 800, Callers: 42})},
		"conns": {"-conns 1": one(workload.Workload{Conns: 1}),
			typed + "-headers -callers 40 -gomaxprocs 3 -rate 800 -conns 5,6": sweep(
				workload.Workload{Headers: true, Callers: 40, Procs: 3, Rate: 800, Conns: 5},
				workload.Workload{Headers: true, Callers: 40, Procs: 3, Rate: 800, Conns: 6})},
		"rate": {"-rate 700": one(workload.Workload{Rate: 700}), "-rate auto": one(workload.Workload{Rate: 1000}),
			typed + "-headers -callers 40 -conns 5 -gomaxprocs 3 -rate 600,auto,saturated": sweep(
				workload.Workload{Headers: true, Callers: 40, Conns: 5, Procs: 3, Rate: 600},
				workload.Workload{Headers: true, Callers: 40, Conns: 5, Procs: 3, Rate: 1000},
				workload.Workload{Headers: true, Callers: 40, Conns: 5, Procs: 3})},
	}
}

// named is a workload of the list.
func named(t *testing.T, name string) workload.Workload {
	w, err := workload.Find(name)
	require.NoError(t, err)
	return w
}

// measures is asked by run, and counts by count, of a workload.
func measures(w workload.Workload) asked {
	q := asked{Does: child.Measures, GOMAXPROCS: w.Procs, Spec: job{Workload: w, Arms: []string{"base", "base", "other"},
		Slice: versus.Slice, Seed: 7}, Lines: make([]string, 1)}
	if w.Procs == 0 {
		q.GOMAXPROCS = environ.Procs()
	}
	return q
}

func counts(w workload.Workload) asked {
	return asked{Does: child.Counts, GOMAXPROCS: environ.Procs(), Spec: job{Workload: w, Stack: "base"},
		Lines: make([]string, 1)}
}

// several are processes of a comparison, of as many blocks each, and what is counted then.
func several(processes, blocks int, seed uint64, w workload.Workload) (all []asked) {
	for i := range processes {
		q := measures(w)
		q.Spec.Seed, q.Lines = seed+uint64(i), make([]string, blocks)
		all = append(all, q)
	}
	for _, stack := range []string{"base", "other"} {
		q := counts(w)
		q.Spec.Stack, q.Lines = stack, make([]string, 1)
		all = append(all, q)
	}
	return all
}

// rests is asked by idle: of each part of each stack, a server and its client, unless servers refuse.
func rests(clients bool, stacks ...string) (all []asked) {
	for _, state := range []idle.State{idle.Connections, idle.Streams, idle.Calls} {
		for _, tls := range []bool{false, true} {
			for _, stack := range stacks {
				q := asked{Does: child.Holds, GOMAXPROCS: environ.Procs(), Spec: job{Stack: stack, State: state, TLS: tls,
					Most: 20}}
				if q.Lines = make([]string, 1); clients {
					q.Lines = make([]string, 1+len(points))
					own := q
					own.Spec.Addr, own.Spec.Certificate, own.Lines = "a server", []byte(state), []string{"2", "10", "20"}
					all = append(all, own)
				}
				all = append(all, q)
			}
		}
	}
	return all
}

// linesOf are those of a verb, by the flag that they are about.
func linesOf(t *testing.T, verb, out string) map[string][]line {
	small, all := named(t, workload.Small), map[string][]line{}
	of := map[string]func(workload.Workload) asked{"run": measures, "count": counts}[verb]
	if of != nil {
		for flag, lines := range made() {
			for typed, each := range lines {
				l := line{typed: typed + " other"}
				for _, w := range each {
					l.want = append(l.want, of(w))
				}
				all[flag] = append(all[flag], l)
			}
		}
		base, arms := of(small), "other"
		if base.Spec.Stack = "other"; verb == "run" {
			base.Spec.Stack, base.Spec.Arms = "", []string{arms, arms, "base"}
		}
		all["base"] = []line{{typed: "-workloads small -base other base", want: []asked{base}}}
		all["workloads"] = []line{{typed: "-workloads small-saturated-wait,cold-tls other",
			want: []asked{of(named(t, "small-saturated-wait")), of(named(t, "cold-tls"))}}}
		all["out"] = []line{{typed: "-workloads small -out " + out + " other", want: []asked{of(small)}}}
		for name := range strings.FieldsSeq(own.Flags) {
			all[name] = nil // TestAModuleHasAllFlags
		}
	}
	switch verb {
	case "run":
		const one = " -workloads small other"
		same := []line{{typed: "-v -equal 3" + one, want: []asked{measures(small)}}}
		all["v"], all["equal"] = same, same
		all["max"] = []line{{typed: "-max 1.05" + one, says: "-max judges layouts, and none can be linked"}}
		blocks := func(time, processes int) int { return time * 1000 / processes / int(versus.Turn/1e6) }
		all["processes"] = []line{{typed: "-processes 7" + one, want: several(7, blocks(2, 7), 7, small), does: answers}}
		all["time"] = []line{{typed: "-time 4s" + one, want: several(6, blocks(4, 8), 7, small), does: answers}}
		all["seed"] = []line{{typed: "-seed 90" + one, want: several(6, blocks(2, 8), 90, small), does: answers}}
		all["thorough"] = []line{{typed: "-thorough -processes 6" + one, want: several(6, blocks(8, 6), 7, small),
			does: answers}}
		there, servers := measures(small), []string{}
		there.Spec.Servers = map[string]string{}
		for _, s := range asking().Stacks {
			there.Spec.Servers[s.Name] = stacktest.Start(t, s, rpcbench.Config{}).Addr
			servers = append(servers, s.Name+"="+there.Spec.Servers[s.Name])
		}
		all["server"] = []line{{typed: "-server " + strings.Join(servers, ",") + one, want: []asked{there}}}
	case "count":
		all["max"] = []line{{typed: "-max 1 -workloads small other", want: []asked{counts(small)}}}
	case "idle":
		all["out"] = []line{{typed: "20 -out " + out + " other", want: rests(true, "base", "other"), does: answers}}
		all["base"] = []line{{typed: "20 -base other base", want: rests(false, "other", "base")}}
		all["seed"] = []line{{typed: "20 -seed 8 other", want: rests(false, "base", "other")}}
	case "explain":
		explains := func(w workload.Workload, procs int) asked {
			return asked{Does: child.Profiles, GOMAXPROCS: procs, Spec: job{Arms: []string{"other", "base"}, Workload: w,
				Slice: 500 * time.Millisecond}, Lines: make([]string, 1)}
		}
		apart := named(t, "small-saturated-wait")
		fewer, pooled, twice := apart, apart, explains(small, 1)
		fewer.Callers, pooled.Conns, twice.Lines = 3, 4, make([]string, 2)
		const two, typed = " other base", "-workload small-saturated-wait "
		all["workload"] = []line{{typed: typed + two, want: []asked{explains(apart, 1)}}}
		all["callers"] = []line{{typed: typed + "-callers 3" + two, want: []asked{explains(fewer, 1)}}}
		all["conns"] = []line{{typed: typed + "-conns 4" + two, want: []asked{explains(pooled, 1)}}}
		all["gomaxprocs"] = []line{{typed: "-gomaxprocs 0" + two, want: []asked{explains(small, environ.Procs())}}}
		all["time"] = []line{{typed: "-time 4s" + two, want: []asked{twice, twice}, does: answers}}
		all["keep"] = []line{{typed: "-keep " + out + two, want: []asked{explains(small, 1)}}}
	}
	return all
}

// asking is a program of two stacks that have all that flags ask for.
func asking() program {
	base, other := grpcprotobuf.New(), grpcprotobuf.New()
	base.Name, other.Name = "base", "other"
	return programOf(nil, []rpcbench.Stack{base, other})
}

// TestChildrenAreAskedWhatWasTyped: what a verb measures is what was typed. Each flag of each verb has lines here, and
// what children are asked for them is compared as a value.
func TestChildrenAreAskedWhatWasTyped(t *testing.T) {
	t.Chdir(t.TempDir()) // in no module, so nothing is linked
	for _, c := range asking().commands(io.Discard, io.Discard) {
		if !slices.Contains([]string{"run", "count", "idle", "explain"}, c.Name) {
			continue
		}
		f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
		c.Setup(f)
		all := linesOf(t, c.Name, filepath.Join(t.TempDir(), "out"))
		f.VisitAll(func(f *flag.Flag) {
			where := fmt.Sprintf("%s -%s: what a verb measures is what was typed", c.Name, f.Name)
			require.Contains(t, all, f.Name, "%s: the flag needs a line here", where)
			for _, l := range all[f.Name] {
				l.check(t, c.Name, where)
			}
		})
	}
}

func (l line) check(t *testing.T, verb, where string) {
	children, args := testkit.Children(t, 0), append([]string{verb}, strings.Fields(l.typed)...)
	t.Setenv(testkit.Variable, children)
	t.Setenv(ofAsked, refuses)
	if l.does != "" {
		t.Setenv(ofAsked, l.does)
	}
	if (verb == "run" || verb == "idle") && !slices.Contains(args, "-seed") {
		args = append(args, "-seed", "7")
	}
	err := asking().run(t.Context(), args, io.Discard, io.Discard)
	if l.says != "" {
		assert.ErrorContains(t, err, l.says, "%s: %s", where, l.typed)
	}
	var got []string
	for _, q := range testkit.Asked[job](children) {
		q.PID, q.Spec.Workload.Name, q.Spec.Workload.Title = 0, "", ""
		if looks := verb == "run" && len(q.Spec.Arms) == 2; looks { // for a rate
			q.Spec.Arms, q.Spec.Workload.Rate = append(q.Spec.Arms, "other"), 1000
			assert.Contains(t, l.wants(), fmt.Sprintf("%+v %q", q, q.Lines), "%s: %s: a look for a rate", where, l.typed)
			continue
		}
		got = append(got, fmt.Sprintf("%+v %q", q, q.Lines))
	}
	assert.ElementsMatch(t, l.wants(), got, "%s: %s: %v", where, l.typed, err)
}

// wants are the questions without the names of their workloads, which tell nothing that is measured.
func (l line) wants() (all []string) {
	for _, q := range l.want {
		q.Spec.Workload.Name, q.Spec.Workload.Title = "", ""
		all = append(all, fmt.Sprintf("%+v %q", q, q.Lines))
	}
	return all
}
