package rpcbench_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/report"
)

// explained is what rpcbench explain printed of two stacks.
type explained struct {
	t      *testing.T
	text   string
	stacks [2]string
}

func explainedIn(t *testing.T, name string) explained {
	t.Helper()
	text := read(t, whyRun+"/explain-"+name+".txt")
	m := regexp.MustCompile(`(?m)^(\S+) less (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, m, name)
	return explained{t, text, [2]string{m[1], m[2]}}
}

// line returns the figures of a layer: client, server, unlabelled, all, and the last column.
func (e explained) line(section, layer string) (figures [5]float64) {
	e.t.Helper()
	require.Contains(e.t, append(layers.Names(), "sum"), layer)
	_, rest, ok := strings.Cut("\n"+e.text, "\n"+section)
	require.True(e.t, ok, section)
	rest, _, _ = strings.Cut(rest, "\n\n")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(layer) + ` +(\S+) +(\S+) +(\S+) +(\S+) +([\d.]+)`).FindStringSubmatch(rest)
	if m == nil {
		return figures // no sample
	}
	for i, text := range m[1:] {
		var err error
		figures[i], err = strconv.ParseFloat(text, 64)
		require.NoError(e.t, err)
	}
	return figures
}

// less returns by how much a layer differs, and half the width of its interval.
func (e explained) less(layer string) (micro, half float64) {
	e.t.Helper()
	f := e.line(e.stacks[0]+" less "+e.stacks[1], layer)
	return f[3], f[4]
}

// more says by how much a layer differs.
func (e explained) more(layer string) string {
	e.t.Helper()
	micro, half := e.less(layer)
	return fmt.Sprintf("%+.1f ± %.1f µs", micro, half)
}

// carriers are the functions that a layer's difference is owed to.
func (e explained) carriers(layer string) string {
	e.t.Helper()
	_, rest, _ := strings.Cut(e.text, " less "+e.stacks[1]+"\n")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(layer) + ` +\S+ +\S+ +\S+ +\S+ +[\d.]+ +(\S.*)$`).FindStringSubmatch(rest)
	require.NotNil(e.t, m, "functions of %s", layer)
	return m[1]
}

// at says what a layer of one of the two stacks takes.
func (e explained) at(stack int, layer string) string {
	e.t.Helper()
	f := e.line(e.stacks[stack]+": ", layer)
	return fmt.Sprintf("%.1f µs (%.0f %%)", f[3], f[4])
}

// both are the differences by the profiles and without the profiler.
func (e explained) both() (profiled, plain string) {
	e.t.Helper()
	m := regexp.MustCompile(`The difference is (.*\)) by the profiles and (.*\)) without`).FindStringSubmatch(e.text)
	require.NotNil(e.t, m)
	return m[1], m[2]
}

// table is the difference layer by layer.
func (e explained) table() string {
	e.t.Helper()
	var b strings.Builder
	b.WriteString("| layer | client, µs | server, µs | unlabelled, µs | all, µs | ± |\n|---|---:|---:|---:|---:|---:|\n")
	_, rest, _ := strings.Cut(e.text, " less "+e.stacks[1]+"\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^(\S.*?)  +([+-]\S+) +(\S+) +(\S+) +(\S+) +([\d.]+)`).FindAllStringSubmatch(rest, -1) {
		fmt.Fprintf(&b, "| %s | %s |\n", m[1], strings.Join(m[2:], " | "))
	}
	return b.String()
}

// climbed reads a step of BenchmarkLadder or BenchmarkBound, such as Ladder/ladder=grpc/step=whole.
func climbed(t *testing.T, file, step string) (a report.Answer) {
	t.Helper()
	rows := 0
	for _, r := range rowsOf(t, read(t, whyRun+"/"+file)) {
		if !strings.HasPrefix(string(r.Name), step+"/") {
			continue
		}
		rows++
		value := func(unit string) float64 {
			v, ok := r.Value(unit)
			require.True(t, ok, "%s of %s", unit, r.Name)
			return v
		}
		if _, upper := r.Value("base-ratio"); !upper {
			a.BaseNs = 1e9 * value("sec/op")
			continue
		}
		base := a.BaseNs
		a = answered(value("base-ratio"), value("base-ratio-lo"), value("base-ratio-hi"),
			value("noise-floor-%")/100, value("base-moved-%")/100)
		a.BaseNs = base
	}
	require.Equal(t, 2, rows, "rows of %s in %s", step, file)
	a.Verdict = "undecided"
	switch "holds" {
	case paired("", a, 0, 1).verdict():
		a.Verdict = "faster"
	case paired("", a, 1, math.MaxFloat64).verdict():
		a.Verdict = "slower"
	}
	return a
}

// climb reads the steps of a ladder. All start from one time, that of the lowest rung in the row of the whole: a step
// of its own minutes would add its own machine's microseconds.
func climb(t *testing.T, l ladder) (all []report.Answer) {
	t.Helper()
	for _, s := range l.steps() {
		all = append(all, climbed(t, "ladder.txt", "Ladder/ladder="+l.name+"/step="+s.name))
	}
	return oneBase(all)
}

// oneBase gives each step the last one's base, times the ratios of the steps below it.
func oneBase(all []report.Answer) []report.Answer {
	base := all[len(all)-1].BaseNs
	below := base
	for i := range all {
		all[i].BaseNs = below
		below *= all[i].Ratio
	}
	all[len(all)-1].BaseNs = base
	return all
}

// product is steps that were measured apart, taken together. Its interval is the root of the sum of their squares.
func product(steps ...report.Answer) report.Answer {
	ratio, squares := 1.0, 0.0
	for _, a := range steps {
		ratio *= a.Ratio
		squares += math.Pow(math.Log(a.Hi/a.Lo)/2, 2)
	}
	half := math.Exp(math.Sqrt(squares))
	p := answered(ratio, ratio/half, ratio*half, 0, 0)
	p.BaseNs = steps[0].BaseNs
	return p
}

// upsideDown exchanges the two stacks of an answer.
func upsideDown(a report.Answer) report.Answer {
	return answered(1/a.Ratio, 1/a.Hi, 1/a.Lo, 0, 0)
}

// factor is a ratio with its interval.
func factor(a report.Answer) string { return "×" + times(a) }

// halfMicro is half the width of the interval of a.Micro().
func halfMicro(a report.Answer) float64 { return a.BaseNs * (a.Hi - a.Lo) / 2 / 1000 }

// plusMinus is a difference and half the width of its interval.
func plusMinus(micro, half float64) string { return fmt.Sprintf("%+.1f ± %.1f", micro, half) }

// ladderTable has a row for each step of BenchmarkLadder, and compares the product of the steps with the whole.
func ladderTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| ladder | rung | what it changes | below, µs | step | verdict | more, µs |\n" +
		"|---|---|---|---:|---:|---|---:|\n")
	for _, l := range ladders() {
		climbed := climb(t, l)
		for i, s := range l.steps() {
			a, rung, change := climbed[i], "`"+s.upper.Name+"`", s.change
			if s.name == whole {
				rung, change = "whole", fmt.Sprintf("from `%s` to `%s`", s.lower.Name, s.upper.Name)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s | %s | %s |\n", l.name, rung, change, a.BaseNs/1000, factor(a),
				a.Verdict, plusMinus(a.Micro(), halfMicro(a)))
			if s.name == whole {
				steps := product(climbed[:i]...)
				fmt.Fprintf(&b, "| %s | the steps | multiply to %s of the whole | %.1f | %s | | %s |\n", l.name,
					factor(product(steps, upsideDown(a))), steps.BaseNs/1000, factor(steps),
					plusMinus(steps.Micro(), halfMicro(steps)))
			}
		}
	}
	return b.String()
}

// agreeTable sets steps of the ladder beside profiles of both of its rungs.
func agreeTable(t *testing.T) string {
	t.Helper()
	together := func(name string, steps ...string) report.Answer {
		var taken []report.Answer
		for _, l := range ladders() {
			if l.name != name {
				continue
			}
			climbed := climb(t, l)
			for i, s := range l.steps() {
				if slices.Contains(steps, s.name) {
					taken = append(taken, climbed[i])
				}
			}
		}
		require.Len(t, taken, len(steps), "steps of %s", name)
		return product(taken...)
	}
	var b strings.Builder
	b.WriteString("| step | by the ladder, µs | by profiles of both rungs, µs | the ladder's is more by, µs " +
		"| of the profiles', µs |\n|---|---:|---:|---:|---|\n")
	var apart []string
	compared := 0
	row := func(step string, a report.Answer, micro, half float64, parts string) {
		more, room := a.Micro()-micro, math.Hypot(halfMicro(a), half)
		if compared++; math.Abs(more) > room {
			apart = append(apart, step)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", step, plusMinus(a.Micro(), halfMicro(a)),
			plusMinus(micro, half), plusMinus(more, room), parts)
	}
	steps := read(t, whyRun+"/steps.txt")
	for _, s := range []struct{ ladder, step, layer string }{
		{"http", "ladder.http.codec", serialise}, {"http", "httpjson", "validation"},
		{"grpc", "ladder.grpc.codec", serialise}, {"grpc", "grpcprotobuf", "validation"},
	} {
		profiled := func(layer string) (micro, half float64) {
			line := fmt.Sprintf(`(?m)^\| .%s. \| %s \| (\S+) \| (\S+) \|$`, regexp.QuoteMeta(s.step), layer)
			m := regexp.MustCompile(line).FindStringSubmatch(steps)
			require.NotNil(t, m, "%s of %s", layer, s.step)
			var errs [2]error
			micro, errs[0] = strconv.ParseFloat(m[1], 64)
			half, errs[1] = strconv.ParseFloat(m[2], 64)
			require.NoError(t, errors.Join(errs[:]...))
			return micro, half
		}
		micro, half := profiled("sum")
		row("`"+s.step+"`", together(s.ladder, s.step), micro, half, fmt.Sprintf("%s in %s, %s in %s",
			plusMinus(profiled(s.layer)), s.layer, plusMinus(profiled(memory)), memory))
	}
	served := explainedIn(t, "servehttp")
	micro, half := served.less("sum")
	both := together("servehttp", "ladder.grpc.nethttp", "ladder.grpc.servehttp")
	row("from grpc-go's own server to ServeHTTP", both, micro, half,
		fmt.Sprintf("%s in %s", plusMinus(served.less(network)), network))
	fmt.Fprintf(&b, "\nDifferences beyond their interval: %d of %d", len(apart), compared)
	return b.String() + strings.Join(append([]string{""}, apart...), ", ") + ".\n"
}

// TestStepsOfALadder: microseconds of steps add up to those of the whole, and their intervals to that of the product.
func TestStepsOfALadder(t *testing.T) {
	step := func(ratio, half, base float64) report.Answer {
		a := answered(ratio, ratio*math.Exp(-half), ratio*math.Exp(half), 0, 0)
		a.BaseNs = base
		return a
	}
	steps := oneBase([]report.Answer{step(2, 0, 1100), step(3, 0, 1900), step(6, 0, 1000)})
	require.Equal(t, []float64{1, 4, 5}, []float64{steps[0].Micro(), steps[1].Micro(), steps[2].Micro()})
	alone := oneBase([]report.Answer{step(2, 0, 1100)})
	require.Equal(t, 1.1, alone[0].Micro(), "the base of the only step")

	a, b := step(2, 0.3, 1000), step(5, 0.4, 2000)
	p := product(a, b)
	require.InDeltaSlice(t, []float64{10, 10 * math.Exp(-0.5), 10 * math.Exp(0.5)}, []float64{p.Ratio, p.Lo, p.Hi}, 1e-9)
	require.InDelta(t, 9, p.Micro(), 1e-9, "from the first one's base")
	q := product(b, upsideDown(a))
	want := []float64{2.5, 2.5 * math.Exp(-0.5), 2.5 * math.Exp(0.5)}
	require.InDeltaSlice(t, want, []float64{q.Ratio, q.Lo, q.Hi}, 1e-9)
	require.Equal(t, answered(0.5, 0.25, 1, 0, 0), upsideDown(answered(2, 1, 4, 0, 0)))
	require.InDelta(t, 2*math.Sinh(0.3), halfMicro(a), 1e-9)
}

// boundTable has what the fastest codec could win, where the verdict is that it wins.
func boundTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| bound | time to the real stack's (95 %) | a free codec saves (95 %) |\n|---|---:|---|\n")
	for _, s := range bounds() {
		a := climbed(t, "bound.txt", "Bound/bound="+s.name)
		saves := string(a.Verdict)
		if a.Verdict == "faster" {
			saves = fmt.Sprintf("%.0f to %.0f %%", 100*(1-a.Hi), 100*(1-a.Lo))
		}
		fmt.Fprintf(&b, "| `%s` without %s | %s | %s |\n", s.upper.Name,
			map[bool]string{true: "codec and validation", false: "codec"}[strings.HasSuffix(s.name, ".validation")],
			times(a), saves)
	}
	return b.String()
}

// split says what the profiles show of two stacks, with the command that makes them.
func (e explained) split(command string) string {
	e.t.Helper()
	profiled, plain := e.both()
	a, b := e.line(e.stacks[0]+": ", "sum"), e.line(e.stacks[1]+": ", "sum")
	return fmt.Sprintf("`%s` takes %.1f µs of CPU per call, `%s` %.1f µs.\nThe difference is %s by the profiles.\nWithout the profiler it is %s.\n\n%s\n"+
		"`rpcbench explain %s %s %s`\n", e.stacks[0], a[3], e.stacks[1], b[3], profiled, plain, e.table(), command, e.stacks[0], e.stacks[1])
}

// part is a layer's share of the difference, in percent.
func (e explained) part(layer string, column int) float64 {
	e.t.Helper()
	section := e.stacks[0] + " less " + e.stacks[1]
	return 100 * e.line(section, layer)[column] / e.line(section, "sum")[3]
}

const (
	network, schedule, memory = "networking (syscalls)", "scheduling and wake-ups", "allocation and GC"
	framing, serialise        = "HTTP framing and headers", "serialisation"
)

// calls reads a column of writes.txt.
func calls(t *testing.T, stack string, column int) string {
	t.Helper()
	for line := range strings.Lines(whyWrites(t)) {
		if cells := strings.Split(line, " | "); cells[0] == "| `"+stack+"`" {
			return strings.TrimSuffix(strings.TrimSpace(cells[column]), " |")
		}
	}
	t.Fatalf("%s is not in writes.txt", stack)
	return ""
}

func whyServeHTTP(t *testing.T) string {
	t.Helper()
	e := explainedIn(t, "servehttp")
	netHTTP := climbed(t, "ladder.txt", "Ladder/ladder=servehttp/step=ladder.grpc.nethttp")
	adapter := climbed(t, "ladder.txt", "Ladder/ladder=servehttp/step=ladder.grpc.servehttp")
	return fmt.Sprintf(`- **The server under it.** grpc-go's client calls net/http's HTTP/2 server, where a short handler answers gRPC by hand.
  The time is %s that with grpc-go's own server.
- **The adapter on top.** With grpc-go's ServeHTTP in place of the short handler the time is %s.
- **System calls.** The server calls Write %s and Read %s times per call, grpc-go's own server %s and %s
  times. net/http's HTTP/2 server writes [each frame](#how-often-a-call-reads-and-writes) by itself. It reads a frame's
  header and the rest with a Read each.
- **Where the time goes.** The server's side has %.0f %% of the difference. System calls add %s,
  the allocator %s, HTTP itself %s, the scheduler %s,
  and grpc-go's code %s.

%s`, factor(netHTTP), factor(adapter), calls(t, "grpcservehttp", 3), calls(t, "grpcservehttp", 4), calls(t, "grpcprotobuf", 3), calls(t, "grpcprotobuf", 4),
		e.part("sum", 1), e.more(network), e.more(memory), e.more(framing), e.more(schedule), e.more("RPC library"),
		e.split("-time 60s"))
}

func whyHTTP2(t *testing.T) string {
	t.Helper()
	e := explainedIn(t, "http2")
	step := climbed(t, "ladder.txt", "Ladder/ladder=http2/step=ladder.h2.bytes")
	return fmt.Sprintf(`- **Serialisation is not the cause.** To pass bytes over HTTP/2, net/http takes %s the time of HTTP/1.1.
- **Framing is the smaller part.** Headers and frames add %s.
- **System calls are the larger part.** They add %s. Client and server call Write %s and %s times per
  call in place of %s and %s. The server calls Read %s times in place of %s.
- **New goroutines cost too.** The scheduler adds %s. The allocator adds
  %s, in which growing stacks stand out: %s.

%s`, factor(step), e.more(framing), e.more(network), calls(t, "httpjson.h2c", 1), calls(t, "httpjson.h2c", 3), calls(t, "httpjson", 1), calls(t, "httpjson", 3),
		calls(t, "httpjson.h2c", 4), calls(t, "httpjson", 4), e.more(schedule), e.more(memory), e.carriers(memory), e.split("-time 40s"))
}

func whyGzip(t *testing.T) string {
	t.Helper()
	e := explainedIn(t, "gzip")
	s, _ := ran(t, whyRun+"/connect-gzip")
	small, large := answerTo(t, s, "small", "connectrpc.gzip"), answerTo(t, s, "structured-1kB", "connectrpc.gzip")
	return fmt.Sprintf(`- **Starting a compressor.** Compression adds %s, %.0f %% of the difference. Its functions are
  %s.
  The first clears the tables of a pooled compressor.
- **A small reply grows.** %.0f bytes are received in place of %.0f. The call takes %s times as long as without.
- **With 1 kB of structured data** a reply shrinks from %.0f to %.0f bytes, and the call takes %s times as long.

%s`, e.more("compression"), e.part("compression", 3), e.carriers("compression"), small.Facts.Received, small.BaseFacts.Received, times(small),
		large.BaseFacts.Received, large.Facts.Received, times(large), e.split("-time 40s"))
}

func whyOneCaller(t *testing.T) string {
	t.Helper()
	one, two := explainedIn(t, "core"), explainedIn(t, "one-caller") // on one core, on two
	s, _ := ran(t, workloadsRun)
	var b strings.Builder
	fmt.Fprintf(&b, `With one caller nothing runs beside the call, so the caller waits for all of the work. gRPC's work is more.

- On one core gRPC takes %s more CPU per call than JSON, on two cores %s.
- The allocator's part of that is %s on one core, and %s on two. Among it are stacks that
  grow: grpc-go's server starts a goroutine per call.
- gRPC's own code has %s on one core, and %s on two.
- The scheduler's part is %s on two cores. A profile does not show waiting itself.

The ratio turns with callers and with size. Why fifty callers bring gRPC nearer has not been taken apart.

| workload | gRPC to JSON (95 %%) | verdict |
|---|---:|---|
`, one.more("sum"), two.more("sum"), one.more(memory), two.more(memory), one.more("RPC library"), two.more("RPC library"), two.more(schedule))
	for _, workload := range []string{"small", "small-1-caller", "small-50-callers", "mixed", "mixed-50-callers", "structured-1kB"} {
		a := answerTo(t, s, workload, "grpcprotobuf")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Does, times(a), a.Verdict)
	}
	return b.String() + "\n" + two.split("-time 40s -gomaxprocs 0 -workload small-1-caller")
}

func whyBytes(t *testing.T) string {
	t.Helper()
	e := explainedIn(t, "bytes")
	s, _ := ran(t, workloadsRun)
	a := answerTo(t, s, "bytes-10kB", "grpcprotobuf")
	return fmt.Sprintf(`- **Bytes become text.** JSON writes them in base64, four characters for three bytes. The client sends %.0f bytes in
  place of %.0f.
- **Reading text is most of the cost.** Serialisation adds %s, %.0f %% of the difference. Functions of
  json.Unmarshal carry most of that:
  %s.
- **Buffers follow.** The allocator adds %s: %.0f kB per call in place of %.0f kB.

%s`, a.BaseFacts.Sent, a.Facts.Sent, e.more(serialise), e.part(serialise, 3), e.carriers(serialise), e.more(memory),
		a.BaseFacts.AllocBytes/1000, a.Facts.AllocBytes/1000, e.split("-time 30s -workload bytes-10kB"))
}

func whyFree(t *testing.T) string {
	t.Helper()
	e := explainedIn(t, "structured")
	return fmt.Sprintf(`- **A small call.** The bounds below replay prepared bytes and values in place of encoding. They are no contestants: no
  real codec can do that.
- **10 kB of structured data.** encoding/json's serialisation takes %s of a call's CPU, protobuf's
  %s. No bound was measured for that message.

%s
`+"`go test -run '^$' -bench Bound -full -processes 8 -cpu 1 .`"+`

%s`, e.at(0, serialise), e.at(1, serialise), boundTable(t), e.split("-time 30s -workload structured-10kB"))
}

// whyWrites is how often each side calls the kernel to move bytes.
func whyWrites(t *testing.T) string {
	t.Helper()
	return read(t, whyRun+"/writes.txt")
}

// whyFrames is what each Write of one call carries.
func whyFrames(t *testing.T) string {
	t.Helper()
	return "```text\n" + read(t, whyRun+"/frames.txt") + "```\n"
}

// whyShares compares the client's share of CPU by labels with that of two processes.
func whyShares(t *testing.T) string {
	t.Helper()
	client, server := measured(t, whyRun+"/apart.txt", "cpu-ns/op"), measured(t, whyRun+"/apart.txt", "server-cpu-ns/op")
	e := explainedIn(t, "servehttp")
	var b, causes strings.Builder
	b.WriteString("| stack | client's share by labels | client's share of two processes | apart |\n|---|---:|---:|---:|\n")
	causes.WriteString("| stack | layer of the client | one process | two processes |\n|---|---|---:|---:|\n")
	for _, stack := range []string{"grpcprotobuf", "grpcservehttp"} {
		row := "CreateUser/stack=" + stack
		f, c, s := e.line(stack+": ", "sum"), client[row][0], server[row][0]
		labels, apart := 100*f[0]/(f[0]+f[1]), 100*c/(c+s)
		fmt.Fprintf(&b, "| `%s` | %.0f %% | %.0f %% | %.0f points |\n", stack, labels, apart, apart-labels)
		own := explained{t: t, text: read(t, whyRun+"/apart-"+stack+".txt")} // of the client's process
		clientOf := func(layer string) float64 { return own.line("Benchmark"+row+": ", layer)[0] }
		for _, layer := range layers.Names() {
			in, out := 100*e.line(stack+": ", layer)[0]/f[0], 100*clientOf(layer)/clientOf("sum")
			if in+out > 10 {
				fmt.Fprintf(&causes, "| `%s` | %s | %.0f %% | %.0f %% |\n", stack, layer, in, out)
			}
		}
	}
	return b.String() + "\nIn two processes every call sleeps and wakes another core twice. So the client's system calls and its scheduling " +
		"are a\nlarger part of its labelled time:\n\n" + causes.String()
}
