package cli

import (
	"flag"
	"strings"

	"github.com/rpcbench/rpcbench/internal/workload"
)

// callerFlags registers the flags that set a workload's callers and connections.
func callerFlags(f *flag.FlagSet, w *workload.Workload) {
	f.IntVar(&w.Callers, "callers", 0,
		"`number` of callers at a time: each calls again as soon as it has its reply")
	f.IntVar(&w.Conns, "conns", 0, "`number` of connections of each stack, as its library is wired unless given:\n"+
		"one if they carry several calls at a time, else one for each caller")
}

// workloadFlags registers the flags that make a workload. made returns it, after the flags are parsed; nil if none of
// them was given.
func workloadFlags(f *flag.FlagSet) (made func() (*workload.Workload, error)) {
	var w workload.Workload
	callerFlags(f, &w)
	f.BoolVar(&w.TLS, "tls", false, "TLS 1.3")
	f.BoolVar(&w.Unix, "unix", false, "a Unix socket in place of TCP")
	payload := f.String("payload", "", "`size` of random bytes in each request and reply: 100B, 2kB (2000 bytes), 1MB")
	f.BoolVar(&w.NewConn, "new-connections", false, "a connection for each call")
	f.BoolVar(&w.Stream, "stream", false, "one stream for all calls, where a stack has streams")
	f.BoolVar(&w.Headers, "headers", false, "a token, a trace and a user agent with each call")
	f.StringVar(&w.Link, "link", "", "emulated `network`: 4g, or a round trip and a rate such as 40ms/10Mbps")
	f.IntVar(&w.Procs, "gomaxprocs", 0, "`number`: 1 measures CPU work, 0 uses all cores")
	f.BoolVar(&w.Apart, "apart", false, "the server in a process of its own; its CPU time counts too")
	titles := map[string]string{"callers": "% callers", "conns": "% connections", "tls": "TLS", "unix": "a Unix socket",
		"apart": "two processes", "payload": "% of bytes",
		"new-connections": "new connections", "stream": "on a stream", "headers": "long headers", "link": "over %",
		"gomaxprocs": "GOMAXPROCS=%"}
	return func() (*workload.Workload, error) {
		var names, said []string
		f.Visit(func(f *flag.Flag) {
			value := f.Value.String()
			title, ok := titles[f.Name]
			if !ok || value == "false" || value == f.DefValue {
				return
			}
			names = append(names, strings.ReplaceAll(f.Name, "-", ""))
			if strings.Contains(title, "%") {
				names = append(names, strings.ReplaceAll(value, "/", ".")) // a slash would begin a key
			}
			said = append(said, strings.ReplaceAll(title, "%", value))
		})
		if len(names) == 0 {
			return nil, nil
		}
		if *payload != "" {
			n, err := workload.Size(*payload)
			if err != nil {
				return nil, wrong("run: -payload: %w", err)
			}
			w.Payload = n
		}
		if err := w.Check(); err != nil {
			return nil, wrong("run: %w", err)
		}
		w.Name, w.Title = strings.Join(names, "."), strings.Join(said, ", ")
		return &w, nil
	}
}
