package rpcbench_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
)

// The measurements that docs/claims.md and docs/why.md speak of.
const (
	whyRun     = "results/2026-11-23-epyc-2vcpu/why"
	quietCodec = "results/2026-11-22-xeon-2vcpu-noon/codecs-"

	quietDefault = "results/2026-11-22-xeon-2vcpu-noon/versus-default.txt" // as quietRun, with all cores
)

// claim is a published statement, with what was measured here as its counterpart in Go.
type claim struct {
	said, figure, source string
	void                 string // why nothing here decides it
	readings             []reading
}

// reading is one measured figure. It bears the claim out if its interval lies between least and most.
type reading struct {
	what          string
	value, lo, hi float64
	floor         float64 // the noise floor: by how much two of the same may differ
	least, most   float64
}

// exact is a reading of what is counted.
func exact(what string, value, least, most float64) reading {
	return reading{what, value, value, value, 0, least, most}
}

// inNoise is whether the interval reaches into the noise floor.
func (r reading) inNoise() bool { return r.lo < 1+r.floor && r.hi > 1/(1+r.floor) && r.floor > 0 }

// verdict takes an interval that reaches into the noise floor for one that holds all of the floor: no difference is
// proved, as in the verdicts of the library.
func (r reading) verdict() string {
	lo, hi := r.lo, r.hi
	if floor := 1 + r.floor; r.inNoise() {
		lo, hi = min(lo, 1/floor), max(hi, floor)
	}
	switch {
	case lo >= r.least && hi <= r.most:
		return "holds"
	case lo > r.most && r.least >= 1, hi < r.least && r.most <= 1: // of a claim that one is greater, or less
		return "more than claimed"
	case hi < r.least || lo > r.most:
		return "does not hold"
	}
	return "undecided"
}

func (r reading) String() string {
	claimed := fmt.Sprintf("claimed %.3g to %.3g", r.least, r.most)
	if r.most == math.MaxFloat64 {
		claimed = fmt.Sprintf("claimed above %.3g", r.least)
	} else if r.least == 0 {
		claimed = fmt.Sprintf("claimed below %.3g", r.most)
	}
	if r.lo == r.hi {
		return fmt.Sprintf("%s: %.2f, %s: %s", r.what, r.value, claimed, r.verdict())
	}
	if r.inNoise() {
		claimed = fmt.Sprintf("noise floor %.1f %%, %s", 100*r.floor, claimed)
	}
	return fmt.Sprintf("%s: %.2f (%.2f–%.2f), %s: %s", r.what, r.value, r.lo, r.hi, claimed, r.verdict())
}

// verdict sums up the figures of a claim.
func (c claim) verdict() string {
	if c.void != "" {
		return "void"
	}
	var decided []string
	for _, r := range c.readings {
		if v := r.verdict(); v != "undecided" && !slices.Contains(decided, v) {
			decided = append(decided, v)
		}
	}
	open := slices.ContainsFunc(c.readings, func(r reading) bool { return r.verdict() == "undecided" })
	switch {
	case len(decided) == 0:
		return "undecided"
	case len(decided) > 1:
		return "holds in part"
	case open:
		return decided[0] + " where it is decided"
	}
	return decided[0]
}

// count says how many figures have which verdict.
func (c claim) count() string {
	var said []string
	for _, v := range []struct{ verdict, words string }{
		{"holds", "holds for %d"}, {"more than claimed", "more for %d"}, {"does not hold", "fails for %d"}, {"undecided", "undecided for %d"}} {
		n := 0
		for _, r := range c.readings {
			if r.verdict() == v.verdict {
				n++
			}
		}
		if n > 0 {
			said = append(said, fmt.Sprintf(v.words, n))
		}
	}
	return strings.Join(said, ", ")
}

func TestVerdictsOfClaims(t *testing.T) {
	holds, fails, more, open := exact("a", 2, 1, 3), exact("b", 0.5, 1, 3), exact("d", 4, 1, 3), reading{"c", 3, 2, 4, 0, 1, 3}
	for want, readings := range map[string][]reading{
		"holds":                             {holds, holds},
		"does not hold":                     {fails},
		"more than claimed":                 {more},
		"holds in part":                     {open, fails, holds},
		"does not hold where it is decided": {open, fails},
		"holds where it is decided":         {holds, open},
		"undecided":                         {open, open},
	} {
		require.Equal(t, want, claim{readings: readings}.verdict())
		require.Equal(t, "void", claim{void: "since", readings: readings}.verdict())
	}
	require.Equal(t, "holds for 2, more for 1, fails for 1, undecided for 1", claim{readings: []reading{open, fails, holds, more, holds}}.count())
	require.Equal(t, "a: 2.00, claimed 1 to 3: holds", holds.String())
	require.Equal(t, "c: 3.00 (2.00–4.00), claimed above 1: holds", reading{"c", 3, 2, 4, 0.5, 1, math.MaxFloat64}.String())
	require.Equal(t, "e: 1.02 (1.01–1.03), noise floor 5.0 %, claimed below 1: undecided", reading{"e", 1.02, 1.01, 1.03, 0.05, 0, 1}.String())
}

func TestVerdictsOfReadings(t *testing.T) {
	most := math.MaxFloat64
	for _, c := range []struct {
		reason, want string
		reading      reading
	}{
		{"less is claimed, and it is much less", "more than claimed", reading{"", 0.22, 0.21, 0.23, 0, 0.3, 0.6}},
		{"less is claimed, and it is more", "does not hold", reading{"", 1.37, 1.31, 1.42, 0, 0.3, 0.6}},
		{"less is claimed, and it is a little less", "does not hold", exact("", 0.9, 0.6, 0.8)},
		{"about the same is claimed, and it is less", "does not hold", reading{"", 0.5, 0.4, 0.6, 0, 0.8, 1.25}},
		{"a difference outside the noise floor", "holds", reading{"", 1.07, 1.04, 1.10, 0.03, 1, most}},
		{"a difference inside the noise floor", "undecided", reading{"", 1.02, 1.01, 1.03, 0.05, 1, most}},
		{"a difference that reaches into the noise floor", "undecided", reading{"", 1.07, 1.04, 1.10, 0.05, 1, most}},
		{"a gain that reaches into the noise floor", "undecided", reading{"", 0.95, 0.93, 0.97, 0.05, 0, 1}},
		{"no difference is proved, and five times is claimed", "does not hold", reading{"", 1.02, 1.01, 1.03, 0.05, 5, 10}},
		{"the noise floor is nothing far from 1", "holds", reading{"", 2.13, 2.03, 2.24, 0.9, 2, most}},
	} {
		require.Equal(t, c.want, c.reading.verdict(), c.reason)
	}
}

// about is what "n times" leaves room for.
func about(n float64) (least, most float64) { return n / 1.25, n * 1.25 }

// measured reads rows of go test -bench: all values of a unit, by the row's name without GOMAXPROCS.
func measured(t *testing.T, path, unit string) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	for _, r := range rowsOf(t, read(t, path)) {
		base, parts := r.Name.Parts()
		name := string(base)
		for _, p := range parts {
			if strings.Contains(string(p), "=") {
				name += string(p)
			}
		}
		for _, v := range r.Values {
			if v.Unit == unit || v.OrigUnit == unit {
				value := v.Value
				if v.OrigUnit == unit {
					value = v.OrigValue
				}
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

// quotient compares two samples by their medians. They are not paired: their runs were made one after the other, or in
// random order, and the machine may have changed between. The interval is from the lower end of the one by the upper
// end of the other to the reverse, so it is wider than 95 %.
func quotient(t *testing.T, what string, a, b []float64, least, most float64) reading {
	t.Helper()
	require.GreaterOrEqual(t, min(len(a), len(b)), 6, "%s: samples that an interval needs", what)
	x := benchmath.AssumeNothing.Summary(benchmath.NewSample(a, &benchmath.DefaultThresholds), 0.95)
	y := benchmath.AssumeNothing.Summary(benchmath.NewSample(b, &benchmath.DefaultThresholds), 0.95)
	return reading{what, x.Center / y.Center, x.Lo / y.Hi, x.Hi / y.Lo, 0, least, most}
}

// answered is an answer of these figures alone.
func answered(ratio, lo, hi, floor, moved float64) (a report.Answer) {
	a.Ratio, a.Lo, a.Hi, a.CopyFloor, a.Moved = ratio, lo, hi, floor, moved
	return a
}

// paired is the ratio of an answer, with its interval and its noise floor.
func paired(what string, a report.Answer, least, most float64) reading {
	return reading{what, a.Ratio, a.Lo, a.Hi, a.NoiseFloor(), least, most}
}

// inverse exchanges the two that a reading compares.
func inverse(what string, r reading, least, most float64) reading {
	return reading{what, 1 / r.value, 1 / r.hi, 1 / r.lo, r.floor, least, most}
}

// versusRow reads a stack's row of what rpcbench versus printed before there were layouts, and the interval's
// confidence in percent. The base's row above has the movement, and the copy's the noise floor.
func versusRow(t *testing.T, text, stack string) (report.Answer, string) {
	t.Helper()
	last := func(pattern, text string) []string {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, all, "%s of %s", pattern, stack)
		return all[len(all)-1]
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return v
	}
	row := last(`(?m)^`+stack+` +\d+ +\d+ +([\d.]+) +([\d.]+)–([\d.]+)`, text)
	above, _, _ := strings.Cut(text, row[0])
	moved := number(last(`base, moved by ([\d.]+) %`, above)[1]) / 100
	floor := number(last(`noise floor ([\d.]+) %`, above)[1]) / 100
	return answered(number(row[1]), number(row[2]), number(row[3]), floor, moved), last(`([\d.]+) % interval`, above)[1]
}

func claims(t *testing.T) []claim {
	t.Helper()
	workloads, _ := ran(t, workloadsRun)
	core, _ := ran(t, stacksRun)
	vt, _ := ran(t, whyRun+"/vt")
	grpc := func(workload string) report.Answer { return answerTo(t, workloads, workload, "grpcprotobuf") }
	ratio := func(workload string, least, most float64) reading {
		a := grpc(workload)
		return paired(a.Does+", gRPC to JSON", a, least, most)
	}
	quietly := func(file, stack, what string, least, most float64) reading {
		a, level := versusRow(t, read(t, file), stack)
		return paired(fmt.Sprintf("%s (quiet, one build, %s %%)", what, level), a, least, most)
	}
	most := math.MaxFloat64
	fresh := map[string]map[string][]float64{}
	for _, unit := range []string{"ns/op", "size-B"} {
		fresh[unit] = measured(t, whyRun+"/codecs.txt", unit)
	}
	quiet := measured(t, quietCodec+"a.txt", "ns/op")
	for name, values := range measured(t, quietCodec+"b.txt", "ns/op") {
		quiet[name] = append(quiet[name], values...)
	}
	times := func(from map[string][]float64, op, a, b, msg string, least, most float64) reading {
		row := func(codec string) []float64 { return from["Codec/codec="+codec+"/msg="+msg+"/op="+op] }
		return quotient(t, fmt.Sprintf("%s `%s`, %s to %s", op, msg, a, b), row(a), row(b), least, most)
	}
	quietTimes := func(op, a, b, msg string, least, most float64) reading {
		r := times(quiet, op, a, b, msg, least, most)
		r.what += " (quiet)"
		return r
	}
	size := func(a, b, msg string, least, most float64) reading {
		row := func(codec string) float64 {
			values := fresh["size-B"]["Codec/codec="+codec+"/msg="+msg+"/op=marshal"]
			require.NotEmpty(t, values, "%s of %s", msg, codec)
			return values[0]
		}
		return exact(fmt.Sprintf("bytes of `%s`, %s to %s", msg, a, b), row(a)/row(b), least, most)
	}
	var marshal, unmarshalSmall, unmarshalLarge, zipped, unzippedSmall, unzippedLarge, articles, lighter, xmlSmaller, xmlFaster,
		jsonSmaller, jsonFaster []reading
	least3, most3 := about(3)
	least2, most2 := about(2)
	for _, msg := range []string{"small.25B", "tree.dense.100B", "tree.dense.1kB", "tree.dense.10kB", "tree.dense.100kB"} {
		marshal = append(marshal, quietTimes("marshal", "json", "protobuf", msg, least3, most3))
		zipped = append(zipped, times(fresh["ns/op"], "marshal", "json.gzip", "protobuf", msg, 5, most))
		xmlSmaller = append(xmlSmaller, size("xml", "protobuf", msg, 3, 10))
		xmlFaster = append(xmlFaster, times(fresh["ns/op"], "unmarshal", "xml", "protobuf", msg, 20, 100))
		jsonSmaller = append(jsonSmaller, size("json", "protobuf", msg, 3, 10))
		jsonFaster = append(jsonFaster, quietTimes("unmarshal", "json", "protobuf", msg, 20, 100))
	}
	for _, msg := range []string{"small.25B", "tree.dense.100B"} {
		least, most := about(1.5)
		unmarshalSmall = append(unmarshalSmall, quietTimes("unmarshal", "protobuf", "json", msg, least, most))
		least, most = about(1)
		unzippedSmall = append(unzippedSmall, times(fresh["ns/op"], "unmarshal", "json.gzip", "protobuf", msg, least, most))
	}
	for _, msg := range []string{"tree.dense.100kB", "newsfeed"} {
		unmarshalLarge = append(unmarshalLarge, quietTimes("unmarshal", "json", "protobuf", msg, least2, most2))
		unzippedLarge = append(unzippedLarge, times(fresh["ns/op"], "unmarshal", "json.gzip", "protobuf", msg, least3, most3))
	}
	least12, most12 := about(1.2)
	for _, msg := range []string{"article.50", "article.500"} {
		articles = append(articles,
			times(fresh["ns/op"], "unmarshal", "json.gzip", "json", msg, least12, most12),
			times(fresh["ns/op"], "unmarshal", "json", "protobuf", msg, least2, most2),
			times(fresh["ns/op"], "unmarshal", "xml", "json", msg, 2, most))
		lighter = append(lighter, size("protobuf", "msgpack.generated", msg, 0, 1), size("protobuf", "json.gzip", msg, 0, 1))
	}
	facts := grpc("small")
	jsoniter := answerTo(t, core, "small", "httpjsoniter")
	least30, most30 := about(0.7)
	cpu := func(workload string) reading {
		r := ratio(workload, least30, most30)
		r.what = "CPU per call, " + r.what
		return r
	}
	lower := func(workload string) reading { // percentiles have no intervals, so the mean stands for them
		return inverse(grpc(workload).Does+", mean, JSON to gRPC", ratio(workload, 0, 0), 5, 10)
	}
	carried := func(workload string, times float64) reading {
		a := grpc(workload)
		least, most := about(times)
		return exact(a.Does+", bytes on the wire, JSON to gRPC",
			(a.BaseFacts.Sent+a.BaseFacts.Received)/(a.Facts.Sent+a.Facts.Received), least, most)
	}
	cross := measured(t, whyRun+"/cross.txt", "ns/op")
	server := func(client, a, b string) reading {
		row := func(server string) []float64 { return cross["Cross/client="+client+"/server="+server] }
		return quotient(t, fmt.Sprintf("a small call of %s's client, server %s to %s", client, a, b), row(a), row(b), 1, most)
	}
	echo := measured(t, whyRun+"/echo.txt", "ns/op")
	order := func(msg string) (all []reading) {
		row := func(stack string) []float64 { return echo["Echo/stack="+stack+"/msg="+msg+"/callers=50/conns=20"] }
		for _, pair := range [][2]string{{"connectrpc.grpc", "grpcprotobuf"}, {"grpcservehttp", "connectrpc.grpc"}, {"grpcservehttp", "grpcprotobuf"}} {
			all = append(all, quotient(t, fmt.Sprintf("`%s`, 50 callers, %s to %s", msg, pair[0], pair[1]), row(pair[0]), row(pair[1]), 1, most))
		}
		return all
	}
	faster := func(workload string) reading {
		a := answerTo(t, vt, workload, "grpcprotobuf.vt")
		return paired(a.Does+", vtprotobuf to protobuf", a, 0, 1)
	}
	stream, small := grpc("stream"), grpc("small")
	calls := product(small, upsideDown(stream))
	unary := paired("a message, unary call to stream", calls, 2, most)
	unary.floor = max(small.NoiseFloor(), stream.NoiseFloor())
	latency := func(workload string) reading { return ratio(workload, 0.3, 0.6) }
	throughput := func(workload string) reading {
		return inverse(grpc(workload).Does+", calls per second, gRPC to JSON", ratio(workload, 0, 0), least2, most2)
	}
	const (
		post1 = "[Mobile Benchmarks](https://grpc.io/blog/mobile-benchmarks/)"
		post2 = "a post of 2024 on grpc-go, connect-go and ServeHTTP"
		post3 = "a fork of [benchmark-grpc-protobuf-vs-http-json](https://github.com/plutov/benchmark-grpc-protobuf-vs-http-json)"
		post4 = "[Protocol Buffers: Benchmark and mobile](https://blog.octo.com/protocol-buffers-benchmark-and-mobile/)"
	)
	return []claim{
		{"HTTP+JSON is a bit faster than gRPC, on one connection, one call after the other", "73,214 and 79,738 ns", post3, "",
			[]reading{quietly(quietRun, "grpcprotobuf", "a small message, CPU work, gRPC to JSON", 1, 1.25),
				quietly(quietDefault, "grpcprotobuf", "a small message, one caller waits, gRPC to JSON", 1, 1.25),
				ratio("small", 1, 1.25), ratio("small-1-caller", 1, 1.25)}},
		{"jsoniter is faster than encoding/json", "65,861 and 73,214 ns", post3, "its server's handler was never reached",
			[]reading{quietly(quietRun, "httpjsoniter", "a small call, httpjsoniter to httpjson", 0, 1),
				paired("a small call, httpjsoniter to httpjson", jsoniter, 0, 1)}},
		{"JSON has fewer allocations than gRPC, but more bytes", "117 and 153; 9,093 and 7,273 B", post3, "", []reading{
			exact("allocations of a small call, JSON to gRPC", facts.BaseFacts.Allocs/facts.Facts.Allocs, 0, 1),
			exact("allocated bytes of a small call, JSON to gRPC", facts.BaseFacts.AllocBytes/facts.Facts.AllocBytes, 1, most)}},
		{"gRPC takes about 30 % less CPU than JSON", "30 %", post3, "it compares totals of profiles, not time per call",
			[]reading{quietly(quietRun, "grpcprotobuf", "CPU per call, a small message, gRPC to JSON", least30, most30),
				cpu("small"), cpu("mixed"), cpu("structured-1kB")}},
		{"An empty message: grpc-go before connect-go before ServeHTTP", "20,303, 16,272 and 14,216 per second", post2, "",
			append(order("flex.empty"), server("grpcprotobuf", "connectrpc.grpc", "grpcprotobuf"),
				server("grpcprotobuf", "grpcservehttp", "connectrpc.grpc"))},
		{"A complex message: the same order", "16,836, 13,963 and 12,404 per second", post2, "", order("flex.complex")},
		{"vtprotobuf helps a decent amount", "+3.7 %, +0.8 % and +3.5 % calls per second", post2, "",
			[]reading{faster("small"), faster("structured-1kB"), faster("structured-10kB")}},
		{"ServeHTTP is slower than grpc-go's own server", "why?", post2, "",
			[]reading{server("grpcprotobuf", "grpcservehttp", "grpcprotobuf")}},
		{"protobuf encodes about 3 times faster than JSON", "3×", post1, "", marshal},
		{"JSON decodes 1.5 times faster below 1 kB, protobuf 2 times faster above 15 kB", "1.5×, 2×", post1, "",
			append(unmarshalSmall, unmarshalLarge...)},
		{"Against gzipped JSON protobuf encodes over 5 times faster, and decodes alike when small, 3 times faster when large", "5×, 1×, 3×", post1, "",
			slices.Concat(zipped, unzippedSmall, unzippedLarge)},
		{"gRPC's latency is 5 to 10 times lower up to the 95th percentile", "5–10×", post1, "",
			[]reading{lower("small-1-caller"), lower("structured-1kB"), lower("structured-10kB"), lower("bytes-1kB"), lower("bytes-10kB"),
				lower("bytes-100kB")}},
		{"gRPC needs 3 times less bandwidth for payloads of 100 to 1000 B, 2 times less for 10 to 100 kB", "3×, 2×", post1, "",
			[]reading{carried("mixed", 3), carried("structured-1kB", 3), carried("bytes-1kB", 3),
				carried("structured-10kB", 2), carried("bytes-10kB", 2), carried("bytes-100kB", 2)}},
		{"A stream is more than 2 times faster than unary calls", "2×", post1, "", []reading{unary}},
		{"XML is out of the question (taken as 2 times JSON); gzipped JSON takes 1.2 times as long as JSON; JSON 2 times as long as protobuf", "1.2×, 2×", post4, "", articles},
		{"protobuf is lighter than MessagePack and than gzipped JSON", "no figure", post4, "", lighter},
		{"protobuf is 3 to 10 times smaller and 20 to 100 times faster than XML", "3–10×, 20–100×",
			"protobuf's first overview, [quoted in 2008](https://blog.reverberate.org/2008/07/protocol-buffers.html)", "", append(xmlSmaller, xmlFaster...)},
		{"protobuf is 3 to 10 times smaller and 20 to 100 times faster than JSON", "3–10×, 20–100×", "much repeated; its origin speaks of XML", "", append(jsonSmaller, jsonFaster...)},
		{"gRPC's latency is 40 to 70 % lower than REST's", "40–70 %", "much repeated, no origin found", "",
			[]reading{latency("small-1-caller"), latency("two-processes"), latency("structured-1kB"), latency("bytes-10kB")}},
		{"gRPC has about twice the throughput of REST", "2×", "much repeated, no origin found", "",
			[]reading{throughput("small-50-callers"), throughput("mixed-50-callers")}},
	}
}

// claimsTable is the list of claims, then each with its readings.
func claimsTable(t *testing.T) string {
	t.Helper()
	var table, details strings.Builder
	table.WriteString("| | claim | published | here |\n|---:|---|---|---|\n")
	count := map[string]int{}
	all := claims(t)
	for i, c := range all {
		require.NotEmpty(t, c.readings, c.said)
		count[c.verdict()]++
		said := "**" + c.verdict() + "**: " + cmp.Or(c.void, c.count())
		fmt.Fprintf(&table, "| %d | %s | %s | %s |\n", i+1, c.said, c.figure, said)
		fmt.Fprintf(&details, "\n%d. %s (%s)\n", i+1, c.said, c.source)
		for _, r := range c.readings {
			text := r.String()
			if c.void != "" { // the figure is for readers, and decides nothing
				text, _, _ = strings.Cut(text, ", claimed")
				text, _, _ = strings.Cut(text, ", noise floor")
			}
			fmt.Fprintf(&details, "   - %s\n", text)
		}
	}
	var counts []string
	for _, verdict := range slices.Sorted(maps.Keys(count)) {
		counts = append(counts, fmt.Sprintf("| %s | %d |", verdict, count[verdict]))
	}
	_, where := ran(t, workloadsRun)
	var b strings.Builder
	fmt.Fprintf(&b, "| verdict | claims of %d |\n|---|---:|\n%s\n\n%s\n## Every figure\n\n", len(all), strings.Join(counts, "\n"), table.String())
	fmt.Fprintf(&b, "Figures are of %s,\nand of files of the same machine in [why](../%s), whose commits are in "+
		"[results](../results/README.md).\n", where, whyRun)
	fmt.Fprintf(&b, "Those marked quiet are of an Intel Xeon:\n[codecs-a.txt](../%sa.txt),\n[codecs-b.txt](../%[1]sb.txt),\n", quietCodec)
	fmt.Fprintf(&b, "[versus.txt](../%s) and\n[versus-default.txt](../%s).\n%s", quietRun, quietDefault, details.String())
	return b.String()
}

// TestClaimsFollowTheRows: other rows give other verdicts.
func TestClaimsFollowTheRows(t *testing.T) {
	require.Equal(t, "holds", paired("a", answered(1.1, 1.08, 1.12, 0.01, 0), 1, 1.25).verdict())
	noisy := paired("a", answered(1.1, 1.08, 1.12, 0.09, 0), 1, 1.25)
	require.Equal(t, "undecided", noisy.verdict(), "where a copy differs by as much")
	plain := paired("a", answered(1.1, 1.08, 1.12, 0.01, 0.5), 1, 1.25)
	require.Equal(t, []float64{1.08, 1.12}, []float64{plain.lo, plain.hi}, "a machine that moves widens no interval")
	b := inverse("b", paired("a", answered(0.8, 0.79, 0.81, 0.01, 0), 0, 0), 1.6, 2.5)
	require.Equal(t, "does not hold", b.verdict())
	require.Equal(t, 0.01, b.floor)
	r := quotient(t, "a", []float64{4, 4, 4, 4, 4, 5}, []float64{1, 1, 1, 2, 1, 1}, 2, 6)
	require.Equal(t, []float64{4, 2, 5}, []float64{r.value, r.lo, r.hi})
	const printed = "stack  ns/op  cpu-ns/op  ratio  99.4 % interval  verdict\n" +
		"httpjson  1  1  1  base, moved by 12 %\nhttpjson again  1  1  0.9982  0.9882–1.0083  noise floor 1.20 %\n" +
		"grpcprotobuf  1  1  1.0759  1.0526–1.0998  slower\n" +
		"httpjson  1  1  1  base, moved by 10 %\nhttpjson again  1  1  1.0024  0.9959–1.0089  noise floor 0.89 %\n" +
		"connectrpc  1  1  1.1990  1.1700–1.2288  slower\n"
	early, level := versusRow(t, printed, "grpcprotobuf")
	require.Equal(t, "99.4", level)
	require.Equal(t, answered(1.0759, 1.0526, 1.0998, 0.012, 0.12), early)
	late, _ := versusRow(t, printed, "connectrpc")
	require.Equal(t, answered(1.1990, 1.1700, 1.2288, 0.0089, 0.1), late, "with its own base and copy")
}
