package child

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate lets a process start in a network namespace of its own. Who is not root becomes that of a user namespace,
// which has the rights, and stays who he is for files.
func isolate(cmd *exec.Cmd) error {
	own := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		own.Cloneflags |= syscall.CLONE_NEWUSER
		own.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		own.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	cmd.SysProcAttr = own
	return nil
}
