package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Title says what was compared.
func (p Pool) Title() string {
	if len(p.Questions) == 1 {
		return p.Questions[0].Title()
	}
	n := 0
	for _, q := range p.Questions {
		n += len(q.Runs)
	}
	return fmt.Sprintf("%d runs of %d questions", n, len(p.Questions))
}

// Title says what was compared, and how many runs there are.
func (q Question) Title() string { return q.all.Title() + ", " + several(len(q.Runs), "run") }

// Head says on what machine.
func (q Question) Head() string {
	return strings.Join(append([]string{cmp.Or(q.all.Head(), "an unknown machine")}, q.all.shared()...), ", ")
}

// says is a verdict, of the mean or of a run, as the table of one run has it.
func (c Comparison) says(v verdict.Verdict) string {
	return line{heading: c.Of, led: Led{Figure: verdict.Figure{Verdict: v}}}.says()
}

// does is the workload in a table, with the stack if there are several. What all values of a sweep have is in the head.
func (q Question) does(c Comparison) string {
	does := without(c.Title, q.all.shared())
	if len(q.all.Stacks()) > 1 {
		does += ", " + Label(c.Stack)
	}
	return does
}

// ratio is the heading of a column of ratios.
func (q Question) ratio() string {
	if stacks := q.all.Stacks(); len(stacks) == 1 {
		return Label(stacks[0]) + "/" + Label(q.Base) + " (95% CI)"
	}
	return "ratio (95% CI)"
}

// Results is the table of the means. Where two runs have no mean, it has both of them.
func (q Question) Results() *table.Table {
	t := new(table.Table)
	t.Columns = []table.Column{{Name: "workload", Words: true}, {Name: "runs"}, {Name: q.ratio()},
		{Name: "next run (95%)"}, {Name: "verdict", Words: true, Class: true}}
	heading := ""
	for _, c := range q.Comparisons {
		if c.Of != heading {
			heading = c.Of
			t.Add(heading)
		}
		if c.Ratio > 0 {
			t.Add(q.does(c), fmt.Sprint(c.Runs), table.Sized(c.Ratio, c.Lo, c.Hi), c.next(),
				t.Noted(c.says(c.Verdict), c.notes()...))
			continue
		}
		for _, f := range c.Found {
			var notes []string
			if f.LeftOut != "" {
				notes = append(notes, string(f.LeftOut))
			}
			if c.Differ {
				notes = append(notes, differ)
			}
			t.Add(q.does(c)+", "+f.Folder, "", table.Sized(f.Ratio, f.Lo, f.Hi), "", t.Noted(c.says(f.Verdict), notes...))
		}
	}
	return t.Filled()
}

// next is the prediction interval. However wide it is, it tells what to expect.
func (c Comparison) next() string { return table.Ratio(c.NextLo) + "–" + table.Ratio(c.NextHi) }

// differ is the note of runs that Welch's test finds different.
const differ = "the runs differ by more than their intervals"

// notes are what belongs behind the verdict of a mean.
func (c Comparison) notes() (all []string) {
	for _, f := range c.Found {
		if f.LeftOut != "" {
			all = append(all, fmt.Sprintf("without %s: %s", f.Folder, f.LeftOut))
		}
	}
	if c.Differ {
		all = append(all, differ)
	}
	i := verdict.Interval{Lo: c.Lo, Hi: c.Hi, Floor: c.NoiseFloor}
	switch why := table.NoSize(c.Lo, c.Hi); {
	case why != "":
		all = append(all, why)
	case c.Verdict == verdict.Undecided && i.ExcludesOne():
		all = append(all, "within the noise floor")
	}
	return all
}

// Sentences say of each stack whether the runs differ, and why there is no mean.
func (q Question) Sentences() (all []string) {
	fewest := 0
	for _, stack := range q.all.Stacks() {
		n, differing := 0, 0
		for _, c := range q.Comparisons {
			if c.Stack != stack || c.Runs < 2 {
				continue
			}
			n++
			if fewest = max(fewest, c.Runs); c.Differ {
				differing++
			}
		}
		said := "the runs differ by no more than their intervals"
		if differing > 0 {
			said = differ + either(n == 1, "", fmt.Sprintf(" in %d of %d rows", differing, n))
		}
		if n > 0 {
			all = append(all, fmt.Sprintf("%s and %s: %s.", Label(stack), Label(q.Base), said))
		}
	}
	if fewest < verdict.FewestRuns {
		all = append(all, fmt.Sprintf("A mean needs %d runs.", verdict.FewestRuns))
	}
	if len(q.single) > 0 {
		all = append(all, fmt.Sprintf("In one run only: %s.", strings.Join(q.single, "; ")))
	}
	if q.mixed() {
		all = append(all, "The runs are of different commits or library versions.")
	}
	return all
}

// mixed tells whether what was measured is another program in some run.
func (q Question) mixed() bool {
	first := q.Runs[0]
	return slices.ContainsFunc(q.Runs, func(r Run) bool {
		return r.Commit != first.Commit || !slices.Equal(r.Summary.Libraries(), first.Summary.Libraries())
	})
}

// Each is the table of what each run found.
func (q Question) Each() *table.Table {
	type row struct {
		Comparison
		Found
	}
	var all []row
	for _, c := range q.Comparisons {
		for _, f := range c.Found {
			all = append(all, row{c, f})
		}
	}
	t := new(table.Table)
	return table.Fill(t, all,
		table.Words("workload", func(r row) string { return q.does(r.Comparison) }),
		table.Words("of", func(r row) string { return r.Of }),
		table.Words("run", func(r row) string { return r.Folder }),
		table.Figures(q.ratio(), func(r row) string { return table.Sized(r.Found.Ratio, r.Found.Lo, r.Found.Hi) }),
		table.Figures("noise floor", func(r row) string { return table.Spread(r.Found.NoiseFloor) }),
		table.Figures("processes", func(r row) string { return fmt.Sprint(r.Processes) }),
		table.Classes("verdict", func(r row) string {
			if r.LeftOut != "" {
				return t.Noted(r.says(r.Found.Verdict), "left out: "+string(r.LeftOut))
			}
			return r.says(r.Found.Verdict)
		}))
}

// Spread is the table of how runs differ; nil without a mean.
func (q Question) Spread() *table.Table {
	means := slices.DeleteFunc(slices.Clone(q.Comparisons), func(c Comparison) bool { return c.Ratio == 0 })
	return some(table.Fill(new(table.Table), means,
		table.Words("workload", q.does),
		table.Words("of", func(c Comparison) string { return c.Of }),
		table.Figures("runs", func(c Comparison) string { return fmt.Sprint(c.Runs) }),
		table.Figures("SD between runs", func(c Comparison) string { return table.Spread(c.Tau) }),
		table.Figures("I²", func(c Comparison) string { return fmt.Sprintf("%.0f%%", 100*c.I2) }),
		table.Figures("p of no difference", func(c Comparison) string { return fmt.Sprintf("%.2g", max(c.PValue, 1e-4)) }),
		table.Figures("noise floor", func(c Comparison) string { return table.Spread(c.NoiseFloor) })))
}

// Folders is the table of the runs.
func (q Question) Folders() *table.Table {
	return table.Fill(new(table.Table), q.Runs,
		table.Words("run", func(r Run) string { return r.Folder }),
		table.Words("date", func(r Run) string { return r.Date }),
		table.Words("commit", func(r Run) string { return r.Commit }),
		table.Words("command", func(r Run) string { return r.Summary.Command }),
		table.Words("warnings", func(r Run) string { return strings.Join(r.Warnings, "; ") })).Filled()
}

// Text writes the answer for a terminal that is so wide.
func (p Pool) Text(w io.Writer, width int, colour bool) error {
	for i, q := range p.Questions {
		text := table.Wrap(q.all.Title()+" on "+q.Head()+": "+several(len(q.Runs), "run"), width) + "\n"
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		t := q.Results()
		t.Colour = colour
		if err := t.Text(w, width); err != nil {
			return err
		}
		for _, l := range q.Sentences() {
			if _, err := io.WriteString(w, table.Wrap(table.Line(l), width)); err != nil {
				return err
			}
		}
	}
	return nil
}
