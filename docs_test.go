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
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
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
	for _, path := range append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "results/README.md") {
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
		{"docs/stacks.md", "stacks", stackTable},
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

// The runs that README and docs/stacks.md speak of.
const (
	workloadsRun = "results/2026-11-23-epyc-2vcpu/workloads"
	stacksRun    = "results/2026-11-23-epyc-2vcpu/stacks"
	variantsRun  = "results/2026-11-23-epyc-2vcpu/variants"
	quietRun     = "results/2026-11-22-xeon-2vcpu-noon/versus.txt"
	grpcRun      = "results/2026-11-23-epyc-2vcpu/grpc-go"
	goJSONRun    = "results/2026-11-23-epyc-2vcpu/go-json"
	goGRPCRun    = "results/2026-11-23-epyc-2vcpu/go-grpc"
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
	s, _ := ran(t, workloadsRun)
	of := func(workload string) report.Answer { return answerTo(t, s, workload, "grpcprotobuf") }
	small, structured := of("small"), of("structured-1kB")
	said := map[versus.Verdict]string{versus.Faster: "**A small call is cheaper with gRPC.**", versus.Slower: "**A small call is cheaper with JSON.**",
		versus.Equal:     "**A small call costs the same.**",
		versus.Undecided: "**For a small call this run proves no difference.**"}[small.Verdict]
	share := func(a report.Answer) string { return fmt.Sprintf("%.2f %%", math.Abs(a.Micro())/100) }
	quiet := regexp.MustCompile(`(?m)^grpcprotobuf +\d+ +\d+ +([\d.]+) +([\d.]+)–([\d.]+) +(\w+)`).FindStringSubmatch(read(t, quietRun))
	two := func(ratio string) string {
		x, err := strconv.ParseFloat(ratio, 64)
		require.NoError(t, err)
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf(`- %s
  On one core gRPC takes %s times as long as JSON here: %+.1f µs, %s of a request of 10 ms. On a
  [quieter machine](%s) gRPC is %s: %s (%s–%s).
- **What you send decides more.** With 1 kB of structured data the ratio is %s: %+.0f µs, %s of
  10 ms. With 10 kB of bytes it is %s.
- **So does how you connect.** On a stream the ratio is %s, on a new TLS connection %s.
`, said, times(small), small.Micro(), share(small), quietRun, quiet[4], two(quiet[1]), two(quiet[2]), two(quiet[3]), times(structured), structured.Micro(), share(structured), times(of("bytes-10kB")),
		times(of("stream")), times(of("cold-tls")))
}

// advice says who wins where.
func advice(t *testing.T) string {
	t.Helper()
	s, _ := ran(t, workloadsRun)
	var b strings.Builder
	for _, line := range []struct {
		when      string
		workloads []string
	}{
		{"Small calls, with or without long headers", []string{"small", "small-1-caller", "two-processes", "headers"}},
		{"Fifty callers at once", []string{"small-50-callers", "mixed-50-callers"}},
		{"Files and images from 1 kB (JSON carries bytes as base64)", []string{"bytes-1kB", "bytes-10kB", "bytes-100kB"}},
		{"Structured data from 1 kB", []string{"structured-1kB", "structured-10kB"}},
		{"Many small messages to one peer, on a stream", []string{"stream"}},
		{"A new connection for each call", []string{"cold", "cold-tls", "cold-4g"}},
	} {
		winners := map[versus.Verdict]bool{}
		for _, w := range line.workloads {
			winners[answerTo(t, s, w, "grpcprotobuf").Verdict] = true
		}
		winner := "no difference proved"
		switch {
		case len(winners) == 1 && winners[versus.Faster]:
			winner = "gRPC"
		case len(winners) == 1 && winners[versus.Slower]:
			winner = "JSON"
		}
		fmt.Fprintf(&b, "- %s: **%s**.\n", line.when, winner)
	}
	return b.String()
}

func workloadTable(t *testing.T) string {
	t.Helper()
	s, where := ran(t, workloadsRun)
	var b strings.Builder
	b.WriteString("| workload | JSON, µs | gRPC, µs | ratio (95 %) | noise | gRPC is |\n|---|---:|---:|---:|---:|---|\n")
	for _, w := range workload.All() {
		if slices.Contains([]string{"mixed", "structured-10kB", "bytes-1kB", "cold", "headers", "two-processes"}, w.Name) {
			continue // the report has them
		}
		a := answerTo(t, s, w.Name, "grpcprotobuf")
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %s | %.0f %% | %s |\n", w.Title, a.BaseNs/1000, a.Paired()/1000, times(a), 100*a.NoiseFloor(), a.Verdict)
	}
	most := 0.0
	for _, a := range s.Answers {
		most = max(most, a.Moved)
	}
	fmt.Fprintf(&b, "\n%s.\nJSON's own time moved by up to %.0f %% meanwhile. [All workloads](%s/report.md).\n", where, 100*most, workloadsRun)
	return b.String()
}

func mainTable(t *testing.T) string {
	t.Helper()
	s, where := ran(t, stacksRun)
	var b strings.Builder
	b.WriteString("| stack | ratio to JSON (95 %) | verdict | bytes sent + received | allocations |\n|---|---:|---|---:|---:|\n")
	for i, stack := range stacks.Main() {
		if i == 0 {
			base := s.Answers[0].BaseFacts
			fmt.Fprintf(&b, "| `%s` | 1 | base | %.0f + %.0f | %.0f |\n", s.Base, base.Sent, base.Received, base.Allocs)
		}
		measured := slices.Contains(s.Stacks(), stack.Name)
		if stack.Name != s.Base && !measured {
			fmt.Fprintf(&b, "| `%s` | not measured yet | | | |\n", stack.Name)
		} else if stack.Name != s.Base {
			a := answerTo(t, s, "small", stack.Name)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %.0f + %.0f | %.0f |\n", stack.Name, times(a), a.Verdict, a.Facts.Sent, a.Facts.Received, a.Facts.Allocs)
		}
	}
	fmt.Fprintf(&b, "\n%s.\n", where)
	return b.String()
}

// costTable has every stack and variant.
func costTable(t *testing.T) string {
	t.Helper()
	s, where := ran(t, stacksRun)
	var b strings.Builder
	fmt.Fprintf(&b, "A small call with GOMAXPROCS=1, compared with `%s`: %s. [The whole run](../%s/report.md).\n\n", s.Base, where, stacksRun)
	variants, later := ran(t, variantsRun)
	fmt.Fprintf(&b, "Rows from `%s` on are of [a later run](../%s/report.md): %s.\n\n", variants.Answers[0].Stack, variantsRun, later)
	b.WriteString("| stack | time to JSON's (95 %) | verdict | sent, B | received, B | allocations | allocated, B |\n|---|---:|---|---:|---:|---:|---:|\n")
	for _, a := range append(slices.Clip(s.Answers), variants.Answers...) {
		f := a.Facts
		fmt.Fprintf(&b, "| `%s` | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", a.Stack, times(a), a.Verdict, f.Sent, f.Received, f.Allocs, f.AllocBytes)
	}
	return b.String()
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

// picture is that of the run.
func picture(t *testing.T) string {
	t.Helper()
	s, _ := ran(t, workloadsRun)
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
			t.InvalidUTF8.Encoding, t.InvalidUTF8.Decoding, cmp.Or(strings.Join(t.Lossy, ", "), "–"))
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
		pkg, _, _ := strings.Cut(s.Name, ".")
		format := strings.Split(s.Protocol, "/")[1]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", s.Name, synopsis(t, s.Name),
			cmp.Or(s.Traits.HTTP, "none"), format, cmp.Or(s.Traits.Compression, "none"), s.Traits.InvalidUTF8,
			cmp.Or(strings.Join(s.Traits.Lossy, ", "), "–"), strings.Join(libraries(t, pkg, s, version), ", "))
	}
	return b.String()
}

// synopsis is the first sentence of the comment of the function that makes a stack.
func synopsis(t *testing.T, name string) string {
	t.Helper()
	pkg, variant, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(pkg + "/*.go")
	require.NoError(t, err)
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
	return version
}

// libraries are the one that moves the bytes and the one that makes them, with their versions.
func libraries(t *testing.T, pkg string, s rpcbench.Stack, version map[string]string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg).Output()
	require.NoError(t, err)
	transport := "net"
	for _, path := range []string{"net/http", "connectrpc.com/connect", "google.golang.org/grpc"} {
		if strings.Contains("\n"+string(out), "\n"+path+"\n") && s.Traits.HTTP != "" {
			transport = path
		}
	}
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
