package report

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Each condition that fails has a sentence with its numbers.
func TestBecause(t *testing.T) {
	for want, r := range map[string]verdict.Reason{
		"": {},
		"90% of the planned calls were completed, and a verdict needs 98%: give a lower -rate": {
			Kind: verdict.NotCompleted, Found: 0.9, Needed: 0.98, Decides: verdict.LowerRate},
		"90% of the planned calls were completed, and a verdict needs 98%: the machine was too busy for the load that " +
			"the run chose, so quiet it or name a -rate": {Kind: verdict.NotCompleted, Found: 0.9, Needed: 0.98,
			Decides: verdict.QuieterMachine},
		"disturbed: in 8 of 14 processes other programs left less than 1.8 cores, so the ratio was measured on a busy " +
			"machine": {Kind: verdict.Disturbed, Processes: 8, Of: 14, Needed: 1.8},
		"disturbed: other programs left 1.86 cores on average, so the ratio was measured on a busy machine": {
			Kind: verdict.Crowded, Found: 1.86, Needed: 1.92},
		"0 of 8 processes count, and a verdict needs 6; in 8 the calls under way were not those of the callers": {
			Kind: verdict.TooFew, Of: 8, Needed: 6, Miscounted: 8},
		"0 of 8 processes count, and a verdict needs 6: x hangs: a call had not returned after 33s": {
			Kind: verdict.TooFew, Of: 8, Needed: 6, Failed: "x hangs: a call had not returned after 33s"},
		"5 of 8 processes count, and a verdict needs 6": {Kind: verdict.TooFew, Processes: 5, Of: 8, Needed: 6},
		"5 processes count, and a verdict needs 6; 3 had one core only": {Kind: verdict.TooFew, Processes: 5, Of: 8,
			OneCore: 3, Needed: 6},
		"6 of 8 processes lie on one side of 1, but their ratios vary by 19%: the machine may have had two states": {
			Kind: verdict.TwoStates, Processes: 6, Of: 8, Found: 0.187},
		"the interval includes 1": {Kind: verdict.IncludesOne},
		"the interval includes 1: about 5 times -time would decide 1.00 in half of the cases": {Kind: verdict.IncludesOne,
			Decides: verdict.MoreTime, Times: 5, Ratio: 1.001},
		"the interval includes 1: no time would decide so small a difference": {Kind: verdict.IncludesOne,
			Decides: verdict.Nothing},
		"the interval reaches into the noise floor of 3.2%, and the base's own time varied by more than 100%: " +
			"measure on a quieter machine": {Kind: verdict.WithinFloor, Found: 0.0318, Decides: verdict.QuieterMachine,
			Varied: 1.2},
		"and the base moved by 4%: a steadier machine would tell": {
			Kind: "and the base moved by 4%: a steadier machine would tell"}, // of an older release
	} {
		require.Equal(t, want, Because(r))
	}
}

// A verdict has behind it why there is none, what was measured where that is not all, and what other programs used.
func TestNotes(t *testing.T) {
	more, few := verdict.Figure{Verdict: verdict.More}, verdict.Reason{Kind: "why"}
	why := verdict.Figure{Verdict: verdict.Undecided, Reason: few}
	for _, c := range []struct {
		of    verdict.Figure
		ofCPU bool
		n     verdict.Counts
		want  []string
	}{
		{more, false, verdict.Counts{}, []string{"not measured"}},
		{more, false, verdict.Counts{Counted: 8}, nil},
		{more, false, verdict.Counts{Counted: 7}, []string{"7 of 8 processes"}},
		{more, false, verdict.Counts{Counted: 6, OneCore: 2},
			[]string{"all 6 processes that count; 2 left out that had one core"}},
		{more, false, verdict.Counts{Counted: 12, Disturbed: 2},
			[]string{"all 12 processes that count; 2 left out, as other programs left them too few cores"}},
		{more, false, verdict.Counts{Counted: 6, Miscounted: 2},
			[]string{"6 of 8 processes", "2 left out, whose calls under way were not those of the callers"}},
		{why, true, verdict.Counts{Counted: 2, Miscounted: 6},
			[]string{"why", "6 left out, whose calls under way were not those of the callers"}},
		{verdict.Figure{Verdict: verdict.Same, Margin: 0.05}, false, verdict.Counts{Counted: 8},
			[]string{"same within 5%"}},
		{why, false, verdict.Counts{Counted: 8, NoSecond: 5}, []string{"why", "5 of 8 had no second core to themselves"}},
		{why, true, verdict.Counts{Counted: 8, NoSecond: 5}, []string{"why"}},
	} {
		require.Equal(t, c.want, Led{Figure: c.of, OfCPU: c.ofCPU, Answer: processed(8, c.n)}.Notes())
	}
	others := Led{Figure: more, Answer: processed(8, verdict.Counts{Counted: 8})}
	others.Answer.Others = 0.1
	require.Empty(t, others.Notes())
	others.Answer.Others = 0.2
	require.Equal(t, []string{"other programs used 20% of the machine, and the size is another on an idle one"},
		others.Notes())
	others.Answer.Busy = true
	require.Empty(t, others.Notes(), "the reason says it")

	require.Equal(t, []string{"undecided", "undecided", "less", "more", "same"}, []string{Says(""), Says("faster"),
		Says(verdict.Less), Says(verdict.More), Says(verdict.Same)})
	s := Summary{Answers: []Answer{{Answer: verdict.Answer{Unchecked: []verdict.Unchecked{verdict.UncheckedCores,
		verdict.UncheckedOthers, verdict.UncheckedCores, "the weather"}}}}}
	require.Equal(t, []string{"whether each process had several cores: CPU time is not recorded",
		"what other programs used: their share is not recorded", "the weather"}, s.Unchecked())
}

func processed(planned int, n verdict.Counts) Answer {
	n.Planned = planned
	return Answer{Answer: verdict.Answer{Processes: n}}
}

// Pages say how many processes have measured, and a terminal why they are too few, however wide the interval is.
func TestMeasurers(t *testing.T) {
	of := func(planned int, measured ...int) Summary {
		s := Summary{Base: "httpjson", Plan: Plan{Processes: planned, Layouts: 8}}
		for _, n := range measured {
			a := processed(planned, verdict.Counts{Measured: n, Counted: n})
			a.Does, a.Stack = "a small call", "grpcprotobuf"
			a.Time = verdict.Figure{Ratio: 1.1, Lo: 0.1, Hi: 9, BaseNs: 1000, Verdict: verdict.Undecided,
				Reason: verdict.Reason{Kind: verdict.TooFew, Processes: n, Of: planned, Needed: 6}}
			s.Answers = append(s.Answers, a)
		}
		return s
	}
	for why, c := range map[string]struct {
		of   Summary
		want string
	}{
		"all":                      {of(8, 8, 8), "8 processes measured each workload, spread over 8 links"},
		"an older result":          {of(8, 0), "8 processes measured each workload, spread over 8 links"},
		"interrupted":              {of(6, 2), "2 of 6 planned processes measured each workload, spread over links"},
		"interrupted in a round":   {of(6, 3, 2), "2 to 3 of 6 planned processes measured each workload, spread over links"},
		"interrupted in the first": {of(6, 1, 0), "1 of 6 planned processes measured each workload, spread over links"},
		"a line that went on":      {of(8, 8, 14), "8 to 14 processes measured each workload, spread over 8 links"},
	} {
		t.Run(why, func(t *testing.T) {
			for _, write := range []func(io.Writer) error{c.of.Markdown, c.of.HTML} {
				var page strings.Builder
				require.NoError(t, write(&page))
				require.Contains(t, page.String(), c.want)
			}
		})
	}
	var text strings.Builder
	require.NoError(t, of(6, 2).Text(&text, 200, false, false))
	require.Contains(t, text.String(), "2 of 6 processes count")
}
