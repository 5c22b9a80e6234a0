//go:build unix

package builds

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What go has started, a linker say, ends with it.
func TestNothingOutlivesAnInterruptedBuild(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := exec.CommandContext(t.Context(), "mkfifo", pipe).Run(); err != nil {
		t.Skip("needs mkfifo: ", err)
	}
	script := "#!/bin/sh\nexec 3>" + pipe + "\n(trap '' INT; echo >&3; exec sleep 600 >/dev/null 2>&1) &\nwait\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Open(ctx, "example.com/x")
		ended <- err
	}()
	file, err := os.Open(pipe)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	_, err = file.Read(make([]byte, 1)) // once what ignores an interrupt has begun
	require.NoError(t, err)
	cancel()
	require.EqualError(t, <-ended, "go env: context canceled")
	require.NoError(t, file.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.ReadAll(file)
	require.NoError(t, err, "what the script started still runs")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
