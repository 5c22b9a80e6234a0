package workload_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

var (
	long  = flag.Bool("long", false, "measure also all workloads of three fields")
	again = flag.Uint64("seed", 0, "of the workloads of many fields; 0 draws one")
)

const (
	pairDelay = 4 * time.Millisecond
	goesRound = 4 // calls of one caller of several, each of another message
)

// fields are workloads of a field each.
var fields = map[string]workload.Workload{"Payload 1kB": {Payload: "1kB"}, "Payload flex.2kB": {Payload: "flex.2kB"},
	"Stream": {Stream: true}, "Callers": {Callers: 5}, "Conns": {Conns: 2}, "Rate": {Rate: 1000}, "Apart": {Apart: true},
	"TLS": {TLS: true}, "Unix": {Unix: true}, "Headers": {Headers: true}, "Deadline": {Deadline: true},
	"Invalid": {Invalid: true}, "NewConn": {NewConn: true}, "Link": {Link: rpcbench.Link(pairDelay.String() + "/1Gbps")},
	"Wait": {Wait: pairDelay}, "Procs": {Procs: 1}}

// never are fields that go with none of some others.
var never = map[string][]string{
	"Stream":  {"Payload flex.2kB", "Callers", "Conns", "Rate", "Headers", "Deadline", "Invalid", "NewConn"},
	"Invalid": {"Payload flex.2kB"}, "NewConn": {"Conns"}, "Payload 1kB": {"Payload flex.2kB"},
}

// TestFieldsTogether: where fields of Workload meet, each is still what it says. All two are measured, and workloads of
// many fields, by a seed that is printed: all three are in one of them. With -long all three are measured alone too.
// Under the race detector, where a call takes many times as long, all two are in one of the workloads of many fields.
func TestFieldsTogether(t *testing.T) {
	require.Len(t, fields, reflect.TypeFor[workload.Workload]().NumField()-1,
		"every field but Name and Title, and two kinds of Payload")
	seed := *again
	for seed == 0 {
		seed = rand.Uint64()
	}
	few, threes := meetings(t)
	meet := threes
	if strings.Contains(environ.Build(), "-race") {
		few, meet = nil, few
	}
	many := crowds(meet, seed)
	t.Logf("-seed %d makes these %d workloads of many fields again, and -long measures three at a time", seed, len(many))
	if *long {
		few = append(few, threes...)
	}
	for _, names := range append(few, many...) {
		w := meeting(names)
		for i, stack := range new(witness).stacks(false) {
			t.Run(strings.Join(names, "+")+"/"+stack.Name, func(t *testing.T) {
				derived(w).check(t, i)
				if w.Rate != 0 {
					planned(t, w, i)
				}
			})
		}
	}
}

// apart tells whether some of the fields never meet.
func apart(names ...string) bool {
	for i, a := range names {
		for _, b := range names[:i] {
			if slices.Contains(never[a], b) || slices.Contains(never[b], a) {
				return true
			}
		}
	}
	return false
}

// crowds are about half of the fields each. Those that are to meet do so in one of them at least.
func crowds(meet [][]string, seed uint64) (all [][]string) {
	random, met := rand.New(rand.NewPCG(seed, 0)), set[string]{}
	names := slices.Sorted(maps.Keys(fields))
	random.Shuffle(len(meet), func(i, j int) { meet[i], meet[j] = meet[j], meet[i] })
	for _, some := range meet {
		if met[strings.Join(some, "+")] {
			continue
		}
		crowd := slices.Clone(some)
		for _, i := range random.Perm(len(names)) {
			more := append(crowd, names[i])
			hides := names[i] == "Invalid" && slices.Contains(crowd, "Wait") // whose handlers don't wait
			hides = hides || names[i] == "Wait" && slices.Contains(crowd, "Invalid")
			if random.IntN(2) == 0 && !slices.Contains(crowd, names[i]) && !hides && !apart(more...) {
				crowd = more
			}
		}
		slices.Sort(crowd)
		for _, some := range meet {
			if !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(crowd, name) }) {
				met[strings.Join(some, "+")] = true
			}
		}
		all = append(all, crowd)
	}
	return all
}

// meetings are the names of each field and of all two fields that may meet, and those of all three. Check refuses the
// others alone.
func meetings(t *testing.T) (few, threes [][]string) {
	all := slices.Sorted(maps.Keys(fields))
	add := func(to *[][]string, names ...string) {
		err := meeting(names).Check()
		switch {
		case !apart(names...):
			require.NoError(t, err, "these fields may meet: %v", names)
			*to = append(*to, names)
		case !slices.Contains(names, "Payload 1kB"): // else it may have become the other Payload
			require.Error(t, err, "these fields may not meet: %v", names)
		}
	}
	for i, a := range all {
		add(&few, a)
		for j, b := range all[:i] {
			add(&few, b, a)
			for _, c := range all[:j] {
				add(&threes, c, b, a)
			}
		}
	}
	return few, threes
}

// meeting is the workload of fields together. The hundred callers of a rate come with a rate alone.
func meeting(names []string) (w workload.Workload) {
	for _, name := range names {
		from := reflect.ValueOf(fields[name])
		for i := range from.NumField() {
			if !from.Field(i).IsZero() {
				reflect.ValueOf(&w).Elem().Field(i).Set(from.Field(i))
			}
		}
	}
	if w.Rate != 0 && len(names) > 1 {
		w.Callers = fields["Callers"].Callers
	}
	return w
}

// derived is what a workload's exported fields promise, by what each says of itself.
func derived(w workload.Workload) row {
	c := row{flags: &w, operation: users, json: 66, protobuf: 36, callers: w.Callers, conns: w.Conns, each: w.NewConn,
		tls: w.TLS, unix: w.Unix, headers: w.Headers, deadline: w.Deadline, invalid: w.Invalid, apart: w.Apart,
		rate: w.Rate != 0, procs: w.Procs}
	switch {
	case w.Structured():
		c.operation, c.json, c.protobuf = echo, 2018, 1007
	case w.Stream:
		c.operation = stream
	}
	if w.Bytes() > 0 {
		c.json, c.protobuf = c.json+len(`,"avatar":""`)+(w.Bytes()+2)/3*4, c.protobuf+3+w.Bytes()
	}
	if w.Rate != 0 && w.Callers == 0 {
		c.callers = 100
	}
	if w.Link != "" {
		c.leastTime = pairDelay
		if w.NewConn {
			c.leastTime += pairDelay
		}
		if w.NewConn && w.TLS {
			c.leastTime += pairDelay
		}
	}
	if !w.Invalid {
		c.leastTime += w.Wait
	}
	return c
}

// planned compares the starts that the workload plans with its rate.
func planned(t *testing.T, w workload.Workload, stack int) {
	const starts = 10_000                               // whose mean gap varies by a hundredth
	t.Setenv(logEnv, filepath.Join(t.TempDir(), "log")) // where nothing gathers calls
	o, err := w.Open(t.Context(), new(witness).stacks(false)[stack], workload.Setup{Starts: starts, Seed: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	plan := reflect.ValueOf(o.Loop).Elem().FieldByName("spec").FieldByName("Plan") // no other package sees it
	callers, n, last := derived(w).callers, 0, int64(0)
	require.Equal(t, callers, plan.Len(), "callers with planned starts")
	for i := range callers {
		of := plan.Index(i)
		require.InDelta(t, starts/callers, of.Len(), starts/float64(callers)/2, "starts of caller %d", i)
		n, last = n+of.Len(), max(last, of.Index(of.Len()-1).Int())
	}
	require.Equal(t, starts, n, "planned starts")
	require.InEpsilon(t, w.Rate, starts/time.Duration(last).Seconds(), 0.05, "calls that are planned to begin per second")
}

// answered says how the server has answered: all users of a workload, after its wait.
func (c row) answered(t *testing.T, all []sight, calls int, wait time.Duration) {
	t.Helper()
	require.Len(t, all, calls, "replies of the server")
	for _, a := range all {
		require.Equal(t, map[bool]string{true: "refused", false: "done"}[c.invalid], a.Answer,
			"the reply to a user, whom the server checks")
		if !c.invalid {
			require.GreaterOrEqual(t, a.Took, wait, "a handler that waits")
		}
	}
}

// bounded says which deadlines the calls had that a client was asked for.
func (c row) bounded(t *testing.T, by *asked, before, calls, callers int) {
	t.Helper()
	all, different := by.since(before), set[time.Time]{}
	require.Len(t, all, calls, "calls of the client")
	for _, deadline := range all {
		require.Equal(t, c.deadline, !deadline.IsZero(), "a deadline of each call")
		different[deadline] = true
	}
	if c.deadline {
		require.Greater(t, len(different), callers, "deadlines, one of each call")
	}
}

// oneConnection: the calls of one caller share a connection. Callers have messages of their own.
func oneConnection(t *testing.T, got []sight, callers int) {
	t.Helper()
	of := map[int]string{}
	for _, m := range got {
		caller := 0
		if callers > 1 {
			caller = m.Of / goesRound
			require.True(t, m.Of >= 0 && caller < callers, "message %d of no caller", m.Of)
		}
		if of[caller] == "" {
			of[caller] = m.Conn
		}
		require.Equal(t, of[caller], m.Conn, "caller %d calls over several connections", caller)
	}
}
