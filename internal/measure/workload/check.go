package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Check is Workload.Check for what is measured in windows of a thousand planned calls, which last two seconds at most
// unless a call takes long.
func (p Planned) Check() error {
	if p.Rate != 0 && !p.Ordinary {
		if err := CheckRate(p.Rate); err != nil {
			return err
		}
	}
	if p.Ordinary && p.Routed() {
		return refuse("%s auto takes a quarter of the machine, and over %s %s a router has its part: give calls a second",
			Field("Rate"), Field("Link"), p.Link)
	}
	if p.Ordinary {
		p.Rate = LeastRate // the least that may be found
	}
	if err := p.Workload.Check(); err != nil {
		return err
	}
	most := p.MostRate()
	if d := p.carrying(); d > 0 && p.Rate > busy/d.Seconds() {
		less := "give a quicker one"
		if p.Size() > 0 {
			less += ", or a smaller message"
		}
		return refuse("%s %s carries %.0f such calls a second: %s", Field("Link"), p.Link, busy/d.Seconds(), less)
	}
	if p.Rate > most {
		needed := math.Ceil(float64(p.AtOnce()) * p.Rate / most)
		would := fmt.Sprintf("give %.0f callers or more for %v a second", needed, p.Rate)
		if needed > Most {
			would = fmt.Sprintf("%v a second would take %.0f, and %d are the most", p.Rate, needed, Most)
		}
		return refuse("%s can make %.0f calls a second, as each of %d takes %v and more: %s", Field("Callers"), most,
			p.AtOnce(), p.delay(), would)
	}
	return nil
}

// CheckRate says what is wrong with a rate at which calls are planned.
func CheckRate(rate float64) error {
	switch {
	case rate > 0 && rate < LeastRate:
		return fmt.Errorf("at %v calls a second a window of a thousand calls would take %v: give %d or more, or measure one "+
			"caller at a time with -workloads small-apart", rate,
			time.Duration(1000/rate*float64(time.Second)).Round(time.Second), LeastRate)
	case !(rate > 0 && rate <= loop.MaxRate):
		return refuse("%s lies between %d and %d calls per second: %v does not", Field("Rate"), LeastRate,
			int(loop.MaxRate), rate)
	}
	return nil
}

// LeastRate is the least Rate of a Planned workload. Most are the callers, the connections and the cores at most.
const (
	LeastRate = 500
	Most      = 1000
)

// Unseen says what the suite can't see of a stack, because of Traits.Varies. It is "" if that is nothing.
func Unseen(s rpcbench.Stack) string {
	switch s.Traits.Varies {
	case rpcbench.VariesNumbered:
		return s.Name + " numbers its requests: no test sees whether the numbered part, of up to 64 bytes, holds more"
	case rpcbench.VariesMasked:
		return s.Name + " masks its requests: no test reads them, only their lengths and the replies"
	}
	return ""
}

// Check refuses numbers that make no sense, and what no stack can do.
func (w Workload) Check() error {
	for _, n := range []struct {
		name  Field
		value int
	}{
		{"Callers", w.Callers}, {"Conns", w.Conns}, {"Procs", w.Procs},
	} {
		if n.value < 0 || n.value > Most {
			return refuse("%s lies between 0 and %d: %d does not", n.name, Most, n.value)
		}
	}
	other := w.NewConn || w.Structured() || w.Invalid || w.Deadline || w.Headers || w.Rate != 0
	switch {
	case w.Payload != "" && !w.Structured() && w.Bytes() == 0:
		_, err := Size(string(w.Payload))
		return refuse("%s: %v, or name a structured message: flex.empty, flex.complex, flex.2kB, flex.18kB or drawn",
			Field("Payload"), err)
	case w.Payload == Drawn && (w.NewConn || w.Link != ""):
		return refuse("drawn %s takes a thousand calls: it goes without %s and %s", Field("Payload"), Field("NewConn"),
			Field("Link"))
	case w.Structured() && w.Invalid:
		return refuse("structured %s is no user: it goes without %s", Field("Payload"), Field("Invalid"))
	case w.Stream && (other || w.Callers > 1 || w.Conns > 1):
		return refuse("%s has one caller of valid users: it goes with %s, %s and %s alone", Field("Stream"), Field("TLS"),
			Field("Link"), Field("Payload"))
	case w.Wait < 0 || w.Wait > mostWait:
		return refuse("%s lies between 0 and %v: %v does not", Field("Wait"), mostWait, w.Wait)
	case w.NewConn && w.Conns > 1:
		return refuse("%s leaves no choice of %s: each call has a connection of its own", Field("NewConn"), Field("Conns"))
	case w.Rate != 0 && !(w.Rate >= loop.MinRate && w.Rate <= loop.MaxRate):
		return refuse("%s lies between %v and %v calls per second: %v does not", Field("Rate"), loop.MinRate,
			int(loop.MaxRate), w.Rate)
	case w.Link != "":
		link, err := tap.FindLink(string(w.Link))
		if err == nil && link.Routed && (!w.Apart || w.Unix) {
			err = refuse("%s %s loses packets between client and server: give %s too, and no %s", Field("Link"), w.Link,
				Field("Apart"), Field("Unix"))
		}
		return err
	}
	return nil
}

// Size reads a payload: 100B, 1kB (1000 bytes), 1MB.
func Size(s string) (int, error) {
	digits, unit := s, ""
	if i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits, unit = s[:i], s[i:]
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	bytes := n * map[string]uint64{"B": 1, "kB": 1e3, "MB": 1e6}[unit]
	switch {
	case err != nil || bytes == 0 || digits[0] == '0':
		return 0, fmt.Errorf("%q is no size: write a whole number, such as 100B, 1kB or 1MB", s)
	case bytes > rpcbench.MaxAvatar:
		return 0, fmt.Errorf("%s is too much: a message has %d B at most, within the limits of all stacks: write 1MB", s,
			rpcbench.MaxAvatar)
	}
	return int(bytes), nil
}
