package report

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// sweep is a made-up one of gRPC. A point is a value, its ratio with the interval, and the verdict; and perhaps missed,
// of a rate that was not kept, or time, of a value without CPU time.
func sweep(over string, points ...string) Summary {
	s := found()
	s.Over, s.Answers = over, nil
	for _, point := range points {
		a := Answer{Does: "small calls", Stack: "grpcprotobuf", Leads: ByCPU}
		f, more := verdict.Figure{BaseNs: 50_000}, ""
		_, _ = fmt.Sscan(point, &a.Value, &f.Ratio, &f.Lo, &f.Hi, &f.Verdict, &more)
		a.Processes = verdict.Counts{Planned: 8, Counted: 8}
		if a.CPU = f; more == "time" {
			a.CPU, a.Time = verdict.Figure{}, f
		}
		if more == "missed" {
			a.BaseLoad.Completed, a.StackLoad.Completed = 1, 0.9
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

var sweeps = []struct {
	reason string
	s      Summary
	want   string
}{
	{"all is undecided", sweep("callers", "16 1.24 1.13 1.37 undecided", "64 1.22 1.02 1.45 undecided"),
		"Whether gRPC takes less CPU than JSON is undecided at every value."},
	{"one value, and undecided", sweep("callers", "16 1.24 1.13 1.37 undecided"),
		"Whether gRPC takes less CPU than JSON is undecided at 16 callers."},
	{"too few processes for intervals that tell a size", sweep("connections", "1 0.9 0.2 4.05 undecided",
		"4 12.59 0.3 528 undecided", "16 1.24 0.4 3.8 undecided"),
		"Whether gRPC takes less CPU than JSON is undecided at every value."},
	{"verdicts without an interval", sweep("connections", "1 0.9 0 0 less", "4 1.24 0 0 more", "8 1 0 0 same"),
		"Whether gRPC takes less CPU than JSON is undecided at every value."},
	{"verdicts that their intervals don't bear out", sweep("connections", "1 0.9 0.8 1.1 less", "4 1.24 0.9 1.4 more"),
		"Whether gRPC takes less CPU than JSON is undecided at every value."},
	{"no crossing between two that are undecided", sweep("calls a second", "500 1.2 1.1 1.3 more",
		"1000 1.1 0.9 1.3 undecided", "saturated 0.9 0.7 1.1 undecided"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 500 calls a second; " +
			"undecided at 1000 calls a second and when saturated."},
	{"one end is undecided", sweep("calls a second", "2000 1.41 1.31 1.52 more", "saturated 0.9 0.7 1.1 undecided"),
		"gRPC takes 1.41 times as much CPU time as JSON (1.31–1.52) at 2000 calls a second; undecided when saturated."},
	{"both ends are undecided", sweep("callers", "1 1 0.9 1.1 undecided", "8 1.41 1.31 1.52 more",
		"64 1 0.9 1.1 undecided"),
		"gRPC takes 1.41 times as much CPU time as JSON (1.31–1.52) at 8 callers; undecided at 1 and 64 callers."},
	{"values in order, and a crossing over one that is undecided", sweep("calls a second", "saturated 0.66 0.6 0.7 less",
		"20000 0.97 0.9 1.05 undecided", "5000 1.4 1.3 1.5 more", "1000 1.25 1.15 1.45 more", "2000 0 0 0 undecided"),
		"gRPC takes 1.25 times as much CPU time as JSON (1.15–1.45) at 1000 calls a second, and 0.66 times (0.60–0.70) " +
			"when saturated; undecided at 20000 calls a second. " +
			"gRPC's CPU crosses JSON's between 5000 calls a second and saturated."},
	{"a place between neighbours", sweep("calls a second", "1000 1.25 1.125 1.375 more", "4000 0.8 0.72 0.88 less"),
		"gRPC takes 1.25 times as much CPU time as JSON (1.12–1.38) at 1000 calls a second, and 0.80 times (0.72–0.88) " +
			"at 4000 calls a second. " +
			"gRPC's CPU crosses JSON's between 1000 and 4000 calls a second, at about 2000 (1400–2700)."},
	{"a place that could be nearly anywhere", sweep("calls a second", "1000 1.25 1.01 1.5 more", "9000 0.8 0.7 0.99 less"),
		"gRPC takes 1.25 times as much CPU time as JSON (1.01–1.50) at 1000 calls a second, and 0.80 times (0.70–0.99) " +
			"at 9000 calls a second. gRPC's CPU crosses JSON's between 1000 and 9000 calls a second."},
	{"a value in the middle that no end is like", sweep("connections", "1 0.9 0.85 0.95 less", "4 12.59 10 15 more",
		"16 1.24 1.2 1.3 more"),
		"gRPC takes 0.90 times as much CPU time as JSON (0.85–0.95) at 1 connection, 12.59 times (10.00–15.00) at 4 " +
			"connections, and 1.24 times (1.20–1.30) at 16 connections. " +
			"gRPC's CPU crosses JSON's between 1 and 4 connections, at about 1.1 (1–1.1)."},
	{"the ends agree, and the middle does not", sweep("callers", "1 1.2 1.1 1.3 more", "4 0.8 0.7 0.9 less",
		"8 0.9 0.85 0.95 less", "16 1.2 1.1 1.3 more"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 1 caller, 0.80 times (0.70–0.90) at 4 callers, " +
			"0.90 times (0.85–0.95) at 8 callers, and 1.20 times (1.10–1.30) at 16 callers. " +
			"gRPC's CPU crosses JSON's between 1 and 4 callers. " +
			"gRPC's CPU crosses JSON's between 8 and 16 callers, at about 10 (9–12)."},
	{"the highest of those beyond the ends", sweep("callers", "1 1.2 1.1 1.3 more", "4 1.5 1.4 1.6 more",
		"8 1.6 1.5 1.7 more", "16 1.2 1.1 1.3 more"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 1 caller, 1.60 times (1.50–1.70) at 8 callers, " +
			"and 1.20 times (1.10–1.30) at 16 callers."},
	{"the lowest of those beyond the ends", sweep("callers", "1 0.9 0.85 0.95 less", "4 0.6 0.55 0.65 less",
		"16 0.9 0.85 0.95 less"),
		"gRPC takes 0.90 times as much CPU time as JSON (0.85–0.95) at 1 caller, 0.60 times (0.55–0.65) at 4 callers, " +
			"and 0.90 times (0.85–0.95) at 16 callers."},
	{"no place over a value that is undecided", sweep("callers", "1 0.9 0.85 0.95 less", "4 1 0.9 1.1 undecided",
		"16 1.2 1.1 1.3 more"),
		"gRPC takes 0.90 times as much CPU time as JSON (0.85–0.95) at 1 caller, and 1.20 times (1.10–1.30) at 16 " +
			"callers; undecided at 4 callers. gRPC's CPU crosses JSON's between 1 and 16 callers."},
	{"one that is the same between two that differ is where they cross", sweep("callers", "1 0.9 0.85 0.95 less",
		"4 1 0.99 1.01 same", "16 1.2 1.1 1.3 more"),
		"gRPC takes 0.90 times as much CPU time as JSON (0.85–0.95) at 1 caller, 1.00 times (0.99–1.01) at 4 callers, " +
			"and 1.20 times (1.10–1.30) at 16 callers. gRPC's CPU crosses JSON's between 1 and 16 callers."},
	{"no number without an interval that tells a size", sweep("callers", "1 0.3 0.2 0.6 less", "4 1.2 1.1 1.3 more",
		"16 5 3 9 more", "64 1 0.9 1.1 undecided"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 4 callers; less at 1 caller; more at 16 callers; " +
			"undecided at 64 callers. gRPC's CPU crosses JSON's between 1 and 4 callers, at about 3.3 (2.5–3.7)."},
	{"no number at all", sweep("callers", "1 0.3 0.2 0.6 less", "4 0.3 0.2 0.6 less", "16 1.2 0.6 1.8 same"),
		"gRPC takes less CPU than JSON at 1 and 4 callers; as much at 16 callers."},
	{"the same and no size", sweep("callers", "16 1.2 0.6 1.8 same"),
		"gRPC takes as much CPU time as JSON at 16 callers."},
	{"rates that were not kept", sweep("calls a second", "1000 1.2 1.1 1.3 more", "5000 0.8 0.7 0.9 undecided missed",
		"20000 0.5 0.4 0.6 less missed"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 1000 calls a second. " +
			"Too few of the planned calls were completed at 5000 and 20000 calls a second, so there is no verdict."},
	{"no rate was kept", sweep("calls a second", "5000 0.8 0.7 0.9 undecided missed"),
		"Whether gRPC takes less CPU than JSON is undecided at 5000 calls a second. " +
			"Too few of the planned calls were completed at 5000 calls a second, so there is no verdict."},
	{"time on one core is no CPU time on two", sweep("GOMAXPROCS", "1 0.9 0.85 0.95 less time", "2 1.2 1.1 1.3 more",
		"4 0.8 0.7 0.9 less"),
		"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at GOMAXPROCS 2, and 0.80 times (0.70–0.90) at " +
			"GOMAXPROCS 4. gRPC's CPU crosses JSON's between GOMAXPROCS 2 and GOMAXPROCS 4, at about 2.7 (2.3–3.3). " +
			"gRPC takes 0.90 times as long as JSON (0.85–0.95) at GOMAXPROCS 1."},
	{"of one measure all is undecided", sweep("GOMAXPROCS", "1 0.9 0.85 0.95 less time", "2 1 0.9 1.1 undecided",
		"4 1 0.9 1.1 undecided"),
		"Whether gRPC takes less CPU than JSON is undecided at GOMAXPROCS 2 and 4. " +
			"gRPC takes 0.90 times as long as JSON (0.85–0.95) at GOMAXPROCS 1."},
	{"nothing was measured", sweep("callers", "1 0 0 0 undecided", "x 1 1 1 same", "-1 1 1 1 same", "inf 1 1 1 same",
		"1e999 1 1 1 same"), ""},
}

// TestSweeps: what a sweep says is what its lines bear.
func TestSweeps(t *testing.T) {
	for _, c := range sweeps {
		t.Run(c.reason, func(t *testing.T) {
			require.Equal(t, c.want, strings.Join(c.s.Sentences(), "\n"))
			require.Equal(t, c.want != "", bears(t, c.s) > 0)
		})
	}
	two := sweep("callers", "1 1.2 1.1 1.3 more", "1 1 0.9 1.1 undecided")
	two.Answers[1].Stack = "drpc"
	require.Equal(t, []string{"gRPC takes 1.20 times as much CPU time as JSON (1.10–1.30) at 1 caller.",
		"Whether drpc takes less CPU than JSON is undecided at 1 caller."}, two.Sentences())
	two.Remote = true
	require.Equal(t, []string{"gRPC takes 1.20 times as much client CPU time as JSON (1.10–1.30) at 1 caller.",
		"Whether drpc takes less client CPU than JSON is undecided at 1 caller."}, two.Sentences())
}

// TestSentencesAreBorne: no sentence of a sweep says more than its lines, of recorded ones and of made-up ones of all
// kinds.
func TestSentencesAreBorne(t *testing.T) {
	swept := 0
	require.NoError(t, filepath.WalkDir("../../study/results", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "summary.json" {
			return err
		}
		s, err := Read(filepath.Dir(path))
		if err != nil || s.Over == "" {
			return nil // TestRecords is about the former, and a test of study/pages about the latter
		}
		t.Run(path, func(t *testing.T) { swept += bears(t, s) })
		return nil
	}))
	require.Greater(t, swept, 10)

	random, verdicts := rand.New(rand.NewPCG(1, 2)), []string{"less", "more", "same", "undecided"}
	for range 2000 {
		var points []string
		for value := range 1 + random.IntN(6) {
			is := verdicts[random.IntN(len(verdicts))]
			middle := map[string]float64{"less": 0.6, "more": 1.7}[is]
			middle = cmp.Or(middle, 1) * math.Exp(0.3*random.NormFloat64())
			half := 1 + 0.7*random.Float64()*random.Float64()
			lo, hi := middle/half, middle*half
			if random.IntN(10) == 0 {
				lo, hi = 0, 0
			}
			name := fmt.Sprint(1000 << value)
			if value == 5 {
				name = Saturated
			}
			points = append(points, fmt.Sprintf("%s %g %g %g %s %s", name, middle, lo, hi, is,
				[]string{"", "", "", "", "missed", "time"}[random.IntN(6)]))
		}
		random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		bears(t, sweep("calls a second", points...))
	}
}

// bearing is what one value of a sweep may be told of.
type bearing struct {
	value, is              string
	place, ratio, lo, hi   float64
	decided, sized, missed bool
}

// bearings are the values of a stack by one measure, in order.
func bearings(s Summary, stack string, cpu bool) (all []bearing) {
	for _, a := range s.Answers {
		f, ofCPU := a.Time, false
		if a.CPU.Verdict != "" && (a.Leads == ByCPU || a.Time.Verdict == "") {
			f, ofCPU = a.CPU, true
		}
		b := bearing{value: a.Value, is: string(f.Verdict), ratio: f.Ratio, lo: f.Lo, hi: f.Hi, missed: !a.Kept()}
		if b.place = math.Inf(1); a.Value != Saturated {
			if _, err := fmt.Sscan(a.Value, &b.place); err != nil || b.place <= 0 || math.IsInf(b.place, 0) {
				continue
			}
		}
		bears := map[string]bool{"less": f.Hi < 1, "more": f.Lo > 1, "same": true}[b.is]
		b.decided = bears && f.Lo > 0 && !b.missed
		b.sized = b.decided && f.Hi <= 2*f.Lo
		if a.Stack == stack && ofCPU == cpu && f.Ratio > 0 {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b bearing) int { return cmp.Compare(a.place, b.place) })
	return all
}

var (
	sizes = regexp.MustCompile(`(\d+\.\d+) times[^(;.]*\((\d+\.\d+)–(\d+\.\d+)\)( at \D*\d+| when saturated)`)
	turns = regexp.MustCompile(`'s (CPU|time) crosses \S+ between (?:GOMAXPROCS )?(\w+)(?: calls a second)? and ` +
		`(?:GOMAXPROCS )?(\w+)(?: [a-z ]+)?(?:, at about ([\d.]+) \(([\d.]+)–([\d.]+)\))?\.`)
	opens  = regexp.MustCompile(`undecided ([^;.]*)`)
	missed = regexp.MustCompile(`Too few of the planned calls were completed ([^.]*), so there is no verdict\.`)
)

// named tells whether a part of a sentence names a value.
func named(part, value string) bool { return regexp.MustCompile(`\b` + value + `\b`).MatchString(part) }

// bears demands of each sentence of a sweep that the lines bear it out. It returns how many values they are about.
func bears(t *testing.T, s Summary) (n int) {
	t.Helper()
	said := s.Sentences()
	for _, stack := range s.Stacks() {
		cpu, time := bearings(s, stack, true), bearings(s, stack, false)
		if len(cpu)+len(time) == 0 {
			continue
		}
		n += len(cpu) + len(time)
		sentence := said[0]
		said = said[1:]
		missing := ""
		if parts := missed.FindStringSubmatch(sentence); parts != nil {
			missing = parts[1]
		}
		for _, b := range slices.Concat(cpu, time) {
			require.Equal(t, b.missed, named(missing, b.value), "%s: a rate that was not kept is named: %v", sentence, b)
		}
		rest := missed.ReplaceAllString(sentence, "")
		if len(cpu) > 0 && len(time) > 0 { // which has its own sentences, the last ones
			at := strings.LastIndex(rest, "Whether ")
			if i := strings.LastIndex(rest, Label(stack)+" takes "); i > at+len("Whether ") {
				at = i
			}
			measured(t, rest[:at], cpu, "CPU", false)
			measured(t, rest[at:], time, "time", false)
			continue
		}
		measured(t, rest, append(cpu, time...), map[bool]string{true: "CPU", false: "time"}[len(cpu) > 0], true)
	}
	require.Empty(t, said, "a sentence about nothing")
	return n
}

// measured demands that sentences about all values of one measure are borne out.
func measured(t *testing.T, said string, all []bearing, measure string, whole bool) {
	t.Helper()
	require.NotContains(t, said, "(–)")
	at := func(value string) bearing {
		i := slices.IndexFunc(all, func(b bearing) bool { return b.value == value })
		require.GreaterOrEqual(t, i, 0, "%s: no value is %q", said, value)
		return all[i]
	}
	told := map[string]bool{}
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, m := range sizes.FindAllStringSubmatch(said, -1) {
		b := at(m[4][strings.LastIndex(m[4], " ")+1:])
		require.True(t, b.sized, "%s: a number of a line that does not tell a size: %v", said, b)
		require.Equal(t, []string{fmt.Sprintf("%.2f", b.ratio), fmt.Sprintf("%.2f", b.lo), fmt.Sprintf("%.2f", b.hi)}, m[1:4])
		told[b.value], lowest, highest = true, min(lowest, b.lo), max(highest, b.hi)
	}
	var turned [][]string
	for _, m := range turns.FindAllStringSubmatch(said, -1) {
		require.Equal(t, measure, m[1])
		if turned = append(turned, m[2:4]); m[4] == "" {
			continue
		}
		var place, lo, hi float64
		_, err := fmt.Sscan(m[4], &place)
		require.NoError(t, err)
		_, err = fmt.Sscan(m[5]+" "+m[6], &lo, &hi)
		require.NoError(t, err)
		from, to := at(m[2]), at(m[3])
		require.False(t, math.IsInf(to.place, 0), "%s: a place before what is saturated", said)
		require.Equal(t, 1, slices.Index(all, to)-slices.Index(all, from), "%s: a place over other values", said)
		require.True(t, 0.99*from.place <= lo && lo <= place && place <= hi && hi <= 1.01*to.place, said)
		require.LessOrEqual(t, hi, 2.1*lo, "%s: the place is nearly anywhere", said)
	}
	left := turns.ReplaceAllString(sizes.ReplaceAllString(said, ""), "")
	require.NotRegexp(t, `\d\.\d`, left, "a number without an interval")

	var decided []bearing
	var last bearing // that says less or more
	var want [][]string
	opened := strings.Join(opens.FindStringSubmatch(said), " ")
	for _, b := range all {
		if b.decided {
			decided = append(decided, b)
		}
		if every := strings.Contains(opened, "at every value"); !b.missed && !every {
			require.Equal(t, !b.decided, named(opened, b.value), "%s: %v", said, b)
		}
		if !b.decided || b.is == "same" {
			continue
		}
		if last.is != "" && last.is != b.is {
			want = append(want, []string{last.value, b.value})
		}
		last = b
	}
	require.Equal(t, want, turned, said)
	if len(decided) == 0 {
		require.NotRegexp(t, `times|crosses| more `, said)
		require.Equal(t, whole && len(all) > 1, strings.Contains(said, "undecided at every value"), said)
		return
	}
	require.NotContains(t, said, "every")
	sized := slices.DeleteFunc(slices.Clone(decided), func(b bearing) bool { return !b.sized })
	for i, b := range sized {
		if i == 0 || i == len(sized)-1 {
			require.True(t, told[b.value], "%s: an end is left out: %v", said, b)
		}
		if !told[b.value] {
			require.Contains(t, []string{sized[0].is, sized[len(sized)-1].is}, b.is, "%s: hides %v", said, b)
			require.True(t, b.lo <= highest && b.hi >= lowest, "%s: hides an outlier, %v", said, b)
		}
	}
	for _, b := range decided {
		part := map[string]string{"less": "less", "more": "more", "same": "as much|as long"}[b.is]
		if !b.sized {
			require.Regexp(t, `(`+part+`)( CPU| time)*( \w+ JSON)? (at|when) [^;.]*\b`+b.value+`\b`, said, "%v is left out", b)
		}
	}
}
