//go:build !linux

package child

import (
	"errors"
	"fmt"
	"os/exec"
)

// isolate fails.
func isolate(*exec.Cmd) error {
	return fmt.Errorf("a network namespace for it: %w", errors.ErrUnsupported)
}
