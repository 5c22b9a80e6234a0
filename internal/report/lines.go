package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// line is one figure of an answer beside the base's. Answers of one heading stand together.
type line struct {
	led       Led // whose ratio, interval and verdict the line has
	heading   string
	base, own string
	ratio     string  // with its interval, which a count has not
	more      float64 // nanoseconds that the stack takes more than the base; 0 if the figure is no time
}

// The headings, in the order of tables. What callers wait is of single calls, and time per call is their mean.
const (
	cpuHeading    = "CPU per call, client and server"
	clientHeading = "CPU per call, client alone"
	waitHeading   = "Median latency"
	nineHeading   = "p95 latency"
	tailHeading   = "p99 latency"
	lastHeading   = "p99.9 latency"
	timeHeading   = "Time per call, one caller"
	rateHeading   = "Calls per second, each caller calling again at once"
	dataHeading   = "Data per second, each way"
	writeHeading  = "Writes per call, of the client"
)

// lines are what the answers say in the order of the plan, heading by heading. A terminal shows what decides: without
// detail the data a second and the 99th percentiles are left out, and the calls a second and the writes where they
// don't differ, or where many workloads leave no room for them.
func (s Summary) lines(detail bool) (all []line) {
	headings := []string{s.cpu(), waitHeading, timeHeading}
	switch {
	case s.routed(): // where what is lost decides
		headings = []string{tailHeading, rateHeading, dataHeading, waitHeading, nineHeading, lastHeading, timeHeading}
	case detail:
		headings = []string{s.cpu(), rateHeading, dataHeading, waitHeading, tailHeading, timeHeading}
	case s.Over != "" || len(s.Answers) <= 2:
		headings = []string{s.cpu(), rateHeading, writeHeading, waitHeading, timeHeading}
	}
	for _, heading := range headings {
		var own []line
		differ := detail || heading != rateHeading && heading != writeHeading
		for _, a := range s.Answers {
			if l := a.line(heading); l.led.Figure.Ratio > 0 {
				own, differ = append(own, l), differ || l.led.decided() && l.led.Figure.Verdict != verdict.Same
			}
		}
		if differ {
			all = append(all, own...)
		}
	}
	return all
}

// line is what an answer says below a heading. It has no ratio if that is nothing.
func (a Answer) line(heading string) line {
	l := line{led: Led{Answer: a}, heading: heading}
	of := func(f verdict.Figure, cpu bool) {
		l.led.Figure, l.led.OfCPU = f, cpu
		l.base, l.own, l.more = span(f.BaseNs), span(l.led.Paired()), f.BaseNs*(f.Ratio-1)
		l.ratio = table.Sized(f.Ratio, f.Lo, f.Hi)
	}
	waits := func(p verdict.Percentile) { // what others did to the mean, its own line says
		of(a.Waits(p), false)
		l.led.Answer.Processes = verdict.Counts{Planned: a.Processes.Planned, Counted: a.Processes.Counted}
		l.led.Answer.Others = 0
	}
	switch {
	case heading == cpuHeading || heading == clientHeading:
		of(a.CPU, true)
	case heading == waitHeading && (a.AtRate() || a.Many()):
		waits(a.Percentiles.P50)
	case heading == tailHeading && a.byTail():
		of(a.P99(), false)
	case heading == nineHeading && (a.AtRate() || a.Many()):
		waits(a.Percentiles.P95)
	case heading == tailHeading && (a.AtRate() || a.Many()):
		waits(a.Percentiles.P99)
	case heading == lastHeading && (a.AtRate() || a.Many()):
		waits(a.Percentiles.P999)
	case heading == timeHeading && !a.AtRate() && !a.Many():
		of(a.Time, false)
	case heading == rateHeading && a.Many() && a.Time.Ratio > 0:
		of(a.Time.Inverse(), false)
		l.base, l.own, l.more = thousands(1e9/a.Time.BaseNs), thousands(1e9/a.Time.BaseNs/a.Time.Ratio), 0
	case heading == dataHeading && a.Data > 0 && !a.AtRate() && a.Time.Ratio > 0:
		of(a.Time.Inverse(), false)
		perSecond := 1e9 * float64(a.Data) / a.Time.BaseNs
		l.base, l.own, l.more = megabytes(perSecond), megabytes(perSecond/a.Time.Ratio), 0
	case heading == writeHeading && a.BaseFacts.writes() > 0 && a.Facts.writes() > 0:
		f := verdict.Figure{Ratio: a.Facts.Writes / a.BaseFacts.Writes, NoiseFloor: verdict.Margin}
		f.Lo, f.Hi = f.Ratio, f.Ratio
		f.Verdict = f.Interval().Verdict(verdict.Margin)
		of(f, false)
		l.led.Answer.Others, l.led.Answer.Busy = 0, false // which change no count
		l.base, l.own, l.ratio = flight(a.BaseFacts.Writes), flight(a.Facts.Writes), table.Ratio(f.Ratio)
	}
	return l
}

// writes are those per call, or 0 if they were not counted.
func (c *Counts) writes() float64 {
	if c == nil {
		return 0
	}
	return c.Writes
}

// flows tells whether the line is of calls or data a second.
func (l line) flows() bool { return l.heading == rateHeading || l.heading == dataHeading }

// says is the verdict of the line. Of calls and data a second more is better, so less and more have a verb.
func (l line) says() string {
	said := Says(l.led.Figure.Verdict)
	if l.flows() && (said == "less" || said == "more") {
		return "serves " + said
	}
	return said
}

// does is the workload in a table: its title, with the rate that the run chose; or what its calls are, with their load.
func (a Answer) does() string {
	switch {
	case a.AtRate() && (a.Chosen || a.Calls != ""):
		return cmp.Or(a.Calls, a.Does) + ", " + thousands(a.Rate) + "/s"
	case a.Many() && a.Calls != "":
		return a.Calls + ", " + callers(a.Callers)
	}
	return a.Does
}

// span is a time in µs or ms, of two digits: a machine's own variation carries no more.
func span(ns float64) string {
	switch ns = two(ns); {
	case ns == 0:
		return "–"
	case ns < 1e3:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	case ns < 1e4:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case ns < 1e7:
		return fmt.Sprintf("%.0f µs", ns/1e3)
	}
	return fmt.Sprintf("%.0f ms", ns/1e6)
}

// two rounds to two digits.
func two(v float64) float64 {
	if !(v > 0 && v <= math.MaxFloat64) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Round(v/unit) * unit
}

// thousands is a whole number with commas.
func thousands(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// megabytes are so many bytes a second.
func megabytes(n float64) string {
	if n < 1e8 {
		return fmt.Sprintf("%.1f MB/s", n/1e6)
	}
	return thousands(n/1e6) + " MB/s"
}

// Results is the table of the answers. With detail it has all headings, and a note below says of a verdict what is to
// be said.
func (s Summary) Results(detail bool) *table.Table {
	t, stacks := new(table.Table), s.Stacks()
	stack, ratio := "stack", "ratio (95% CI)"
	if len(stacks) == 1 {
		stack = Label(stacks[0])
		ratio = stack + "/" + Label(s.Base) + " (95% CI)"
	}
	t.Columns = []table.Column{{Name: "workload", Words: true}, {Name: Label(s.Base)}, {Name: stack}, {Name: ratio},
		{Name: "verdict", Words: true, Class: true}, {Name: "difference", Spare: true}}
	var shared []string
	if !detail {
		shared = s.shared()
	}
	heading := ""
	for _, l := range s.lines(detail) {
		if l.heading != heading {
			heading = l.heading
			t.Add(heading)
		}
		does, says, difference := without(l.led.Answer.does(), shared), l.says(), ""
		if len(stacks) > 1 {
			does += ", " + Label(l.led.Answer.Stack)
		}
		if other := l.led.Answer.OtherJSON; other != "" {
			says = t.Noted(says, other)
		}
		says = t.Noted(says, s.notes(l, detail)...)
		if l.more != 0 {
			difference = either(l.more < 0, "−", "+") + span(math.Abs(l.more))
		}
		t.Add(does, l.base, l.own, l.ratio, says, difference)
	}
	return t
}

// notes are what is to be said of a verdict. A terminal has what changes what a reader makes of it: why an interval
// that excludes 1 decides nothing, or none is shown, that too few processes count, and that the machine was not quiet.
func (s Summary) notes(l line, detail bool) (all []string) {
	switch f := l.led.Figure; {
	case detail && l.flows():
		return nil
	case detail:
		return l.led.Notes()
	case f.Verdict == verdict.Undecided && (f.Interval().ExcludesOne() || f.Reason.Kind == verdict.TooFew):
		all = inShort(f.Reason)
	}
	if f := l.led.Figure; f.Verdict == verdict.Undecided && all == nil && !table.TellsSize(f.Lo, f.Hi) {
		all = []string{table.NoSize(f.Lo, f.Hi)}
	}
	switch hour := s.Hour(); {
	case hour == "":
	case l.led.Answer.Busy: // the reason says the same, of each line in other numbers
		return []string{hour}
	case l.led.unquiet(): // in one note, for a second mark would take room from the workload
		return []string{strings.Join(append(all, hour), "; ")}
	}
	return all
}

// shared are the parts of a title that all values of a sweep have, such as the processes. A terminal has them once, in
// its first line.
func (s Summary) shared() (parts []string) {
	if s.Over == "" || len(s.Answers) < 2 {
		return nil
	}
	parts = strings.Split(s.Answers[0].does(), ", ")
	for _, a := range s.Answers[1:] {
		own := strings.Split(a.does(), ", ")
		parts = slices.DeleteFunc(parts, func(part string) bool { return !slices.Contains(own, part) })
	}
	return parts
}

// without is a title without these parts, or all of it if nothing else is in it.
func without(title string, parts []string) string {
	own := slices.DeleteFunc(strings.Split(title, ", "), func(part string) bool { return slices.Contains(parts, part) })
	return cmp.Or(strings.Join(own, ", "), title)
}

// Title says what was compared.
func (s Summary) Title() string {
	var stacks []string
	for _, stack := range s.Stacks() {
		stacks = append(stacks, Label(stack))
	}
	if len(stacks) > 3 {
		stacks = []string{fmt.Sprintf("%d stacks", len(stacks))}
	}
	base := Label(s.Base)
	if base == "JSON" {
		base += " over HTTP"
	}
	return strings.Join(stacks, ", ") + " and " + base
}

// Head says on what machine.
func (s Summary) Head() string {
	var on []string
	for _, name := range []string{"cpu", "cores", "gomaxprocs", "cpu-quota", "kernel", "go"} {
		value := s.noted(name)
		switch {
		case value == "":
			continue
		case name == "cpu":
			value, _, _ = strings.Cut(strings.ReplaceAll(value, "-", " "), " @")
			value = strings.TrimSuffix(value, " Processor")
		case name == "cores":
			value += either(value == "1", " CPU", " CPUs")
		case name == "gomaxprocs":
			value = "GOMAXPROCS " + value
		case name == "cpu-quota":
			value = "a quota of " + value + either(value == "1", " CPU", " CPUs")
		case name == "kernel":
			value, _, _ = strings.Cut(value, "-")
		}
		on = append(on, value)
	}
	return table.Line(strings.Join(on, ", "))
}

// Date is the day of the run.
func (s Summary) Date() string { return s.noted("date") }

// Used says what else used the machine, as far as it is known.
func (s Summary) Used() string {
	most := 0.0
	for _, a := range s.Answers {
		most = max(most, a.Others)
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("Other programs used up to %s of it.", table.Percent(most))
}

// noted is a value of the environment.
func (s Summary) noted(name string) string {
	for _, l := range s.Environment {
		if value, found := strings.CutPrefix(l, name+"="); found {
			return value
		}
	}
	return ""
}

// Unmeasured are the answers without a ratio, each with its reason.
func (s Summary) Unmeasured() (all []string) {
	for _, a := range s.Answers {
		if l := a.Timed(); l.Figure.Ratio == 0 {
			all = append(all, fmt.Sprintf("Not measured: %s, %s: %s.", a.Does, Label(a.Stack),
				cmp.Or(Because(l.Figure.Reason), "no process measured it")))
		}
	}
	return all
}

// Text writes the answer for a terminal that is so wide.
func (s Summary) Text(w io.Writer, width int, colour, detail bool) error {
	t := s.Results(detail)
	t.Colour = colour
	title := s.Title() + " on " + cmp.Or(s.Head(), "an unknown machine")
	if shared := s.shared(); !detail && len(shared) > 0 {
		title += "; " + strings.Join(shared, ", ")
	}
	text := table.Wrap(title, width)
	for _, warning := range s.Warnings { // which the figures are to be read with
		text += table.Wrap("Warning: "+warning+".", width)
	}
	if _, err := io.WriteString(w, text+"\n"); err != nil {
		return err
	}
	if len(t.Rows) > 0 {
		if err := t.Text(w, width); err != nil {
			return err
		}
	}
	more := []*table.Table{s.Steps()}
	if detail {
		more = append(more, s.Floors(), s.Latencies(), s.Loads(), s.Counts())
	}
	more = append(more, s.Senders())
	more = slices.DeleteFunc(more, func(t *table.Table) bool { return t == nil })
	for _, t := range more {
		fmt.Fprintln(w)
		if err := t.Text(w, width); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		fmt.Fprintln(w)
	}
	for _, l := range slices.Concat(s.Builds(), s.Unmeasured(), s.Sentences(), s.Shares(), s.Service(), s.Networks()) {
		if _, err := io.WriteString(w, table.Wrap(l, width)); err != nil {
			return err
		}
	}
	return nil
}
