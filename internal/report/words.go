package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Says is a verdict in a word: undecided unless it is one that decides.
func Says(v verdict.Verdict) string {
	if slices.Contains([]verdict.Verdict{verdict.Less, verdict.More, verdict.Same}, v) {
		return string(v)
	}
	return string(verdict.Undecided)
}

// Because says why a figure is undecided. What is no kind of this release is a sentence of an older one.
func Because(r verdict.Reason) string {
	switch r.Kind {
	case verdict.NotCompleted:
		return fmt.Sprintf("%.0f%% of the planned calls were completed, and a verdict needs %.0f%%", 100*r.Found,
			100*r.Needed) + remedy(r)
	case verdict.Disturbed:
		return fmt.Sprintf("disturbed: in %d of %d processes other programs left less than %.1f cores, so the ratio was "+
			"measured on a busy machine", r.Processes, r.Of, r.Needed)
	case verdict.Crowded:
		return fmt.Sprintf("disturbed: other programs left %.2f cores on average, so the ratio was measured on a "+
			"busy machine", r.Found)
	case verdict.TooFew:
		if r.OneCore > 0 {
			return fmt.Sprintf("%d processes count, and a verdict needs %.0f; %d had one core only", r.Processes, r.Needed,
				r.OneCore)
		}
		said := fmt.Sprintf("%d of %d processes count, and a verdict needs %.0f", r.Processes, r.Of, r.Needed)
		if r.Miscounted > 0 {
			said += fmt.Sprintf("; in %d the calls under way were not those of the callers", r.Miscounted)
		}
		if r.Failed != "" {
			said += ": " + r.Failed
		}
		return said
	case verdict.TwoStates:
		return fmt.Sprintf("%d of %d processes lie on one side of 1, but their ratios vary by %s: "+
			"the machine may have had two states", r.Processes, r.Of, percent(r.Found))
	case verdict.IncludesOne:
		return "the interval includes 1" + remedy(r)
	case verdict.WithinFloor:
		return "the interval reaches into the noise floor of " + percent(r.Found) + remedy(r)
	}
	return string(r.Kind)
}

// inShort is why a figure whose interval excludes 1 is undecided. A noise floor is not told: every line has another.
func inShort(r verdict.Reason) []string {
	switch r.Kind {
	case verdict.WithinFloor:
		return []string{"within the noise floor"}
	case verdict.TwoStates:
		return []string{"the machine may have had two states"}
	case "":
		return nil
	}
	return []string{Because(r)}
}

// remedy says what would decide an interval that does not.
func remedy(r verdict.Reason) string {
	switch r.Decides {
	case verdict.MoreTime:
		return fmt.Sprintf(": about %d times -time would decide %.2f in half of the cases", r.Times, r.Ratio)
	case verdict.LowerRate:
		return ": give a lower -rate"
	case verdict.QuieterMachine:
		if r.Kind == verdict.NotCompleted {
			return ": the machine was too busy for the load that the run chose, so quiet it or name a -rate"
		}
		return fmt.Sprintf(", and the base's own time varied by %s: measure on a quieter machine", percent(r.Varied))
	case verdict.Nothing:
		return ": no time would decide so small a difference"
	}
	return ""
}

func percent(share float64) string {
	switch {
	case share < 0.1:
		return fmt.Sprintf("%.1f%%", 100*share)
	case share > 1: // which tells no size
		return "more than 100%"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// Notes are what belongs behind a verdict: why there is none, what was measured where that is not all, and what others
// used.
func (l Led) Notes() (all []string) {
	f, n := l.Figure, l.Answer.Processes
	if n.Counted == 0 {
		return []string{"not measured"}
	}
	if why := Because(f.Reason); why != "" {
		all = append(all, why)
	}
	if f.Verdict == verdict.Same && f.Margin > 0 {
		all = append(all, fmt.Sprintf("same within %.3g%%", 100*f.Margin))
	}
	switch {
	case f.Verdict == verdict.Undecided:
	case n.Disturbed > 0:
		all = append(all, fmt.Sprintf("all %d processes that count; %d left out, as other programs left them too few cores",
			n.Counted, n.Disturbed))
	case n.OneCore > 0:
		all = append(all, fmt.Sprintf("all %d processes that count; %d left out that had one core", n.Counted, n.OneCore))
	case n.Counted < n.Planned:
		all = append(all, fmt.Sprintf("%d of %d processes", n.Counted, n.Planned))
	}
	if n.Miscounted > 0 && f.Reason.Miscounted == 0 {
		all = append(all, fmt.Sprintf("%d left out, whose calls under way were not those of the callers", n.Miscounted))
	}
	if n.NoSecond > 0 && !l.OfCPU {
		all = append(all, fmt.Sprintf("%d of %d had no second core to themselves", n.NoSecond, n.Counted))
	}
	if l.Answer.Others > verdict.BusyMachine && !l.Answer.Busy {
		all = append(all, fmt.Sprintf("other programs used %.0f%% of the machine, and the size is another on an idle one",
			100*l.Answer.Others))
	}
	return all
}

// either is the one text if something is so, and else the other.
func either(is bool, one, other string) string {
	if is {
		return one
	}
	return other
}

// measurers are the fewest and the most processes that have measured a workload, of those that any has measured.
func (s Summary) measurers() (fewest, most int) {
	for _, a := range s.Answers {
		if n := a.Processes.Measured; n > 0 {
			fewest, most = min(n, cmp.Or(fewest, n)), max(n, most)
		}
	}
	return cmp.Or(fewest, s.Plan.Processes), cmp.Or(most, s.Plan.Processes) // as in older results
}

// Complete tells whether all processes have measured that were planned, or as many as a first look needed.
func (s Summary) Complete() bool {
	return !slices.ContainsFunc(s.Answers, func(a Answer) bool {
		n := a.Processes
		return n.Measured > 0 && n.Measured < n.Planned
	})
}

// Measurers are the processes that have measured, and those that were planned if these are more.
func (s Summary) Measurers() string {
	fewest, most := s.measurers()
	n := fmt.Sprint(fewest)
	if most > fewest {
		n = fmt.Sprintf("%d to %d", fewest, most)
	}
	if !s.Complete() {
		n += fmt.Sprintf(" of %d planned", s.Plan.Processes)
	}
	return n + " processes"
}

// Unchecked are the conditions that some records don't tell, each once. Older results have them in words.
func (s Summary) Unchecked() (all []string) {
	for _, a := range s.Answers {
		for _, what := range a.Unchecked {
			words := string(what)
			switch what {
			case verdict.UncheckedCores:
				words = "whether each process had several cores: CPU time is not recorded"
			case verdict.UncheckedOthers:
				words = "what other programs used: their share is not recorded"
			}
			if !slices.Contains(all, words) {
				all = append(all, words)
			}
		}
	}
	return all
}
