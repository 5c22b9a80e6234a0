package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
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
		script := "#!/bin/sh\nmkdir ${3#-out=} || exit 1\necho $PWD $GOFLAGS $@\nexit 3\n"
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
	require.Regexp(t, "^"+regexp.QuoteMeta(temporary)+`/rpcbench-\d+ -mod=readonly run -base=httpjson -out=`+
		regexp.QuoteMeta(home)+"/answer -tls=true grpcprotobuf\n$", out.String())
	require.Equal(t, "reply.a: a zero\nanswer/schema.proto: edit it and pass -proto answer/schema.proto "+
		"-call made.Samples/Call to go on\n", errs.String())
	schema, err := os.ReadFile("answer/schema.proto")
	require.NoError(t, err)
	require.Equal(t, "syntax", string(schema))
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
