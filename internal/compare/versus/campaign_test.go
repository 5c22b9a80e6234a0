package versus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// known is the record of a process in which the contestant takes so many times as long as the base.
func known(ratio float64) timing.Record {
	return timing.Record{Arms: []string{"base", "base again", "x"}, Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1000},
		{Ops: 1, Wall: 1000}, {Ops: 1, Wall: time.Duration(1000 * ratio)}}}}
}

// between compares each contestant with the base.
func between(seed uint64, contestants ...string) *Campaign {
	c := &Campaign{Plan: verdict.Plan{Processes: 8}, Seed: seed}
	for _, name := range contestants {
		one := &Comparison{Spec: Spec{Arms: []string{"base", "base", name}, Seed: 10}}
		one.Spec.Workload.Name, one.Spec.Workload.Title, one.Spec.Workload.Payload = "small", "Small", "5B"
		c.Comparisons = append(c.Comparisons, one)
	}
	return c
}

// A process that fails is measured again, as it was. If that fails too, its comparison is left as it is, and the others
// go on.
func TestCampaignOutlivesFailures(t *testing.T) {
	c := between(1, "slow", "dies", "hiccups@HEAD", "can't")
	kept, asked := map[string]int{}, map[string][]Spec{}
	c.Kept = func(one *Comparison, _ timing.Record) error { kept[one.Spec.Arms[2]]++; return nil }
	c.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
		name := spec.Arms[2]
		asked[name] = append(asked[name], spec)
		switch tries := len(asked[name]); {
		case name == "dies" && tries > 2:
			return known(0.5), errors.New("it died; at line 5")
		case name == "hiccups" && tries == 1:
			return timing.Record{}, nil // of which nothing can be made
		case name == "can't":
			return timing.Record{}, fmt.Errorf("can't: %w", errors.ErrUnsupported)
		}
		return known(map[string]float64{"slow": 3, "hiccups": 0.9, "dies": 0.5}[name]), nil
	}
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, []string{"Small, dies, process 3 of 8: it died; at line 5"}, c.Failures)
	require.Equal(t, []string{"measured again: Small, hiccups@HEAD, process 1 of 8: a record of 0 arms compares nothing"},
		c.Warnings)
	require.Equal(t, []string{"skipped: small: can't: unsupported operation"}, c.Skipped())
	require.Equal(t, map[string]int{"slow": 8, "dies": 2, "hiccups@HEAD": 8}, kept)
	for i, want := range []verdict.Verdict{verdict.More, verdict.Undecided, verdict.Less, verdict.Undecided} {
		require.Equal(t, want, c.Comparisons[i].Answer(c.Plan).Time.Verdict)
	}
	require.Len(t, asked["can't"], 1, "it can't the second time either")
	require.Len(t, asked["dies"], 4)
	require.Equal(t, asked["hiccups"][0], asked["hiccups"][1])
	for i, spec := range asked["slow"] {
		want := c.Comparisons[0].Spec
		want.Seed = 10 + uint64(i)
		require.Equal(t, want, spec, "what was asked for, in another order")
	}
}

// What a first look decides has no more processes. What it leaves undecided, or of which a process is left out, has all
// that are planned.
func TestCampaignsFirstLook(t *testing.T) {
	for why, c := range map[string]struct {
		first   int
		ratios  [2]float64 // of processes by turns
		others  float64    // in the second process
		ran     int
		verdict verdict.Verdict
		planned int
	}{
		"decided":                  {6, [2]float64{2, 2.01}, 0, 6, verdict.More, 6},
		"the same":                 {6, [2]float64{1, 1.001}, 0, 6, verdict.Same, 6},
		"undecided":                {6, [2]float64{0.3, 3}, 0, 8, verdict.Undecided, 8},
		"decided, without a look":  {0, [2]float64{2, 2.01}, 0, 8, verdict.More, 8},
		"decided, and one was not": {6, [2]float64{2, 2.01}, 0.9, 8, verdict.More, 8},
	} {
		t.Run(why, func(t *testing.T) {
			all := between(1, "x")
			all.Plan.First, all.Most = c.first, 1 // ns: nothing goes on
			one, ran := all.Comparisons[0], 0
			one.Spec.Procs = 2
			all.Measure = func(context.Context, Spec, ...Program) (timing.Record, error) {
				r := known(c.ratios[ran%2])
				if ran++; ran == 2 && runtime.NumCPU() > 1 {
					r.Others = c.others
				}
				return r, nil
			}
			var first []time.Duration
			all.Show = func(_ string, left time.Duration) { first = append(first, left) }
			require.NoError(t, all.Run(t.Context()))
			require.Equal(t, all.Takes(), first[0], "what is left at first")
			if c.first > 0 {
				require.Equal(t, all.Whole()*6/8, all.Takes())
			}
			if c.others > 0 && !one.Disturbed(one.Found[1]) {
				t.Skip("this machine's cores can't be told from its quota")
			}
			a := one.Answer(all.Plan)
			require.Equal(t, c.ran, ran)
			require.Equal(t, c.verdict, a.Time.Verdict, "%+v", a.Time.Reason)
			require.Equal(t, c.planned, a.Processes.Planned)
		})
	}
}

// What a first look has decided counts no longer where the rate is halved.
func TestCampaignLightensWhatIsDecided(t *testing.T) {
	all := between(1, "x", "y")
	for _, one := range all.Comparisons {
		one.Ordinary, one.Spec.Workload.Rate = true, 4000
	}
	all.Say = func(string) error { return nil }
	decided := all.Comparisons[1]
	decided.enough, decided.tried = true, 6
	require.False(t, all.wants(decided))
	require.NoError(t, all.lighten(all.Comparisons[0]))
	require.True(t, all.wants(decided))
	require.EqualValues(t, 2000, decided.Spec.Workload.Rate)
}

// A stack that hangs is named with its build, once, and has no second try. Where it's the base, all beside it at this
// workload are left; else the others go on.
func TestCampaignWithAHang(t *testing.T) {
	for _, c := range []struct {
		why         string
		hang        child.Hang
		failure     string
		left, asked int
	}{
		{"the base", child.Hang{Stack: "base", Said: "it waits", Goroutines: "goroutine 1", Arm: 0},
			"base@v1 hangs: it waits (goroutines.txt has what its goroutines did)", 2, 1 + 2},
		{"its copy", child.Hang{Stack: "base", Said: "it waits", Goroutines: "goroutine 1", Arm: 1},
			"base@v1 hangs: it waits (goroutines.txt has what its goroutines did)", 2, 1 + 2},
		{"a contestant", child.Hang{Stack: "x", Said: "it waits", Arm: 2},
			"x@v2 hangs: it waits (its process could not tell what its goroutines did)", 1, 1 + 2*2},
		{"nobody knows which", child.Hang{Said: "it waits", Arm: -1},
			"base@v1 or x@v2 hangs: it waits (its process could not tell what its goroutines did)", 1, 1 + 2*2},
	} {
		t.Run(c.why, func(t *testing.T) {
			all, asked, told := between(1, "x@v2", "y", "z"), 0, ""
			all.Plan.Processes = 2
			for _, one := range all.Comparisons {
				one.Spec.Arms[0], one.Spec.Arms[1] = "base@v1", "base@v1"
			}
			all.Comparisons[2].Spec.Workload.Name = "large"
			all.Hung = func(what, goroutines string) error { told += what + " " + goroutines; return nil }
			all.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
				asked++
				if spec.Workload.Name == "small" && (c.hang.Stack == "base" || spec.Arms[2] == "x") {
					hang := c.hang
					return timing.Record{}, &hang
				}
				return known(2), nil
			}
			require.NoError(t, all.Run(t.Context()))
			require.Len(t, all.Failures, 1)
			require.Regexp(t, `^Small, [xy](@v2)?, process 1 of 2: `+regexp.QuoteMeta(c.failure)+"$", all.Failures[0])
			require.Equal(t, c.hang.Goroutines != "", strings.HasSuffix(told, "hangs: it waits goroutine 1"))
			left := 0
			for _, one := range all.Comparisons {
				if one.Left != "" {
					left++
					require.Contains(t, one.Left, " hangs: it waits")
				}
			}
			require.Equal(t, []int{c.left, c.asked}, []int{left, asked})
		})
	}
}

// What can't be done is skipped in a line for each reason, with the names of all workloads.
func TestCampaignSkips(t *testing.T) {
	c := between(1, "x", "y", "z")
	for i, name := range []string{"structured", "mixed", "structured"} {
		c.Comparisons[i].Spec.Workload.Name = name
	}
	c.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
		if spec.Arms[2] == "z" {
			return timing.Record{}, fmt.Errorf("z: echo: %w", errors.ErrUnsupported)
		}
		return timing.Record{}, fmt.Errorf("base: echo: %w", errors.ErrUnsupported)
	}
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, []string{"skipped: structured, mixed: base: echo: unsupported operation",
		"skipped: structured: z: echo: unsupported operation"}, c.Skipped())
	require.Empty(t, append(c.Warnings, c.Failures...))
}

// A process with too few descriptors has too few the second time.
func TestCampaignWithoutDescriptors(t *testing.T) {
	c, asked := between(1, "x"), 0
	c.Measure = func(context.Context, Spec, ...Program) (timing.Record, error) {
		asked++
		return timing.Record{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
	}
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, []string{"Small, x, process 1 of 8: dial tcp: " + syscall.EMFILE.Error()}, c.Failures)
	require.Equal(t, 1, asked)
}

// The order of everything is random, and the seed decides it.
func TestCampaignsOrder(t *testing.T) {
	order := func(seed uint64) (rounds []string) {
		c := between(seed, "x", "y", "z")
		c.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
			rounds = append(rounds, spec.Arms[2])
			return known(1), nil
		}
		require.NoError(t, c.Run(t.Context()))
		return rounds
	}
	first := order(1)
	require.Equal(t, first, order(1))
	require.NotEqual(t, first, order(2))
	require.NotEqual(t, first[:3], first[3:6], "by this seed")
	for round := range 8 {
		require.ElementsMatch(t, []string{"x", "y", "z"}, first[3*round:3*round+3], "a process of each in turn")
	}
}

// What is undecided goes on until it is decided, has twice as many processes, or time is up: the nearest to a verdict
// first. What was disturbed is measured again.
func TestCampaignGoesOn(t *testing.T) {
	for _, c := range []struct {
		why   string
		most  time.Duration
		want  []int  // processes of each
		after string // who went on, in order
	}{
		{"there is time", time.Hour, []int{8, 13, 8, 11, 8}, "near hidden"},
		{"there is none", time.Nanosecond, []int{8, 8, 8, 8, 8}, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			campaign := between(1, "decided", "near", "never", "hidden", "equal")
			campaign.Most = c.most
			var after []string
			asked := map[string]int{}
			campaign.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
				name := spec.Arms[2]
				if asked[name]++; asked[name] > 8 {
					after = append(after, name)
				}
				noise := math.Exp(0.04 * float64(asked[name]%2*2-1))
				r := known(map[string]float64{"decided": 2, "near": 1.04 * noise, "never": noise * noise * noise, "hidden": 3,
					"equal": 1}[name])
				if name == "hidden" && asked[name] <= 3 {
					r.Others = 0.9 // in the first three
				}
				return r, nil
			}
			for _, one := range campaign.Comparisons {
				if one.Spec.Arms[2] == "hidden" {
					one.Spec.Procs = 2
				}
			}
			require.NoError(t, campaign.Run(t.Context()))
			var found []int
			for _, one := range campaign.Comparisons {
				found = append(found, len(one.Found))
			}
			require.Equal(t, c.want, found)
			require.Equal(t, c.after, strings.Join(slices.Compact(after), " "))
		})
	}
}

// Whether a comparison goes on is decided by the figure that its question asks for, and the nearest to a verdict is the
// first, wherever it stands: of interval as wide, the one whose ratio is the farthest from 1.
func TestTheLeadingFigureGoesOn(t *testing.T) {
	const decided = 3.0
	type asked struct {
		byCPU     bool
		time, cpu float64 // ratios; what is not decided varies
	}
	kinds := map[string]asked{
		"near by CPU":       {true, decided, 1.044},
		"far by CPU":        {true, decided, 1.039},
		"near by time":      {false, 1.0425, decided},
		"far by time":       {false, 1.0385, decided},
		"decided, by CPU":   {true, 1.05, decided},
		"decided, by time":  {false, decided, 1.05},
		"hopeless by CPU":   {true, 1.044, 1},
		"hopeless, by time": {false, 1, 1.044},
	}
	names := slices.Sorted(maps.Keys(kinds))
	for turn := range names {
		names = append(names[1:], names[0])
		c, made, after := between(uint64(turn), names...), map[string]int{}, []string(nil)
		c.Most = time.Hour
		for i, name := range names {
			c.Comparisons[i].ByCPU = kinds[name].byCPU
		}
		c.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
			name := spec.Arms[2]
			if made[name]++; made[name] > 8 {
				after = append(after, name)
			}
			noise := math.Exp(0.04 * float64(made[name]%2*2-1))
			of := func(ratio float64) time.Duration { return time.Duration(1e6 * ratio * noise) }
			r := known(1)
			r.Blocks[0][2].Wall, r.Blocks[0][2].CPU = of(kinds[name].time), of(kinds[name].cpu)
			for i := range 2 {
				r.Blocks[0][i].Wall, r.Blocks[0][i].CPU = 1e6, 1e6
			}
			return r, nil
		}
		require.NoError(t, c.Run(t.Context()))
		far := func(name string) bool { return strings.HasPrefix(name, "far") }
		first := slices.IndexFunc(after, far)
		require.Positive(t, first, "who goes on, %q, of %q", after, names)
		near, rest := slices.Sorted(slices.Values(after[:first])), slices.Sorted(slices.Values(after[first:]))
		require.Equal(t, []string{"near by CPU", "near by time"}, slices.Compact(near), "who goes on first, of %q", names)
		require.Equal(t, []string{"far by CPU", "far by time"}, slices.Compact(rest), "who goes on then, of %q", names)
	}
}

// What goes on does so for a quarter of the planned time, and all ends then. Where processes take longer than expected,
// what is left follows what they took, and nothing goes on.
func TestCampaignAnnouncesItsEnd(t *testing.T) {
	for slower, want := range map[time.Duration]int{1: 10, 2: 8} {
		synctest.Test(t, func(t *testing.T) {
			c, began, found := between(1, "near"), time.Now(), 0
			c.Measure = func(context.Context, Spec, ...Program) (timing.Record, error) {
				found++
				<-time.After(slower * c.Comparisons[0].takes())
				return known(1.04 * math.Exp(0.04*float64(found%2*2-1))), nil
			}
			var ends []time.Duration
			c.Show = func(_ string, left time.Duration) { ends = append(ends, time.Since(began)+left) }
			require.NoError(t, c.Run(t.Context()))
			require.Equal(t, want, found, "a quarter more, if there is time")
			takes := c.Takes()
			require.Equal(t, slices.Concat([]time.Duration{takes}, slices.Repeat([]time.Duration{slower * takes}, 7),
				slices.Repeat([]time.Duration{takes * 5 / 4}, want-8)), ends[:want])
			require.LessOrEqual(t, time.Since(began), max(takes*5/4, takes*slower))
		})
	}
}

// Where the run chose a rate at which fewer than nine in ten planned calls are completed, in two processes, it goes on
// at half of it, once, for all stacks of the workload. A rate that was typed ends then, and so does the half.
func TestCampaignLightens(t *testing.T) {
	for _, test := range []struct {
		why      string
		ordinary bool
		rate     float64
		keeps    float64              // the rate that is kept
		want     map[string][]float64 // rates asked for
		left     string               // of the slow one
	}{
		{"a chosen rate is halved", true, 4000, 2000, map[string][]float64{
			"slow": {4000, 4000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000},
			"base": {4000, 4000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000}}, ""},
		{"the half is too fast as well", true, 4000, 1000, map[string][]float64{"slow": {4000, 4000, 2000, 2000}},
			"of 2000 planned calls a second too few were completed in two processes"},
		{"half is too slow for a window", true, 800, 100, map[string][]float64{"slow": {800, 800}},
			"of 800 planned calls a second too few were completed in two processes"},
		{"a typed rate ends", false, 4000, 2000, map[string][]float64{"slow": {4000, 4000}},
			"of 4000 planned calls a second too few were completed in two processes"},
		{"a rate that is kept stays", true, 4000, 4000, map[string][]float64{
			"slow": {4000, 4000, 4000, 4000, 4000, 4000, 4000, 4000}}, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			c, asked, said := between(2, "slow", "base"), map[string][]float64{}, []string(nil)
			for _, one := range c.Comparisons {
				one.Ordinary, one.Spec.Workload.Rate = test.ordinary, test.rate
			}
			c.Say = func(line string) error { said = append(said, line); return nil }
			c.Measure = func(_ context.Context, spec Spec, _ ...Program) (timing.Record, error) {
				r, name := known(3), spec.Arms[2]
				asked[name] = append(asked[name], spec.Workload.Rate)
				for i := range r.Blocks[0] {
					r.Blocks[0][i].CPU = r.Blocks[0][i].Wall
					calls := int64(1000)
					if name == "slow" && spec.Workload.Rate > test.keeps {
						calls = 800
					}
					r.Latencies = append(r.Latencies, timing.Latency{Calls: calls, Planned: 1000})
				}
				return r, nil
			}
			require.NoError(t, c.Run(t.Context()))
			for name, rates := range test.want {
				if name == "base" { // whose order among the processes is random
					require.Equal(t, rates[len(rates)-8:], asked[name][len(asked[name])-8:], name)
					continue
				}
				require.Equal(t, rates, asked[name], name)
			}
			slow := c.Comparisons[0]
			require.Equal(t, test.left, slow.Left)
			answer := slow.Answer(c.Plan)
			require.Equal(t, test.left == "", answer.Kept(), "%+v", answer.CPU.Reason)
			if test.left != "" {
				require.Equal(t, verdict.NotCompleted, answer.CPU.Reason.Kind)
				require.Len(t, slow.Found, 2)
			}
			halved := slices.Contains(asked["slow"], test.rate/2)
			require.Equal(t, halved, len(said) == 1, "%q", said)
			require.Equal(t, said, c.Warnings)
			for _, line := range said {
				require.Contains(t, line, fmt.Sprintf("%v are planned from here on, which takes", test.rate/2))
				require.NotContains(t, line, "takes 0s more", "what counts no longer is measured again, in longer windows")
			}
		})
	}
}

// What callers and servers need until they are warm is in the time that is announced, and so are two slices of builds.
func TestCampaignTakes(t *testing.T) {
	takes := func(w workload.Workload, builds bool) time.Duration {
		c := between(1, "x")
		c.Comparisons[0].Spec.Workload, c.Comparisons[0].Spec.Blocks = w, 2
		if builds {
			c.Comparisons[0].Other = []Program{{}}
		}
		require.Equal(t, 8*c.Comparisons[0].takes(), c.Takes())
		return c.Takes()
	}
	all := []time.Duration{takes(workload.Workload{}, false), takes(workload.Workload{}, true),
		takes(workload.Workload{Callers: 10}, false), takes(workload.Workload{Callers: 10, Apart: true}, false),
		takes(workload.Workload{Callers: 10, Apart: true}, true), takes(workload.Workload{Callers: 1000}, false)}
	require.IsIncreasing(t, all)
}

// A campaign ends at once and keeps what it has, whether it is interrupted, can't keep it, or has no more to do.
func TestCampaignEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for _, test := range []struct {
		why, want string
		found     int
		set       func(*Campaign)
	}{
		{"a full disk", "full", 1, func(c *Campaign) {
			c.Kept = func(*Comparison, timing.Record) error { return errors.New("full") }
		}},
		{"a signal", "interrupted", 2, func(c *Campaign) {
			c.Measure = func(context.Context, Spec, ...Program) (timing.Record, error) {
				if len(c.Comparisons[0].Found) == 2 {
					cancel()
				}
				return known(1), ctx.Err()
			}
		}},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := between(1, "x")
			c.Measure = func(context.Context, Spec, ...Program) (timing.Record, error) { return known(1), nil }
			var lefts []time.Duration
			c.Show = func(_ string, left time.Duration) { lefts = append(lefts, left) }
			test.set(c)
			err := c.Run(ctx)
			require.Equal(t, test.want != "", err != nil)
			if err != nil {
				require.EqualError(t, err, test.want)
			}
			require.Len(t, c.Comparisons[0].Found, test.found)
			require.Positive(t, lefts[0])
			require.Zero(t, lefts[len(lefts)-1], "the line of progress is cleared")
		})
	}
}

// The processes of a comparison are spread evenly over the layouts. Arms in processes of their own have a layout each,
// the base's copy too: the noise floor then has what a layout makes of nothing.
func TestProcessesAreSpreadOverLayouts(t *testing.T) {
	link := func(name string) (all []Program) {
		for layout := range 8 {
			all = append(all, Program{Path: name, Layout: layout + 1})
		}
		return all
	}
	for _, test := range []struct {
		why   string
		other []Program
		paths []string
	}{
		{"one build", nil, []string{"here"}},
		{"two builds", link("there"), []string{"here", "here", "there"}},
	} {
		used, asked := map[int]int{}, 0
		c := between(1, "x")
		c.Plan.Processes, c.Most = 8, time.Hour
		c.Comparisons[0].Base, c.Comparisons[0].Other = link("here"), test.other
		c.Measure = func(_ context.Context, _ Spec, programs ...Program) (timing.Record, error) {
			own := map[int]bool{}
			var paths []string
			for _, p := range programs {
				paths, own[p.Layout] = append(paths, p.Path), true
				used[p.Layout]++
			}
			require.Equal(t, test.paths, paths, test.why)
			require.Len(t, own, len(paths), "%s: two arms have one layout", test.why)
			r := known(3)
			if asked++; asked <= 3 {
				r.Others = 0.9 // so that it goes on, until as many have measured as were planned
			}
			return r, nil
		}
		c.Comparisons[0].Spec.Procs = 2
		require.NoError(t, c.Run(t.Context()))
		require.Equal(t, 11, asked, "%s: it goes on", test.why)
		for layout := range 8 {
			require.GreaterOrEqual(t, used[layout+1], len(test.paths), test.why)
			require.LessOrEqual(t, used[layout+1], 2*len(test.paths), "%s: those that go on take layouts in turn", test.why)
		}
	}
}
