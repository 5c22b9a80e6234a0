package plan

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Sweep are the workloads that are measured: those that a flag with a list makes, or others.
type Sweep struct {
	Workloads []workload.Planned
	Over      string   // the flag that has a list
	Values    []string // the list, a value for each workload
}

// Unit is what the values of a sweep are of.
func (s Sweep) Unit() string { return lists[s.Over] }

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

// lists are the flags that may have a list, and what its values are.
var lists = map[string]string{"rate": "calls a second", "callers": "callers", "conns": "connections",
	"gomaxprocs": "GOMAXPROCS"}

const saturated = "saturated" // in a list of rates: callers that call again at once

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

// Flags registers the flags that choose workloads. unless says which are measured if none is given. read returns the
// choice, after the flags are parsed.
func Flags(f *flag.FlagSet, unless string) (read func() (Choice, error)) {
	var names List
	f.Var(&names, "workloads", "`names` of rpcbench list, separated by commas; "+unless)
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
	case stacks[0].Method != "" && made.Payload != "":
		return shell.Wrong("%s: -payload is for create-user: leave it out", c.command)
	case made.Stream && !slices.ContainsFunc(stacks, streams):
		return shell.Wrong("%s: -stream: none of %s has streams: leave it out", c.command, strings.Join(names, ", "))
	}
	return nil
}

// streams says whether a stack has streams, which its client tells. Of a method of one's own none has.
func streams(s rpcbench.Stack) bool {
	if s.Method != "" {
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

// makers registers the flags that make workloads. read returns them, after the flags are parsed; none if none of the
// flags was given.
func makers(f *flag.FlagSet) (read func() (Sweep, error)) {
	var w workload.Workload
	f.String("rate", "", "planned `calls` a second, 500 or more, of 100 callers unless given; auto takes a quarter\n"+
		"of the machine. A list is a sweep, and may end with saturated; one flag may have a list")
	f.String("callers", "", "`number` of callers at a time, or a list: each calls again as soon as it has its reply")
	f.String("conns", "", "`number` of connections of each stack, or a list; as its library is wired unless given:\n"+
		"one if they carry several calls at a time, else one for each caller")
	f.BoolVar(&w.TLS, "tls", false, "use TLS 1.3")
	f.BoolVar(&w.Unix, "unix", false, "connect by a Unix socket, and not by TCP")
	f.StringVar(&w.Payload, "payload", "", "`size` of random bytes in each request and reply: 100B, 2kB (2000 bytes), "+
		"1MB; or what\nis echoed: flex.empty, flex.complex, flex.2kB (structured, 2.0 kB of JSON), flex.18kB, or\n"+
		"drawn, of sizes that services send")
	f.DurationVar(&w.Wait, "wait", 0, "how long a handler waits once it has validated, as for a database: 1ms")
	f.BoolVar(&w.NewConn, "new-connections", false, "make a connection for each call")
	f.BoolVar(&w.Stream, "stream", false, "make all calls on one stream, where a stack has streams")
	f.BoolVar(&w.Headers, "headers", false, "send a token, a trace and a user agent with each call")
	f.StringVar(&w.Link, "link", "", "emulated `network`: 4g, or a round trip and a rate such as 40ms/10Mbps")
	f.String("gomaxprocs", "", "`number` for each process, or a list: 1 measures CPU work alone, 0 uses all cores")
	f.BoolVar(&w.Apart, "apart", false, "run the server in a process of its own, whose CPU counts too")
	return func() (Sweep, error) {
		var all []value
		f.Visit(func(f *flag.Flag) {
			if typed := f.Value.String(); titles[f.Name] != "" && typed != "false" {
				all = append(all, value{f.Name, typed})
			}
		})
		return maker{command: f.Name()}.of(w, all)
	}
}

// value is what a flag was given.
type value struct{ flag, typed string }

// maker makes workloads of flags.
type maker struct {
	Sweep
	command string
}

// of makes the workloads of a list, or the one of no list. w has what flags without a list made of it.
func (m maker) of(w workload.Workload, all []value) (Sweep, error) {
	values := []string{""}
	for _, v := range all {
		if !strings.Contains(v.typed, ",") || lists[v.flag] == "" {
			continue
		}
		if m.Over != "" {
			return m.Sweep, shell.Wrong("%s: -%s and -%s are lists: one flag may have a list", m.command, m.Over, v.flag)
		}
		m.Over, m.Values = v.flag, strings.Split(v.typed, ",")
		values = m.Values
	}
	if len(all) == 0 {
		return m.Sweep, nil
	}
	if err := shell.Once(m.command+": -"+m.Over, values); err != nil {
		return m.Sweep, err
	}
	for _, value := range values {
		one, err := m.one(w, all, value)
		if err != nil {
			return m.Sweep, err
		}
		m.Workloads = append(m.Workloads, one)
	}
	return m.Sweep, nil
}

// one makes the workload of a value of the list.
func (m maker) one(w workload.Workload, all []value, listed string) (one workload.Planned, err error) {
	one.Workload = w
	var parts, said []string
	for _, v := range all {
		if v.flag == m.Over {
			v.typed = listed
		}
		if err := m.set(&one, v); err != nil {
			return one, err
		}
		if v.flag == "gomaxprocs" && one.Procs == 0 && len(all) > 1 {
			continue // it is no other workload than without the flag
		}
		title, part := titles[v.flag], strings.ReplaceAll(v.flag, "-", "")
		if v.typed == "1" {
			title = strings.TrimSuffix(title, "s")
		}
		switch {
		case v.flag == "payload" && one.Structured():
			title, part = v.typed, part+"."+v.typed
		case v.typed == saturated:
			title, part = saturated, saturated
		case v.flag == "rate" && one.Ordinary:
			title, part = "ordinary load", "rate.auto"
		case strings.Contains(title, "%"):
			part += "." + strings.ReplaceAll(v.typed, "/", ".") // a slash would begin a key
		}
		parts, said = append(parts, part), append(said, strings.ReplaceAll(title, "%", v.typed))
	}
	if err := one.Check(); err != nil {
		return one, shell.Wrong("%s: %s", m.command, asFlags(err))
	}
	one.Name, one.Title = strings.Join(parts, "."), strings.Join(said, ", ")
	return one, nil
}

// set gives a workload the value of a flag that is no plain variable of it. It refuses a value that stands for none,
// since what it makes is not what was typed.
func (m maker) set(w *workload.Planned, v value) (err error) {
	name, value, listed := v.flag, v.typed, v.flag == m.Over
	switch n := map[string]*int{"callers": &w.Callers, "conns": &w.Conns, "gomaxprocs": &w.Procs}[name]; {
	case n != nil:
		if *n, err = strconv.Atoi(value); err != nil || listed && *n == 0 { // which has no place among others
			return shell.Wrong("%s: -%s: %q is no number of %s", m.command, name, value, lists[name])
		}
		return shell.Within(m.command, name, *n)
	case value == "" && name != "rate":
		return shell.Wrong("%s: -%s has no value: give one, or leave it out", m.command, name)
	case name == "wait" && w.Wait == 0:
		return shell.Wrong("%s: -wait %s is no wait: give one, such as 1ms, or leave it out", m.command, value)
	case name != "rate":
	case value == "auto":
		w.Ordinary = true
	case value == saturated && listed:
		w.Callers = cmp.Or(w.Callers, 100)
	case value == saturated:
		return shell.Wrong("%s: callers saturate without a rate: leave -rate out and give -callers 100", m.command)
	default:
		if w.Rate, err = strconv.ParseFloat(value, 64); err != nil || w.Rate == 0 {
			return shell.Wrong("%s: -rate: %q is no rate: give calls a second, or auto; a list may end with saturated",
				m.command, value)
		}
	}
	return nil
}
