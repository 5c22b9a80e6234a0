package roster_test

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/roster"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// TestConformanceSideBySide runs the suite once more in a process that links every stack and has a fixture of each open.
func TestConformanceSideBySide(t *testing.T) {
	for _, stack := range roster.All() {
		stacktest.Start(t, stack, rpcbench.Config{})
	}
	for _, stack := range roster.All() {
		t.Run(stack.Name, func(t *testing.T) { stacktest.Conformance(t, stack) })
	}
}

// TestSharedTypesHaveNoCodecMethods: a Marshal method on a type that several stacks encode would be picked up by one
// library and not by another.
func TestSharedTypesHaveNoCodecMethods(t *testing.T) {
	for _, shared := range []reflect.Type{
		reflect.TypeFor[*rpcbench.User](), reflect.TypeFor[*rpcbench.Response](),
		reflect.TypeFor[*rpcbench.Error](), reflect.TypeFor[*rpcbench.Violation](),
	} {
		require.Empty(t, codecMethods(shared), shared)
	}
	require.NotEmpty(t, codecMethods(reflect.TypeFor[marshaler]()), "the test finds one where there is one")
}

type marshaler struct{}

func (marshaler) MarshalText() ([]byte, error) { return nil, nil }

func codecMethods(t reflect.Type) (names []string) {
	for i := range t.NumMethod() {
		for _, word := range []string{"marshal", "encode", "decode", "gob"} {
			if name := t.Method(i).Name; strings.Contains(strings.ToLower(name), word) {
				names = append(names, name)
			}
		}
	}
	return names
}

const childStack = "RPCBENCH_TEST_STACK"

// alone runs one of this package's tests in a process of its own, for one stack.
func alone(t *testing.T, test, stack string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childStack+"="+stack)
	return cmd
}

// child returns the stack that this process was started for, and skips a test in any other.
func child(t *testing.T) rpcbench.Stack {
	t.Helper()
	for _, s := range roster.All() {
		if s.Name == os.Getenv(childStack) {
			return s
		}
	}
	t.Skip("runs in a child process")
	panic("unreachable")
}

func TestChildConforms(t *testing.T) { stacktest.Conformance(t, child(t)) }

// TestTwoRunsAtOnce: nothing is shared between processes, no port and no file.
func TestTwoRunsAtOnce(t *testing.T) {
	const name = "httpjson"
	a, b := alone(t, "TestChildConforms", name), alone(t, "TestChildConforms", name)
	var outputs [2]strings.Builder
	for i, cmd := range []*exec.Cmd{a, b} {
		cmd.Stdout, cmd.Stderr = &outputs[i], &outputs[i]
		require.NoError(t, cmd.Start())
	}
	errA, errB := a.Wait(), b.Wait()
	for i, err := range []error{errA, errB} {
		require.NoError(t, err, outputs[i].String())
		require.Contains(t, outputs[i].String(), "--- PASS: TestChildConforms/clear/codec")
	}
}
