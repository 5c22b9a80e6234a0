package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

var long = flag.Bool("long", false, "measure also what takes a minute: programs of another module, from run to report")

const (
	asMain   = "RPCBENCH_TEST_MAIN"   // makes the test's program the command; the test holds its standard input open
	ofMethod = "RPCBENCH_TEST_METHOD" // makes its known stacks those of a method of one's own
)

// TestMain is also the process that the commands start.
func TestMain(m *testing.M) {
	if os.Getenv(ofAsked) != "" && testkit.Answer(answerAsked) || holdKnown() || testkit.Answer(knownAnswer) {
		return
	}
	if os.Getenv(child.Variable) != "" {
		asTheProgram()
		return
	}
	if os.Getenv(asMain) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test that started this process
			os.Exit(3)
		}()
		asTheProgram()
		return
	}
	testscript.Main(m, map[string]func(){"rpcbench": asTheProgram})
}

// asTheProgram is the main function of cmd/rpcbench, or of a program of others if its children have known figures.
func asTheProgram() {
	p := ours()
	if os.Getenv(testkit.Variable) != "" {
		p = knownProgram()
	}
	Main(p.make, p.Stacks)
}

// ours is cmd/rpcbench, but for modules, which TestModule makes.
func ours() program {
	none := func(context.Context, own.Messages, string, string) (own.Module, error) {
		return own.Module{}, errors.New("no module")
	}
	return program{shell.Program{Stacks: stacks.All(), Main: "github.com/rpcbench/rpcbench/cmd/rpcbench"}, none}
}

// typed runs the command as main does, without a terminal.
func typed(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = ours().run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), err
}

// saved is the folder of a run that has measured.
func saved(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := report.Summary{Release: report.Release, Base: "httpjson", Answers: []report.Answer{
		{Workload: "small", Stack: "rawtcp", Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 1}}}}}
	require.NoError(t, s.Save(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), nil, 0o600))
	return dir
}

// TestJobs: a child does the job of each name, and refuses a question that has more than the job knows.
func TestJobs(t *testing.T) {
	all := map[string]struct {
		asked map[string]any
		says  string
	}{
		child.Serves:   {map[string]any{"stack": "rawtcp"}, `^\{"addr":"127\.0\.0\.1:\d+","accepted":0,"bytes":`},
		child.Measures: {map[string]any{"arms": []string{"rawtcp", "rawtcp"}, "slice": time.Millisecond}, `"blocks":\[\[\[`},
		child.Counts:   {map[string]any{"stack": "rawtcp"}, `^\{"calls":1000,`},
		child.Profiles: {map[string]any{"arms": []string{"rawtcp"}, "slice": 200 * time.Millisecond}, `^\[\{"Profile":`},
		child.Holds:    {map[string]any{"stack": "rawtcp", "state": idle.Connections, "most": 10}, `^\{"heap":`},
	}
	networks := []string{child.Routes, child.Networks} // which few systems have: package network tests them
	require.ElementsMatch(t, slices.Collect(maps.Keys(jobs())), slices.AppendSeq(networks, maps.Keys(all)))
	for does, c := range all {
		ask := func() (answer json.RawMessage, err error) {
			p, err := child.Command{Does: does, Asked: c.asked, Limit: time.Minute}.Start(t.Context())
			require.NoError(t, err)
			err = p.Ask("", &answer)
			return answer, cmp.Or(err, p.End())
		}
		answer, err := ask()
		for range 50 { // a busy machine may leave the profiler without a sample
			if err == nil || does != child.Profiles || !strings.Contains(err.Error(), "no sample") {
				break
			}
			answer, err = ask()
		}
		require.NoError(t, err, does)
		require.Regexp(t, c.says, string(answer), does)
		c.asked["more"] = true
		_, err = ask()
		require.ErrorContains(t, err, `json: unknown field "more"`, does)
	}
}

// A program may have workloads and a method of its own, which its commands know.
func TestOwnWorkloads(t *testing.T) {
	method := httpjson.New()
	method.Serves = "shop.v1.Orders/Get"
	p := programOf(nil, []rpcbench.Stack{httpjson.New(), rawtcp.New()})
	p.Own = []rpcbench.Workload{{Name: "busy", Title: "hers", Callers: 30, TLS: true, Payload: "2kB"}}
	var out bytes.Buffer
	require.NoError(t, p.run(t.Context(), []string{"list"}, &out, io.Discard))
	require.Regexp(t, `(?m)^busy +hers$`, out.String())

	p = programOf(nil, []rpcbench.Stack{rawtcp.New(), method})
	require.ErrorContains(t, p.run(t.Context(), []string{"run", "rawtcp"}, io.Discard, io.Discard),
		"httpjson serves shop.v1.Orders/Get, and rawtcp create-user: stacks of one method are compared")
}

//go:generate go test -run ^TestFlagsPage$ . -update

// docs/flags.md has what -h prints of each command that rpcbench -h lists. With -update the test writes the page.
func TestFlagsPage(t *testing.T) {
	const name = "../../docs/flags.md"
	block := func(help string) string {
		return "```text\n" + strings.NewReplacer("    \t", "        ", "\t", "    ").Replace(help) + "```\n"
	}
	all, _, err := typed(t, "-h")
	require.NoError(t, err)
	page := "# Flags\n\nEach command prints its flags with `-h`, and `go generate ./...` copies them to this page. The " +
		"guide is\n[running.md](running.md), and [gate.md](gate.md#exit-statuses) has the exit statuses.\n\n" + block(all)
	for _, command := range regexp.MustCompile(`(?m)^  (rpcbench (\w+)) `).FindAllStringSubmatch(all, -1) {
		help, _, err := typed(t, command[2], "-h")
		require.NoError(t, err)
		page += "\n## " + command[1] + "\n\n" + block(help)
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(page), 0o644))
	}
	require.Equal(t, page, read(t, name), "go generate ./internal/command writes it")
}

// The package comment names every command. Its examples run, up to the point where they would measure. Each flag of run
// is in a group of its help.
func TestManual(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../cmd/rpcbench/main.go", nil, parser.ParseComments)
	require.NoError(t, err)
	manual := (*ast.File)(file).Doc.Text()
	require.LessOrEqual(t, strings.Count(manual, "\n"), 25, "a comment that nobody reads: docs/running.md is the guide")
	examples := regexp.MustCompile(`(?m)^\trpcbench (run|explain|count|idle)((?: [^ .]\S*)*)  `).FindAllStringSubmatch(manual, -1)
	require.Len(t, examples, 5)
	for _, example := range examples {
		wrong := []string{"-time", "1s"}
		if example[1] == "count" || example[1] == "idle" {
			wrong = []string{"-out", "none/x"}
		}
		args := strings.Fields(strings.TrimSpace(example[0]))
		_, _, err := typed(t, slices.Insert(args[1:], 1, wrong...)...)
		require.ErrorContains(t, err, wrong[0], "the last of the checks: %s", example[0])
	}
	for _, c := range ours().commands(nil, nil) {
		command, names := c.Name, flag.NewFlagSet(c.Name, flag.ContinueOnError)
		help, _, err := typed(t, command, "-h")
		require.NoError(t, err)
		require.Contains(t, manual, "\trpcbench "+command)
		require.Contains(t, help, "example: rpcbench "+command)
		for line := range strings.Lines(strings.ReplaceAll(help, "    \t", "        ")) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line) // 100 columns
		}
		c.Setup(names)
		names.VisitAll(func(f *flag.Flag) {
			require.Regexp(t, "(?m)^  -"+f.Name+"( |\t|$)", help, "each flag is in a group")
		})
	}
}
