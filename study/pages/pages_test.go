package pages

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// intervals are those that a page shows, but in fenced code.
var (
	intervals = regexp.MustCompile(`\d \(\d[\d.]*(?:–| to )\d[\d.]*\)|±\s?\d`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```")
)

// TestPages: each figure of a page is what the records have, and a page with an interval links what it is of.
func TestPages(t *testing.T) {
	if err := Newest(root); err != nil {
		t.Skip(err)
	}
	made := Make(root)
	wrong := errors.Join(append(made.Problems, made.Stale...)...)
	require.NoError(t, wrong, "go -C study generate ./pages writes new numbers")
	for name, text := range made.Files {
		there, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		lines := strings.Split(string(there), "\n")
		for i, line := range strings.Split(text, "\n") {
			require.Equal(t, line, lines[min(i, len(lines)-1)], "%s:%d: go -C study generate ./... writes it", name, i+1)
		}
		require.Len(t, there, len(text), name)
		if filepath.Ext(name) == ".md" && intervals.MatchString(fenced.ReplaceAllString(text, "")) {
			require.Contains(t, text, "limits.md#what-an-interval-is-of", name)
		}
	}
}

// TestLargerMachine: a folder of another number of CPUs changes no page, although its ratios are far from all others.
// Its day is the newest, and it has no state.txt.
func TestLargerMachine(t *testing.T) {
	if err := Newest(root); err != nil {
		t.Skip(err)
	}
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	there := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(there, "study"), 0o755))
	pages, err := filepath.Glob(filepath.Join(here, "study/*.md"))
	require.NoError(t, err)
	for i, name := range pages {
		pages[i] = "study/" + filepath.Base(name)
	}
	for _, name := range append(pages, "README.md", "go.mod", ".ci", "docs", "internal", "study/go.mod",
		"study/measure.sh", "study/figures", "study/calibration") {
		require.NoError(t, os.Symlink(filepath.Join(here, name), filepath.Join(there, name)))
	}
	const results = "study/results/"
	require.NoError(t, os.CopyFS(filepath.Join(there, results), os.DirFS(filepath.Join(here, results))))
	found, err := filepath.Glob(filepath.Join(here, results, "2026-11-2[68]*", "*", "summary.json"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for i, path := range found {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := report.Parse(path, string(data))
		require.NoError(t, err)
		s.Environment[slices.Index(s.Environment, "cores=2")] = "cores=64"
		for i := range s.Answers {
			for _, f := range []*verdict.Figure{&s.Answers[i].Time, &s.Answers[i].CPU} {
				f.Ratio, f.Lo, f.Hi = 9*f.Ratio, 9*f.Lo, 9*f.Hi
			}
		}
		dir := filepath.Join(there, results, "9999-12-31-epyc-64vcpu", strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, s.Save(dir))
	}
	want := Make(here)
	require.Empty(t, want.Problems)
	require.Equal(t, want, Make(there))
}

// pageOf is a record with a page in docs, its ledger, and a README.md.
func pageOf(t *testing.T, page, ledger string) (root string) {
	t.Helper()
	root = record(t)
	write(t, root, "README.md", "A page without a figure.\n")
	write(t, root, "docs/page.md", page)
	write(t, root, "study/figures/docs/page.txt", ledger)
	write(t, root, ".ci/releases", "go1.2.3\n"+runtime.Version()+"\n")
	return root
}

// files are all texts of pages and ledgers.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"docs", "study/figures"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(name)
			all[name] = string(data)
			return err
		}))
	}
	return all
}

const (
	dear  = `run("2026-11-23-quiet/workloads", "small", "grpcprotobuf", "CPU")`          // 1.2, more
	cheap = `run("2026-11-23-quiet/workloads", "structured-2kB", "grpcprotobuf", "CPU")` // 0.5, less
)

// TestBadInput: what can't be right is one line with a file and its line, and nothing is rewritten.
func TestBadInput(t *testing.T) {
	const page, phrase = "gRPC uses 19% more CPU.\n", `"19% more CPU" = `
	for reason, c := range map[string]struct{ page, ledger, want string }{
		"an unknown folder": {page, phrase + `run("2026-11-23-none", "small", "grpcprotobuf", "CPU")`,
			"docs/page.md:1: .* has no run"},
		"an unknown workload": {page, phrase + `run("2026-11-23-quiet", "tiny", "grpcprotobuf", "CPU")`,
			"docs/page.md:1: .* has not measured grpcprotobuf at tiny"},
		"an unknown stack": {page, phrase + `run("2026-11-23-quiet", "small", "abacus", "CPU")`,
			"docs/page.md:1: .* has not measured abacus at small"},
		"an unknown quantity": {page, phrase + `run("2026-11-23-quiet", "small", "grpcprotobuf", "luck")`,
			`docs/page.md:1: .* no quantity is called "luck": there are CPU, `},
		"an unknown source": {page, phrase + `guess("x")`, `docs/page.md:1: .* no source is called "guess": there are above, `},
		"an unknown name":   {page, phrase + `x / y`, `docs/page.md:1: .* nothing is called "x" above`},
		"another quantity": {page, phrase + `run("2026-11-23-quiet/workloads", "small", "grpcprotobuf", "time")`,
			"docs/page.md:1: .* the phrase is of CPU, and the source of time"},
		"a quantity that the answer lacks": {page, phrase + `run("2026-11-23-quiet/workloads", "small", "grpcprotobuf", "p99")`,
			"docs/page.md:1: .* grpcprotobuf at small has no p99"},
		"no ratio": {page, phrase + `run("2026-11-23-quiet/workloads", "unknown", "grpcprotobuf", "CPU")`,
			"docs/page.md:1: .* has no ratio of grpcprotobuf at unknown"},
		"too few words":      {page, phrase + `run("2026-11-23-quiet", "small")`, "docs/page.md:1: .* run takes 4 texts"},
		"a typed number":     {page, phrase + `1.19`, "docs/page.md:1: .* is typed, and read from no record"},
		"a number in a name": {page, "x = 1.2 / 1\n" + phrase + `x`, "docs/page.md:1: .* is typed, and read from no record"},
		"a setting by name":  {page, "x = setting()\n" + phrase + `x`, "docs/page.md:1: .* the source has no number"},
		"a typed number in a list": {page, phrase + "list(1.19, 1.19)",
			"docs/page.md:1: .* is typed, and read from no record"},
		"a typed interval": {page, phrase + "sized(" + dear + ", 1, 2)",
			"docs/page.md:1: .* is typed, and read from no record"},
		"a typed number in bounds": {"It is hardly more.\n", `"{hardly}" = above(1.19, 1)`,
			"docs/page.md:1: .* is typed, and read from no record"},
		"a page as its record":       {page, phrase + `line("docs/page.md", 1, "gRPC")`, "docs/page.md:1: .* is a page, and no record"},
		"a setting that is a result": {page, `"19%" = setting()`, `page.txt:1: docs/page.md has no "19%"`},
		"a number with bounds":       {page, phrase + `above(` + dear + `, 1)`, "docs/page.md:1: .* bounds are for words"},
		"a file that is none":        {page, phrase + `line("no/such.txt", 1, "x")`, "docs/page.md:1: .* no such file"},
		"a line that is none":        {page, phrase + `line("go.mod", 1, "y")`, `docs/page.md:1: .* has no line of \["y"\]`},
		"a number of the line":       {page, phrase + `line("go.mod", 2, "module")`, "docs/page.md:1: .* has no number 2 behind"},
		"too few rows": {page, phrase + `rows("2026-11-23-files/rows.txt", "Twice", "ns/op")`,
			"docs/page.md:1: .* Twice has fewer than the 6 samples"},
		"memory that nobody counted": {page, phrase + `idle("2026-11-23-files/rest", "streams", "httpjson", "server", "heap-B")`,
			"docs/page.md:1: .* has no heap-B of httpjson, server, in streams"},
		"a goroutine that is none": {page, phrase + `samples("2026-11-23-files/one.pprof", "abacus")`,
			"docs/page.md:1: .* has no goroutine that begins with abacus"},
		"lists of two lengths": {page, phrase + `list(` + dear + `, ` + dear + `) / list(` + dear + `, ` + dear + `, ` + dear + `)`,
			"docs/page.md:1: .* 2 numbers and 3"},
		"a phrase without a number":      {page, `"more CPU" = ` + dear, `page.txt:1: "more CPU" has no number`},
		"an empty phrase":                {page, `"" = ` + dear, "page.txt:1: the phrase is empty"},
		"a brace without its end":        {page, `"{19% more" = ` + dear, "page.txt:1: .* a brace without its end"},
		"several numbers":                {page, `"19% more than 5" = ` + dear, "page.txt:1: .* several numbers: put braces"},
		"a figure without a source":      {page, `"{19%} more {CPU}" = ` + dear, "page.txt:1: 2 figures and 1 sources"},
		"no source":                      {page, `"19% more"`, "page.txt:1: it is neither"},
		"a source that can't be read":    {page, phrase + `run(`, "page.txt:1: .* is no source"},
		"a phrase that isn't there":      {page, `"18% more" = ` + dear, `page.txt:1: docs/page.md has no "18% more"`},
		"a phrase within another number": {"It uses 119% more CPU.\n", phrase + dear, "page.txt:1: docs/page.md has no"},
		"a phrase twice": {page + page, phrase + dear,
			"page.txt:1: docs/page.md has \"19% more CPU\" twice, in lines 1 and 2: lengthen the phrase"},
		"a setting that isn't there": {page, phrase + dear + "\n\"7 ms\" = setting()", `page.txt:2: docs/page.md has no "7 ms"`},
		"a block without its end":    {"<!-- terminal lead -->\n", "", "docs/page.md:1: a block without <!-- end -->"},
		"a block within another": {"\n<!-- terminal lead -->\n<!-- terminal lead -->\n<!-- end -->\n", "",
			"docs/page.md:2: a block without <!-- end -->"},
		"an end without a block": {"\n\n<!-- end -->\n", "", "docs/page.md:3: an end without a block"},
		"an unknown table":       {"<!-- table pears -->\n<!-- end -->\n", "", `docs/page.md:1: no table is called "pears"`},
		"a table without a row": {"<!-- table answers column x -->\n<!-- end -->\n", "",
			"docs/page.md:1: a table of answers needs a row and two columns"},
		"an unknown setting of a table": {"<!-- table answers inn=x row a -->\n<!-- end -->\n", "",
			`docs/page.md:1: no setting is called "inn"`},
		"a row of a file that isn't there": {
			"<!-- table answers in=2026-11-23-files/rows.txt of=x column a column b row c at=d -->\n<!-- end -->\n", "",
			"docs/page.md:1: row .* has no row d"},
		"an unknown way to write": {
			"<!-- table answers in=2026-11-23-rates at=900 stack=grpcprotobuf of=CPU as=much column a column b row c -->\n" +
				ending, "", "docs/page.md:1: row .* as=much: a ratio is written as"},
		"a range of nothing": {
			"<!-- table answers in=2026-11-23-rates at=900 stack=grpcprotobuf of=CPU over=all column a column b row c -->\n" +
				ending, "", "docs/page.md:1: row .* over=all: a table has runs alone"},
		"a setting of a table that isn't there": {
			"<!-- table answers in=$x column a column b row c -->\n<!-- end -->\n", "", `docs/page.md:1: row "c", column "b": in=\$x needs x=`},
		"a table of two machines": {
			"<!-- table answers in=2026-11-23-mixed at=x stack=y of=CPU column a column b row c -->\n<!-- end -->\n", "",
			"docs/page.md:1: row .* are of two machines"},
		"a run of a terminal": {"<!-- terminal 2026-11-23-none -->\n<!-- end -->\n", "",
			"docs/page.md:1: .* has no summary.json"},
		"a picture that the page doesn't show": {
			"<!-- picture docs/x.svg 2026-11-23-rates \"small\" -->\n<!-- end -->\n", "",
			"docs/page.md:1: the page doesn't show docs/x.svg"},
		"pictures over two things": {
			"<!-- picture docs/x.svg 2026-11-23-rates a 2026-11-23-quiet/workloads b -->\nx.svg\n<!-- end -->\n", "",
			"docs/page.md:1: 2026-11-23-rates is over \"calls a second\""},
	} {
		root := pageOf(t, c.page, c.ledger+"\n")
		before := files(t, root)
		err := Write(root, io.Discard)
		require.Error(t, err, reason)
		first, _, _ := strings.Cut(err.Error(), "\n")
		require.Regexp(t, c.want, first, reason)
		require.Regexp(t, `^(docs|study)/\S+:\d+: `, first, reason)
		require.Equal(t, before, files(t, root), reason)
	}
	root := pageOf(t, page, phrase+dear+"\n")
	write(t, root, "study/figures/docs/gone.txt", phrase+dear+"\n")
	require.EqualError(t, Write(root, io.Discard), "study/figures/docs/gone.txt:1: there is no page of this name")
	write(t, root, ".ci/releases", runtime.Version()+"\ngo1.2.3\n")
	require.ErrorContains(t, Write(root, io.Discard), "set GOTOOLCHAIN=go1.2.3")
	write(t, root, leader, "# none\n")
	require.ErrorContains(t, errors.Join(Make(root).Problems...), leader+":1: it has no line")
}

// TestRewrites: new numbers come into page and ledger where the phrase still says the truth, and nowhere else.
func TestRewrites(t *testing.T) {
	page := "gRPC uses {19%} more CPU, and\n{51%} less for 2 kB. Twice 19%\nare not **{0.61 (0.50–0.70)}**.\n" +
		"<!-- printed 2026-11-23-files/rows.txt Tuned/stack=a -->\nnothing\n<!-- end -->\n"
	const others = "\"2 kB\" = setting()\n\"Twice 19%\" = setting()\n"
	const sources = ` = ` + dear + ", " + cheap + ", " + cheap + "\n"
	marked := `"uses {19%} more CPU, and {51%} less for 2 kB. Twice 19% are not **{0.61 (0.50–0.70)}"`
	bare := regexp.MustCompile(`[{}]`)
	root := pageOf(t, bare.ReplaceAllString(page, ""), "# of gRPC\n"+marked+sources+others)
	require.ErrorContains(t, errors.Join(Make(root).Stale...), `docs/page.md:1: "uses 19% more CPU, and 51% less`)
	said := new(strings.Builder)
	require.NoError(t, Write(root, said))
	require.Contains(t, said.String(), `should be "uses 20% more CPU`)
	require.Empty(t, Make(root).Stale)
	now := strings.NewReplacer("{19%}", "{20%}", "{51%}", "{50%}", "{0.61 (0.50–0.70)}", "{0.50 (0.45–0.55)}", "nothing",
		"```text\nBenchmarkTuned/stack=a-2 1 5 ns/op 0.9104 x-ratio 0.8046 x-ratio-lo 1.2 x-ratio-hi\n```")
	text, err := os.ReadFile(filepath.Join(root, "docs/page.md"))
	require.NoError(t, err)
	require.Equal(t, bare.ReplaceAllString(now.Replace(page), ""), string(text))
	text, err = os.ReadFile(filepath.Join(root, "study/figures/docs/page.txt"))
	require.NoError(t, err)
	require.Equal(t, "# of gRPC\n"+now.Replace(marked)+sources+others, string(text))
	require.NoError(t, Write(root, io.Discard), "once more")

	again(t, root, "quiet/workloads", "quiet/workloads", func(s *report.Summary) {
		s.Answers[0].Time = of(0.8, 0.7, 0.9, verdict.Less)
	})
	before := files(t, root)
	require.EqualError(t, Write(root, io.Discard), `docs/page.md:1: "uses 20% more CPU, and 50% less for 2 kB. Twice 19% are `+
		"not **0.50 (0.45–0.55)\": it isn't always more: 0.80 (0.70–0.90), less (study/figures/docs/page.txt:2)")
	require.Equal(t, before, files(t, root), "a direction that turned")
}

// TestEscapes: a figure on a page is in a ledger. What is no sentence of the page's own needs none.
func TestEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"goccy takes 0.66 to 1.6 times as long":                           "0.66 to 1.6 times",
		"about 40 µs, or more (2.6 times)":                                "40 µs, 2.6 times",
		"in 0.8 to 0.9 of that time, with Go 1.26 and 1.27":               "0.8 to 0.9",
		"it saves 8–21 % or 11.2 ± 2.9":                                   "8–21 %, ± 2.9",
		"0.85 (0.79–0.92)":                                                "0.85 (0.79–0.92)",
		"| a cell | +52% | −29% |":                                        "+52%, −29%",
		"it takes half as much CPU, and a third more":                     "half as much, third more",
		"shows no\nclear difference":                                      "no clear difference",
		"shows no clear difference, more than twice JSON's":               "no clear difference, more than twice",
		"in 1 ms, as set":                                                 "",
		"(14ms), 40 **µs**, 3 μs, a 12% saving":                           "14ms, 40 **µs, 3 μs, 12%",
		"9 percent, 5 milliseconds, 10-20%, 2x or 3×":                     "9 percent, 5 milliseconds, 10-20%, 2x, 3×",
		"of 12\u00a0% and 12\u202f%":                                      `12\u00a0%, 12\u202f%`,
		"No clear difference, no measurable difference":                   "No clear difference, no measurable difference",
		"A fifth less, Twice the CPU, three times, it doubles":            "fifth less, Twice the, three times, doubles",
		"[^1]: it uses 30 % less\n[a]: b/30-%":                            "30 %",
		"<!-- picture -->\n<img width=\"9%\" alt=\"30 %\">\n<!-- end -->": "30 %",
		"within 5% of each, and 5% less CPU":                              "5%",
		"run `-time 4 ms`, [a file](a/b 30 %), v1.85.0":                   "",
		"> they say 30 % less":                                            "",
		"```\n30 % less\n```":                                             "",
		"<!-- 30 % -->":                                                   "",
		"<!-- printed x -->\n30 % less\n<!-- end --> but 7 %":             "7 %",
		"of half an hour, and a quarter of it":                            "",
		"at 2,000 a second for two minutes, on 2026-11-28":                "",
	} {
		require.Equal(t, want, escapes(t, "docs/page.md", text), text)
	}
	require.Equal(t, "2,000, two minutes", escapes(t, "README.md", "at 2,000 small calls a second for two minutes"))
}

func escapes(t *testing.T, name, text string) string {
	t.Helper()
	p := page{name: name, text: text}
	p.cover(line{phrase: phraseOf("1 ms", true)})
	p.cover(line{phrase: phraseOf("5%", true)})
	var found []string
	for _, problem := range p.escaped() {
		found = append(found, regexp.MustCompile(`"(.*)"`).FindStringSubmatch(problem.Error())[1])
	}
	return strings.Join(found, ", ")
}

// TestHeader: what a file of rows says of its machine and versions, in the form of today and in older ones.
func TestHeader(t *testing.T) {
	want := []string{"date=2026-12-01", "go=go1.27.4", "cpu=AMD-EPYC", "google.golang.org/grpc@v1.85.0"}
	const rows = "goos: linux\ncpu: AMD EPYC\nBenchmarkX 1 1 ns/op\n# date=2001-01-01\n# go=go1.2\n"
	for why, c := range map[string]struct {
		text string
		want []string
	}{
		"a line each": {"cores: 2\n# date=2026-12-01\n# go=go1.27.4\n# cpu=AMD-EPYC\n" +
			"# library=google.golang.org/grpc@v1.85.0\nUnit cpu-ns/op better=lower\n# later=1\n", want},
		"a line of all": {"cores: 2\n" +
			"# date=2026-12-01 go=go1.27.4 cpu=AMD-EPYC google.golang.org/grpc@v1.85.0\n", want},
		"without libraries": {"# date=2026-12-01 go=go1.27.4 cpu=AMD-EPYC\n# libraries: a.com/b@v1\n", want[:3]},
		"without codecs":    {"# date=2026-12-01\n# go=go1.27.4\n# codec=json: encoding/json, copies\n", want[:2]},
		"no environment":    {"cores: 2\n", nil},
	} {
		root := t.TempDir()
		write(t, root, "rows.txt", c.text+rows)
		require.Equal(t, c.want, (&maker{root: root}).header("rows.txt").Environment, why)
	}
}
