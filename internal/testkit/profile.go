package testkit

import (
	"strings"

	"github.com/google/pprof/profile"
)

// Profile returns a CPU profile of samples of 10 ms, each given as "side function<caller<caller". A side may be absent.
// A function without a name is one of a program without symbols.
func Profile(comments []string, samples ...string) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"},
		{Type: "cpu", Unit: "nanoseconds"}}, Comments: comments}
	for _, text := range samples {
		side, stack, _ := strings.Cut(text, " ")
		sample := &profile.Sample{Value: []int64{1, 10_000_000}}
		if side != "" {
			sample.Label = map[string][]string{"side": {side}}
		}
		for name := range strings.SplitSeq(stack, "<") {
			l := &profile.Location{ID: uint64(len(p.Location) + 1), Address: 0x401000}
			if name != "" {
				f := &profile.Function{ID: l.ID, Name: name}
				p.Function, l.Line = append(p.Function, f), []profile.Line{{Function: f}}
			}
			p.Location, sample.Location = append(p.Location, l), append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}
