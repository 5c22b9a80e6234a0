package command

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

var update = flag.Bool("update", false, "write anew what scripts compare with: look at it")

// TestScripts: what the command prints, writes and exits with.
func TestScripts(t *testing.T) { scripts(t, "testdata/script", 10*time.Minute, false) }

// TestRefusals: each command line that is refused, and the one line that says why.
func TestRefusals(t *testing.T) { scripts(t, "testdata/refusals", time.Minute, true) } // or who serves would never end

// scripts runs those of a folder. Beside the commands of testscript they have:
//
//	refuse arg...   runs rpcbench: its exit status is 2, and it prints one line on standard error alone
//	fail arg...     the same with exit status 1
//	exits n arg...  runs rpcbench, whose exit status is n
//	says text       what rpcbench printed on standard error is "rpcbench: ", the text and the end of the line, but for
//	                how long it will take; nothing if there is no text
//	known           from here on the program has two stacks, base and other, whose figures knownAnswer tells
//	known method    the same, but the stacks are of a method of one's own
//	links           from here on go links this program again, in no time, and notes each link in the file bin/links
//	twice           from here on go links each source twice, and other layouts of it are copies but for their names
//	asked file      what the processes that measure were asked since then is in the file; - is nothing
//	publish mod...  writes modules, each a folder path@version, to the folder proxy, which is a GOPROXY
//	profile file    replaces a file with lines "samples function<caller<caller" by the CPU profile of such a service
func scripts(t *testing.T, dir string, within time.Duration, refusals bool) {
	here, err := os.Getwd()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join(here, dir), UpdateScripts: *update, Deadline: time.Now().Add(within),
		Setup: func(env *testscript.Env) error {
			env.Setenv("CORES", strconv.Itoa(runtime.NumCPU()))
			env.Setenv("PROCS", strconv.Itoa(environ.Procs()))
			env.Setenv("GITHUB_STEP_SUMMARY", "")
			env.Setenv("PACKAGE", here)
			env.Setenv("RELEASE", runtime.Version())
			for _, variable := range os.Environ() { // of the go command
				name, value, _ := strings.Cut(variable, "=")
				if name == "GOMAXPROCS" { // which run warns of
					continue
				}
				if name == "HOME" || name == "XDG_CACHE_HOME" || strings.HasPrefix(name, "GO") {
					env.Setenv(name, value)
				}
			}
			if refusals {
				env.Values[variables{}] = []string{"PWD", "TMPDIR", testkit.Variable, ofMethod}
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"refuse": func(ts *testscript.TestScript, _ bool, args []string) { inOneLine(ts, 2, args) },
			"fail":   func(ts *testscript.TestScript, _ bool, args []string) { inOneLine(ts, 1, args) },
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				status, err := strconv.Atoi(args[0])
				ts.Check(err)
				exits(ts, status, args[1:])
			},
			"says": func(ts *testscript.TestScript, _ bool, args []string) {
				said := progressLine.ReplaceAllString(ts.ReadFile("stderr"), "")
				want := ""
				if len(args) > 0 {
					want = "rpcbench: " + strings.Join(args, " ") + "\n"
				}
				if said != want {
					ts.Fatalf("it says\n%snot\n%s", said, want)
				}
			},
			"known": func(ts *testscript.TestScript, _ bool, args []string) {
				dir, err := os.MkdirTemp(ts.MkAbs("."), ".children-")
				ts.Check(err)
				ts.Setenv(testkit.Variable, "0 "+dir)
				ts.Setenv(ofMethod, strings.Join(args, ""))
			},
			"links": func(ts *testscript.TestScript, _ bool, _ []string) {
				dir := ts.MkAbs("bin")
				ts.Check(cmp.Or(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "go"), []byte(linker), 0o700)))
				ts.Setenv("PATH", dir+":"+ts.Getenv("PATH"))
			},
			"twice": func(ts *testscript.TestScript, _ bool, _ []string) {
				dir := filepath.Join(ts.Getenv("WORK"), "twice")
				ts.Check(cmp.Or(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "go"), []byte(relinker), 0o700)))
				ts.Setenv("PATH", dir+":"+ts.Getenv("PATH"))
			},
			"asked": func(ts *testscript.TestScript, _ bool, args []string) {
				want := ""
				if args[0] != "-" {
					want = strings.ReplaceAll(ts.ReadFile(args[0]), "$PROCS", ts.Getenv("PROCS"))
				}
				if got := questions(testkit.Asked[question](ts.Getenv(testkit.Variable))); got != want {
					ts.Fatalf("the processes were asked\n%snot\n%s", got, want)
				}
			},
			"publish": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, name := range args {
					path, version, _ := strings.Cut(name, "@")
					base := ts.MkAbs(filepath.Join("proxy", path, "@v", version))
					ts.Check(os.MkdirAll(filepath.Dir(base), 0o700))
					var packed bytes.Buffer
					archive := zip.NewWriter(&packed)
					ts.Check(fs.WalkDir(os.DirFS(ts.MkAbs(".")), name, func(file string, of fs.DirEntry, err error) error {
						if err == nil && !of.IsDir() {
							w, failed := archive.Create(file)
							ts.Check(failed)
							_, err = io.WriteString(w, ts.ReadFile(file))
						}
						return err
					}))
					ts.Check(archive.Close())
					ts.Check(os.WriteFile(base+".zip", packed.Bytes(), 0o600))
					ts.Check(os.WriteFile(base+".mod", []byte(ts.ReadFile(name+"/go.mod")), 0o600))
					ts.Check(os.WriteFile(base+".info", []byte(`{"Version":"`+version+`"}`), 0o600))
				}
			},
			"profile": func(ts *testscript.TestScript, _ bool, args []string) {
				stacks := map[string]int64{}
				for line := range strings.Lines(ts.ReadFile(args[0])) {
					n, stack, _ := strings.Cut(strings.TrimSpace(line), " ")
					samples, err := strconv.ParseInt(n, 10, 64)
					ts.Check(err)
					stacks[stack] = samples
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), sampled("", stacks), 0o600))
			},
		},
	})
}

// linker is a go command that makes a link to this program of each that it is to build, and notes its layout.
var linker = `#!/bin/sh
case $1 in
env) echo "$PWD/go.mod" ;;
list) echo main ;;
build)
	while [ "$1" != -o ]; do shift; done
	echo "$3" >>"${0%/*}/links"
	ln -s ` + os.Args[0] + ` "$2"
	;;
esac
`

// goTool is the go command, without which nothing is built.
var goTool, _ = exec.LookPath("go")

// relinker is a go command that links two layouts of a source, and makes others of the first by adding their names to
// it: release of Go and modules are the same then.
var relinker = `#!/bin/sh
[ "$1" = build ] || exec ` + goTool + ` "$@"
modules=/dev/null last= layout=
for arg; do
	[ "$last" != -o ] || program=$arg
	case $arg in
	-modfile=*) modules=${arg#*=} ;;
	-ldflags=*) layout=$arg ;;
	esac
	last=$arg
done
linked=${0%/*}/$({
	echo "$GOTOOLCHAIN $GOEXPERIMENT $GOFLAGS"
	find . -name "*.go" -o -name go.mod | sort | xargs cat "$modules"
} | cksum | tr " " -)
if [ -e "$linked" ] && { [ -z "$layout" ] || [ -e "$linked-2" ]; }; then
	cp "$linked" "$program" && echo "$layout" >>"$program"
	exit
fi
[ ! -e "$linked" ] || linked=$linked-2
` + goTool + ` "$@" && cp "$program" "$linked"
`

// planner is a go command that notes in the file planned, beside it, what it would do to build a program, and makes a
// link to this one.
var planner = `#!/bin/sh
[ "$1" = build ] || exec ` + goTool + ` "$@"
shift
` + goTool + ` build -n "$@" 2>"${0%/*}/planned" || exit
while [ "$1" != -o ]; do shift; done
ln -s ` + os.Args[0] + ` "$2"
`

// questions has a line for each: how often it was asked, the stacks, and what differs from nothing. Seeds are left out.
func questions(all []testkit.Question[question]) string {
	times := map[string]int{}
	for _, q := range all {
		arms := strings.Join(q.Spec.Arms, ",") + q.Spec.Stack
		if arms == "" {
			continue // a link is asked which protocol it speaks
		}
		does := q.Does
		if does == child.Measures {
			does = "time"
		}
		if q.Spec.Slice > 0 {
			does += " " + q.Spec.Slice.String()
		}
		var fields []string
		w := reflect.ValueOf(q.Spec.Workload)
		for i := range w.NumField() {
			if name := w.Type().Field(i).Name; name != "Title" && !w.Field(i).IsZero() {
				fields = append(fields, fmt.Sprintf("%s=%v", name, w.Field(i)))
			}
		}
		times[fmt.Sprintf("%s %s GOMAXPROCS=%d %s", does, arms, q.GOMAXPROCS, strings.Join(fields, " "))]++
	}
	var lines strings.Builder
	for _, line := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(&lines, "%d %s\n", times[line], line)
	}
	return lines.String()
}

// progressLine says how long a run takes.
var progressLine = regexp.MustCompile(`(?m)^.* (?:left of about|so far, longer than expected).*\n`)

// inOneLine runs rpcbench, and demands the exit status, and one line on standard error alone, beside those of progress.
func inOneLine(ts *testscript.TestScript, status int, args []string) {
	got, out, said := within(ts, args)
	if got != status {
		ts.Fatalf("the exit status is %d, not %d", got, status)
	}
	if out != "" {
		ts.Fatalf("a refusal is on standard error alone")
	}
	if !regexp.MustCompile(`^rpcbench: [^\n]+\n$`).MatchString(progressLine.ReplaceAllString(said, "")) {
		ts.Fatalf("a refusal is one line that begins with the name of the program")
	}
}

// process has the folder and the environment of this process, while a command runs within it.
var process sync.Mutex

// within runs rpcbench in this process, in the folder and the environment of the script: what is refused needs none of
// its own. Children, and what reads standard input, have one.
func within(ts *testscript.TestScript, args []string) (status int, stdout, stderr string) {
	if ts.Value(variables{}) == nil || ts.Getenv(child.Variable) != "" || slices.Contains(args, "-") {
		status = exited(ts, args)
		return status, ts.ReadFile("stdout"), ts.ReadFile("stderr")
	}
	process.Lock()
	defer process.Unlock()
	defer scriptEnvironment(ts)()
	here, err := os.Getwd()
	ts.Check(err)
	defer func() { ts.Check(os.Chdir(here)) }()
	ts.Check(os.Chdir(ts.MkAbs(".")))
	ts.Check(os.Setenv("PWD", ts.MkAbs(".")))
	p := programOf(ours().make, ours().Stacks)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // or one that serves would never end
	defer cancel()
	if os.Getenv(testkit.Variable) != "" {
		p = programOf(nil, knownProgram().Stacks)
	}
	var out, errs bytes.Buffer
	status = told(&errs, "rpcbench: ", p.run(ctx, args, &out, &errs))
	_, _ = io.WriteString(ts.Stdout(), out.String())
	_, _ = io.WriteString(ts.Stderr(), errs.String())
	return status, out.String(), errs.String()
}

// scriptEnvironment gives this process the environment of a script, until it is told to go back. Other scripts look for
// programs meanwhile, so what is the same in both stays untouched.
func scriptEnvironment(ts *testscript.TestScript) (back func()) {
	before := map[string]string{}
	set := func(name, value string) {
		if value == "" {
			ts.Check(os.Unsetenv(name))
			return
		}
		ts.Check(os.Setenv(name, value))
	}
	for _, name := range ts.Value(variables{}).([]string) {
		if value := ts.Getenv(name); value != os.Getenv(name) {
			before[name] = os.Getenv(name)
			set(name, value)
		}
	}
	return func() {
		for name, value := range before {
			set(name, value)
		}
	}
}

// variables is the key of those that a script of refusals may have of its own. Other scripts have none: all that they
// start is a process.
type variables struct{}

// exits runs rpcbench and demands the exit status.
func exits(ts *testscript.TestScript, status int, args []string) {
	if got := exited(ts, args); got != status {
		ts.Fatalf("the exit status is %d, not %d", got, status)
	}
}

// exited runs rpcbench in a process of its own, and returns its exit status.
func exited(ts *testscript.TestScript, args []string) int {
	var exit *exec.ExitError
	switch err := ts.Exec("rpcbench", args...); {
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		ts.Check(err)
	}
	return 0
}
