package command

import (
	"cmp"
	"errors"
	"flag"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// made are the workloads that flags make: several if they are a sweep.
type made struct {
	workloads []workload.Planned
	over      string   // the flag that has a list
	values    []string // the list, a value for each workload
}

// list is the value of a flag whose items have commas between, or that is given for each.
type list string

func (l *list) String() string { return string(*l) }

func (l *list) Set(items string) error {
	if *l != "" {
		items = string(*l) + "," + items
	}
	*l = list(items)
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

// workloadFlags registers the flags that make workloads. read returns them, after the flags are parsed; none if none of
// the flags was given.
func workloadFlags(f *flag.FlagSet) (read func() (made, error)) {
	var w workload.Workload
	f.String("rate", "", "planned `calls` a second, 500 or more, of 100 callers unless given; auto takes a quarter\n"+
		"of the machine. A list is a sweep, and may end with saturated; one flag may have a list")
	f.String("callers", "", "`number` of callers at a time, or a list: each calls again as soon as it has its reply")
	f.String("conns", "", "`number` of connections of each stack, or a list; as its library is wired unless given:\n"+
		"one if they carry several calls at a time, else one for each caller")
	f.BoolVar(&w.TLS, "tls", false, "use TLS 1.3")
	f.BoolVar(&w.Unix, "unix", false, "connect by a Unix socket, and not by TCP")
	f.StringVar(&w.Payload, "payload", "", "`size` of random bytes in each request and reply: 100B, 2kB (2000 bytes), "+
		"1MB; or what\nis echoed: flex.empty, flex.complex, flex.1kB (structured, 2.0 kB of JSON), flex.10kB, or\n"+
		"drawn, of sizes that services send")
	f.DurationVar(&w.Wait, "wait", 0, "how long a handler waits once it has validated, as for a database: 1ms")
	f.BoolVar(&w.NewConn, "new-connections", false, "make a connection for each call")
	f.BoolVar(&w.Stream, "stream", false, "make all calls on one stream, where a stack has streams")
	f.BoolVar(&w.Headers, "headers", false, "send a token, a trace and a user agent with each call")
	f.StringVar(&w.Link, "link", "", "emulated `network`: 4g, or a round trip and a rate such as 40ms/10Mbps")
	f.String("gomaxprocs", "", "`number` for each process, or a list: 1 measures CPU work alone, 0 uses all cores")
	f.BoolVar(&w.Apart, "apart", false, "run the server in a process of its own, whose CPU counts too")
	return func() (made, error) {
		var all []value
		f.Visit(func(f *flag.Flag) {
			if typed := f.Value.String(); titles[f.Name] != "" && typed != "false" {
				all = append(all, value{f.Name, typed})
			}
		})
		return new(made).of(w, all)
	}
}

// value is what a flag was given.
type value struct{ flag, typed string }

// of makes the workloads of a list, or the one of no list. w has what flags without a list made of it.
func (m made) of(w workload.Workload, all []value) (made, error) {
	values := []string{""}
	for _, v := range all {
		if !strings.Contains(v.typed, ",") || lists[v.flag] == "" {
			continue
		}
		if m.over != "" {
			return m, shell.Wrong("run: -%s and -%s are lists: one flag may have a list", m.over, v.flag)
		}
		m.over, m.values = v.flag, strings.Split(v.typed, ",")
		values = m.values
	}
	if len(all) == 0 {
		return m, nil
	}
	if err := shell.Once("run: -"+m.over, values); err != nil {
		return m, err
	}
	for _, value := range values {
		one, err := m.one(w, all, value)
		if err != nil {
			return m, err
		}
		m.workloads = append(m.workloads, one)
	}
	return m, nil
}

// one makes the workload of a value of the list.
func (m made) one(w workload.Workload, all []value, listed string) (one workload.Planned, err error) {
	one.Workload = w
	var parts, said []string
	for _, v := range all {
		if v.flag == m.over {
			v.typed = listed
		}
		if err := set(&one, v, v.flag == m.over); err != nil {
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
		return one, shell.Wrong("run: %s", asFlags(err))
	}
	one.Name, one.Title = strings.Join(parts, "."), strings.Join(said, ", ")
	return one, nil
}

// set gives a workload the value of a flag that is no plain variable of it. It refuses a value that stands for none,
// since what it makes is not what was typed.
func set(w *workload.Planned, v value, listed bool) (err error) {
	name, value := v.flag, v.typed
	switch n := map[string]*int{"callers": &w.Callers, "conns": &w.Conns, "gomaxprocs": &w.Procs}[name]; {
	case n != nil:
		if *n, err = strconv.Atoi(value); err != nil || listed && *n == 0 { // which has no place among others
			return shell.Wrong("run: -%s: %q is no number of %s", name, value, lists[name])
		}
		return shell.Within("run", name, *n)
	case value == "" && name != "rate":
		return shell.Wrong("run: -%s has no value: give one, or leave it out", name)
	case name == "wait" && w.Wait == 0:
		return shell.Wrong("run: -wait %s is no wait: give one, such as 1ms, or leave it out", value)
	case name != "rate":
	case value == "auto":
		w.Ordinary = true
	case value == saturated && listed:
		w.Callers = cmp.Or(w.Callers, 100)
	default:
		if w.Rate, err = strconv.ParseFloat(value, 64); err != nil || w.Rate == 0 {
			return shell.Wrong("run: -rate: %q is no rate: give calls a second, or auto; a list may end with saturated", value)
		}
	}
	return nil
}
