package pages

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
)

const (
	grpc = "grpcprotobuf"
	tiny = "small" // the workload of tables of stacks
)

// where says where a run or an evening was made, and links its report or its folder.
func (b *block) where(dir string) string {
	run, page := dir, "/report.md"
	if _, err := os.Stat(filepath.Join(b.root, dir, "workloads")); err == nil {
		run, page = dir+"/workloads", ""
	}
	said := map[string]string{}
	for _, line := range b.run(run).Environment {
		name, value, _ := strings.Cut(line, "=")
		said[name] = value
	}
	if state, err := os.ReadFile(filepath.Join(b.root, dir, "state.txt")); err == nil { // changes are results alone
		first, _, _ := strings.Cut(string(state), "\n")
		_, said["commit"], _ = strings.Cut(first, "at commit ")
	}
	return fmt.Sprintf("[%s, %s virtual cores, %s, %s, commit %s](%s%s%s)",
		strings.ReplaceAll(said["cpu"], "-", " "), said["cores"], said["go"], said["date"], said["commit"], b.up, dir, page)
}

// wheres are the places of the marker's machines.
func (b *block) wheres() (lines string) {
	for i, word := range b.machines {
		lines += "\n" + strings.ToUpper(word[:1]) + word[1:] + ": " + b.where(b.from[i]) + "."
	}
	return "\n" + strings.TrimPrefix(lines, "\n") + "\n"
}

// times is a ratio with its interval.
func times(a report.Answer) string { return fmt.Sprintf("%.2f (%.2f–%.2f)", a.Ratio, a.Lo, a.Hi) }

// micros are microseconds, with as many digits as an interval of a percent carries.
func micros(ns float64) string {
	if ns < 100_000 {
		return fmt.Sprintf("%.1f", ns/1000)
	}
	return fmt.Sprintf("%.0f", ns/1000)
}

// notes collects what is to be said of a verdict, such as why there is none, and gives each text a mark.
type notes []string

// cell is a ratio with its interval and the verdict, with a mark where there is more to say.
func (n *notes) cell(a report.Answer) string {
	ratio := times(a)
	if a.Ratio == 0 {
		ratio = "–"
	}
	said := strings.TrimPrefix(a.Said(), "undecided: ")
	if said == string(a.Verdict) {
		return fmt.Sprintf("%s | %s", ratio, said)
	}
	if !slices.Contains(*n, said) {
		*n = append(*n, said)
	}
	return fmt.Sprintf("%s | %s [%d]", ratio, a.Verdict, slices.Index(*n, said)+1)
}

func (n *notes) String() string {
	var b strings.Builder
	for i, said := range *n {
		fmt.Fprintf(&b, "\n- [%d] %s.", i+1, said)
	}
	if len(*n) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// evenings are the folders of what measure.sh left, in which a question is looked for in this order. Each question is
// asked in one of them, so it has one number.
var evenings = []string{"workloads", "jsoniter", "stacks", "cores", "variants", "more", "files"}

// of returns what an evening found of a stack at a workload, with a figure or not, if it asked.
func (b *block) of(evening, work, stack string) (report.Answer, bool) {
	for _, part := range evenings {
		dir := filepath.Join(evening, part)
		if _, err := os.Stat(filepath.Join(b.root, dir)); err != nil {
			continue
		}
		for _, a := range b.run(dir).Answers {
			if a.Workload == work && a.Stack == stack {
				return a, true
			}
		}
	}
	return report.Answer{}, false
}

// found is of, where the evening must have asked, and counted bytes and allocations.
func (b *block) found(evening, work, stack string) report.Answer {
	a, asked := b.of(evening, work, stack)
	if !asked || a.Facts == nil || a.BaseFacts == nil {
		b.fail("%s has not measured %s at %s", evening, stack, work)
		a.Facts, a.BaseFacts = new(workload.Facts), new(workload.Facts)
	}
	return a
}

// cellOf is found as a cell with its verdict, or dashes.
func (b *block) cellOf(n *notes, evening, work, stack string) string {
	if a, asked := b.of(evening, work, stack); asked {
		return n.cell(a)
	}
	return "– | –"
}

// workloads compares gRPC with JSON at every workload of the first evening, and in the second one.
func workloads(b *block) string {
	var t strings.Builder
	var n notes
	fmt.Fprintf(&t, "| workload | JSON, µs | gRPC, µs | ratio, %s (95 %%) | gRPC is | ratio, %s (95 %%) | gRPC is |\n"+
		"|---|---:|---:|---:|---|---:|---|\n", b.machines[0], b.machines[1])
	run := b.run(b.from[0] + "/workloads")
	unknown := slices.DeleteFunc(run.Of(grpc), func(a report.Answer) bool { return a.Ratio > 0 })
	for _, a := range append(run.ByRatio(grpc), unknown...) {
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s |\n", a.Does, micros(a.BaseNs), micros(a.Paired()), n.cell(a),
			b.cellOf(&n, b.from[1], a.Workload, grpc))
	}
	return t.String() + n.String() + b.wheres()
}

// mainStacks has the main stacks at the small call.
func mainStacks(b *block) string {
	var t strings.Builder
	var n notes
	base := b.found(b.from[0], tiny, grpc).BaseFacts
	fmt.Fprintf(&t, "| stack | ratio to JSON (95 %%) | it is | bytes sent + received | allocations |\n"+
		"|---|---:|---|---:|---:|\n| `httpjson` | 1 | base | %.0f + %.0f | %.0f |\n", base.Sent, base.Received, base.Allocs)
	for _, stack := range stacks.Main() {
		if stack.Name != "httpjson" {
			a := b.found(b.from[0], tiny, stack.Name)
			fmt.Fprintf(&t, "| `%s` | %s | %.0f + %.0f | %.0f |\n", stack.Name, n.cell(a), a.Facts.Sent, a.Facts.Received,
				a.Facts.Allocs)
		}
	}
	return t.String() + n.String() + "\nA small call on one core: " + b.where(b.from[0]) + ".\n"
}

// costs has every stack and variant at the small call, on two machines.
func costs(b *block) string {
	var t strings.Builder
	var n notes
	fmt.Fprintf(&t, "| stack | %s (95 %%) | it is | %s (95 %%) | it is | sent, B | received, B | allocations | "+
		"allocated, B |\n|---|---:|---|---:|---|---:|---:|---:|---:|\n", b.machines[0], b.machines[1])
	for _, s := range stacks.All() {
		a, asked := b.of(b.from[0], tiny, s.Name)
		if asked && a.Facts != nil {
			f := a.Facts
			fmt.Fprintf(&t, "| `%s` | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", s.Name, n.cell(a),
				b.cellOf(&n, b.from[1], tiny, s.Name), f.Sent, f.Received, f.Allocs, f.AllocBytes)
		}
	}
	return t.String() + n.String() + "\nA small call on one core, compared with `httpjson`." + b.wheres()
}

// quotient is one ratio to a base by another, as independent figures.
func quotient(a, b report.Answer) (q report.Answer) {
	width := math.Exp(math.Hypot(math.Log(a.Hi/a.Lo)/2, math.Log(b.Hi/b.Lo)/2))
	q.Ratio = a.Ratio / b.Ratio
	q.Lo, q.Hi = q.Ratio/width, q.Ratio*width
	return q
}

// pairs compares stacks that differ in one thing.
func pairs(b *block) string {
	ratio := func(stack string) report.Answer { return b.found(b.from[0], tiny, stack) }
	var t strings.Builder
	fmt.Fprintf(&t, "| what differs | pair | ratio, %s (95 %%) |\n|---|---|---:|\n", b.machines[0])
	row := func(differs, a, base string, r report.Answer) {
		fmt.Fprintf(&t, "| %s | `%s` to `%s` | %s |\n", differs, a, base, times(r))
	}
	row("the format", "httpprotobuf", "httpjson", ratio("httpprotobuf"))
	row("the HTTP version, in net/http", "httpjson.h2c", "httpjson", ratio("httpjson.h2c"))
	row("the server's HTTP/2: net/http's with ServeHTTP, or grpc-go's own", "grpcservehttp", grpc,
		quotient(ratio("grpcservehttp"), ratio(grpc)))
	return t.String()
}

// unsettled are stacks whose recorded runs disagree on who is faster, with the folders of further runs.
var unsettled = map[string][]string{"drpc": {"results/2026-11-23-epyc-2vcpu-night/asked",
	"results/2026-11-24-epyc-2vcpu-morning/drpc", "results/2026-11-24-epyc-2vcpu-morning/drpc-busy"}}

// span is the range of an unsettled stack's ratios over all recorded runs.
func (b *block) span(evening, work, stack string) string {
	ratios := []float64{b.found(evening, work, stack).Ratio}
	for _, dir := range unsettled[stack] {
		ratios = append(ratios, b.answer(dir, work, stack).Ratio)
	}
	return fmt.Sprintf("%.2f to %.2f in %d runs", slices.Min(ratios), slices.Max(ratios), len(ratios))
}

// grid has a row for each stack of a part of the evening, and of those before it, and a column for each workload that
// the part asked.
func grid(part string, before ...string) func(*block) string {
	return func(b *block) string {
		s := b.run(b.from[0] + "/" + part)
		var head, t strings.Builder
		var n notes
		var works, titles []string
		for _, a := range s.Answers {
			if !slices.Contains(works, a.Workload) {
				works, titles = append(works, a.Workload), append(titles, a.Does)
			}
		}
		fmt.Fprintf(&head, "| stack | %s |\n|---|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
		for _, stack := range append(before, s.Stacks()...) {
			fmt.Fprintf(&t, "| `%s` |", stack)
			for _, work := range works {
				if unsettled[stack] != nil {
					fmt.Fprintf(&t, " %s |", b.span(b.from[0], work, stack))
					continue
				}
				ratio, verdict, _ := strings.Cut(n.cell(b.found(b.from[0], work, stack)), " | ")
				fmt.Fprintf(&t, " %s %s |", ratio, verdict)
			}
			t.WriteString("\n")
		}
		return head.String() + t.String() + n.String() +
			fmt.Sprintf("\nCompared with %s: %s.\n", report.Label(s.Base), b.where(b.from[0]))
	}
}

// publics has a row for each run of a method of one's own, and a column for each workload.
func publics(b *block) string {
	var t strings.Builder
	var n notes
	for i, dir := range b.from {
		s := b.run(dir)
		if s.Call == nil || len(s.Call.Bodies) == 0 {
			b.fail("%s is no run of a method of one's own", dir)
			return ""
		}
		if i == 0 {
			t.WriteString("| method | JSON, B |")
			for _, a := range s.Of(grpc) {
				fmt.Fprintf(&t, " %s |", a.Does)
			}
			t.WriteString("\n|---|---:|" + strings.Repeat("---|", len(s.Of(grpc))) + "\n")
		}
		body := s.Call.Bodies[0]
		fmt.Fprintf(&t, "| [%s](%s%s/report.md) | %.0f |", s.Call.Method, b.up, dir, body.Request+body.Reply)
		for _, a := range s.Of(grpc) {
			ratio, verdict, _ := strings.Cut(n.cell(a), " | ")
			fmt.Fprintf(&t, " %s %s |", ratio, verdict)
		}
		t.WriteString("\n")
	}
	return t.String() + n.String()
}

// builds has a column for each build, compared with the base's.
func builds(b *block) string {
	s := b.run(b.from[0])
	var t strings.Builder
	head, line := "| workload | base, µs |", "|---|---:|"
	for _, stack := range s.Stacks() {
		head, line = head+" "+report.Label(stack)+" |", line+"---|"
	}
	t.WriteString(head + "\n" + line + "\n")
	var done []string
	for _, first := range s.Answers {
		if slices.Contains(done, first.Workload) {
			continue
		}
		done = append(done, first.Workload)
		fmt.Fprintf(&t, "| %s | %.0f |", first.Does, first.BaseNs/1000)
		for _, a := range s.Answers {
			if a.Workload == first.Workload {
				fmt.Fprintf(&t, " %s %s |", times(a), a.Verdict)
			}
		}
		t.WriteString("\n")
	}
	fmt.Fprintf(&t, "\nThe base is %s: %s.\n", report.Label(s.Base), b.where(b.from[0]))
	return t.String()
}
