package rpcbench_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacktest"
)

// declared collects the names of all test and benchmark functions of the module.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
		return nil
	}))
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestGuaranteesNameTheirTests: each guarantee names a test; that it exists is TestDocuments' to check.
func TestGuaranteesNameTheirTests(t *testing.T) {
	guarantees := strings.Split(read(t, "docs/guarantees.md"), "\n- ")[1:]
	require.NotEmpty(t, guarantees)
	for _, p := range guarantees {
		require.Regexp(t, "`Test\\w+`", p, "no test holds the guarantee")
	}
}

// TestDocuments: files they link exist, patterns they give run exactly the benchmark they name, and the results they show
// stand in the raw file they name.
func TestDocuments(t *testing.T) {
	names := declared(t)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, path := range append(pages, "README.md", ".github/CONTRIBUTING.md", "CHANGELOG.md", ".github/SECURITY.md", "results/README.md") {
		text := read(t, path)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(path), link[1]))
			require.NoError(t, err, path)
		}
		for _, p := range regexp.MustCompile(`-bench '([^']*)'`).FindAllStringSubmatch(text, -1) {
			pattern, _, _ := strings.Cut(p[1], "/") // what follows picks rows
			name, ok := strings.CutPrefix(strings.TrimSuffix(pattern, "$"), "^")
			require.True(t, ok && strings.HasSuffix(pattern, "$"),
				"pattern %s is not anchored: it may run two benchmarks into one profile", p[1])
			require.True(t, names[name], "%s does not exist", name)
		}
		for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(text, -1) {
			require.True(t, names[name[1]], "%s: %s does not exist", path, name[1])
		}
		shown := strings.Count(text, "<!-- from ")
		blocks := regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```text\n(.*?)```").FindAllStringSubmatch(text, -1)
		require.Len(t, blocks, shown, "%s: a result that names its file and is not checked", path)
		for _, b := range blocks {
			raw := read(t, b[1])
			for _, line := range strings.Split(strings.TrimSpace(b[2]), "\n") {
				require.Contains(t, raw, line, "%s shows a line that is not in %s", path, b[1])
			}
		}
	}
}

// TestExampleIsAStack: Example_ownStack, which people copy, passes the suite.
func TestExampleIsAStack(t *testing.T) { stacktest.Conformance(t, newStack()) }

// TestREADMEIsShort: a newcomer has two minutes.
func TestREADMEIsShort(t *testing.T) {
	readme := read(t, "README.md")
	require.LessOrEqual(t, strings.Count(readme, "\n"), 150, "lines")
	readme = regexp.MustCompile(`(?m)^\|.*`).ReplaceAllString(readme, "") // a table may have a row for another stack
	require.LessOrEqual(t, len(regexp.MustCompile(`\S*\w\S*`).FindAllString(readme, -1)), 900, "words")
}

// TestGeneratedTables: the tables of stacks, codecs and messages are made of the lists, the functions' comments and go.mod.
// -update writes them. They are about a build that has every stack and codec; one without encoding/json/v2 compares the rest.
func TestGeneratedTables(t *testing.T) {
	_, err := stacks.Find("httpjson.v2")
	if *chosen.update {
		require.NoError(t, err, "the tables have rows of encoding/json/v2: write them with Go 1.27 or later")
	}
	onlyV2 := regexp.MustCompile("(?m)^\\| `(httpjson|json)\\.v2` .*\n")
	for _, c := range []struct {
		path, name string
		table      func(*testing.T) string
	}{
		{"README.md", "answer", answer},
		{"README.md", "workloads", workloadTable},
		{"README.md", "advice", advice},
		{"README.md", "main stacks", mainTable},
		{"docs/answer.svg", "", picture},
		{"docs/stacks.md", "costs", costTable},
		{"docs/stacks.md", "pairs", pairTable},
		{"docs/stacks.md", "stacks", stackTable},
		{"docs/scenarios.md", "scenarios", scenarioTable},
		{"docs/releases.md", "grpc-go", func(t *testing.T) string { return buildTable(t, grpcRun) }},
		{"docs/releases.md", "go json", func(t *testing.T) string { return buildTable(t, goJSONRun) }},
		{"docs/releases.md", "go grpc", func(t *testing.T) string { return buildTable(t, goGRPCRun) }},
		{"docs/codecs.md", "codecs", codecTable},
		{"docs/codecs.md", "messages", messageTable},
		{"docs/claims.md", "claims", claimsTable},
		{"docs/why.md", "servehttp", whyServeHTTP},
		{"docs/why.md", "http2", whyHTTP2},
		{"docs/why.md", "gzip", whyGzip},
		{"docs/why.md", "one caller", whyOneCaller},
		{"docs/why.md", "bytes", whyBytes},
		{"docs/why.md", "free", whyFree},
		{"docs/why.md", "ladder", ladderTable},
		{"docs/why.md", "agree", agreeTable},
		{"docs/why.md", "shares", whyShares},
		{"docs/why.md", "writes", whyWrites},
		{"docs/why.md", "frames", whyFrames},
	} {
		begin, end := "<!-- "+c.name+" -->\n", "<!-- /"+c.name+" -->"
		text := read(t, c.path)
		if c.name == "" { // the whole file
			text, begin, end = "", "", ""
			if !*chosen.update {
				text = read(t, c.path)
				require.Equal(t, c.table(t), text, "%s: go test -run TestGeneratedTables -update . makes it anew", c.path)
				continue
			}
		}
		if err != nil {
			text = onlyV2.ReplaceAllString(text, "")
		}
		head, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, "%s has no place for its table of %s", c.path, c.name)
		_, tail, ok := strings.Cut(rest, end)
		require.True(t, ok)
		want := head + begin + c.table(t) + end + tail
		if *chosen.update {
			require.NoError(t, os.WriteFile(c.path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, text, "go test -run TestGeneratedTables -update . writes the table anew")
	}
}

// The runs that README and docs/stacks.md speak of: of a quiet machine, and of a noisy one beside it.
const (
	quietWorkloads = "results/2026-11-23-xeon-2vcpu/workloads"
	quietStacks    = "results/2026-11-23-xeon-2vcpu/stacks"
	workloadsRun   = "results/2026-11-23-epyc-2vcpu/workloads"
	stacksRun      = "results/2026-11-23-epyc-2vcpu/stacks"
	variantsRun    = "results/2026-11-23-epyc-2vcpu/variants"

	quietRun  = "results/2026-11-22-xeon-2vcpu-noon/versus.txt"
	grpcRun   = "results/2026-11-23-epyc-2vcpu/grpc-go"
	goJSONRun = "results/2026-11-23-epyc-2vcpu/go-json"
	goGRPCRun = "results/2026-11-23-epyc-2vcpu/go-grpc"
)

// ran reads a run, and where it was made.
func ran(t *testing.T, dir string) (s report.Summary, where string) {
	t.Helper()
	s, err := report.Read(dir)
	require.NoError(t, err)
	said := map[string]string{}
	for _, line := range s.Environment {
		name, value, _ := strings.Cut(line, "=")
		said[name] = value
	}
	return s, fmt.Sprintf("%s, %s virtual cores, %s, %s, commit %s", strings.ReplaceAll(said["cpu"], "-", " "), said["cores"], said["go"],
		said["date"], said["commit"])
}

// answerTo returns the answer about gRPC, or the stack, at a workload.
func answerTo(t *testing.T, s report.Summary, workload, stack string) report.Answer {
	t.Helper()
	for _, a := range s.Answers {
		if a.Workload == workload && a.Stack == stack {
			require.Positive(t, a.Ratio, "%s of %s was not measured", workload, stack)
			return a
		}
	}
	t.Fatalf("%s was not measured of %s", workload, stack)
	return report.Answer{}
}

// times is a ratio with its interval.
func times(a report.Answer) string { return fmt.Sprintf("%.2f (%.2f–%.2f)", a.Ratio, a.Lo, a.Hi) }

// answer is README's first lines.
func answer(t *testing.T) string {
	t.Helper()
	quiet, _ := ran(t, quietWorkloads)
	noisy, _ := ran(t, workloadsRun)
	of := func(workload string) report.Answer {
		a, b := answerTo(t, quiet, workload, "grpcprotobuf"), answerTo(t, noisy, workload, "grpcprotobuf")
		require.Equal(t, a.Ratio > 1, b.Ratio > 1, "%s: the machines disagree, and README says that they agree", workload)
		return a
	}
	for _, a := range quiet.Answers {
		of(a.Workload)
	}
	small, structured := of("small"), of("structured-1kB")
	require.Equal(t, []versus.Verdict{versus.Slower, versus.Faster}, []versus.Verdict{small.Verdict, structured.Verdict})
	differ := func(workload string) string {
		return fmt.Sprintf("%.2f and %.2f", of(workload).Ratio, answerTo(t, noisy, workload, "grpcprotobuf").Ratio)
	}
	return fmt.Sprintf(`**Choose by features: for small calls the speed hardly differs.** A ratio is gRPC's time divided by JSON's over HTTP/1.1.

- A small call costs gRPC %.0f %% more CPU, about %.0f µs: %s.
- Structured data turns that round: %.2f for mixed fields (418 B of JSON), %.2f for 2.0 kB, %.2f for 18.5 kB.
- A small message on an open stream takes half of JSON's call: %.2f.
- A new connection costs gRPC more: %.2f times with TLS, %.2f times in clear.
- What that means: at 2.0 kB gRPC saves %.0f µs a call. That is %.1f %% of a request of 10 ms, and %.0f %% of a core at
  1,000 calls a second.

These ratios are of a quiet Intel Xeon. A noisy AMD EPYC agrees on every direction. In size the two differ most for
100 kB of bytes (%s) and a new connection (%s).
`, 100*(small.Ratio-1), small.Micro(), times(small), of("mixed").Ratio, structured.Ratio, of("structured-10kB").Ratio, of("stream").Ratio,
		of("cold-tls").Ratio, of("cold").Ratio, -structured.Micro(), -structured.Micro()/100, -structured.Micro()/10,
		differ("bytes-100kB"), differ("cold"))
}

// advice says who wins where: on both machines, or it is left to the table.
func advice(t *testing.T) string {
	t.Helper()
	quiet, _ := ran(t, quietWorkloads)
	noisy, _ := ran(t, workloadsRun)
	var b strings.Builder
	for _, line := range []struct {
		when, why string
		verdict   versus.Verdict
		workloads []string
	}{
		{"Structured data, with one caller or 50", "gRPC", versus.Faster, []string{"mixed", "mixed-50-callers", "structured-1kB", "structured-10kB"}},
		{"Binary data from 1 kB, if JSON has to carry them as base64", "gRPC", versus.Faster, []string{"bytes-1kB", "bytes-10kB", "bytes-100kB"}},
		{"Many small messages to one peer", "gRPC, on a stream", versus.Faster, []string{"stream"}},
		{"A new connection for each call", "JSON", versus.Slower, []string{"cold", "cold-tls", "cold-4g"}},
		{"Small calls, with or without long headers", "either, for JSON wins by little", versus.Slower, []string{"small", "headers"}},
	} {
		for _, w := range line.workloads {
			for _, s := range []report.Summary{quiet, noisy} {
				require.Equal(t, line.verdict, answerTo(t, s, w, "grpcprotobuf").Verdict, "%s: %s", line.when, w)
			}
		}
		fmt.Fprintf(&b, "- %s: **%s**.\n", line.when, line.why)
	}
	return b.String()
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

func workloadTable(t *testing.T) string {
	t.Helper()
	quiet, where := ran(t, quietWorkloads)
	noisy, there := ran(t, workloadsRun)
	var b strings.Builder
	var n notes
	b.WriteString("| workload | JSON, µs | gRPC, µs | ratio, quiet Xeon (95 %) | gRPC is | ratio, noisy EPYC (95 %) | gRPC is |\n|---|---:|---:|---:|---|---:|---|\n")
	all := slices.Clone(quiet.Answers)
	slices.SortFunc(all, func(a, b report.Answer) int { return cmp.Compare(a.Ratio, b.Ratio) })
	for _, a := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.Does, micros(a.BaseNs), micros(a.Paired()), n.cell(a),
			n.cell(answerTo(t, noisy, a.Workload, a.Stack)))
	}
	fmt.Fprintf(&b, "%s\nQuiet: [%s](%s/report.md).\nNoisy: [%s](%s/report.md).\n", n.String(), where, quietWorkloads, there, workloadsRun)
	return b.String()
}

// micros are microseconds, with as many digits as an interval of a percent carries.
func micros(ns float64) string {
	if ns < 100_000 {
		return fmt.Sprintf("%.1f", ns/1000)
	}
	return fmt.Sprintf("%.0f", ns/1000)
}

// smallCall is the answer about a stack at the small call. That about gRPC is the one of the first table: one question
// has one number.
func smallCall(t *testing.T, s report.Summary, workloads, stack string) report.Answer {
	t.Helper()
	if stack == "grpcprotobuf" {
		s, _ = ran(t, workloads)
	}
	return answerTo(t, s, "small", stack)
}

func mainTable(t *testing.T) string {
	t.Helper()
	s, where := ran(t, quietStacks)
	var b strings.Builder
	b.WriteString("| stack | ratio to JSON (95 %) | it is | bytes sent + received | allocations |\n|---|---:|---|---:|---:|\n")
	var n notes
	for i, stack := range stacks.Main() {
		if i == 0 {
			base := s.Answers[0].BaseFacts
			fmt.Fprintf(&b, "| `%s` | 1 | base | %.0f + %.0f | %.0f |\n", s.Base, base.Sent, base.Received, base.Allocs)
		}
		measured := slices.Contains(s.Stacks(), stack.Name)
		if stack.Name != s.Base && !measured {
			fmt.Fprintf(&b, "| `%s` | not measured yet | | | |\n", stack.Name)
		} else if stack.Name != s.Base {
			a := smallCall(t, s, quietWorkloads, stack.Name)
			fmt.Fprintf(&b, "| `%s` | %s | %.0f + %.0f | %.0f |\n", stack.Name, n.cell(a), a.Facts.Sent, a.Facts.Received, a.Facts.Allocs)
		}
	}
	fmt.Fprintf(&b, "%s\nA small call on one core: [%s](%s/report.md).\n", n.String(), where, quietStacks)
	return b.String()
}

// costTable has every stack and variant, on both machines.
func costTable(t *testing.T) string {
	t.Helper()
	quiet, where := ran(t, quietStacks)
	noisy, there := ran(t, stacksRun)
	variants, later := ran(t, variantsRun)
	var b strings.Builder
	var n notes
	fmt.Fprintf(&b, "A small call on one core, compared with `%s`. Quiet: [%s](../%s/report.md). Noisy: [%s](../%s/report.md).\n",
		quiet.Base, where, quietStacks, there, stacksRun)
	fmt.Fprintf(&b, "The variants are of [a later noisy run](../%s/report.md): %s.\n\n", variantsRun, later)
	b.WriteString("| stack | quiet Xeon (95 %) | it is | noisy EPYC (95 %) | it is | sent, B | received, B | allocations | allocated, B |\n" +
		"|---|---:|---|---:|---|---:|---:|---:|---:|\n")
	row := func(stack, onQuiet string, a report.Answer) {
		f := a.Facts
		fmt.Fprintf(&b, "| `%s` | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", stack, onQuiet, n.cell(a), f.Sent, f.Received, f.Allocs, f.AllocBytes)
	}
	for _, a := range quiet.Answers {
		onQuiet := n.cell(smallCall(t, quiet, quietWorkloads, a.Stack))
		row(a.Stack, onQuiet, smallCall(t, noisy, workloadsRun, a.Stack))
	}
	for _, a := range variants.Answers {
		row(a.Stack, "– | –", a)
	}
	b.WriteString(n.String())
	return b.String()
}

// pairTable compares stacks that differ in one thing. The last pair is a quotient of two ratios to one base, whose
// intervals are added as squares of logarithms.
func pairTable(t *testing.T) string {
	t.Helper()
	s, _ := ran(t, quietStacks)
	ratio := func(stack string) report.Answer { return smallCall(t, s, quietStacks, stack) }
	quotient := func(a, b report.Answer) (q report.Answer) {
		half := func(r report.Answer) float64 { return math.Log(r.Hi/r.Lo) / 2 }
		width := math.Exp(math.Hypot(half(a), half(b)))
		q.Ratio = a.Ratio / b.Ratio
		q.Lo, q.Hi = q.Ratio/width, q.Ratio*width
		return q
	}
	return fmt.Sprintf(`| what differs | pair | ratio, quiet Xeon (95 %%) |
|---|---|---:|
| the format | %[1]shttpprotobuf%[1]s to %[1]shttpjson%[1]s | %[2]s |
| the HTTP version, in net/http | %[1]shttpjson.h2c%[1]s to %[1]shttpjson%[1]s | %[3]s |
| the server's HTTP/2: net/http's with ServeHTTP, or grpc-go's own | %[1]sgrpcservehttp%[1]s to %[1]sgrpcprotobuf%[1]s | %[4]s |

The last one is a quotient of two ratios to %[1]shttpjson%[1]s.
`, "`", times(ratio("httpprotobuf")), times(ratio("httpjson.h2c")), times(quotient(ratio("grpcservehttp"), ratio("grpcprotobuf"))))
}

// scenarioTable has gRPC's ratio to JSON of each workload, by what differs.
func scenarioTable(t *testing.T) string {
	t.Helper()
	quiet, _ := ran(t, quietWorkloads)
	noisy, _ := ran(t, workloadsRun)
	var b strings.Builder
	var n notes
	b.WriteString("| gRPC to JSON | quiet Xeon (95 %) | gRPC is | noisy EPYC (95 %) | gRPC is |\n|---|---:|---|---:|---|\n")
	for _, name := range []string{"bytes-1kB", "bytes-10kB", "bytes-100kB", "mixed", "mixed-50-callers", "small-50-callers", "stream", "headers", "cold",
		"cold-tls", "cold-4g"} {
		a, c := answerTo(t, quiet, name, "grpcprotobuf"), answerTo(t, noisy, name, "grpcprotobuf")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Does, n.cell(a), n.cell(c))
	}
	return b.String() + n.String()
}

// buildTable has a column for each build, compared with the base's.
func buildTable(t *testing.T, dir string) string {
	t.Helper()
	s, where := ran(t, dir)
	var b strings.Builder
	head, line := "| workload | base, µs |", "|---|---:|"
	for _, stack := range s.Stacks() {
		head, line = head+" "+report.Label(stack)+" |", line+"---|"
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, first := range s.Of(s.Stacks()[0]) {
		fmt.Fprintf(&b, "| %s | %.0f |", first.Does, first.BaseNs/1000)
		for _, stack := range s.Stacks() {
			a := answerTo(t, s, first.Workload, stack)
			fmt.Fprintf(&b, " %s %s |", times(a), a.Verdict)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nThe base is %s. %s. [The whole run](../%s/report.md).\n", report.Label(s.Base), where, dir)
	return b.String()
}

// picture is that of the quiet run.
func picture(t *testing.T) string {
	t.Helper()
	s, _ := ran(t, quietWorkloads)
	var b strings.Builder
	require.NoError(t, s.SVG(&b))
	return b.String()
}

func codecTable(t *testing.T) string {
	t.Helper()
	version := versions(t)
	named := func(library string) string {
		for module := library; module != "."; module = filepath.Dir(module) {
			if v := version[module]; v != "" {
				return library + " " + v
			}
		}
		return library
	}
	var b strings.Builder
	b.WriteString("| codec | library | by | keeps | invalid UTF-8 encoded, decoded | not bit-equal |\n|---|---|---|---|---|---|\n")
	for _, c := range codecs.All() {
		t := c.New().Traits()
		by := "reflection"
		if t.Generated {
			by = "generated code"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s, %s | %s |\n", c.Name, named(t.Library), by, c.Reuses,
			t.InvalidUTF8.Encoding, t.InvalidUTF8.Decoding, cmp.Or(listed(t.Lossy), "–"))
	}
	return b.String()
}

func messageTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| message | why it exists | protobuf | gzip of that |\n|---|---|---|---|\n")
	for _, m := range codecs.Messages() {
		fmt.Fprintf(&b, "| `%s` | %s | %d B | %.0f %% |\n", m.Name, m.Why, m.Size, 100*m.Gzip)
	}
	return b.String()
}

func stackTable(t *testing.T) string {
	t.Helper()
	version := versions(t)
	var b strings.Builder
	b.WriteString("| stack | what it is | HTTP | wire format | compression | invalid UTF-8 | not bit-equal | libraries |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range stacks.All() {
		format := strings.Split(s.Protocol, "/")[1]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", s.Name, synopsis(t, s.Name),
			cmp.Or(s.Traits.HTTP, "none"), format, cmp.Or(string(s.Traits.Compression), "none"), s.Traits.InvalidUTF8,
			cmp.Or(listed(s.Traits.Lossy), "–"), strings.Join(libraries(s, version), ", "))
	}
	return b.String()
}

// synopsis is the first sentence of the comment of the function that makes a stack.
func synopsis(t *testing.T, name string) string {
	t.Helper()
	pkg, variant, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(pkg + "/*.go")
	require.NoError(t, err)
	if len(files) == 0 {
		files, err = filepath.Glob("stacks/" + pkg + "/*.go")
		require.NoError(t, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.EqualFold(f.Name.Name, variant) && (variant != "" || f.Name.Name != "New") {
				continue
			}
			text := new(doc.Package).Synopsis(f.Doc.Text())
			if variant == "" { // what New adds is said by the package
				text = new(doc.Package).Synopsis(packageComment(t, files))
			}
			_, text, _ = strings.Cut(text, " ")
			return strings.TrimPrefix(strings.TrimSuffix(text, "."), "serves and calls the create-user API ")
		}
	}
	t.Fatalf("no function makes %s", name)
	return ""
}

func packageComment(t *testing.T, files []string) string {
	t.Helper()
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if file.Doc != nil {
			_, text, _ := strings.Cut(file.Doc.Text(), " ") // "Package"
			return text
		}
	}
	return ""
}

// versions maps the modules that go.mod requires to their versions.
func versions(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all").Output()
	require.NoError(t, err)
	version := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		version[path] = v
	}
	version["github.com/json-iterator/go"] += " (unmaintained)" // as its repository says
	return version
}

// libraries are the one that moves the bytes and the one that makes them, with their versions.
func libraries(s rpcbench.Stack, version map[string]string) []string {
	transport := append(s.Traits.ClientLibraries, "net")[0]
	codec := s.Traits.Codec
	for ours, theirs := range map[string]string{"proto/user/v1": "github.com/planetscale/vtprotobuf", "codec/msgp": "github.com/tinylib/msgp"} {
		if strings.HasSuffix(codec, ours) {
			codec = theirs
		}
	}
	named := func(path string) string { return strings.TrimSpace(path + " " + version[path]) }
	return []string{named(transport), named(codec)}
}

// TestProtoFilesAreUsableAsTheyLie: their imports are found with -import-path proto.
func TestProtoFilesAreUsableAsTheyLie(t *testing.T) {
	imports := 0
	require.NoError(t, filepath.WalkDir("proto", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			for _, line := range regexp.MustCompile(`(?m)^import "(.*)"`).FindAllStringSubmatch(read(t, path), -1) {
				imports++
				require.FileExists(t, filepath.Join("proto", line[1]), path)
			}
		}
		return err
	}))
	require.Positive(t, imports)
}
