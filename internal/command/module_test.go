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

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/run"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// A module's program has the flags of run, in a folder of its own, and its exit status is the command's. What a user
// gets of the module is beside what was measured.
func TestRunModule(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	home, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Chdir(home)
	want, p := own.Messages{RequestSize: "1kB", ReplySize: "2kB"}, ours()
	p.make = func(_ context.Context, m own.Messages, dir, name string) (own.Module, error) {
		require.Equal(t, want, m)
		require.Equal(t, "own", name)
		script := "#!/bin/sh\ntouch ${4#-out=}/summary.json || exit 1\necho $PWD $GOFLAGS $@\nexit 3\n"
		made := own.Module{Program: filepath.Join(dir, "program"), Lossy: []string{"reply.a: a zero"},
			Schema: []byte("syntax"), Method: "made.Samples/Call"}
		return made, os.WriteFile(made.Program, []byte(script), 0o700)
	}
	var out, errs bytes.Buffer
	err := p.run(t.Context(), []string{"run", "-request-size", "1kB", "-reply-size=2kB", "-tls", "-base", "httpjson",
		"-out", "answer/", "grpcprotobuf"}, &out, &errs)
	var status shell.ExitStatus
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

// TestNothingMeasuredLeavesNoFolder: where a server is missing, nothing is begun, and the servers that are there have
// one call. What a module's program leaves empty is removed, however it ends, and what it has written stays.
func TestNothingMeasuredLeavesNoFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	t.Chdir(t.TempDir())
	names := []string{"httpjson", "httpjsoniter", "httpprotobuf"}
	for _, missing := range names {
		var servers []string
		fixtures := map[string]*rpcbench.Fixture{}
		for _, name := range names {
			found, err := ours().Find(name)
			require.NoError(t, err)
			f, err := child.ServerOnly(t.Context(), found[0], rpcbench.Config{})
			require.NoError(t, err)
			if servers = append(servers, name+"="+f.Addr); name == missing {
				require.NoError(t, f.Close())
				continue
			}
			fixtures[name] = f
		}
		_, _, err := typed(t, append([]string{"run", "-workloads", "small", "-out", "answer",
			"-server", strings.Join(servers, ",")}, names[1:]...)...)
		require.Error(t, err, "the server of %s is missing", missing)
		require.Regexp(t, "^"+missing+": connect: ", err.Error(), "the server of %s is missing, before anything is begun",
			missing)
		requireEmpty(t, "the server of "+missing+" is missing")
		for name, f := range fixtures {
			require.LessOrEqual(t, f.Accepted(), int64(2), "connections to %s, its own and one to look: without %s nothing is "+
				"measured", name, missing)
			require.NoError(t, f.Close())
		}
	}
	for ends, status := range map[string]error{"exit 0": nil, "exit 1": shell.ExitStatus(1), "exit 3": shell.ExitStatus(3),
		"kill -9 $$": shell.ExitStatus(1), "touch ${N#-out=}/bench.txt; exit 1": shell.ExitStatus(1)} {
		p := ours()
		p.make = func(_ context.Context, _ own.Messages, dir, _ string) (own.Module, error) {
			made := own.Module{Program: filepath.Join(dir, "program"), Schema: []byte("syntax"), Method: "made.Samples/Call"}
			return made, os.WriteFile(made.Program, []byte("#!/bin/sh\nfor N; do case $N in -out=*) break;; esac; done\n"+ends),
				0o700)
		}
		err := p.run(t.Context(), []string{"run", "-request-size", "1kB", "-reply-size", "2kB", "-out", "answer"}, io.Discard,
			io.Discard)
		require.ErrorIs(t, err, status, "a program that does %q", ends)
		if strings.HasPrefix(ends, "touch") {
			require.FileExists(t, "answer/bench.txt", "what was measured")
			require.NoError(t, os.RemoveAll("answer"))
			continue
		}
		requireEmpty(t, "a program that does "+ends)
	}
}

// requireEmpty: nothing lies in the working directory.
func requireEmpty(t *testing.T, why string) {
	t.Helper()
	left, err := filepath.Glob("*")
	require.NoError(t, err)
	require.Empty(t, left, "%s, and a folder is left", why)
}

// TestRunModuleInterruptedAtOnce: a module's program that does not listen for signals yet says nothing, so the command
// does.
func TestRunModuleInterruptedAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no shell")
	}
	t.Chdir(t.TempDir())
	p := ours()
	p.make = func(_ context.Context, _ own.Messages, dir, _ string) (own.Module, error) {
		made := own.Module{Program: filepath.Join(dir, "program")}
		return made, os.WriteFile(made.Program, []byte("#!/bin/sh\necho begun\nexec sleep 60\n"), 0o700)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	begun := writer(func(data []byte) (int, error) { interrupt(); return len(data), nil })
	args := []string{"run", "-request-size", "1kB", "-reply-size", "2kB", "-out", "answer"}
	require.ErrorIs(t, p.run(ctx, args, begun, io.Discard), shell.ErrInterrupted)
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
	p.make = func(_ context.Context, _ own.Messages, dir, _ string) (own.Module, error) {
		made := own.Module{Program: filepath.Join(dir, "program"), Method: "made.Samples/Call"}
		return made, os.WriteFile(made.Program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700)
	}
	all, made := flag.NewFlagSet("run", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	run.Command(p.Program, p.make, io.Discard, io.Discard).Setup(all)
	new(own.Messages).Register(made)
	var want []string
	all.VisitAll(func(f *flag.Flag) {
		for _, value := range []string{"true", "7", "700", "7s", "1kB", "httpjson=127.0.0.1:7"} {
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
	folder := func() (string, error) { return shell.Folder("run", "answer") }
	require.NoError(t, p.make.Run(t.Context(), own.Messages{}, all, folder, &out, io.Discard))
	got := strings.Fields(out.String())
	require.Equal(t, "run", got[0])
	got = slices.DeleteFunc(got[1:], func(arg string) bool { return strings.HasPrefix(arg, "-out=") })
	require.ElementsMatch(t, want, got)
	require.Greater(t, len(want), 15)
}
