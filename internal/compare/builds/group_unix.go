//go:build unix

package builds

import (
	"os/exec"
	"syscall"
)

// inGroup gives a command that is not started yet a process group of its own. Cancelling the command interrupts the
// whole group; kill ends whatever is left of it.
func inGroup(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
