//go:build !linux

package own

import "os/exec"

func endWithParent(*exec.Cmd) {}
