package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// call describes the method that the stacks of a run serve: sizes, and the time of their codecs. nil is create-user.
func (c *comparison) call() (*report.Call, error) {
	names := []string{c.base}
	for _, name := range c.contestants {
		if build(name) == "" {
			names = append(names, name)
		}
	}
	all, err := c.find(names...)
	if err != nil || all[0].Method == "" {
		return nil, nil // a base of another build has other messages
	}
	call := &report.Call{Method: all[0].Method, Made: all[0].MadeOf}
	for _, s := range all {
		body, err := sizes(s)
		if err != nil {
			return nil, fmt.Errorf("rpcbench: run: %s: %w", s.Name, err)
		}
		call.Bodies = append(call.Bodies, body)
	}
	for i, times := range codecTimes(all) {
		call.Bodies[i].Encode, call.Bodies[i].Decode = times[0], times[1]
	}
	return call, nil
}

// sizes are means over the messages that go round.
func sizes(s rpcbench.Stack) (b report.Body, err error) {
	b = report.Body{Stack: s.Name, Codec: s.Traits.Codec, Format: "protobuf"}
	if strings.Contains(s.Protocol, "json") {
		b.Format = "JSON"
	}
	for i := range corpus.Round {
		request, err := s.Request.Encode(i)
		if err != nil {
			return b, err
		}
		reply, err := s.Reply.Encode(i)
		if err != nil {
			return b, err
		}
		b.Request, b.Reply = b.Request+float64(len(request))/corpus.Round, b.Reply+float64(len(reply))/corpus.Round
		b.GzipRequest, b.GzipReply = b.GzipRequest+zipped(request)/corpus.Round, b.GzipReply+zipped(reply)/corpus.Round
	}
	return b, nil
}

func zipped(data []byte) float64 {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return float64(out.Len())
}

// codecTimes has each stack's codec encode, then decode, the messages of a round, on one core. The stacks take turns of
// 5 ms; a median over 25 turns has its interval between the 8th and the 18th of them, which covers 95.7 %.
func codecTimes(stacks []rpcbench.Stack) [][2]report.Span {
	const turns, turn, lo, hi = 25, 5 * time.Millisecond, 8, 18
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	all, times := make([][2]report.Span, len(stacks)), make([][2][]float64, len(stacks))
	for range turns + 1 { // the first turn fills caches
		for i, s := range stacks {
			var requests, replies [corpus.Round][]byte
			for j, what := range []func(n int){
				func(n int) { // what sizes has seen
					requests[n], _ = s.Request.Encode(n)
					replies[n], _ = s.Reply.Encode(n)
				},
				func(n int) { _, _ = s.Request.Decode(requests[n]), s.Reply.Decode(replies[n]) },
			} {
				calls, began := 0, time.Now()
				for calls == 0 || time.Since(began) < turn {
					for n := range corpus.Round {
						what(n)
					}
					calls += corpus.Round
				}
				times[i][j] = append(times[i][j], float64(time.Since(began))/float64(calls))
			}
		}
	}
	for i := range all {
		for j, measured := range times[i] {
			measured = measured[1:]
			slices.Sort(measured)
			all[i][j] = report.Span{Ns: measured[turns/2], Lo: measured[lo-1], Hi: measured[hi-1]}
		}
	}
	return all
}

// layers is the table of explain for the base and the first contestant, of five processes, or of two with -quick.
func (c *comparison) layers(ctx context.Context, show show) (string, error) {
	names := []string{c.base, c.contestants[0]}
	if build(names[0])+build(names[1]) != "" {
		return "", nil
	}
	spec := versus.Spec{Workload: c.workloads[0], Slice: turn, Procs: 1, Blocks: rounds}
	length := 5 * each
	if c.fewest == versus.FewestQuick {
		length = 2 * each
	}
	all, err := c.explain(ctx, spec, length, 0, names, show)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	t := tabwriter.NewWriter(&said, 0, 0, 2, ' ', 0)
	for _, e := range all {
		e.print(t)
	}
	printDifference(io.Writer(t), all[1], all[0])
	return said.String(), t.Flush()
}
