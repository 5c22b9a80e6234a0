//go:build !race

// The race detector makes frames larger.

package codecs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codecs"
)

const (
	childEnv = "RPCBENCH_TEST_DEEP" // name of a row, and index of the first input
	began    = "began "

	// A goroutine's stack may have a gigabyte, a request eight megabytes: a sixteenth of both ends the process as well.
	stackLimit = 1_000_000_000 / 16
)

// A stack that is exhausted can't be recovered from: the test decodes in a child of its own.
func TestDeeplyNested(t *testing.T) {
	if row, first, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		deepChild(t, row, first)
		return
	}
	if testing.Short() {
		t.Skip("starts a process or more for each codec")
	}
	path, err := os.Executable()
	require.NoError(t, err)
	var found []failure
	var ran []string
	eachRow(t, func(t *testing.T, o *ops) {
		ran = append(ran, o.Name)
		inputs := deepInputs(o.Row)
		for first := 0; first < len(inputs); {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a hundred times as long as it takes
			defer cancel()
			cmd := exec.CommandContext(ctx, path, "-test.run=^TestDeeplyNested$")
			cmd.Env = append(os.Environ(), childEnv+"="+o.Name+" "+strconv.Itoa(first))
			out, err := cmd.CombinedOutput()
			first += strings.Count("\n"+string(out), "\n"+began)
			if err == nil {
				require.Equal(t, len(inputs), first)
				break
			}
			require.Contains(t, string(out), "stack exceeds", "of the child")
			if f := (failure{o.Name, inputs[first-1].name, overflows}); !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
	})
	requireFailures(t, found, ran, true)
}

func deepChild(t *testing.T, name, first string) {
	debug.SetMaxStack(stackLimit)
	n, err := strconv.Atoi(first)
	require.NoError(t, err)
	for _, row := range codecs.All() {
		o := newOps(row)
		if o.Name != name {
			continue
		}
		for _, in := range deepInputs(row)[n:] {
			fmt.Println(began + in.name)
			for _, message := range []string{"user", "flex.complex", "addressbook"} {
				require.Empty(t, o.survives(in, o.Form(entry(t, message))), in.name)
			}
		}
	}
}
