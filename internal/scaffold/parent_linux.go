package scaffold

import (
	"os/exec"
	"syscall"
)

// endWithParent lets a child end when this process is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT} }
