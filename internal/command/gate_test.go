package command

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
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
		{"within the noise floor", "", of(figure(1.2, 1.15, 1.25, 0.2)), false, "1.200", "about 4 times -time"},
		{"equal", "", of(even), false, "1.061", ""},
		{"a noise floor above the gate", "", of(figure(1, 0.99, 1.01, 0.09)), false, "1.090", ""},
		{"an interval as wide as twice the excess", "", of(figure(1, 0.93, 1.07, 0)), false, "1.126", "about 3 times -time"},
		{"a machine that moves", "", of(moves), false, "1.149", "a quieter machine"},
		{"an interval that no time makes narrow", "", of(figure(1, 0.5, 2, 0)), false, "2.100", "a larger -max"},
		{"disturbed", "", busy, false, "gate: , : disturbed: other programs left 1.20 cores on average, so the ratio was",
			"a machine that does nothing else"},
		{"was not measured", "", verdict.Answer{}, false, "was not measured", ""},
		{"above by time, where CPU time leads", report.ByCPU, both(slow, even), false, "1.061", ""},
		{"above by CPU time, which leads", report.ByCPU, both(even, slow), true, "1.095", ""},
		{"above by CPU time, where time leads", "", both(even, slow), false, "1.061", ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			lines, over, blind := gate{max: 1.05}.times([]report.Answer{{Leads: test.leads, Answer: test.answer}})
			require.Equal(t, test.fires, len(over) == 1, lines)
			unseen := "gate: not decided: it could not have seen 1.1, which is twice the excess that it allows: , : give it "
			require.Equal(t, test.give != "", strings.HasPrefix(lines[0], unseen+test.give), lines)
			require.Equal(t, test.give != "", len(blind) == 1)
			require.Contains(t, lines[len(lines)-1], test.least)
		})
	}
}

// Counts of one caller gate exactly. What varies between equal builds does not count.
func TestGateOfCounts(t *testing.T) {
	base := report.Counts{Calls: 1000, Allocs: 20, Sent: 200, Received: 100, Writes: 1, AllocBytes: 3000}
	for _, test := range []struct {
		why, workload string
		max           float64
		change        func(*report.Counts)
		over, grown   string
	}{
		{"an allocation more", "small", 1.02, func(f *report.Counts) { f.Allocs += 1.04 },
			"allocations 21.04 (base 20.00)", ""},
		{"less than half an allocation", "small", 1.02, func(f *report.Counts) { f.Allocs += 0.45 }, "", ""},
		{"less than half an allocation where nothing may grow", "small", 1, func(f *report.Counts) { f.Allocs += 0.45 },
			"", ""},
		{"half an allocation where nothing may grow", "small", 1, func(f *report.Counts) { f.Allocs += 0.5 },
			"allocations 20.50 (base 20.00)", ""},
		{"two allocations that the gate allows", "small", 1.1, func(f *report.Counts) { f.Allocs += 2 }, "",
			"allocations 22.00 (base 20.00)"},
		{"as many allocations of more bytes", "small", 1, func(f *report.Counts) { f.AllocBytes *= 2 }, "", ""},
		{"more bytes sent", "small", 1.02, func(f *report.Counts) { f.Sent += 5 }, "bytes sent 205.00 (base 200.00)", ""},
		{"bytes that the gate allows, beside others", "small", 1.02,
			func(f *report.Counts) { f.Sent, f.Writes = f.Sent+3, 2 }, "writes 2.00 (base 1.00)",
			"bytes sent 203.00 (base 200.00)"},
		{"more bytes received", "small", 1.02, func(f *report.Counts) { f.Received += 3 },
			"bytes received 103.00 (base 100.00)", ""},
		{"a write more in fifty", "small", 1, func(f *report.Counts) { f.Writes = 1.03 }, "", ""},
		{"fewer of all", "small", 1, func(f *report.Counts) { *f = report.Counts{Calls: 1} }, "", ""},
		{"callers who share a connection", "small-load", 1, func(f *report.Counts) { f.Sent *= 2 }, "", ""},
		{"four calls over a link", "cold-4g", 1, func(f *report.Counts) { f.Allocs *= 2 }, "", ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			own := base
			test.change(&own)
			lines, over := gate{counts: test.max}.counted([]report.Answer{{Workload: test.workload, Does: "it", Stack: "x",
				BaseFacts: &base, Facts: &own}, {Workload: "small"}}, workload.All())
			require.Equal(t, test.over, strings.TrimPrefix(strings.Join(over, ";"), "it, x: "))
			require.Contains(t, lines[0], "gate: it, x: allocations ")
			grown := strings.TrimPrefix(strings.Join(lines[1:len(lines)-1], ";"),
				fmt.Sprintf("gate: it, x has grown within %v: ", test.max))
			require.Equal(t, test.grown, grown)
			require.Contains(t, lines[len(lines)-1], "was not counted")
		})
	}
}

// Counts are of the calls that flags make: over TLS 1.3 each message is a record, with five bytes before it and
// seventeen behind. The gate sees growth there as it does in clear.
func TestCountsOfFlags(t *testing.T) {
	const record = 5 + 17
	const both = `\s+([0-9.]+)\s+\(base\s+([0-9.]+)\)`
	counted := regexp.MustCompile(`bytes sent` + both + `,\s+bytes\s+received` + both)
	for _, size := range []string{"0B", "1kB"} {
		of := func(flags ...string) (all [4]float64) { // sent and received, of httpjson and of rawtcp
			args := append([]string{"run", "-max-counts", "1.02", "-base", "rawtcp"}, flags...)
			if size != "0B" {
				args = append(args, "-payload", size)
			}
			out, _, err := typed(t, append(args, "httpjson")...)
			require.ErrorContains(t, err, "run: above the gate: ", "%q: JSON over HTTP sends more than frames: %s", flags, out)
			require.Contains(t, err.Error(), "bytes sent", "what has grown, with %q", flags)
			found := counted.FindStringSubmatch(out)
			require.NotNil(t, found, "counts of %q: %s", flags, out)
			for i := range all {
				all[i], err = strconv.ParseFloat(found[i+1], 64)
				require.NoError(t, err)
			}
			return all
		}
		clear := of("-gomaxprocs", "1")
		for _, flags := range [][]string{{"-tls"}, {"-tls", "-apart"}} {
			got := of(flags...)
			for i, what := range []string{"sent by httpjson", "sent by rawtcp", "received by httpjson", "received by rawtcp"} {
				require.InDelta(t, clear[i]+record, got[i], 1, "bytes %s with %q, of payloads of %s: a record more than %v in "+
					"clear", what, flags, size, clear[i])
			}
		}
	}
}

// Several counts of one build are within what the gate takes for noise, however low it is.
func TestEqualBuildsCountTheSame(t *testing.T) {
	if strings.Contains(environ.Build(), "-race") {
		t.Skip("the race detector drops objects from pools at random")
	}
	w, err := workload.Find("small")
	require.NoError(t, err)
	for _, name := range []string{"httpjson", "grpcprotobuf"} {
		var all []*report.Counts
		for range 3 {
			f, err := versus.Count(t.Context(), name+"@HEAD", w, versus.Program{})
			require.NoError(t, err)
			require.EqualValues(t, 1000, f.Calls)
			all = append(all, (*report.Counts)(&f))
		}
		for i, f := range all {
			_, over := gate{counts: 1}.counted([]report.Answer{{Workload: "small", BaseFacts: all[(i+1)%3], Facts: f}},
				workload.All())
			require.Empty(t, over)
		}
	}
}
