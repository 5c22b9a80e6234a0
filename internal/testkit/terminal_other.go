//go:build !linux

package testkit

import (
	"os"
	"testing"
)

// Terminal skips the test.
func Terminal(t testing.TB, _ int) (side, shown *os.File) {
	t.Skip("opens terminals of Linux alone")
	return nil, nil
}

// Resize is of no terminal.
func Resize(testing.TB, *os.File, int) {}
