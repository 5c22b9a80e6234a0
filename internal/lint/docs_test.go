package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declared collects the names of all test and benchmark functions of the repository.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			for _, function := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllStringSubmatch(read(t, path), -1) {
				names[function[1]] = true
			}
		}
		return err
	}))
	return names
}

// documents are the pages that people read first to last, of the tool and of the study.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	study, err := filepath.Glob("study/*.md")
	require.NoError(t, err)
	below, err := filepath.Glob("study/*/README.md")
	require.NoError(t, err)
	return slices.Concat(docs, study, below, []string{"README.md", ".github/CONTRIBUTING.md"})
}

// TestGuaranteesNameTheirTests: each row of a guarantee has a promise and a test, and may have an attack. That the test
// exists is TestDocuments' to check.
func TestGuaranteesNameTheirTests(t *testing.T) {
	t.Chdir("../..")
	tested, _, found := strings.Cut(read(t, "docs/guarantees.md"), "\n## What no test holds\n")
	require.True(t, found)
	rows := regexp.MustCompile(`(?m)^\| .*$`).FindAllString(tested, -1)
	require.Greater(t, len(rows), 65, "the page promises less than it did")
	for _, row := range rows {
		if !strings.HasPrefix(row, "| promise | tests |") {
			require.Regexp(t, "^\\| [^|]+ \\| `Test\\w+`(, `Test\\w+`)* \\|( [^|]+ \\|)?$", row)
		}
	}
}

// anchors are those that a page names, and those of its headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, named := range regexp.MustCompile(`<a id="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		all[named[1]] = true
	}
	page = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "") // where # begins a comment
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all[strings.ReplaceAll(kept, " ", "-")] = true
	}
	return all
}

// TestDocuments: files and headings that they link exist, and patterns they give run exactly the benchmark they name.
func TestDocuments(t *testing.T) {
	t.Chdir("../..")
	names := declared(t)
	for _, path := range append(documents(t), "CHANGELOG.md", ".github/SECURITY.md") {
		text := read(t, path)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(text, -1) {
			target := path
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(path), link[1])
			}
			_, err := os.Stat(target)
			require.NoError(t, err, path)
			require.True(t, link[2] == "" || anchors(read(t, target))[link[2]], "%s: %s has no anchor #%s", path, target,
				link[2])
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
	}
}

// TestArchitectureIsDeclared: each `identifier` in [file](../file) is declared in that file.
func TestArchitectureIsDeclared(t *testing.T) {
	t.Chdir("../../.github")
	places := regexp.MustCompile("((?:`[\\w.]+`(?:,| and)?\\s+)+)in\\s+\\[[^]]+\\]\\(([^)]+)\\)")
	found := places.FindAllStringSubmatch(read(t, "architecture.md"), -1)
	require.Greater(t, len(found), 25, "the page names fewer than it did, or this test does not see them")
	for _, place := range found {
		source := read(t, place[2])
		for _, name := range regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(place[1], -1) {
			declares := `(func|type|const|var) ` + name[1]
			if of, method, ok := strings.Cut(name[1], "."); ok {
				declares = `func \(\w+ \*?` + of + `(\[.*\])?\) ` + method
			}
			require.Regexp(t, `(?m)^`+declares+`\b`, source, "%s declares no %s", place[2], name[1])
		}
	}
}

// TestActionsArePinned: the tag of an action may move, and its commit can't.
func TestActionsArePinned(t *testing.T) {
	t.Chdir("../..")
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, workflows)
	for _, path := range workflows {
		for _, line := range regexp.MustCompile(`uses:.*`).FindAllString(read(t, path), -1) {
			require.Regexp(t, `^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`, line, path)
		}
	}
	own := read(t, ".github/workflows/ci.yml")
	used := regexp.MustCompile(`uses:.*`).FindAllString(read(t, "docs/gate.md"), -1)
	require.NotEmpty(t, used)
	for _, line := range used {
		require.Contains(t, own, line+"\n", "docs/gate.md pins what ci.yml doesn't")
	}
}

// TestWorkflowRunsEveryStep: CI runs the steps of .ci/run in jobs, and a step that no job names would never run there.
func TestWorkflowRunsEveryStep(t *testing.T) {
	t.Chdir("../..")
	script, workflow := read(t, ".ci/run"), read(t, ".github/workflows/ci.yml")
	var steps, all, run []string
	for _, step := range regexp.MustCompile(`(?m)^run_(\w+)\(\) \{$`).FindAllStringSubmatch(script, -1) {
		steps = append(steps, step[1])
	}
	require.NotEmpty(t, steps)
	for _, words := range regexp.MustCompile(`(?m)^all\+?='([^']*)'`).FindAllStringSubmatch(script, -1) {
		all = append(all, strings.Fields(words[1])...)
	}
	require.Equal(t, slices.DeleteFunc(slices.Clone(steps), func(step string) bool { return step == "test" }), all)
	for _, words := range regexp.MustCompile(`(?:run: \.ci/run |step: \[)([\w, ]+)`).FindAllStringSubmatch(workflow, -1) {
		run = append(run, strings.FieldsFunc(words[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, step := range steps {
		require.Contains(t, run, step, "no job of ci.yml runs the step")
	}
	for _, step := range run {
		require.Contains(t, steps, step, ".ci/run has no such step")
	}
}

// TestModulesAreListed: contributors and dependabot are told of each go.mod.
func TestModulesAreListed(t *testing.T) {
	t.Chdir("../..")
	contributing, dependabot, n := read(t, ".github/CONTRIBUTING.md"), read(t, ".github/dependabot.yml"), 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d.Name() == "go.mod" {
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
			require.Contains(t, dependabot, "- /"+folder+"\n")
			if n++; folder != "" {
				require.Contains(t, contributing, "\n| `"+folder+"` | ")
			}
		}
		return err
	}))
	require.Equal(t, 6, n)
	require.Contains(t, contributing, "There are six `go.mod` files")
}

// TestPackagesComeBeforeFlags: go test takes what follows a flag that it does not know for an argument of the tests,
// also a package, and then tests the folder that it is in.
func TestPackagesComeBeforeFlags(t *testing.T) {
	t.Chdir("../..")
	known := strings.Fields("C bench benchmem benchtime c count cpu cpuprofile memprofile o race run short timeout v")
	for _, path := range append(documents(t), ".ci/run", "study/measure.sh") {
		for _, line := range regexp.MustCompile("go (?:-C \\S+ )?test [^`\n]*").FindAllString(read(t, path), -1) {
			foreign := ""
			for _, field := range strings.Fields(line) {
				name, _, _ := strings.Cut(strings.TrimLeft(field, "-"), "=")
				switch {
				case strings.HasPrefix(field, "-") && foreign == "" && !slices.Contains(known, name):
					foreign = field
				case strings.HasPrefix(field, "./"):
					require.Empty(t, foreign, "%s: %s: name %s before this flag", path, line, field)
				}
			}
		}
	}
}

// TestProtoFilesAreUsableAsTheyLie: their imports are found with -import-path proto.
func TestProtoFilesAreUsableAsTheyLie(t *testing.T) {
	t.Chdir("../..")
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
