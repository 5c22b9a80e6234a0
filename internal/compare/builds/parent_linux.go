package builds

import "syscall"

// endWithParent interrupts a process when this one is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
