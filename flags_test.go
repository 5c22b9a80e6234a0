package rpcbench_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
)

// chosen is what the flags of go test say.
var chosen = options{
	update: flag.Bool("update", false, "write golden files"),
	full:   flag.Bool("full", false, "run every stack, payload, number of callers, link and rate"),
	tls:    flag.Bool("tls", false, "use TLS 1.3 in every row"),
	base:   flag.String("base", httpjson.New().Name, "stack that BenchmarkVersus compares the others with"),
	stacks: list("stacks", "stacks of every benchmark with a key stack", "", "", func(name string) error {
		_, err := stacks.Find(name)
		return err
	}),
	conns: flag.Int("conns",
		0, "connections of the rows with several callers, from 1 to 1000 (default one for each caller, 20 at most)"),
	obeyed: map[string]bool{},
	payloads: list("payloads", "payloads of BenchmarkPayload", "100B,1kB,10kB,100kB", "1MB", func(v string) error {
		_, err := workload.Size(v)
		return err
	}),
	callers: list("callers", "numbers of callers of BenchmarkParallel", "50", "1,8,64", func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 1000 || strconv.Itoa(n) != v {
			return fmt.Errorf("%q is no number of callers from 1 to 1000", v)
		}
		return nil
	}),
	links: list("links", "emulated links of BenchmarkLink", "4g", "40ms/10Mbps", func(v string) error {
		_, err := relay.FindLink(v)
		return err
	}),
	rates: list("rates", "rates of BenchmarkOpenLoop, in requests per second", "", "1000,100,5000", func(v string) error {
		if rate, err := strconv.Atoi(v); err != nil || rate < latency.MinRate || rate > latency.MaxRate ||
			strconv.Itoa(rate) != v {
			return fmt.Errorf("%q is no rate from %d to %d", v, latency.MinRate, int(latency.MaxRate))
		}
		return nil
	}),
}

type options struct {
	update, full, tls                       *bool
	base                                    *string
	conns                                   *int
	stacks, payloads, callers, links, rates *choice

	obeyed map[string]bool // flags that a benchmark has asked for
}

func (o options) obey(name string, value bool) bool {
	o.obeyed[name] = true
	return value
}

// isFull is the value of -full, for a benchmark.
func (o options) isFull() bool { return o.obey("full", *o.full) }

// isTLS is the value of -tls, for a benchmark.
func (o options) isTLS() bool { return o.obey("tls", *o.tls) }

// unheeded are the flags that the user has set and no benchmark has asked for.
func (o options) unheeded() (names []string) {
	names = []string{"full", "tls", "base", "conns"}
	for _, c := range o.lists() {
		names = append(names, c.name)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		set := false
		flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
		return !set || o.obeyed[name]
	})
}

// lists are the flags that take several values.
func (o options) lists() []*choice {
	return []*choice{o.stacks, o.payloads, o.callers, o.links, o.rates}
}

// choice is a flag whose value is a list, separated by commas.
type choice struct {
	name, unlessGiven, full string
	flag                    *string
	check                   func(string) error
}

// list makes a flag. unlessGiven is its value by default, to which -full adds.
func list(name, usage, unlessGiven, full string, check func(string) error) *choice {
	usage += ", separated by commas"
	if full != "" {
		usage += fmt.Sprintf(" (default %q; -full adds %q)", unlessGiven, full)
	}
	return &choice{name, unlessGiven, full, flag.String(name, "", usage), check}
}

// given is what the user said; none if nothing.
func (c *choice) given() []string {
	if *c.flag == "" {
		return nil
	}
	return strings.Split(*c.flag, ",")
}

func (c *choice) values() []string {
	chosen.obeyed[c.name] = true
	values := c.given()
	if values != nil {
		return values
	}
	if c.unlessGiven != "" {
		values = strings.Split(c.unlessGiven, ",")
	}
	if chosen.isFull() {
		values = append(values, strings.Split(c.full, ",")...)
	}
	return values
}

// check says in one line what is wrong with a flag's value.
func (o options) check() (err error) {
	if _, err := stacks.Find(*o.base); err != nil {
		return fmt.Errorf("-base: %w", err)
	}
	flag.Visit(func(f *flag.Flag) {
		if n := *o.conns; f.Name == "conns" && (n < 1 || n > 1000) {
			err = fmt.Errorf("-conns: %d is no number of connections from 1 to 1000", n)
		}
	})
	for _, c := range o.lists() {
		for i, v := range c.given() {
			if err := c.check(v); err != nil {
				return fmt.Errorf("-%s: %w", c.name, err)
			}
			if slices.Contains(c.given()[:i], v) {
				return fmt.Errorf("-%s: %q is there twice", c.name, v)
			}
		}
	}
	return err
}

func callers() []int {
	var all []int
	for _, v := range chosen.callers.values() {
		n, _ := strconv.Atoi(v) // which check has seen
		all = append(all, n)
	}
	return all
}

// TestRunningNamesTheFlags, each at least once.
func TestRunningNamesTheFlags(t *testing.T) {
	running, err := os.ReadFile("docs/running.md")
	require.NoError(t, err)
	names := []string{"full", "tls", "base", "conns", "server", "processes", "long"}
	for _, c := range chosen.lists() {
		names = append(names, c.name)
	}
	for _, name := range names {
		require.NotNil(t, flag.Lookup(name), name)
		require.Regexp(t, "[` ]-"+name+"\\b", string(running))
	}
}
