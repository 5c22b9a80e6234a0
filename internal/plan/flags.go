package plan

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Sweep are the workloads that are measured: those that a flag with a list makes, or others.
type Sweep struct {
	Workloads []workload.Planned
	Over      string   // what the list is of, such as callers; "" if there is none
	Values    []string // the list, a value for each workload
}

// Choice is which workloads flags choose: some of the list, or those that they make.
type Choice struct {
	Made    Sweep    // by flags; without workloads if none of them was given
	names   []string // of -workloads; nil if that was not given
	command string
}

// List is the value of a flag whose items have commas between, or that is given for each.
type List string

func (l *List) String() string { return string(*l) }

func (l *List) Set(items string) error {
	if *l != "" {
		items = string(*l) + "," + items
	}
	*l = List(items)
	return nil
}

// The words that may stand in place of a rate: a quarter of the machine, and callers that call again at once.
const auto, saturated = "auto", report.Saturated

// fields are the flags of those fields of a workload that have another name.
var fields = map[workload.Field]string{"Procs": "gomaxprocs", "NewConn": "new-connections"}

// asFlags is what is wrong with a workload, with flags for its fields.
func asFlags(err error) string {
	refusal, ok := errors.AsType[*workload.Refusal](err)
	if !ok {
		return err.Error()
	}
	return refusal.Says(func(f workload.Field) string {
		return "-" + cmp.Or(fields[f], strings.ToLower(string(f)))
	})
}

// titles are what the values of flags make of a workload's title.
var titles = map[string]string{"rate": "% calls a second", "callers": "% callers", "conns": "% connections",
	"tls": "TLS", "unix": "a Unix socket", "apart": "client and server in two processes", "payload": "% of bytes",
	"new-connections": "new connections", "stream": "on a stream", "headers": "long headers",
	"link": "over %", "wait": "handlers wait %", "gomaxprocs": "GOMAXPROCS=%"}

// Flags registers the flags that choose workloads. byDefault says which are measured if none is given. read returns the
// choice, after the flags are parsed.
func Flags(f *flag.FlagSet, byDefault string) (read func() (Choice, error)) {
	var names List
	f.Var(&names, "workloads", "`names` of rpcbench list, separated by commas ("+byDefault+")")
	made := makers(f)
	return func() (c Choice, err error) {
		c = Choice{command: f.Name()}
		f.Visit(func(f *flag.Flag) {
			if f.Name == "workloads" {
				c.names = strings.Split(string(names), ",")
			}
		})
		c.Made, err = made()
		return c, err
	}
}

// Chosen tells whether somebody has chosen workloads.
func (c Choice) Chosen() bool { return c.names != nil || c.Made.Workloads != nil }

// Of are the chosen workloads of a program, or else the first ones of its list.
func (c Choice) Of(p shell.Program, first int) Sweep {
	all := p.Workloads()
	switch {
	case c.Made.Workloads != nil:
		return c.Made
	case c.names == nil:
		return Sweep{Workloads: all[:min(first, len(all))]}
	}
	var s Sweep
	for _, name := range c.names {
		if w, err := workload.In(all, name); err == nil {
			s.Workloads = append(s.Workloads, w)
		}
	}
	return s
}

// Check says what is wrong with a choice of workloads of a program.
func (c Choice) Check(p shell.Program) error {
	if made := c.Made.Workloads; made != nil && c.names != nil {
		return shell.Wrong("%s: -workloads names workloads, and other flags make one, %s: leave one of the two out",
			c.command, made[0].Name)
	}
	if made := c.Made.Workloads; made != nil && made[0].Routed() && c.command != "run" {
		return shell.Wrong("%s: -link %s loses packets, which rpcbench run measures: leave the loss out", c.command,
			made[0].Link)
	}
	for _, name := range c.names {
		if _, err := p.Workload(name); err != nil {
			return shell.Wrong("%w", err)
		}
	}
	return shell.Once(c.command, c.names)
}

// Fits says which flag makes a workload that none of the stacks has.
func (c Choice) Fits(stacks []rpcbench.Stack) error {
	if c.Made.Workloads == nil {
		return nil
	}
	var names []string
	for _, s := range stacks {
		names = append(names, s.Name)
	}
	switch made := c.Made.Workloads[0]; {
	case stacks[0].Serves != "" && made.Payload != "":
		return shell.Wrong("%s: -payload is for create-user: leave it out", c.command)
	case made.Stream && !slices.ContainsFunc(stacks, streams):
		return shell.Wrong("%s: -stream: none of %s has streams: leave it out", c.command, strings.Join(names, ", "))
	}
	return nil
}

// streams says whether a stack has streams, which its client tells. Of a method of one's own none has.
func streams(s rpcbench.Stack) bool {
	if s.Serves != "" {
		return false
	}
	f, err := rpcbench.Start(context.Background(), s, rpcbench.Config{})
	if err != nil {
		return true // what is wrong with it, measuring says
	}
	defer f.Close()
	_, ok := f.Client.(rpcbench.Streamer)
	return ok
}

// maker makes workloads of flags.
type maker struct {
	workload.Workload                              // what the others make
	callers, conns, gomaxprocs, rate shell.Numbers // each may have a list
}

// makers registers the flags that make workloads. read returns them, after the flags are parsed; none if none of the
// flags was given.
func makers(f *flag.FlagSet) (read func() (Sweep, error)) {
	m := maker{callers: shell.Whole("callers", "callers"), conns: shell.Whole("conns", "connections"),
		gomaxprocs: shell.Whole("gomaxprocs", "GOMAXPROCS"), rate: rates()}
	f.Var(&m.rate, "rate", "planned `calls` a second, 500 or more, of 100 callers by default; auto takes a quarter\n"+
		"of the machine. A list is a sweep, and may end with saturated; one flag may have a list")
	f.Var(&m.callers, "callers", "`number` of callers at a time, or a list: each calls again as soon as it has its reply")
	f.Var(&m.conns, "conns", "`number` of connections of each stack, or a list; by default one if\n"+
		"they carry several calls at a time, else one for each caller")
	f.BoolVar(&m.TLS, "tls", false, "use TLS 1.3")
	f.BoolVar(&m.Unix, "unix", false, "connect by a Unix socket, and not by TCP")
	f.StringVar((*string)(&m.Payload), "payload", "",
		"`size` of random bytes in each request and reply: 100B, 2kB (2000 bytes), "+
			"1MB; or what\nis echoed: flex.empty, flex.complex, flex.2kB (structured, 2.0 kB of JSON), flex.18kB, or\n"+
			"drawn, of sizes that services send")
	f.DurationVar(&m.Wait, "wait", 0, "how long a handler waits once it has validated, as for a database: 1ms")
	f.BoolVar(&m.NewConn, "new-connections", false, "make a connection for each call")
	f.BoolVar(&m.Stream, "stream", false, "make all calls on one stream, where a stack has streams")
	f.BoolVar(&m.Headers, "headers", false, "send a token, a trace and a user agent with each call")
	f.StringVar((*string)(&m.Link), "link", "", "`network` that all connections of a stack share: 4g, or a round trip\n"+
		"and a rate such as 40ms/10Mbps, which are emulated. With a loss of packets, such as\n"+
		"20ms/100Mbps/1%, it has a router and the kernel's TCP, and needs -apart")
	f.Var(&m.gomaxprocs, "gomaxprocs", "`number` for each process, or a list: 1 measures CPU work alone, 0 uses all cores")
	f.BoolVar(&m.Apart, "apart", false, "run the server in its own process; its CPU counts too")
	return func() (Sweep, error) { return m.sweep(f) }
}

// rates is the value of a flag of planned calls a second.
func rates() shell.Numbers {
	return shell.Numbers{Flag: "rate", Of: "calls a second", Words: []string{auto, saturated},
		Read: func(text string) (float64, error) {
			rate, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, shell.Wrong("-rate: %q is no rate: give calls a second, or auto; a list may end with saturated", text)
			}
			if err = workload.CheckRate(rate); err != nil {
				err = errors.New(asFlags(err))
			}
			return rate, err
		}}
}

// sweep makes a workload of each value of a list, or one if there is none.
func (m *maker) sweep(f *flag.FlagSet) (s Sweep, err error) {
	n, over := 1, ""
	for _, v := range []*shell.Numbers{&m.callers, &m.conns, &m.gomaxprocs, &m.rate} {
		switch {
		case len(v.All) < 2:
			continue
		case over != "":
			return s, shell.Wrong("%s: -%s and -%s are lists: one flag may have a list", f.Name(), over, v.Flag)
		}
		n, over = len(v.All), v.Flag
		s.Over, s.Values = v.Of, v.Texts()
	}
	for i := range n {
		one, err := m.one(f, i)
		if err != nil {
			return s, shell.Wrong("%s: %w", f.Name(), err)
		}
		if one.Name != "" {
			s.Workloads = append(s.Workloads, one)
		}
	}
	return s, nil
}

// one makes the workload of the i-th value of the list. It has no name if none of the flags was given. Values that
// stand for none are refused, since what they make is not what was typed.
func (m *maker) one(f *flag.FlagSet, i int) (one workload.Planned, err error) {
	one.Workload = m.Workload
	one.Callers, one.Conns, one.Procs = int(m.callers.At(i).N), int(m.conns.At(i).N), int(m.gomaxprocs.At(i).N)
	rate := m.rate.At(i)
	switch one.Rate = rate.N; {
	case rate.Word == auto:
		one = workload.Ordinary(one.Workload)
	case rate.Word == saturated && len(m.rate.All) == 1:
		return one, errors.New("callers saturate without a rate: leave -rate out and give -callers 100")
	case rate.Word == saturated:
		one.Callers = cmp.Or(one.Callers, 100)
	}
	f.Visit(func(f *flag.Flag) {
		if f.Name == "wait" && one.Wait == 0 {
			err = fmt.Errorf("-wait %v: give a time, such as 1ms, or leave it out", one.Wait)
		}
	})
	if err != nil {
		return one, err
	}
	if err := one.Check(); err != nil {
		return one, errors.New(asFlags(err))
	}
	one.Name, one.Title = m.called(f, i, one)
	return one, nil
}

// called are the name and the title of the workload of the i-th value of the list.
func (m *maker) called(f *flag.FlagSet, i int, one workload.Planned) (name, title string) {
	var parts, said []string
	f.Visit(func(f *flag.Flag) {
		text, title, part := f.Value.String(), titles[f.Name], strings.ReplaceAll(f.Name, "-", "")
		if v, is := f.Value.(*shell.Numbers); is {
			text = v.At(i).String()
		}
		if text == "1" {
			title = strings.TrimSuffix(title, "s")
		}
		switch {
		case title == "", text == "false", f.Name == "gomaxprocs" && text == "0":
			return // it is no other workload than without the flag
		case f.Name == "payload" && one.Structured():
			title, part = text, part+"."+text
		case text == saturated:
			title, part = saturated, saturated
		case text == auto:
			title, part = "ordinary load", "rate.auto"
		case strings.Contains(title, "%"):
			part += "." + strings.ReplaceAll(text, "/", ".") // a slash would begin a key
		}
		parts, said = append(parts, part), append(said, strings.ReplaceAll(title, "%", text))
	})
	if len(parts) == 0 && len(m.gomaxprocs.All) > 0 {
		return "gomaxprocs.0", "GOMAXPROCS=0"
	}
	return strings.Join(parts, "."), strings.Join(said, ", ")
}
