package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
)

// show tells what is being done, and how long the rest of that part takes, about. No time is left of a part that ends.
type show = func(what string, left time.Duration)

// clock tells how far a command is, of which each part tells about itself: on a terminal a bar, and on another stream a
// line when the command begins and once a minute. It ends the command if nobody reads that.
type clock struct {
	out   *os.File
	bar   bool
	end   func()
	began time.Time

	sync.Mutex
	spare time.Duration   // that what is undecided may take besides
	later []time.Duration // that the parts take which have not begun, about
	what  string          // is being done; nothing between parts
	left  time.Duration   // of all parts, when that was shown
	shown time.Time
}

// What a run does beside measuring takes about so long.
const (
	aLink  = 2 * time.Second
	aCount = 150 * time.Millisecond // in a process
)

// newClock makes one for a command with such parts. The context ends with the command, and so does the clock.
func newClock(ctx context.Context, w io.Writer, parts ...time.Duration) (context.Context, *clock) {
	k := &clock{later: parts, began: time.Now()}
	ctx, k.end = context.WithCancel(ctx)
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
				k.Lock()
				if k.what != "" {
					k.draw()
				}
				k.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, k
}

// progress is a bar of one part, and nothing where there is no terminal.
func progress(ctx context.Context, w io.Writer) show {
	if file, ok := w.(*os.File); !ok || !isTerminal(file) {
		w = io.Discard
	}
	_, k := newClock(ctx, w)
	return k.show
}

// part begins the next part.
func (k *clock) part() show {
	k.later = k.later[1:]
	return k.show
}

func (k *clock) show(what string, left time.Duration) {
	k.Lock()
	defer k.Unlock()
	first := k.shown.IsZero()
	for _, part := range k.later {
		left += part
	}
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
func (k *clock) begin() {
	if k.spare > 0 && k.bar {
		fmt.Fprintf(k.out, "rpcbench: about %v, and %v more if lines are undecided\n", k.left.Round(time.Second),
			k.spare.Round(time.Second))
	}
	k.draw()
	k.spare = 0
}

// draw asks for the width each time, since a terminal may have another one than before.
func (k *clock) draw() {
	past, line := time.Since(k.began), ""
	rest := max(0, k.left-time.Since(k.shown))
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
		text := []rune(fmt.Sprintf("[%s%s] %2.0f %%, %v left: %s", strings.Repeat("#", full), strings.Repeat(".", cells-full),
			100*share, left, k.what))
		line = string(text[:min(len(text), columns-1)])
	default:
		more := ""
		if k.spare > 0 { // when all begins
			more = fmt.Sprintf(", and %v more if lines are undecided", k.spare.Round(time.Second))
		}
		line = fmt.Sprintf("rpcbench: %v left of about %v%s: %s\n", left, all, more, k.what)
	}
	if k.bar {
		line = "\r\x1b[K" + line
	}
	if _, err := io.WriteString(k.out, line); err != nil {
		k.end()
	}
}

// say prints a line that stays.
func (k *clock) say(line string) error {
	if k.out == nil {
		return nil
	}
	k.Lock()
	defer k.Unlock()
	start := ""
	if k.bar {
		start = "\r\x1b[K"
	}
	_, err := fmt.Fprintf(k.out, "%srpcbench: %s\n", start, line)
	return err
}

// isTerminal tells whether a line can be written over.
func isTerminal(file *os.File) bool {
	kind := os.Getenv("TERM")
	return kind != "" && kind != "dumb" && term.IsTerminal(int(file.Fd()))
}

// likely are rates that ordinary loads may have.
func (p plan) likely() map[string]float64 {
	rates := map[string]float64{}
	for _, w := range p.workloads {
		rates[w.Name] = versus.Likely(w.Workload)
	}
	return rates
}

// spare is how long what is undecided may take after the planned processes.
func (p plan) spare() time.Duration {
	all := p.campaign(nil, p.likely())
	return all.Most - all.Takes()
}

// parts are how long those of a run take, about.
func (p plan) parts() []time.Duration {
	linking, looking, counting, describing := 0*time.Second, 0*time.Second, 0*time.Second, 0*time.Second
	likely := p.likely()
	for _, w := range p.workloads {
		if w.Ordinary {
			looking += versus.LookTakes(w.At(likely))
		}
	}
	if p.layouts > 0 || p.ofBuilds() {
		linking = aLink * time.Duration(len(p.builds())*max(1, p.layouts))
	}
	all := p.campaign(nil, likely)
	for _, one := range all.Comparisons {
		counting += counted(one)
	}
	if p.stacks[0].Method != "" {
		describing = 2 * p.explained()
		if p.servers == nil { // calls and handlers alone, whose slices are followed by collections, about as long
			describing += time.Duration(blocks*2*(1+len(p.contestants)+len(p.also))) * 2 * slice
		}
	}
	if p.gate.countsOnly() {
		return []time.Duration{linking, counting}
	}
	return []time.Duration{linking, looking, all.Takes(), counting, describing}
}

// counted is how long it takes to count what a comparison's stacks do.
func counted(one *versus.Comparison) time.Duration {
	return aCount*time.Duration(len(one.Spec.Arms)-1) + one.Spec.Workload.Extra()
}
