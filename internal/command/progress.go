package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/rpcbench/rpcbench/internal/versus"
)

// show tells what is being done, and how much is left of how long it all takes. If all is 0, that is beyond what was
// announced, and left is the most that it takes.
type show = func(what string, left, all time.Duration)

// progress shows on a terminal what is being done and how long the rest will take, and nothing elsewhere.
func progress(w io.Writer) show {
	if file, ok := w.(*os.File); !ok || !isTerminal(file) {
		w = io.Discard
	}
	return onLine(w)
}

// onLine writes over the line before. Its percent never fall. It clears the line when nothing is left.
func onLine(w io.Writer) show {
	var done time.Duration
	return func(what string, left, all time.Duration) {
		fmt.Fprint(w, "\r\x1b[K")
		switch {
		case left <= 0:
		case all == 0:
			fmt.Fprintf(w, "up to %v more: %s", left.Round(time.Second), what)
		default:
			done = max(done, 100*(all-left)/all)
			fmt.Fprintf(w, "%3d %%, %v left: %s", done, left.Round(time.Second), what)
		}
	}
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// clock tells how far a run is, of which each part tells about itself: on a terminal with each step, and on another
// stream at first, once a minute, and when the run takes more than a quarter longer than was announced. It ends the run
// if nobody reads that.
type clock struct {
	terminal  show
	lines     io.Writer
	end       func()
	later     []time.Duration // that the parts take which have not begun, about
	began     time.Time
	told      time.Time
	announced time.Duration // -1 is nothing yet, 0 is beyond
}

// What a run does beside measuring takes about so long.
const (
	aLink  = 2 * time.Second
	aCount = 700 * time.Millisecond // in a process
)

func newClock(w io.Writer, end func(), parts ...time.Duration) *clock {
	k := &clock{terminal: progress(w), lines: io.Discard, end: end, later: parts, began: time.Now(), announced: -1}
	if file, ok := w.(*os.File); ok && !isTerminal(file) {
		k.lines = w
	}
	return k
}

// part begins the next part.
func (k *clock) part() show {
	k.later = k.later[1:]
	return k.show
}

// show is a part's. What it has taken so far tells how long all takes.
func (k *clock) show(what string, left, all time.Duration) {
	if left <= 0 {
		k.terminal("", 0, 0)
		return
	}
	for _, part := range k.later {
		left += part
	}
	if all > 0 {
		all = time.Since(k.began) + left
	}
	k.terminal(what, left, all)
	longer := k.announced > 0 && (all == 0 || all > k.announced*5/4)
	if k.announced >= 0 && !longer && time.Since(k.told) < time.Minute {
		return
	}
	said := fmt.Sprintf("rpcbench: %v left of about %v: %s\n", left.Round(time.Second), all.Round(time.Second), what)
	if all == 0 {
		said = fmt.Sprintf("rpcbench: up to %v more: %s\n", left.Round(time.Second), what)
	}
	if _, err := io.WriteString(k.lines, said); err != nil {
		k.end()
	}
	k.told, k.announced = time.Now(), all
}

// linking, looking, counting and describing are how long these parts take, about.
func (c *comparison) linking() time.Duration {
	if c.layouts == 0 && !c.named() {
		return 0
	}
	return aLink * time.Duration(len(c.builds())*max(1, c.layouts))
}

func (c *comparison) looking() (all time.Duration) {
	for _, w := range c.workloads {
		all += versus.LookTakes(w)
	}
	return all
}

func (c *comparison) counting() (all time.Duration) {
	for _, one := range c.campaign().Comparisons {
		all += counted(one)
	}
	return all
}

// counted is how long it takes to count what a comparison's stacks do.
func counted(one *versus.Comparison) time.Duration {
	return aCount*time.Duration(len(one.Spec.Arms)-1) + one.Spec.Workload.Extra()
}

func (c *comparison) describing() time.Duration {
	if c.stacks[0].Method == "" {
		return 0
	}
	return 2 * c.explained()
}
