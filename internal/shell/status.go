package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WrongUse is the error of a command line that can't be carried out. The exit status is then 2.
type WrongUse struct{ error }

// Wrong makes a WrongUse.
func Wrong(format string, args ...any) error {
	return WrongUse{fmt.Errorf(""+format, args...)}
}

// Above is the error of a contestant above the gate. The exit status is then 3.
type Above struct{ Err error }

func (a Above) Error() string { return a.Err.Error() }

// NotDecided is the error of a gate that could have missed twice the excess that it allows. The exit status is then 4.
type NotDecided struct{ Err error }

func (n NotDecided) Error() string { return n.Err.Error() }

// ExitStatus is that of another program, which has said why.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ErrInterrupted is the error of a command that was told to end.
var ErrInterrupted = errors.New("interrupted")

// OneLine is an error as a line.
func OneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.Contains(said, line) { // one cause may fail several writes
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
