package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

const root = "../.."

var spread = regexp.MustCompile(`\d \(\d[\d.]*(?:–| to )\d[\d.]*\)|±\s?\d`)

// TestPages: each page on disk is what its template makes, and links what an interval is of if it has one.
func TestPages(t *testing.T) {
	if err := Newest(root); err != nil {
		t.Skip(err)
	}
	made, err := Make(root)
	require.NoError(t, err)
	for name, data := range made {
		there, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		lines := strings.Split(string(there), "\n")
		for i, line := range strings.Split(string(data), "\n") {
			require.Equal(t, line, lines[min(i, len(lines)-1)], "%s:%d: go -C study generate ./... writes it", name, i+1)
		}
		require.Len(t, there, len(data), name)
		if path.Ext(name) == ".md" && spread.Match(data) {
			require.Contains(t, string(data), "limits.md#what-an-interval-is-of", name)
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
	for _, name := range []string{"go.mod", ".ci", "docs", "internal", "study/go.mod", "study/measure.sh", "study/pages",
		"study/calibration"} {
		require.NoError(t, os.Symlink(filepath.Join(here, name), filepath.Join(there, name)))
	}
	const results = "study/results/"
	require.NoError(t, os.CopyFS(filepath.Join(there, results), os.DirFS(filepath.Join(here, results))))
	found, err := filepath.Glob(filepath.Join(here, results, "2026-11-2[46]*", "*", "summary.json"))
	require.NoError(t, err)
	require.Greater(t, len(found), 20)
	for i, path := range found {
		s, err := report.Read(filepath.Dir(path))
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
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), nil, 0o644))
	}
	want, err := Make(here)
	require.NoError(t, err)
	made, err := Make(there)
	require.NoError(t, err)
	for name, page := range want {
		require.Equal(t, string(page), string(made[name]), name)
	}
}

// TestWriteWritesAllOrNothing: a page that can't be made keeps all others from being written.
func TestWriteWritesAllOrNothing(t *testing.T) {
	root := record(t)
	write(t, root, ".ci/releases", "go1.2.3\n"+runtime.Version()+"\n")
	write(t, root, "study/pages/templates/README.md.tmpl", "{{\"one\"}} page\n")
	write(t, root, "study/pages/templates/docs/why.md.tmpl", "another\n{{figure \"no/such.txt\" 1 \"\"}}\n")
	require.NoError(t, os.Mkdir(filepath.Join(root, "docs"), 0o755))
	err := Write(root)
	require.ErrorContains(t, err, "docs/why.md.tmpl:2:")
	require.NotContains(t, err.Error(), "\n")
	require.NoFileExists(t, filepath.Join(root, "README.md"))

	write(t, root, "study/pages/templates/docs/why.md.tmpl", "another\n")
	require.NoError(t, Write(root))
	for name, want := range map[string]string{"README.md": "one page\n", "docs/why.md": "another\n"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}

	write(t, root, ".ci/releases", runtime.Version()+"\ngo1.2.3\n")
	require.ErrorContains(t, Write(root), "set GOTOOLCHAIN=go1.2.3")
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

// TestWhatIsNotThere: a template that asks for it is refused in one line, with its own file and line.
func TestWhatIsNotThere(t *testing.T) {
	root := record(t)
	for line := range strings.Lines(`
a run => answer "none" "small" "grpcprotobuf" => none has no run
a workload => answer "quiet" "tiny" "grpcprotobuf" => has not measured grpcprotobuf at tiny
a stack => answer "quiet" "small" "abacus" => has not measured abacus at small
a ratio => answer "quiet" "small-1-caller" "rawtcp" => has no ratio of rawtcp
a figure of the answer => (answer "quiet" "small" "grpcprotobuf").Luck => evaluate field Luck
a file => figure "none.txt" 1 "a" => no such file
a line => figure "writes.txt" 1 "'b'" => no line of ["'b'"]
a line below another => figure "writes.txt" 1 "'a'" "stack" => no line of
a number in the line => figure "writes.txt" 3 "'a'" => has no number 3
number 0 => figure "writes.txt" 0 "'a'" => has no number 0
a row => row "rows.txt" "Tuned/stack=b" "x-ratio" => has 0 values x-ratio of Tuned/stack=b
one row => row "rows.txt" "Twice" "ns/op" => has 2 values ns/op of Twice
a unit => interval "rows.txt" "Tuned/stack=a" "y-ratio" 2 => 0 values y-ratio
a codec => codec "noisy/codecs/rows.txt" "marshal" "user" "pigeon" => fewer than the 6 samples
samples of a row => samples "rows.txt" "Twice" "ns/op" 2 => fewer than the 6 samples
samples => codec "rows.txt" "marshal" "user" "few" => fewer than the 6 samples
two stacks => difference "writes.txt" => compares no two stacks
a layer => (difference "explain.txt").More "compression" => takes no longer than
more => (difference "explain.txt").More "harness" => takes no longer than
a profile => table "towers" "none.pprof" "two.pprof" "a server|lib.serve|http.serve" => no such file
what is a profile => table "towers" "rows.txt" "two.pprof" "a server|lib.serve|http.serve" => rows.txt: 
a goroutine => table "towers" "one.pprof" "two.pprof" "a server|lib.serve|lib.serve" => two.pprof has no goroutine that begins with lib.serve
memory at rest => resting "quiet" "streams" "a" "server" "heap-B" => no such file
a state of memory at rest => resting "rest" "streams" "httpjson" "server" "heap-B" => has no heap-B of httpjson,
	server, in streams
memory of servers => rests "rest" "streams" => has no resident-B of httpjson, server, in streams
the same run twice => each "small" "grpcprotobuf" "quiet/workloads" "quiet/workloads" => quiet/workloads is named twice
a table => table "pears" "quiet" => pears
the run of a table => table "builds" "none" => none has no summary.json
the folder of a table => table "costs" => index out of range
one wiring, or a column that tells two apart => table "costs" "wired" => is wired in two ways
a stack at a workload => table "grid" "uneven" "structured-2kB" "a" => has not measured a at structured-2kB
a method of one's own => table "publics" "builds" => nil pointer
one machine, in parts => answer "mixed" "small" "grpcprotobuf" => are of two machines
one machine, in a table => table "publics" "own" "elsewhere" => are of two machines
the run of a picture => picture "docs/answer.svg" "none" "Ada" => none has no run
another release of Go => release "quiet" "1.27" => quiet is of go1.26.8, and not of 1.27
sweeps over one thing => picture "docs/answer.svg" "rates" "Ada" "quiet" "Bob" => rates is over "calls a second",
	and quiet
a figure of a claim => (claims "noisy").Call 1 "luck" "small" "grpcprotobuf" "httpjson" (above 1) => nothing that calls
a stack of a claim => (claims "noisy").Call 1 "time" "small" "grpcprotobuf" "abacus" (above 1) => has not compared the time of grpcprotobuf and abacus
the p95 of two stacks => (claims "noisy").Call 1 "p95" "small" "grpcprotobuf" "rawtcp" (above 1) => has not compared the p95 of
any figure of a claim => (claims "noisy").Verdict 1 => claim 1 has no figure
any figure here => (claims "noisy").Here 1 => claim 1 has no figure
words that a figure bears out => bears "about a third" (about 0.33) 0.5 => "about a third" is (≈0.33),
	and the figure is 0.50
a range over codecs => spans "noisy/codecs/rows.txt" "marshal" "json" "pigeon" "user" => fewer than the 6 samples
a function of that name => pears 1 => function "pears" not defined
an end of the placeholder => " => unterminated
`) {
		c := strings.Split(strings.TrimSuffix(strings.ReplaceAll(line, "'", "`"), "\n"), " => ")
		if len(c) == 3 {
			_, err := fill(root, "first line\n{{"+c[1]+"}}\n")
			require.ErrorContains(t, err, c[2], c[0])
			require.ErrorContains(t, err, "docs/page.md.tmpl:2:", c[0])
			require.NotContains(t, err.Error(), "\n", c[0])
		}
	}
}

// say writes what a node of a template says by itself: its text, and the strings and numbers that its actions print.
// A dash stands for what an action reads.
func say(node parse.Node, said *strings.Builder) {
	switch n := node.(type) {
	case *parse.TextNode:
		said.Write(n.Text)
	case *parse.ListNode:
		for _, node := range n.Nodes {
			say(node, said)
		}
	case *parse.ActionNode:
		say(n.Pipe, said)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			say(command, said)
		}
	case *parse.CommandNode:
		prints := len(n.Args) == 1 || slices.Contains([]string{"print", "printf", "bears"}, n.Args[0].String())
		for _, arg := range n.Args {
			switch arg := arg.(type) {
			case *parse.PipeNode:
				say(arg, said)
			case *parse.StringNode:
				said.WriteString(map[bool]string{true: arg.Text, false: "–"}[prints])
			case *parse.NumberNode:
				said.WriteString(map[bool]string{true: arg.Text, false: "–"}[prints])
			}
		}
	case *parse.IfNode:
		say(&n.BranchNode, said)
	case *parse.RangeNode:
		say(&n.BranchNode, said)
	case *parse.WithNode:
		say(&n.BranchNode, said)
	case *parse.BranchNode:
		say(n.List, said)
		if n.ElseList != nil {
			say(n.ElseList, said)
		}
	}
}

// typed is what a template says by itself.
func typed(t *testing.T, name, text string) string {
	t.Helper()
	page, err := template.New(name).Funcs(in(root).functions()).Parse(text)
	require.NoError(t, err, name)
	var said strings.Builder
	say(page.Root, &said)
	return said.String()
}

// TestIntervalsAreNotTyped: a sentence with an interval asks a file for it. A template that types an interval into an
// action has typed it.
func TestIntervalsAreNotTyped(t *testing.T) {
	for text, want := range map[string]string{
		"0.85 (0.79–0.92)":                               "5 (0.79–0.92)",
		`takes {{"11.2 ± 2.9"}} µs`:                      "± 2",
		`{{$a := "11.2 ± 2.9"}}{{$a}}`:                   "± 2",
		`{{printf "%.1f ± %.1f" 11.2 2.9}}`:              "",
		`{{bears "0.85 (0.79–0.92)" (about 1) 1.0}}`:     "5 (0.79–0.92)",
		`{{if true}}{{print "11.2 ± 2.9"}}{{end}}`:       "± 2",
		`{{range samples "a" "± 2"}}no{{else}}±3{{end}}`: "±3",
	} {
		require.Equal(t, want, spread.FindString(typed(t, "a page", text)), text)
	}
	pages := []string{root + "/README.md", root + "/.github/CONTRIBUTING.md", root + "/study/results/README.md"}
	for _, pattern := range []string{"/docs/*.md", "/study/*.md"} {
		found, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	elsewhere := regexp.MustCompile("(?ms)^```.*?^```|^\\|.*?$") // blocks and rows of tables
	for _, path := range pages {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		said := string(text)
		if template, err := os.ReadFile(filepath.Join("templates", name+".tmpl")); err == nil {
			said = typed(t, name, string(template))
		}
		require.Empty(t, spread.FindAllString(elsewhere.ReplaceAllString(said, ""), -1), name)
	}
}

var (
	// A figure with a unit, or a range of figures.
	withUnit = regexp.MustCompile(`(?m)(?:^|[\s(*"≈~])([-+±×]?\d[\d,.]*(?:(?:–| to | and )\d[\d,.]*)?` +
		`(?: ?(?:%|µs|ns|ms|kB|MB|GB)| times)|\d+\.\d+(?:–| to )\d+\.\d+)(?:\W|$)`)
	// What is no sentence of the page's: blocks, code, quotations, the targets of links, and rows of published claims.
	theirs = regexp.MustCompile("(?ms)^```.*?^```|`[^`]*`|^>.*?$|\\]\\([^)]*\\)|^\\| \\d+ \\|.*?$")
	// What no record has: on all pages what workloads send, what the rule asks for and grpc-go's buffer, and on one page
	// what it plants, supposes, quotes or has from a trial.
	definitions = map[string]string{
		"": "1 ms, 25 ms, 50 ms, 100 ms, 200 ms, 2 %, 95 %, 98 %, 2%, 95%, 98%, 1 kB, 1.4 kB, 2 kB, 2.0 kB, 10 kB, " +
			"13 kB, 15 kB, 18.5 kB, 32 kB, 100 kB, 133 kB",
		"README.md.tmpl":           "100%",
		"docs/guarantees.md.tmpl":  "5%, 1 MB",
		"docs/limits.md.tmpl":      "25 µs, 95%",
		"docs/method.md.tmpl":      "0.1%, 37%, 3%, 3.2%, 4%, 5%, 10%, 12%, 90%, 1.96 times, 64 times, 8 kB, 400 ms",
		"docs/own-message.md.tmpl": "9%",
		"docs/profile.md.tmpl":     "30%",
		"study/claims.md.tmpl":     "30%, 70%",
		"study/releases.md.tmpl":   "1.6 times, 256 kB, 1.1 MB",
	}
)

// TestFiguresAreNotTyped: a sentence of a template with a figure asks a record for it, unless it is a definition.
func TestFiguresAreNotTyped(t *testing.T) {
	figures := func(name, text string) (found []string) {
		for _, m := range withUnit.FindAllStringSubmatch(theirs.ReplaceAllString(typed(t, name, text), "–"), -1) {
			if !slices.Contains(strings.Split(definitions[""]+", "+definitions[name], ", "), m[1]) {
				found = append(found, m[1])
			}
		}
		return found
	}
	for text, want := range map[string]string{
		"goccy takes 0.66 to 1.6 times as long":             "0.66 to 1.6 times",
		"about 40 µs, or more (2.6 times)":                  "40 µs, 2.6 times",
		`{{bears "about 1.4 times" (about 1.4) 1.4}}`:       "1.4 times",
		"in 0.8 to 0.9 of that time, with Go 1.26 and 1.27": "0.8 to 0.9",
		"it saves 8–21 %":                                   "8–21 %",
		"2.0 kB of JSON, an interval of 95 %":               "",
		"run `-time 4 ms`, [a file](a/b 30 %)":              "",
		"> they say 30 % less":                              "",
		"| 4 | they claim 30 % less |":                      "",
		`{{printf "%.0f %%" 1.0}}`:                          "",
	} {
		require.Equal(t, want, strings.Join(figures("a page", text), ", "), text)
	}
	var all []string
	templates := os.DirFS("templates")
	require.NoError(t, fs.WalkDir(templates, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		for _, figure := range figures(name, string(text)) {
			all = append(all, name+": "+figure)
		}
		return err
	}))
	require.Empty(t, all, "typed, and neither read from a record nor a definition")
}

var (
	defined  = regexp.MustCompile(`\{\{-? ?\$(\w+) := (?:(print|answer|led) )?\(?(?:print )?(?:\$(\w+) ?)?(?:"([^"]*)")?`)
	released = regexp.MustCompile(`\{\{release \$(\w+) `)
	figured  = regexp.MustCompile(`\{\{(?:ratio|times|told|predicate|change|short|saved|ci|median|micro|printf "[^"]*") \(?(?:answer |led )?\$(\w+)`)
	words    = regexp.MustCompile(`[a-z.\d]+`)
	ranged   = regexp.MustCompile(`\{\{(?:ratio|times) [^}]*\}\}(?: to |–)\{\{(?:ratio|times) [^}]*\}\}`)
)

// TestNamesInTemplates: a folder, or an answer of one, has a word of the folder's name in its own, and its number. A
// figure whose sentence names a Go release is of the folder that the release was read from. A range is made by a
// function, of records of one release, and not of two figures.
func TestNamesInTemplates(t *testing.T) {
	templates := os.DirFS("templates")
	require.NoError(t, fs.WalkDir(templates, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(templates, name)
		require.NoError(t, err)
		text, of, paths := string(data), map[string]string{}, map[string]string{} // variables of folders, and these
		for _, m := range defined.FindAllStringSubmatch(text, -1) {
			variable, from, folder := m[1], m[3], m[4]
			if !strings.Contains(folder, "/") {
				of[variable] = from // another question of a folder
				continue
			}
			of[variable], paths[variable] = variable, strings.NewReplacer(".txt", "", ".md", "").Replace(paths[from]+folder)
			last := strings.Split(paths[variable], "/")
			named := words.FindAllString(strings.ToLower(strings.Join(last[max(0, len(last)-2):], "/")), -1)
			require.True(t, slices.ContainsFunc(named, func(word string) bool {
				word = strings.ReplaceAll(word, ".", "")
				return len(word) > 1 && strings.Contains(strings.ToLower(variable), word)
			}), "%s: $%s is of %s", name, variable, folder)
			if n := regexp.MustCompile(`-(\d+)$`).FindStringSubmatch(folder); n != nil {
				require.Contains(t, variable, n[1], "%s: $%s is of %s", name, variable, folder)
			}
		}
		require.Empty(t, ranged.FindAllString(text, -1), "%s: among makes a range, and so do kin and spans", name)
		for _, at := range released.FindAllStringSubmatchIndex(text, -1) {
			begin := max(strings.LastIndex(text[:at[0]], ". "), strings.LastIndex(text[:at[0]], ".\n"), 0)
			found := figured.FindAllStringSubmatch(text[begin:at[0]], -1)
			if found == nil {
				found = figured.FindAllStringSubmatch(text[at[0]:], 1)
			}
			require.NotNil(t, found, "%s: a release of no figure", name)
			figure, folder := found[len(found)-1][1], text[at[2]:at[3]]
			require.Contains(t, []string{figure, of[figure]}, folder, "%s: $%s stands with the release of $%s", name, figure,
				folder)
		}
		return nil
	}))
}

var (
	toldOf   = regexp.MustCompile(`\{\{-? ?(?:told|predicate|change|short|saved|ci|signed|times|median) [^}]*\}\}`)
	assigned = regexp.MustCompile(`\{\{-? ?\$(\w+) := (.*?) ?-?\}\}\n?`)
	variable = regexp.MustCompile(`\$\w+`)
	rated    = regexp.MustCompile(`\brate\.(\d+)"`)
	ended    = regexp.MustCompile(`[.:]\**\s|\n- `)
	// Parts of workloads' names, and the words that a sentence has to have for one.
	surroundings = map[string]string{"saturated": "aturated", "-wait": "wait", "cold": "onnection", "callers.256": "256"}
)

// sentences are those of a template. A row of a table is one with its head.
func sentences(text string) (all []string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		if rows := strings.Split(block, "\n"); strings.HasPrefix(block, "|") {
			for _, row := range rows[min(2, len(rows)):] {
				all = append(all, rows[0]+" "+row)
			}
			continue
		}
		all = append(all, ended.Split(block, -1)...)
	}
	return all
}

// unsaid are the loads that sentences of a template read figures of, and don't name.
func unsaid(text string) (all []string) {
	of := map[string]string{}
	for _, m := range assigned.FindAllStringSubmatch(text, -1) {
		of["$"+m[1]] = variable.ReplaceAllStringFunc(m[2], func(name string) string { return of[name] })
	}
	for _, sentence := range sentences(assigned.ReplaceAllString(text, "")) {
		said := regexp.MustCompile(`\{\{.*?\}\}`).ReplaceAllStringFunc(sentence, func(action string) string {
			quoted := regexp.MustCompile(`"[^"]*"`).FindAllString(action, -1)
			return "–" + strings.Join(slices.DeleteFunc(quoted, func(q string) bool { return !strings.Contains(q, " ") }), " ")
		})
		for _, action := range toldOf.FindAllString(sentence, -1) {
			reads := variable.ReplaceAllStringFunc(action, func(name string) string { return of[name] })
			var names []string
			for _, rate := range rated.FindAllStringSubmatch(reads, -1) {
				n, _ := strconv.ParseFloat(rate[1], 64)
				names = append(names, grouped(n))
			}
			for part, word := range surroundings {
				if strings.Contains(reads, part) {
					names = append(names, word)
				}
			}
			for _, name := range names {
				if !strings.Contains(said, name) {
					all = append(all, fmt.Sprintf("%s: %q is not of %s", action, said, name))
				}
			}
		}
	}
	return all
}

// TestSentencesNameTheirLoad: a sentence or a row with a figure of calls at a rate, of saturated callers, of handlers
// that wait or of new connections says so.
func TestSentencesNameTheirLoad(t *testing.T) {
	const figure = `{{change (led "a" "apart.rate.2000" "b") "CPU"}}`
	for text, want := range map[string]int{
		"At 2,000 a second it uses " + figure:                                              0,
		"At 10,000 a second it uses " + figure:                                             1,
		"At 2,000 a second it waits. It uses " + figure:                                    1,
		"| rate | CPU |\n|---|---|\n| 2,000 | " + figure + " |":                            0,
		"| rate | CPU |\n|---|---|\n| 5,000 | " + figure + " |":                            1,
		`{{- $a := "x" -}}{{- $b := led $a "apart.saturated" "b" -}}{{told $b "CPU"}}`:     1,
		`{{- $b := led "a" "apart.saturated" "b" -}}When saturated, {{told $b "CPU"}}`:     0,
		`{{told (led "a" "apart.rate.2000" "b") "CPU" "at 2,000 a second"}}`:               0,
		`{{told (led "a" "apart.rate.2000" "b") "CPU" "at 5,000 a second"}}`:               1,
		`{{- $b := led "a" "small-load-wait" "b" -}}At an ordinary load {{told $b "CPU"}}`: 1,
	} {
		require.Len(t, unsaid(text), want, text)
	}
	templates := os.DirFS("templates")
	require.NoError(t, fs.WalkDir(templates, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		require.Empty(t, unsaid(string(text)), name)
		return err
	}))
}

// write makes a file of a record.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// fill makes a page in docs of a template.
func fill(root, text string) (string, error) {
	m := in(root)
	m.results = "."
	err := m.page("docs/page.md.tmpl", text)
	return string(m.made["docs/page.md"]), err
}

// filled is fill, of a template that asks for nothing else than what is there.
func filled(t *testing.T, root, action string) string {
	t.Helper()
	text, err := fill(root, "{{"+action+"}}\n")
	require.NoError(t, err, action)
	return strings.TrimSuffix(text, "\n")
}
