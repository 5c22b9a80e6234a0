package pages

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/stacks"
)

const (
	grpc = "grpcprotobuf"
	tiny = "small" // the workload of tables of stacks
)

// where says where a run was made, and links its report.
func (b *block) where(dir string) string {
	said := map[string]string{}
	for _, line := range b.run(dir).Environment {
		name, value, _ := strings.Cut(line, "=")
		said[name] = value
	}
	return fmt.Sprintf("[%s, %s virtual cores, %s, %s, commit %s](%s%s/report.md)",
		strings.ReplaceAll(said["cpu"], "-", " "), said["cores"], said["go"], said["date"], said["commit"], b.up, dir)
}

// on is where, after the marker's word for the machine.
func (b *block) on(machine int, dir string) string {
	word := b.machines[machine]
	return strings.ToUpper(word[:1]) + word[1:] + ": " + b.where(dir)
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

// notes collects the reasons of cells without a verdict, and gives each a mark.
type notes []string

// cell is a ratio with its interval and the verdict.
func (n *notes) cell(a report.Answer) string {
	if a.Verdict != versus.Undecided {
		return fmt.Sprintf("%s | %s", times(a), a.Verdict)
	}
	said := strings.TrimPrefix(a.Said(), "undecided: ")
	if !slices.Contains(*n, said) {
		*n = append(*n, said)
	}
	return fmt.Sprintf("%s | undecided [%d]", times(a), slices.Index(*n, said)+1)
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

// workloads compares gRPC with JSON at every workload, in a quiet run and in a noisy one.
func workloads(b *block) string {
	quiet, noisy := b.from[0], b.from[1]
	var t strings.Builder
	var n notes
	fmt.Fprintf(&t, "| workload | JSON, µs | gRPC, µs | ratio, %s (95 %%) | gRPC is | ratio, %s (95 %%) | gRPC is |\n"+
		"|---|---:|---:|---:|---|---:|---|\n", b.machines[0], b.machines[1])
	for _, a := range b.run(quiet).ByRatio(grpc) {
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s |\n", a.Does, micros(a.BaseNs), micros(a.Paired()), n.cell(a),
			n.cell(b.answer(noisy, a.Workload, a.Stack)))
	}
	fmt.Fprintf(&t, "%s\n%s.\n%s.\n", n.String(), b.on(0, quiet), b.on(1, noisy))
	return t.String()
}

// smallCall is the answer about a stack at the small call. The answer about gRPC is the one of the run of workloads:
// one question has one number.
func (b *block) smallCall(dir, workloads, stack string) report.Answer {
	if stack == grpc {
		dir = workloads
	}
	return b.answer(dir, tiny, stack)
}

// mainStacks has the main stacks at the small call: from a run of stacks, and a run of workloads.
func mainStacks(b *block) string {
	s := b.run(b.from[0])
	var t strings.Builder
	t.WriteString("| stack | ratio to JSON (95 %) | it is | bytes sent + received | allocations " +
		"|\n|---|---:|---|---:|---:|\n")
	var n notes
	for i, stack := range stacks.Main() {
		if i == 0 {
			base := b.smallCall(b.from[0], b.from[1], grpc).BaseFacts
			fmt.Fprintf(&t, "| `%s` | 1 | base | %.0f + %.0f | %.0f |\n", s.Base, base.Sent, base.Received, base.Allocs)
		}
		measured := slices.Contains(s.Stacks(), stack.Name)
		if stack.Name != s.Base && !measured {
			fmt.Fprintf(&t, "| `%s` | not measured yet | | | |\n", stack.Name)
		} else if stack.Name != s.Base {
			a := b.smallCall(b.from[0], b.from[1], stack.Name)
			fmt.Fprintf(&t, "| `%s` | %s | %.0f + %.0f | %.0f |\n", stack.Name, n.cell(a), a.Facts.Sent, a.Facts.Received,
				a.Facts.Allocs)
		}
	}
	fmt.Fprintf(&t, "%s\nA small call on one core: %s.\n", n.String(), b.where(b.from[0]))
	return t.String()
}

// costs has every stack and variant: from a quiet run of stacks and one of workloads, noisy ones, and a noisy run of
// variants.
func costs(b *block) string {
	quiet, noisy, variants := b.from[0], b.from[2], b.from[4]
	var t strings.Builder
	var n notes
	fmt.Fprintf(&t, "| stack | %s (95 %%) | it is | %s (95 %%) | it is | sent, B | received, B | allocations | "+
		"allocated, B |\n|---|---:|---|---:|---|---:|---:|---:|---:|\n", b.machines[0], b.machines[1])
	row := func(stack, onQuiet string, a report.Answer) {
		f := a.Facts
		fmt.Fprintf(&t, "| `%s` | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", stack, onQuiet, n.cell(a), f.Sent, f.Received,
			f.Allocs, f.AllocBytes)
	}
	for _, a := range b.run(quiet).Answers {
		onQuiet := n.cell(b.smallCall(quiet, b.from[1], a.Stack))
		row(a.Stack, onQuiet, b.smallCall(noisy, b.from[3], a.Stack))
	}
	for _, a := range b.run(variants).Answers {
		row(a.Stack, "– | –", a)
	}
	fmt.Fprintf(&t, "%s\nA small call on one core, compared with `%s`.\nQuiet: %s.\nNoisy: %s,\n"+
		"and for the variants %s.\n", n.String(), b.run(quiet).Base, b.where(quiet), b.where(noisy), b.where(variants))
	return t.String()
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
	ratio := func(stack string) report.Answer { return b.answer(b.from[0], tiny, stack) }
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

// grid has a row for each stack and a column for each workload.
func grid(b *block) string {
	s := b.run(b.from[0])
	var head, t strings.Builder
	var noted notes
	titles := []string{}
	for _, a := range s.Answers {
		if !slices.Contains(titles, a.Does) {
			titles = append(titles, a.Does)
		}
	}
	fmt.Fprintf(&head, "| stack | %s |\n|---|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, stack := range s.Stacks() {
		fmt.Fprintf(&t, "| `%s` |", stack)
		for _, a := range s.Of(stack) {
			ratio, verdict, _ := strings.Cut(noted.cell(a), " | ")
			if a.Ratio == 0 {
				ratio = "–"
			}
			fmt.Fprintf(&t, " %s %s |", ratio, verdict)
		}
		t.WriteString("\n")
	}
	return head.String() + t.String() + noted.String() +
		fmt.Sprintf("\nCompared with %s: %s.\n", report.Label(s.Base), b.where(b.from[0]))
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
