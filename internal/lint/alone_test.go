package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoIsAlone lists the tests that testkit.Alone skips beside benchmarks and profiles: all that start their own
// binary again or take a CPU profile themselves, and no others.
func TestWhoIsAlone(t *testing.T) {
	t.Chdir("../..")
	calls := map[string]map[string][]string{} // of each function, by folder
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		dir := path.Dir(filepath.ToSlash(name))
		if calls[dir] == nil {
			calls[dir] = map[string][]string{}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" {
				calls[dir][f.Name.Name] = used(f.Body)
			}
		}
		return nil
	}))
	var got strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(calls)) {
		functions, all := calls[dir], ""
		for _, name := range slices.Sorted(maps.Keys(functions)) {
			if !strings.HasPrefix(name, "Test") {
				continue
			}
			alone := reaches(functions, name, "testkit.Alone")
			starts := reaches(functions, name, "testkit.Again", "os.Args", "os.Executable", `"/proc/self/exe"`, "e.turn", "pprof.StartCPUProfile")
			starts = starts && name != "TestResultsNameNoFolders" // which changes what was typed
			require.Equal(t, starts, alone, "%s: %s starts its binary or profiles, and is skipped by testkit.Alone", dir, name)
			if alone {
				all += "\n" + name
			}
		}
		if all != "" {
			got.WriteString(dir + ":" + all + "\n")
		}
	}
	require.Equal(t, strings.Join(strings.Fields(skipped), "\n")+"\n", got.String())
}

const skipped = `
.: TestFlags TestLibraries TestProfilesHaveNoTests TestRows TestRowsEndInTheAnswer TestRunningShowsBenchstat
	TestWrongFlags
internal/command: TestBrokenPipe TestEndedFromOutside TestExplainIsInterrupted TestServe TestServeEndsAtOnce TestServePorts
	TestSignalsEnd TestWire
internal/explain/calls: TestSeveralCallers
internal/measure/child: TestAChildEndsWithItsParent
internal/scaffold: TestBadInput TestDocument TestFolder TestProtoset TestPublicProtos TestRun
stacks: TestRowsCostTheSame
stacktest: TestBenchstatMakesOneTable TestBusyMachine TestCallsInFlight TestEveryFigureReachesTheOutput
	TestHarnessAllocatesNothing TestOtherJSONIsTold TestReconnects TestRowsHaveThePsOfTheirLabel TestRowsNeedNoTestMain
	TestRowsSayWhatIsNotSeen TestScenarios
study/calibration: TestCalibrationGoesOn
study/codecs: TestARowHasThePsOfItsLabel TestRows
study/outside: TestBadInput TestFailedCall
study/servers: TestHandlersAreNoRPCs
`

// used are the names that a function's body mentions, as they stand there.
func used(body *ast.BlockStmt) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				names = append(names, of.Name+"."+n.Sel.Name)
			}
		case *ast.Ident:
			names = append(names, n.Name)
		case *ast.BasicLit:
			names = append(names, n.Value)
		}
		return true
	})
	return names
}

// reaches tells whether a function mentions one of the names, or a function of its folder that does.
func reaches(functions map[string][]string, name string, names ...string) bool {
	seen := map[string]bool{}
	for left := []string{name}; len(left) > 0; left = left[1:] {
		for _, used := range functions[left[0]] {
			if slices.Contains(names, used) {
				return true
			}
			if functions[used] != nil && !seen[used] {
				seen[used] = true
				left = append(left, used)
			}
		}
	}
	return false
}
