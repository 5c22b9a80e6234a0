package pages

import (
	"fmt"
	"math"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// climbed reads a step of BenchmarkLadder or BenchmarkBound, such as Ladder/ladder=grpc/step=whole: the row of the
// base, and the one that is compared with it.
func (b *block) climbed(step string) (a report.Answer) {
	base, compared := 0.0, 0
	for _, r := range b.rows(b.from[0]) {
		if !strings.HasPrefix(string(r.Name), step+"/") {
			continue
		}
		value := func(unit string) float64 {
			v, ok := r.Value(unit)
			if !ok {
				b.fail("%s: %s has no %s", b.from[0], r.Name, unit)
			}
			return v
		}
		if _, upper := r.Value("base-ratio"); !upper {
			base = 1e9 * value("sec/op")
			continue
		}
		compared++
		a = answered(value("base-ratio"), value("base-ratio-lo"), value("base-ratio-hi"),
			value("noise-floor-%")/100, value("base-moved-%")/100)
	}
	if base == 0 || compared != 1 {
		b.fail("%s has not one base and one other of %s", b.from[0], step)
	}
	a.BaseNs, a.Verdict = base, versus.Undecided
	if r := paired(a); r.hi < 1 && !r.inNoise() {
		a.Verdict = versus.Faster
	} else if r.lo > 1 && !r.inNoise() {
		a.Verdict = versus.Slower
	}
	return a
}

// oneBase gives each step the last one's base, times the ratios of the steps below: a step of its own minutes would add
// the microseconds of its own machine.
func oneBase(all []report.Answer) []report.Answer {
	base := all[len(all)-1].BaseNs
	below := base
	for i := range all {
		all[i].BaseNs = below
		below *= all[i].Ratio
	}
	all[len(all)-1].BaseNs = base
	return all
}

// product is steps that were measured apart, taken together. Its interval is the root of the sum of their squares.
func product(steps []report.Answer) report.Answer {
	ratio, squares := 1.0, 0.0
	for _, a := range steps {
		ratio *= a.Ratio
		squares += math.Pow(math.Log(a.Hi/a.Lo)/2, 2)
	}
	half := math.Exp(math.Sqrt(squares))
	p := answered(ratio, ratio/half, ratio*half, 0, 0)
	p.BaseNs = steps[0].BaseNs
	return p
}

// more is by how many microseconds a call takes longer, and half the width of its interval.
func more(a report.Answer) string {
	return fmt.Sprintf("%+.1f ± %.1f", a.Micro(), a.BaseNs*(a.Hi-a.Lo)/2/1000)
}

// ladder keeps the first three cells of each row that stands in the page: the ladder, the rung, and what it changes. A
// ladder of several steps ends with "whole", and with "the steps" taken together.
func ladder(b *block) string {
	var t strings.Builder
	var name string
	var steps []report.Answer
	var kept [][]string
	flush := func() {
		for i, row := range kept {
			a := product(steps[:max(1, len(steps)-1)]) // of "the steps"
			verdict := ""
			if i < len(steps) {
				a = oneBase(steps)[i]
				verdict = string(a.Verdict)
			}
			fmt.Fprintf(&t, "| %s | %.1f | ×%s | %s | %s |\n", strings.Join(row, " | "), a.BaseNs/1000, times(a), verdict,
				more(a))
		}
		steps, kept = nil, nil
	}
	head, rows := cellsOf(b.old)
	t.WriteString(head)
	for _, row := range rows {
		if len(row) < 3 {
			b.fail("row %q has no ladder, rung and change", row)
			return ""
		}
		if row[0] != name {
			flush()
			name = row[0]
		}
		kept = append(kept, row[:3])
		if rung := strings.Trim(row[1], "`"); rung != "the steps" {
			steps = append(steps, b.climbed("Ladder/ladder="+name+"/step="+rung))
		}
	}
	flush()
	return t.String()
}

// bounds keeps the first cell of each row that stands in the page, which names a stack and what it is without. The rest
// is what the fastest codec could win, where the verdict is that it wins.
func bounds(b *block) string {
	head, rows := cellsOf(b.old)
	for _, row := range rows {
		stack, without, _ := strings.Cut(strings.TrimPrefix(row[0], "`"), "` without codec")
		if without != "" {
			without = ".validation"
		}
		a := b.climbed("Bound/bound=" + stack + ".codec" + without)
		saves := string(a.Verdict)
		if a.Verdict == versus.Faster {
			saves = fmt.Sprintf("%.0f to %.0f %%", 100*(1-a.Hi), 100*(1-a.Lo))
		}
		head += fmt.Sprintf("| %s | %s | %s |\n", row[0], times(a), saves)
	}
	return head
}
