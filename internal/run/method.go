package run

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
)

// here names the base, and the stacks that are compared with it without a build: this program has them.
func here(p plan.Plan) []string {
	names := []string{p.Base()}
	for _, c := range p.Compared[1:] {
		if c.Build == "" {
			names = append(names, c.Stack)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Also)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// otherJSON says how the JSON of stacks differs from the base's, by their names: libraries that encode the same structs
// may write another. A stack that can't be asked, or doesn't answer within limit, has its measurements to say why.
func otherJSON(ctx context.Context, p plan.Plan, limit time.Duration) map[string]string {
	all, err := p.Find(here(p)...)
	if err != nil { // a base with a build
		return nil
	}
	said := make(chan map[string]string, 1)
	go func() {
		differs := map[string]string{}
		for _, s := range all[1:] {
			if other, err := workload.OtherJSON(ctx, all[0], s); err == nil && other != "" {
				differs[s.Name] = other
			}
		}
		said <- differs
	}()
	select {
	case differs := <-said:
		return differs
	case <-time.After(limit):
		return nil
	}
}

// call describes the method that the stacks of a run serve: sizes, the time of their codecs, and what a handler takes
// of calls. nil is create-user.
func call(ctx context.Context, p plan.Plan) (call *report.Call, warnings []string, err error) {
	all, err := p.Find(here(p)...)
	if p.Compared[0].Build != "" || p.Stacks[0].Serves == "" {
		return nil, nil, nil // another build has other messages, and a user has none of one's own
	}
	if err != nil {
		return nil, nil, err
	}
	codecs := make([]codec, len(all))
	call = &report.Call{Method: all[0].Serves}
	for i, s := range all {
		if codecs[i], err = codecOf(ctx, s); err != nil {
			return nil, nil, err
		}
		body, err := codecs[i].sizes()
		if err != nil {
			return nil, nil, fmt.Errorf("run: %s: %w", s.Name, err)
		}
		call.Made, call.Bodies = codecs[0].requests.MadeOf, append(call.Bodies, body)
	}
	times, err := codecTimes(ctx, p.Seed, codecs)
	if err != nil {
		return nil, nil, fmt.Errorf("run: %w", err)
	}
	var shares map[string]*report.Share
	if p.Servers == nil {
		shares, err = handlers(ctx, p.Seed, all, 10*time.Second)
	}
	if err != nil && ctx.Err() == nil { // all else is known
		warnings, err = []string{fmt.Sprintf("how much of a call the handler is, is not known: %v", err)}, nil
	}
	for i := range times {
		call.Bodies[i].Encode, call.Bodies[i].Decode = times[i][0], times[i][1]
		call.Bodies[i].Handler = shares[all[i].Name]
	}
	return call, warnings, err
}

// codec encodes and decodes the messages of a stack's method.
type codec struct {
	rpcbench.Stack
	requests, replies rpcbench.Messages
}

// codecOf asks a client of the stack.
func codecOf(ctx context.Context, s rpcbench.Stack) (codec, error) {
	f, err := rpcbench.Start(ctx, s, rpcbench.Config{})
	if err != nil {
		return codec{}, err
	}
	client, err := rpcbench.As[rpcbench.MethodClient](f)
	if err != nil {
		return codec{}, errors.Join(err, f.Close())
	}
	requests, replies := client.Messages()
	return codec{s, requests, replies}, f.Close()
}

// sizes are means over the messages that go round.
func (s codec) sizes() (b report.Body, err error) {
	b = report.Body{Stack: s.Name, Codec: s.Traits.Codec, Format: "protobuf"}
	if strings.Contains(s.Protocol, "json") {
		b.Format = "JSON"
	}
	for i := range corpus.Round {
		request, err := s.requests.Encode(i)
		if err != nil {
			return b, err
		}
		reply, err := s.replies.Encode(i)
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

const (
	blocks = 12
	slice  = 5 * time.Millisecond
)

// span is the median of twelve times. Its interval is between the third and the tenth of them, which covers 96.1%.
func span(ns []float64) report.Span {
	slices.Sort(ns)
	return report.Span{Ns: (ns[blocks/2-1] + ns[blocks/2]) / 2, Lo: ns[2], Hi: ns[blocks-3]}
}

// codecTimes has each stack's codec encode, and then decode, the messages of a round, on one core.
func codecTimes(ctx context.Context, seed uint64, stacks []codec) ([][2]report.Span, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var arms []timing.Arm
	for _, s := range stacks {
		var requests, replies [corpus.Round][]byte
		for n := range corpus.Round {
			requests[n], _ = s.requests.Encode(n) // without the error that sizes would have met
			replies[n], _ = s.replies.Encode(n)
		}
		n := 0
		arms = append(arms, timing.Arm{Name: s.Name + " encodes", Op: func() error {
			n = (n + 1) % corpus.Round
			_, err := s.requests.Encode(n)
			_, err2 := s.replies.Encode(n)
			return cmp.Or(err, err2)
		}}, timing.Arm{Name: s.Name + " decodes", Op: func() error {
			n = (n + 1) % corpus.Round
			return cmp.Or(s.requests.Decode(requests[n]), s.replies.Decode(replies[n]))
		}})
	}
	by, err := inTurns(ctx, seed, arms, func(s timing.Slice) time.Duration { return s.Wall }, func() {})
	if err != nil {
		return nil, err
	}
	all := make([][2]report.Span, len(stacks))
	for arm := range arms {
		all[arm/2][arm%2] = span(by[arm])
	}
	return all, nil
}

// inTurns measures arms block by block. Of each arm it returns an amount per op in each block.
func inTurns(ctx context.Context, seed uint64, arms []timing.Arm, amount func(timing.Slice) time.Duration,
	begins func()) (by [][]float64, err error) {
	pairing, err := timing.New(arms, slice, seed)
	for i := 0; err == nil && i < blocks; i++ {
		begins()
		err = pairing.Block(ctx)
	}
	if err != nil {
		return nil, err
	}
	by = make([][]float64, len(arms))
	for _, block := range pairing.Record().Blocks {
		for arm, s := range block {
			by[arm] = append(by[arm], float64(amount(s))/float64(s.Ops))
		}
	}
	return by, nil
}

// handlers are what the handlers of stacks take of calls, by the stack's name. A stack without a handler has none, and
// where the system does not tell CPU time none has. A call may take as long
// as limit, and so may each arm of a block, on average.
func handlers(ctx context.Context, seed uint64, stacks []rpcbench.Stack, limit time.Duration) (
	shares map[string]*report.Share, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type measured struct {
		shares map[string]*report.Share
		err    error
	}
	ended, hung := make(chan measured, 1), make(chan struct{})
	end := sync.OnceValue(func() error { close(hung); return nil })
	watch := workload.Watch(limit, nil, end)
	defer watch.Stop()
	go func() { // which a handler that heeds no context keeps
		shares, err := sharesOf(ctx, seed, stacks, func(n int) { watch.Reset(limit * time.Duration(n)) })
		ended <- measured{shares, err}
	}()
	select {
	case m := <-ended:
		return m.shares, m.err
	case <-hung:
		return nil, errors.New("a handler does not answer")
	}
}

// sharesOf tells before each start, call and block of how many calls or arms it is.
func sharesOf(ctx context.Context, seed uint64, stacks []rpcbench.Stack, begins func(n int)) (
	shares map[string]*report.Share, err error) {
	var arms []timing.Arm
	var names []string
	around := func(ctx context.Context, calls []rpcbench.Call) func() error {
		n := 0
		return func() error {
			n = (n + 1) % len(calls)
			return calls[n](ctx)
		}
	}
	for _, s := range stacks {
		begins(corpus.Round)
		f, err := rpcbench.Start(ctx, s, rpcbench.Config{})
		if err != nil {
			return nil, err
		}
		defer f.Close()
		defer context.AfterFunc(ctx, func() { _ = f.Close() })() // a call that hangs ends so
		client, handles := f.Client.(interface {
			Alone(ctx context.Context, i int) (rpcbench.Call, error)
		})
		if !handles {
			continue
		}
		var calls, alone []rpcbench.Call
		for i := range corpus.Round {
			call, err := f.Client.Prepare(i)
			if err != nil {
				return nil, err
			}
			begins(1)
			handler, err := client.Alone(ctx, i)
			if err != nil {
				return nil, fmt.Errorf("%s, its handler alone: %w", s.Name, err)
			}
			calls, alone = append(calls, call), append(alone, handler)
		}
		names = append(names, s.Name)
		arms = append(arms, timing.Arm{Name: s.Name + " calls", Op: around(context.Background(), calls)},
			timing.Arm{Name: s.Name + ", its handler alone", Op: around(ctx, alone)})
	}
	if _, told := cpu.Time(); arms == nil || !told {
		return nil, nil
	}
	by, err := inTurns(ctx, seed, arms, func(s timing.Slice) time.Duration {
		return s.CPU
	}, func() { begins(len(arms)) })
	if err != nil {
		return nil, err
	}
	shares = map[string]*report.Share{}
	for i, name := range names {
		if shares[name], err = shareOf(by[2*i], by[2*i+1]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return shares, nil
}

// shareOf makes a share of the CPU times of each block. A coarse clock may tell none, and so may a handler that sleeps.
func shareOf(call, handler []float64) (*report.Share, error) {
	part := make([]float64, len(call))
	for block := range call {
		part[block] = handler[block] / call[block]
		if !(part[block] > 0) || math.IsInf(part[block], 1) {
			return nil, errors.New("the system told no CPU time of a slice")
		}
	}
	share := span(part)
	return &report.Share{Call: span(call), Handler: span(handler), Share: share.Ns, Lo: share.Lo, Hi: share.Hi}, nil
}

// explained is how long each stack is explained that is timed for so long: in two processes to five.
func explained(time time.Duration) time.Duration {
	return calls.Each * min(5, 1+max(1, time/calls.Each))
}

// layersOf is the table of explain for the base and the first contestant, of as many processes as their time asks for.
func layersOf(ctx context.Context, p plan.Plan, show shell.Show) (string, error) {
	two, all := p.Compared[:2], p.Sweep.Workloads
	if two.OfBuilds() {
		return "", nil
	}
	single := func(w workload.Planned) bool { return !w.Windowed() }
	w := all[max(0, slices.IndexFunc(all, single))].Workload
	if w.Routed() { // where the time of the calls themselves goes
		w.Link = ""
	}
	found, err := calls.Explain(ctx, calls.Rounds{Arms: two.Stacks(), Workload: w, Procs: 1}, explained(p.Time), show)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	if w.Apart {
		_ = shell.Say(&said, calls.OneProcess, w.Name) // to memory
	}
	for _, e := range found {
		err = errors.Join(err, e.Print(&said))
	}
	err = errors.Join(err, calls.PrintDifference(&said, found[1], found[0]))
	return said.String(), err
}
