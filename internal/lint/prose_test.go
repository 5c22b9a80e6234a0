package lint_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreign are phrases that came back again and again in pages and in what commands print, with what to say instead.
var foreign = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{re(`\bof yours\b`), "your own"},
	{re(`\bof which the\b`), "another sentence"},
	{re(`\btakes? 0\.`), "a percentage: uses 36% less"},
	{re(`\d %`), "no space before %"},
	{re(`\bwas not quiet\b`), "by how much the base varied"},
	{re(`\b(so|is|are) wired\b`), "a setup of callers and connections"},
	{re(`\bbears? (it |the claim )?out\b`), "shows"},
	{re(`\bdear(er|est)?\b`), "expensive"},
	{re(`\bbehind an? .?@`), "after an @"},
	{re(`\bits source lies\b`), "the working tree"},
	{re(`\bis (now )?(not )?so now\b|\bthat is not so\b|\bWhat is so\b`), "true, or changed"},
	{re(`\bwaits? (shorter|longer)\b|\ba (shorter|longer) wait\b`), "lower or higher latency"},
	{re(`\bserves more\b`), "answers more calls per second"},
}

var (
	span  = re("`[^`]*`")
	fence = re("^\\s*(```|~~~)(\\w*)")
	// said matches the languages of blocks that hold what people read: text, and none.
	said = re(`^(text)?$`)
)

// phrases returns where a text has foreign phrases, by line, outside of code.
func phrases(name, text string) (found []string) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		if block := fence.FindStringSubmatch(line); block != nil {
			code = !code && !said.MatchString(block[2])
			continue
		}
		for _, f := range foreign {
			if at := f.pattern.FindString(span.ReplaceAllString(line, "")); at != "" && !code {
				found = append(found, fmt.Sprintf("%s:%d: %q: say %s", name, i+1, at, f.instead))
			}
		}
	}
	return found
}

// TestProse: phrases that are no English of a Go engineer's don't come back, neither in pages and forms nor in what
// commands print, which golden files hold.
func TestProse(t *testing.T) {
	t.Chdir("../..")
	read := func(name string) string { return read(t, name) }
	var found []string
	all := slices.Concat(documents(t), []string{"CHANGELOG.md", ".github/SECURITY.md"})
	for _, pattern := range []string{".github/*/*.md", ".github/*.md", ".github/ISSUE_TEMPLATE/*.yml", "findings/*.md",
		"internal/report/testdata/*.txt", "internal/report/testdata/*.html"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, names...)
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		found = append(found, phrases(name, read(name))...)
	}
	require.Empty(t, found)
}

// TestPhrases: each phrase is found, with its line, and code has it freely.
func TestPhrases(t *testing.T) {
	for text, want := range map[string]string{
		"your own\na method of yours":            `page:2: "of yours": say your own`,
		"three runs, of which the second":        `page:1: "of which the": say another sentence`,
		"gRPC takes 0.64 of JSON's time":         `page:1: "takes 0.": say a percentage: uses 36% less`,
		"95 % of them":                           `page:1: "5 %": say no space before %`,
		"The machine was not quiet: ":            `page:1: "was not quiet": say by how much the base varied`,
		"as its library is wired":                `page:1: "is wired": say a setup of callers and connections`,
		"the figure bears it out":                `page:1: "bears it out": say shows`,
		"Value, which is dear":                   `page:1: "dear": say expensive`,
		"behind an `@`, behind an @":             `page:1: "behind an @": say after an @`,
		"measured as its source lies":            `page:1: "its source lies": say the working tree`,
		"**What is so now, and was not before**": `page:1: "What is so": say true, or changed`,
		"a row with a shorter wait":              `page:1: "a shorter wait": say lower or higher latency`,
		"```text\ntakes 0.18 of a core\n```":     `page:2: "takes 0.": say a percentage: uses 36% less`,
		"```sh\necho of yours\n```\n`95 %`":      "",
	} {
		require.Equal(t, want, strings.Join(phrases("page", text), "\n"), text)
	}
}
