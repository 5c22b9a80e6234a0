package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Show tells what is being done, and how long the rest of that part takes, about. No time is left of a part that ends.
type Show = func(what string, left time.Duration)

// Clock tells how far a command is, of which each part tells about itself: on a terminal a bar, and on another stream a
// line when the command begins and once a minute. It ends the command if nobody reads that.
type Clock struct {
	End   func()        // ends the command
	Spare time.Duration // that what is undecided may take besides

	out   *os.File
	bar   bool
	began time.Time

	mu    sync.Mutex      // guards what follows
	later []time.Duration // that the parts take which have not begun, about
	what  string          // is being done; nothing between parts
	left  time.Duration   // of the part that has begun, when that was shown
	shown time.Time
}

// late is by how much a step may take longer than expected before that is said.
const late = 10 * time.Second

// NewClock makes one for a command with such parts. The context ends with the command, and so does the clock.
func NewClock(ctx context.Context, w io.Writer, parts ...time.Duration) (context.Context, *Clock) {
	k := &Clock{later: parts, began: time.Now()}
	ctx, k.End = context.WithCancel(ctx)
	var every time.Duration
	if k.out, _ = w.(*os.File); k.out == nil {
		return ctx, k
	}
	if k.bar, every = isTerminal(k.out), time.Minute; k.bar {
		every = time.Second
	}
	go func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				k.mu.Lock()
				if k.what != "" {
					k.draw()
				}
				k.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, k
}

// Progress is a bar of one part, and nothing where there is no terminal.
func Progress(ctx context.Context, w io.Writer) Show {
	if file, ok := w.(*os.File); !ok || !isTerminal(file) {
		w = io.Discard
	}
	_, k := NewClock(ctx, w)
	return k.Show
}

// Part begins the next part.
func (k *Clock) Part() Show {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.later = k.later[1:]
	return k.Show
}

// Show tells what is being done, and how much of the part is left.
func (k *Clock) Show(what string, left time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.shown.IsZero()
	if k.what = what; what != "" {
		k.left, k.shown = left, time.Now()
	}
	if first {
		k.begin()
	} else if k.bar {
		k.draw()
	}
}

// begin draws for the first time. What undecided lines may take is told once: a bar has it in a line that stays.
func (k *Clock) begin() {
	if k.Spare > 0 && k.bar {
		all, _ := k.rest()
		fmt.Fprintf(k.out, "rpcbench: about %v, and %v more if lines are undecided\n", all.Round(time.Second),
			k.Spare.Round(time.Second))
	}
	k.draw()
	k.Spare = 0
}

// rest is how much is left of all parts, about, and whether the one that has begun takes longer than expected.
func (k *Clock) rest() (left time.Duration, longer bool) {
	own := k.left - time.Since(k.shown)
	left = max(0, own)
	for _, part := range k.later {
		left += part
	}
	return left, own < -late
}

// draw asks for the width each time, since a terminal may have another one than before.
func (k *Clock) draw() {
	past, line := time.Since(k.began), ""
	rest, longer := k.rest()
	left, all := rest.Round(time.Second), (past + rest).Round(time.Second)
	switch {
	case k.out == nil, k.what == "" && !k.bar:
		return
	case k.what == "":
	case k.bar:
		columns, _, err := term.GetSize(int(k.out.Fd()))
		if err != nil || columns <= 0 {
			columns = 80
		}
		share, cells := float64(past)/float64(past+rest), min(20, columns/5)
		full := int(share * float64(cells))
		remains := fmt.Sprintf("%v left", left)
		if longer {
			remains = "overdue"
		}
		text := []rune(fmt.Sprintf("[%s%s] %2.0f%%, %s: %s", strings.Repeat("#", full), strings.Repeat(".", cells-full),
			100*share, remains, k.what))
		line = string(text[:min(len(text), columns-1)])
	case longer:
		line = fmt.Sprintf("rpcbench: %v so far, longer than expected: %s\n", past.Round(time.Second), k.what)
	default:
		more := ""
		if k.Spare > 0 { // when all begins
			more = fmt.Sprintf(", and %v more if lines are undecided", k.Spare.Round(time.Second))
		}
		line = fmt.Sprintf("rpcbench: %v left of about %v%s: %s\n", left, all, more, k.what)
	}
	if k.bar {
		line = "\r\x1b[K" + line
	}
	if _, err := io.WriteString(k.out, line); err != nil {
		k.End()
	}
}

// Say prints a line that stays.
func (k *Clock) Say(line string) error {
	if k.out == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	start := ""
	if k.bar {
		start = "\r\x1b[K"
	}
	_, err := fmt.Fprintf(k.out, "%srpcbench: %s\n", start, line)
	return err
}
