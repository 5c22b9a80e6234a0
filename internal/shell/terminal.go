package shell

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/rpcbench/rpcbench/internal/report/table"
)

// Width is how many columns a terminal has, and table.Width at most, which is also for what is no terminal.
func Width(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return min(columns, table.Width)
		}
	}
	return table.Width
}

// Colours tells whether somebody looks at a terminal that has them.
func Colours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isTerminal(file) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
}

// isTerminal tells whether a line can be written over.
func isTerminal(file *os.File) bool {
	kind := os.Getenv("TERM")
	return kind != "" && kind != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Say writes text in lines that fit.
func Say(w io.Writer, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	begin := len(text) - len(strings.TrimLeft(text, "\n"))
	_, err := io.WriteString(w, text[:begin]+table.Wrap(text[begin:], Width(w)))
	return err
}

// SayAll says each line.
func SayAll(w io.Writer, lines string) (err error) {
	for line := range strings.Lines(lines) {
		err = cmp.Or(err, Say(w, "%s", line))
	}
	return err
}
