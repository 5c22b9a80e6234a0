package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// A gate fires by the lower end of the leading interval and beyond the noise floor, and says what it could not see.
func TestGateOfTimes(t *testing.T) {
	figure := func(ratio, lo, hi, floor float64) verdict.Figure {
		return verdict.Figure{Verdict: verdict.Undecided, Ratio: ratio, Lo: lo, Hi: hi, CopyDiffers: floor, NoiseFloor: floor}
	}
	of := func(time verdict.Figure) verdict.Answer { return verdict.Answer{Time: time} }
	both := func(time, cpu verdict.Figure) verdict.Answer { return verdict.Answer{Time: time, CPU: cpu} }
	slow, even := figure(1.2, 1.15, 1.25, 0.01), figure(1, 0.99, 1.01, 0.01)
	few, disturbed, moves := slow, slow, even
	moves.BaseVaried, moves.NoiseFloor = 3, verdict.Floor(0.01, 3)
	few.Reason = verdict.Reason{Kind: verdict.TooFew, Processes: 4, Of: 8, Needed: 6}
	disturbed.Reason = verdict.Reason{Kind: verdict.Crowded, Found: 1.2}
	busy := of(disturbed)
	busy.Busy = true
	for _, test := range []struct {
		why    string
		leads  string
		answer verdict.Answer
		fires  bool
		least  string
		give   string // what would let the gate see
	}{
		{"above", "", of(slow), true, "1.095", ""},
		{"above, with too few processes for a verdict", "", of(few), true, "1.095", ""},
		{"above, in an interval as wide as twice the excess", "", of(figure(1.3, 1.2, 1.4, 0.01)), true, "1.134", ""},
		{"the interval ends at the gate", "", of(figure(1.1, 1.05, 1.15, 0)), false,
			"is not decided to be above 1.05; it fires from 1.099 on", ""},
		{"within the noise floor", "", of(figure(1.2, 1.15, 1.25, 0.2)), false, "1.251", "about 7 times -time"},
		{"equal", "", of(even), false, "1.061", ""},
		{"a noise floor that the interval reaches into", "", of(figure(1.2, 1.15, 1.25, 0.16)), false, "1.209",
			"about 5 times -time"},
		{"a noise floor above the gate", "", of(figure(1, 0.99, 1.01, 0.08)), false, "1.091", ""},
		{"an interval as wide as twice the excess", "", of(figure(1, 0.93, 1.07, 0)), false, "1.126", "about 3 times -time"},
		{"a machine that moves", "", of(moves), false, "1.160", "a quieter machine"},
		{"an interval that no time makes narrow", "", of(figure(1, 0.5, 2, 0)), false, "2.100", "a larger -max"},
		{"disturbed", "", busy, false, "gate: , : disturbed: other programs left 1.20 cores on average, so the ratio was",
			"a machine that does nothing else"},
		{"was not measured", "", verdict.Answer{}, false, "was not measured", ""},
		{"above by time, where CPU time leads", report.ByCPU, both(slow, even), false, "1.061", ""},
		{"above by CPU time, which leads", report.ByCPU, both(even, slow), true, "1.095", ""},
		{"above by CPU time, where time leads", "", both(even, slow), false, "1.061", ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			lines, over, blind := gate(1.05).times([]report.Answer{{Leads: test.leads, Answer: test.answer}})
			require.Equal(t, test.fires, len(over) == 1, lines)
			unseen := "gate: not decided: it could not have seen 1.1, which is twice the excess that it allows: , : give it "
			require.Equal(t, test.give != "", strings.HasPrefix(lines[0], unseen+test.give), lines)
			require.Equal(t, test.give != "", len(blind) == 1)
			require.Contains(t, lines[len(lines)-1], test.least)
		})
	}
}
