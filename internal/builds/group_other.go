//go:build !unix

package builds

import (
	"os"
	"os/exec"
)

// inGroup lets cancelling a command interrupt it. There are no process groups here.
func inGroup(cmd *exec.Cmd) (kill func()) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return func() {}
}
