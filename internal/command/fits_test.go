package command

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// TestOutputFits: what each command prints fits a terminal, or 100 columns where there is none, and ends with what to
// do next. A word that is wider than a terminal is whole.
func TestOutputFits(t *testing.T) {
	t.Setenv(testkit.Variable, testkit.Children(t, 0))
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "") // which some have not
	mine := filepath.Join(t.TempDir(), "mine")
	again := filepath.Join(filepath.Dir(mine), "again")
	for _, out := range []string{mine, again} {
		require.NoError(t, knownProgram().run(t.Context(), []string{"run", "-workloads", "small", "-out", out, "other"},
			io.Discard, io.Discard))
	}
	for _, test := range []struct {
		program
		args []string
		last string
	}{
		{ours(), []string{"list"}, "Next: rpcbench run"},
		{ours(), []string{"bound", aService}, "Next: rpcbench run"},
		{ours(), []string{"bound", "-ratios", mine, aService}, "Next: go tool pprof"},
		{knownProgram(), []string{"explain", "-time", "4s", "base", "other"}, "Next: rpcbench explain -keep"},
		{knownProgram(), []string{"report", "-out", "PAGES", mine}, "Report: "},
		{knownProgram(), []string{"report", "-out", "PAGES", mine, again}, "Report: "},
		{knownProgram(), []string{"run", "-workloads", "small,bytes-10kB", "-out", "PAGES", "other"}, "Report: "},
		{knownProgram(), []string{"run", "-v", "-apart", "-callers", "6", "-out", "PAGES", "other"}, "Report: "},
		{knownProgram(), []string{"count", "-max", "1.5", "-workloads", "small", "other"}, "gate: "},
		{knownProgram(), []string{"count", "-workloads", "small", "-out", "PAGES", "other"}, "Report: "},
		{ours(), []string{"version"}, "google.golang.org/protobuf@"},
	} {
		widths := []int{100, 80, 60, 40}
		if len(test.Stacks) == 2 && test.args[0] != "report" {
			widths = []int{100, 40} // it starts processes
		}
		for _, columns := range widths {
			pages := filepath.Join(t.TempDir(), "pages")
			args := strings.Split(strings.ReplaceAll(strings.Join(test.args, "\n"), "PAGES", pages), "\n")
			side, shown := testkit.Terminal(t, columns)
			told := make(chan string)
			go func() {
				text, _ := io.ReadAll(shown) // the error is that of a terminal that nobody has open any more
				told <- strings.ReplaceAll(string(text), "\r\n", "\n")
			}()
			require.NoError(t, test.run(t.Context(), args, side, io.Discard), args)
			require.NoError(t, side.Close())
			text := <-told
			last := ""
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if !strings.HasPrefix(line, " ") {
					last = line
				}
				widest := 0
				for word := range strings.FieldsSeq(line) {
					widest = max(widest, utf8.RuneCountInString(word))
				}
				if widest < columns-20 {
					require.LessOrEqual(t, utf8.RuneCountInString(line), columns, "%s\n%s", args, text)
				}
			}
			require.True(t, strings.HasPrefix(last, test.last), "%s\n%s", args, text)
		}
	}
}
