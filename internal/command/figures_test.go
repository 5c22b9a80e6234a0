package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// allDiffer as the value of ofMethod has children tell figures of which no two are alike.
const allDiffer = "all differ"

// arm is what a process tells of one, by the unit of bench.txt: times in nanoseconds, and shares in percent.
type arm map[string]float64

// scale is what tells workloads apart.
func scale(w workload.Workload) float64 {
	return 1 + 0.1*float64(w.Callers/100) + 0.2*min(1, math.Abs(w.Rate))
}

// armsOf are the base, its copy and the contestant in the i-th process of a workload.
func armsOf(w workload.Workload, i int) [3]arm {
	all, sign := [3]arm{{}, {}, {}}, []float64{1, -1}[i%2]
	for _, of := range []struct {
		unit          string
		base          float64
		copied, other float64 // in multiples of the base's
		drifts        float64 // from process to process
		varies        float64 // the contestant's alone, to and fro
	}{
		{"ops", 1000, 1.1, 1.2, 0, 0}, {"ns/op", 200e3, 1.015, 1.3, 0.03, 0.010},
		{"cpu-ns/op", 150e3, 1.018, 1.45, 0.02, 0.013}, {"server-cpu-ns/op", 61e3, 1.03, 1.9, 0.01, 0},
		{"p50-ns", 110e3, 1.011, 1.2, 0.01, 0.016}, {"p95-ns", 310e3, 1.012, 1.25, 0.011, 0.019},
		{"p99-ns", 530e3, 1.013, 1.33, 0.012, 0.022}, {"p999-ns", 870e3, 1.014, 1.37, 0.013, 0.025},
		{"in-flight", 0.96 * float64(w.AtOnce()), 1.03, 1.08, 0, 0},
		{"idle-%", 31, 0.9, 0.6, 0, 0}, {"others-%", 2, 1.25, 1.6, 0, 0},
		{"switches/op", 2.3, 1.2, 1.7, 0, 0}, {"completed-%", 99.2, 0.996, 0.991, 0, 0}, {"skipped-%", 0.1, 2, 3, 0, 0},
		{"late-ns", 41e3, 1.05, 1.8, 0, 0},
	} {
		for side, times := range []float64{1, of.copied, of.other * math.Exp(of.varies*sign)} {
			if of.unit != "ops" && of.unit != "in-flight" && !strings.HasSuffix(of.unit, "%") {
				times *= scale(w)
			}
			all[side][of.unit] = of.base * times * (1 + of.drifts*float64(i))
		}
	}
	if i == 7 {
		all[2]["ns/op"] *= 0.75 // on the other side of 1
	}
	return all
}

// countsOf are those of a stack at a workload.
func countsOf(w workload.Workload, stack string) workload.Facts {
	f := workload.Facts{Calls: 1000, Sent: 197, Received: 225, Writes: 1.1, Reads: 1.5, Allocs: 116, AllocBytes: 9070,
		Connections: 1}
	if stack == "other" {
		f = workload.Facts{Calls: 2000, Sent: 113, Received: 137, Writes: 2.1, Reads: 2.5, Allocs: 165, AllocBytes: 10_070,
			Connections: 2}
	}
	f.Sent, f.Allocs = math.Round(f.Sent*scale(w)), math.Round(f.Allocs*scale(w))
	f.ServerWrites, f.ServerReads, f.Handled = f.Writes+2, f.Reads+2, 1
	if w.Apart {
		f.ServerAllocs, f.ServerAllocBytes = f.Allocs+1000, f.AllocBytes+1000
	}
	return f
}

// differing is what a child of allDiffer measures.
func differing(before []testkit.Question[question], spec versus.Spec, round int) timing.Record {
	w, i := spec.Workload, 0
	for _, q := range before {
		if q.Spec.Workload == w && len(q.Spec.Arms) == len(spec.Arms) {
			i++
		}
	}
	r := timing.Record{Arms: []string{"base", "base again", "other"}[:len(spec.Arms)], Blocks: make([][]timing.Slice, 1)}
	arms := armsOf(w, i)
	for turn, a := range arms[:len(spec.Arms)] {
		of := func(unit string) time.Duration { return time.Duration(a[unit]) }
		ops := a["ops"]
		s := timing.Slice{Turn: turn, Ops: int(ops), Wall: time.Duration(ops * a["ns/op"]),
			CPU: time.Duration(ops * a["cpu-ns/op"])}
		l := timing.Latency{Calls: 10_000, P50: of("p50-ns"), P95: of("p95-ns"), P99: of("p99-ns"), P999: of("p999-ns"),
			Sum: time.Duration(a["in-flight"] * float64(s.Wall) * float64(round))}
		if w.Windowed() {
			s.Server, s.Switches = time.Duration(ops*a["server-cpu-ns/op"]), int64(ops*a["switches/op"])
			machine := float64(s.CPU) / (1 - a["idle-%"]/100 - a["others-%"]/100)
			s.Idle = time.Duration(machine * a["idle-%"] / 100)
			s.Busy = time.Duration(machine) - s.Idle
		}
		if w.Rate > 0 {
			l.Planned, l.Late = 100_000, of("late-ns")
			l.Calls, l.Skipped = int64(1000*a["completed-%"]), int64(1000*a["skipped-%"])
		}
		r.Blocks[0], r.Latencies = append(r.Blocks[0], s), append(r.Latencies, l)
	}
	return r
}

// processesOf are the eight of a workload.
type processesOf [8][3]arm

// mean is of an arm's figure.
func (p processesOf) mean(side int, unit string) (sum float64) {
	for _, arms := range p {
		sum += arms[side][unit] / 8
	}
	return sum
}

// ratios are geometric means, with an interval by Student's quantile of seven degrees of freedom, and by what links of
// the source would add to one build.
func (p processesOf) ratios(of func(arms [3]arm) float64) (ratio, lo, hi float64) {
	mean, squares := 0., 0.
	for _, arms := range p {
		mean += math.Log(of(arms)) / 8
	}
	for _, arms := range p {
		squares += math.Pow(math.Log(of(arms))-mean, 2)
	}
	half := math.Hypot(2.364624*math.Sqrt(squares/7/8), 1.959964*0.0065)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}

// figures are what a summary says of a workload, by the path of their keys.
type figures map[string]float64

// paired adds the ratio of a figure, to the base and to its copy.
func (f figures) paired(p processesOf, path, unit string) {
	f[path+"ratio"], f[path+"lo"], f[path+"hi"] = p.ratios(func(arms [3]arm) float64 {
		return arms[2][unit] / math.Sqrt(arms[0][unit]*arms[1][unit])
	})
}

// figure adds that of time or of CPU time.
func (f figures) figure(p processesOf, path, unit string) {
	f.paired(p, path, unit)
	f[path+"base_ns"], f[path+"stack_ns"] = p.mean(0, unit), p.mean(2, unit)
	f[path+"copy_differs"] = p[0][1][unit]/p[0][0][unit] - 1
	f[path+"base_varied"] = p[7][0][unit]/p[0][0][unit] - 1
	f[path+"noise_floor"] = max(f[path+"copy_differs"], math.Pow(1+f[path+"base_varied"], 0.1)-1)
	f[path+"on_one_side"] = map[string]float64{"ns/op": 7, "cpu-ns/op": 8}[unit]
	for i := range p {
		f[fmt.Sprint(path, "bases_ns.", i)] = p[i][0][unit]
	}
}

// surrounds adds what is of the answer, and not of one figure.
func (f figures) surrounds(w workload.Workload, p processesOf) {
	f["processes.counted"], f["processes.planned"] = 8, 8
	for side, of := range map[int]string{0: "base_", 2: "stack_"} {
		f[of+"means.cpu_ns"], f[of+"means.in_flight"] = p.mean(side, "cpu-ns/op"), p.mean(side, "in-flight")
		if !w.Windowed() {
			continue
		}
		f[of+"means.server_cpu_ns"] = p.mean(side, "server-cpu-ns/op")
		f[of+"load.idle"], f[of+"load.switches_per_call"] = p.mean(side, "idle-%")/100, p.mean(side, "switches/op")
		if w.Rate > 0 {
			f[of+"load.completed"], f[of+"load.skipped"] = p.mean(side, "completed-%")/100, p.mean(side, "skipped-%")/100
			f[of+"load.late_p99_ns"] = p.mean(side, "late-ns")
		}
	}
	if w.Windowed() {
		f["other_programs"] = (p.mean(0, "others-%") + p.mean(1, "others-%") + p.mean(2, "others-%")) / 300
	}
}

// figuresOf is all of what a summary says of a workload, but for what callers take that call nothing.
func figuresOf(w workload.Workload) figures {
	f, p := figures{}, processesOf{}
	for i := range p {
		p[i] = armsOf(w, i)
	}
	f.surrounds(w, p)
	if w.Windowed() {
		f.figure(p, "cpu.", "cpu-ns/op")
	}
	if w.Rate > 0 {
		f["rate"] = w.Rate // whose time is the plan's
	} else {
		f.figure(p, "time.", "ns/op")
	}
	for _, name := range []string{"p50", "p95", "p99", "p999"} {
		path, unit := "percentiles."+name+".", name+"-ns"
		f.paired(p, path, unit)
		for side, key := range []string{"base_ns", "copy_ns", "stack_ns"} {
			f[path+key], _, _ = p.ratios(func(arms [3]arm) float64 { return arms[side][unit] })
		}
	}
	for path, stack := range map[string]string{"base_counts.": "base", "stack_counts.": "other"} {
		c := countsOf(w, stack)
		f[path+"calls"], f[path+"connections"] = float64(c.Calls), float64(c.Connections)
		f[path+"sent_bytes"], f[path+"received_bytes"] = c.Sent, c.Received
		f[path+"writes"], f[path+"reads"] = c.Writes, c.Reads
		f[path+"allocs"], f[path+"alloc_bytes"] = c.Allocs, c.AllocBytes
		f[path+"server_writes"], f[path+"server_reads"], f[path+"handled"] = c.ServerWrites, c.ServerReads, c.Handled
		if w.Apart {
			f[path+"server_allocs"], f[path+"server_alloc_bytes"] = c.ServerAllocs, c.ServerAllocBytes
		}
	}
	return f
}

// The tables of a report, each by a column that no other has. The terminal has the first.
const (
	resultTable, loadTable, planTable   = "verdict", "switches per call, with base and the stack", "starts skipped"
	singleTable, countTable, floorTable = "in flight", "allocations", "base varied by"
	sizeTable                           = "codec"
)

// place is a cell: its table, the first cells of its row, and its column. Of several columns of a name, "a > name" is
// the first one behind a.
type place struct {
	table  string
	row    []string
	column string
	want   string
}

// lines are the rows of a workload in the table of results, by their heading, with the path of what they are of.
func lines(w workload.Workload) map[string]string {
	const cpu, wait, tail = "CPU per call, client and server", "Median latency",
		"p99 latency"
	switch p50, p99 := "percentiles.p50.", "percentiles.p99."; {
	case w.Rate > 0:
		return map[string]string{cpu: "cpu.", wait: p50, tail: p99}
	case w.Several():
		return map[string]string{cpu: "cpu.", wait: p50, tail: p99,
			"Calls per second, each caller calling again at once": "time."}
	}
	return map[string]string{"Time per call, one caller": "time."}
}

// shortly is a time as the table of results has it.
func shortly(ns float64) string {
	ns, _ = strconv.ParseFloat(strconv.FormatFloat(ns, 'e', 1, 64), 64) // two digits
	for _, unit := range []struct {
		above, ns float64
		format    string
	}{{1e7, 1e6, "%.0f ms"}, {1e4, 1e3, "%.0f µs"}, {0, 1e3, "%.1f µs"}} {
		if math.Abs(ns) >= unit.above {
			return fmt.Sprintf(unit.format, ns/unit.ns)
		}
	}
	return ""
}

// thousands is a number with commas.
func thousands(n float64) string {
	return regexp.MustCompile(`(\d)(\d{3})$`).ReplaceAllString(fmt.Sprintf("%.0f", n), "$1,$2")
}

// placesOf are where tables have what a summary says of a workload.
func placesOf(w workload.Workload, f figures) (all []place) {
	in := func(table string, row []string, cells ...string) {
		for cell := range slices.Chunk(cells, 2) {
			all = append(all, place{table, row, cell[0], cell[1]})
		}
	}
	both := func(key string, form func(float64) string) string {
		return form(f["base_"+key]) + ", " + form(f["stack_"+key])
	}
	few := func(n float64) string { return fmt.Sprintf("%.3g", n) }
	sized := func(path string) string { return table.Sized(f[path+"ratio"], f[path+"lo"], f[path+"hi"]) }
	leads := "time."
	if w.Rate > 0 {
		leads = "cpu."
	}
	title := map[string]string{"call-load": "your call, " + thousands(w.Rate) + "/s",
		"call-saturated": "your call, 100 callers"}[w.Name]
	row, others := []string{cmp.Or(title, w.Title), "other"}, "–"
	for heading, path := range lines(w) {
		ratio, base := f[path+"ratio"], f[path+"base_ns"]
		says, difference := "more", map[bool]string{true: "+", false: "−"}[ratio > 1]+shortly(math.Abs(base*(ratio-1)))
		shown, own, interval := shortly(base), shortly(base*ratio), sized(path)
		if strings.HasPrefix(heading, "Calls per second") {
			says, difference, shown, own = "serves less", "", thousands(1e9/base), thousands(1e9/base/ratio)
			interval = table.Sized(1/ratio, 1/f[path+"hi"], 1/f[path+"lo"])
		}
		in(resultTable, []string{heading + ": " + row[0]}, "base", shown, "other", own, "other/base (95% CI)", interval,
			"verdict", says, "difference", difference)
	}
	if w.Windowed() {
		others = table.Percent(f["other_programs"])
		in(loadTable, row, "other programs used", others, "idle, with base and the stack", both("load.idle", table.Percent),
			loadTable, both("load.switches_per_call", func(n float64) string { return fmt.Sprintf("%.2f", n) }))
	}
	if w.Rate > 0 {
		in(planTable, row, "the servers' part of CPU, µs, with base and the stack", both("means.server_cpu_ns", table.Micros),
			"starts skipped", both("load.skipped", table.Percent),
			"calls completed, with base and the stack", both("load.completed", table.Percent),
			"late by, p99", both("load.late_p99_ns", func(ns float64) string { return table.Micros(ns) + " µs" }))
	}
	for name, path := range map[string]string{"p50": "p50.", "p95": "p95.", "p99": "p99.", "p99.9": "p999."} {
		path = "percentiles." + path
		in(singleTable, row, name+" of base, µs", table.Micros(f[path+"base_ns"]), name+", µs",
			table.Micros(f[path+"stack_ns"]))
		if name == "p50" || name == "p99" {
			in(singleTable, row, name+", µs > ratio (95% CI)", sized(path))
		}
	}
	in(singleTable, row, "in flight", both("means.in_flight", few))
	for path, stack := range map[string]string{"base_counts.": "base", "stack_counts.": "other"} {
		in(countTable, []string{w.Title, stack}, "sent, B", table.Size(f[path+"sent_bytes"]), "received, B",
			table.Size(f[path+"received_bytes"]), "writes", few(f[path+"writes"]), "reads", few(f[path+"reads"]),
			"server's writes", few(f[path+"server_writes"]), "server's reads", few(f[path+"server_reads"]),
			"allocations", table.Size(f[path+"allocs"]+f[path+"server_allocs"]),
			"allocated, B", table.Size(f[path+"alloc_bytes"]+f[path+"server_alloc_bytes"]),
			"connections", table.Size(f[path+"connections"]))
	}
	in(floorTable, row, "processes", "8 of 8", "on one side of 1", table.Size(f[leads+"on_one_side"]),
		"base varied by", table.Spread(f[leads+"base_varied"]),
		"two copies differ by up to", table.Spread(f[leads+"copy_differs"]),
		"noise floor", table.Spread(f[leads+"noise_floor"]), "other programs used", others,
		"GOMAXPROCS", strconv.Itoa(cmp.Or(w.Procs, environ.Procs())))
	return all
}

// TestEachFigureIsInItsPlace: what processes tell is in bench.txt by its unit. What is decided of it is in summary.json
// by its key, and in the report and on the terminal by its row and column. All figures differ, so that none can be
// another one's.
func TestEachFigureIsInItsPlace(t *testing.T) {
	out, children := filepath.Join(t.TempDir(), "out"), testkit.Children(t, 0)
	t.Setenv(testkit.Variable, children)
	t.Setenv(ofMethod, allDiffer)
	var stdout bytes.Buffer
	require.NoError(t, knownProgram().run(t.Context(), []string{"run", "-processes", "8", "-out", out, "other"}, &stdout,
		io.Discard))
	var summary any
	require.NoError(t, json.Unmarshal([]byte(read(t, filepath.Join(out, "summary.json"))), &summary))
	page := read(t, filepath.Join(out, "report.md"))
	tables := map[string][]grid{"report.md": markdown(page), "report.html": hypertext(read(t, filepath.Join(out,
		"report.html"))), "the terminal": columns(stdout.String())}
	bench, _ := testkit.Rows(t, read(t, filepath.Join(out, "bench.txt")))
	for i, name := range []string{"call-load", "call-saturated", "call"} {
		listed, err := workload.In(workload.Own(), name)
		require.NoError(t, err)
		w := listed.Workload
		for _, q := range testkit.Asked[question](children) {
			if q.Spec.Workload.Name == name && len(q.Spec.Arms) == 3 {
				w.Rate = q.Spec.Workload.Rate // which run has found
			}
		}
		for side, stack := range []string{"base", "base.again", "other"} {
			inRows(t, bench, w, side, stack)
		}
		f := figuresOf(w)
		require.Equal(t, name, at(t, summary, fmt.Sprintf("answers.%d.workload", i)))
		for key, want := range f {
			require.InEpsilon(t, want, at(t, summary, fmt.Sprintf("answers.%d.%s", i, key)), 1e-3, "summary.json: %s of %s",
				key, name)
		}
		for _, p := range placesOf(w, f) {
			for where, grids := range tables {
				detail := strings.HasPrefix(p.row[0], "p99 ") || strings.HasPrefix(p.row[0], "Calls per second")
				if where != "the terminal" || p.table == resultTable && !detail {
					require.Equal(t, p.want, cell(t, where, grids, p), "%s: %q of %q", where, p.column, p.row)
				}
			}
		}
	}
	inMessages(t, summary, page, tables)
	for _, line := range []string{"base: 1000.0 µs of CPU per call, .*", "other: 1500.0 µs of CPU per call, .*",
		"other minus base", `other +\+500.0 .*`} {
		require.Regexp(t, "(?m)^"+line+"$", page, "layers")
	}
	t.Run("what is seen first", func(t *testing.T) { firstAnswer(t, out) })
}

// inRows checks the rows of an arm in bench.txt.
func inRows(t *testing.T, bench []*benchfmt.Result, w workload.Workload, side int, stack string) {
	t.Helper()
	of := regexp.MustCompile(`^Run/workload=` + w.Name + `/against=other/stack=` + regexp.QuoteMeta(stack) + `(-\d+)?$`)
	i := 0
	for _, row := range bench {
		if !of.MatchString(string(row.Name)) {
			continue
		}
		arms := armsOf(w, i)
		want := arms[side]
		require.Zero(t, row.Iters%int(want["ops"]), "%s: calls", row.Name)
		delete(want, "ops")
		want["others-%"] = (arms[0]["others-%"] + arms[1]["others-%"] + arms[2]["others-%"]) / 3
		for unit, to := range map[string][2]string{"ns/op": {"base-ratio", "copy-ratio"},
			"cpu-ns/op": {"cpu-ratio", "cpu-copy-ratio"}} {
			for base, ratio := range to[:side] {
				want[ratio] = arms[side][unit] / armsOf(w, i)[base][unit]
			}
		}
		for unit, value := range want {
			if !w.Windowed() && slices.Contains([]string{"server-cpu-ns/op", "idle-%", "others-%", "switches/op"}, unit) ||
				w.Rate == 0 && slices.Contains([]string{"completed-%", "skipped-%", "late-ns"}, unit) {
				continue
			}
			j := slices.IndexFunc(row.Values, func(v benchfmt.Value) bool { return unit == cmp.Or(v.OrigUnit, v.Unit) })
			require.GreaterOrEqual(t, j, 0, "bench.txt: %s of %s in %v", unit, row.Name, row.Values)
			require.InEpsilon(t, value, cmp.Or(row.Values[j].OrigValue, row.Values[j].Value), 1e-3, "bench.txt: %s of %s", unit,
				row.Name)
		}
		i++
	}
	require.Equal(t, 8, i, "rows of %s at %s", stack, w.Name)
}

// inMessages checks what is said of the method's messages.
func inMessages(t *testing.T, summary any, page string, tables map[string][]grid) {
	t.Helper()
	for i, stack := range []string{"base", "other"} {
		of := func(key string) float64 { return at(t, summary, fmt.Sprintf("call.bodies.%d.%s", i, key)).(float64) }
		span := func(key string) string {
			return fmt.Sprintf("%.1f (%.1f–%.1f)", of(key+".ns")/1e3, of(key+".lo_ns")/1e3, of(key+".hi_ns")/1e3)
		}
		require.InDelta(t, 2048, of("request_bytes"), 0.5)
		require.InDelta(t, 111, of("reply_bytes"), 0.5)
		require.Greater(t, of("gzip_request_bytes"), 1000.)
		require.Less(t, of("gzip_reply_bytes"), 100.)
		if stack == "other" {
			require.Greater(t, of("decode.ns")-of("encode.ns"), 400e3, "the codec works for longer to decode a reply")
		}
		for column, want := range map[string]string{"request, B": "2048", "reply, B": "111",
			"request with gzip, B": table.Size(of("gzip_request_bytes")),
			"reply with gzip, B":   table.Size(of("gzip_reply_bytes")),
			"encoding, µs":         span("encode"), "decoding, µs": span("decode")} {
			for _, file := range []string{"report.md", "report.html"} {
				require.Equal(t, want, cell(t, file, tables[file], place{sizeTable, []string{stack}, column, want}),
					"%s: %q of %s", file, column, stack)
			}
		}
		require.Contains(t, page, fmt.Sprintf("%.0f B of JSON (gzip %.0f).", of("request_bytes")+of("reply_bytes"),
			of("gzip_request_bytes")+of("gzip_reply_bytes")), "both messages together")
	}
}

// at is what JSON has at a path of keys and numbers.
func at(t *testing.T, v any, path string) any {
	t.Helper()
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			require.NoError(t, err)
			require.Less(t, i, len(in), path)
			v = in[i]
		}
		require.NotNil(t, v, "summary.json has no %s", path)
	}
	return v
}

// grid is a table as somebody reads it, the names of its columns first.
type grid [][]string

// cell finds a place in the only table that has it.
func cell(t *testing.T, where string, grids []grid, p place) string {
	t.Helper()
	var said []string
	for _, g := range grids {
		behind, column, ok := strings.Cut(p.column, " > ")
		if !ok {
			behind, column = "", p.column
		}
		after := slices.Index(g[0], behind) + 1
		at := slices.Index(g[0][after:], column)
		for _, row := range g[1:] {
			if at >= 0 && slices.Contains(g[0], p.table) && slices.Equal(row[:min(len(row), len(p.row))], p.row) {
				said = append(said, append(row, make([]string, len(g[0]))...)[after+at])
			}
		}
	}
	require.Len(t, said, 1, "%s: cells %q of %q in the table with %q", where, p.column, p.row, p.table)
	return said[0]
}

// markdown reads the tables of a page.
func markdown(page string) (all []grid) {
	for block := range strings.SplitSeq(page, "\n\n") {
		var g grid
		for line := range strings.SplitSeq(block, "\n") {
			if strings.HasPrefix(line, "| ") {
				g = append(g, strings.Split(strings.Trim(line, "| "), " | "))
			}
		}
		if g != nil {
			all = append(all, g.headed())
		}
	}
	return all
}

// hypertext reads the tables of a page, without their pictures.
func hypertext(page string) (all []grid) {
	for _, text := range regexp.MustCompile(`(?s)<table>(.*?)</table>`).FindAllString(page, -1) {
		var g grid
		for _, row := range strings.Split(text, "<tr>")[1:] {
			var cells []string
			for _, cell := range regexp.MustCompile(`<t[hd][^>]*>([^<]*)`).FindAllStringSubmatch(row, -1) {
				cells = append(cells, html.UnescapeString(cell[1]))
			}
			g = append(g, cells)
		}
		all = append(all, g.headed())
	}
	return all
}

// columns reads the tables of a terminal: a cell is below the name of its column, and two spaces or more are between.
func columns(text string) (all []grid) {
	_, text, _ = strings.Cut(text, "\n\n")
	cells := regexp.MustCompile(`  +`)
	var g grid
	for line := range strings.SplitSeq(text, "\n") {
		row := cells.Split(strings.TrimSpace(line), -1)
		switch {
		case g == nil:
			g = grid{row, {row[0]}} // whose first heading stands in place of a name
		case strings.HasPrefix(line, "  ") || len(row) == 1:
			g = append(g, row)
		}
	}
	return []grid{g.headed()}
}

// headed puts the heading of rows before each of them.
func (g grid) headed() (all grid) {
	heading := ""
	for _, row := range g {
		switch rest := strings.Trim(strings.Join(row[1:], ""), "| "); {
		case rest == "" && len(all) > 0:
			heading = strings.Trim(row[0], "*| ") + ": "
		default:
			all = append(all, append([]string{heading + row[0]}, row[1:]...))
		}
	}
	return all
}
