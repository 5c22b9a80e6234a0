package command

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The stacks that flags are checked by are those of a module.
func TestModuleStacks(t *testing.T) {
	method, err := os.ReadFile(filepath.Join("..", "scaffold", "module", "method.go.tmpl"))
	require.NoError(t, err)
	var all []string
	for _, of := range regexp.MustCompile(`(\w+)\.Of\(`).FindAllStringSubmatch(string(method), -1) {
		all = append(all, of[1])
	}
	require.Equal(t, all, program{stacks: moduleStacks()}.names())
}

// A module's program has the flags of run, in a folder of its own, and its exit status is the command's. What a user
// gets of the module is beside what was measured.
func TestRunModule(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	home, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Chdir(home)
	want, p := Messages{RequestSize: "1kB", ReplySize: "2kB"}, ours()
	p.make = func(_ context.Context, m Messages, dir, name string) (Module, error) {
		require.Equal(t, want, m)
		require.Equal(t, "own", name)
		script := "#!/bin/sh\ntouch ${4#-out=}/summary.json || exit 1\necho $PWD $GOFLAGS $@\nexit 3\n"
		made := Module{Program: filepath.Join(dir, "program"), Lossy: []string{"reply.a: a zero"}, Schema: []byte("syntax"),
			Method: "made.Samples/Call"}
		return made, os.WriteFile(made.Program, []byte(script), 0o700)
	}
	var out, errs bytes.Buffer
	err := p.run(t.Context(), []string{"run", "-request-size", "1kB", "-reply-size=2kB", "-tls", "-base", "httpjson",
		"-out", "answer/", "grpcprotobuf"}, &out, &errs)
	var status ended
	require.ErrorAs(t, err, &status)
	require.EqualValues(t, 3, status)
	require.Regexp(t, "^"+regexp.QuoteMeta(temporary)+`/rpcbench-\d+ -mod=readonly run -base=httpjson -tls=true -out=`+
		regexp.QuoteMeta(home)+"/answer grpcprotobuf\n$", out.String())
	require.Equal(t, "reply.a: a zero\nNext: edit answer/schema.proto and pass -proto answer/schema.proto "+
		"-call made.Samples/Call to go on.\n", errs.String())
	schema, err := os.ReadFile("answer/schema.proto")
	require.NoError(t, err)
	require.Equal(t, "syntax", string(schema))
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestRunModuleInterruptedAtOnce: a module's program that does not listen for signals yet says nothing, so the command
// does.
func TestRunModuleInterruptedAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	t.Chdir(t.TempDir())
	p := ours()
	p.make = func(_ context.Context, _ Messages, dir, _ string) (Module, error) {
		made := Module{Program: filepath.Join(dir, "program")}
		return made, os.WriteFile(made.Program, []byte("#!/bin/sh\necho begun\nexec sleep 60\n"), 0o700)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	begun := writer(func(data []byte) (int, error) { interrupt(); return len(data), nil })
	args := []string{"run", "-request-size", "1kB", "-reply-size", "2kB", "-out", "answer"}
	require.ErrorIs(t, p.run(ctx, args, begun, io.Discard), errInterrupted)
	require.NoDirExists(t, "answer")
}

type writer func([]byte) (int, error)

func (w writer) Write(data []byte) (int, error) { return w(data) }

// TestAModuleHasAllFlags: each flag of run reaches the module's program with its value, but for those that the module
// was made of.
func TestAModuleHasAllFlags(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	t.Chdir(t.TempDir())
	p := ours()
	p.make = func(_ context.Context, _ Messages, dir, _ string) (Module, error) {
		made := Module{Program: filepath.Join(dir, "program"), Method: "made.Samples/Call"}
		return made, os.WriteFile(made.Program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700)
	}
	all, made := flag.NewFlagSet("run", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	runCommand(p, io.Discard, io.Discard).setup(all)
	new(Messages).flags(made)
	var want []string
	all.VisitAll(func(f *flag.Flag) {
		for _, value := range []string{"true", "7", "7s", "1kB", "httpjson=127.0.0.1:7"} {
			if all.Set(f.Name, value) == nil {
				break
			}
		}
		if f.Name == "out" {
			require.NoError(t, all.Set(f.Name, "answer"))
		} else if made.Lookup(f.Name) == nil {
			want = append(want, "-"+f.Name+"="+f.Value.String())
		}
	})
	var out bytes.Buffer
	require.NoError(t, p.runModule(t.Context(), Messages{}, all, options{out: "answer"}, &out, io.Discard))
	got := strings.Fields(out.String())
	require.Equal(t, "run", got[0])
	got = slices.DeleteFunc(got[1:], func(arg string) bool { return strings.HasPrefix(arg, "-out=") })
	require.ElementsMatch(t, want, got)
	require.Greater(t, len(want), 15)
}
