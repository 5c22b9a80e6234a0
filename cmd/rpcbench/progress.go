package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress returns a function that shows on a terminal what is being done and how long the rest will take, and does
// nothing elsewhere; and one that clears the line.
func progress(w io.Writer) (show func(what string, over, total time.Duration), done func()) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(string, time.Duration, time.Duration) {}, func() {}
	}
	return func(what string, over, total time.Duration) {
			fmt.Fprintf(w, "\r\x1b[K%3.0f %%, %v left: %s", 100*float64(over)/float64(total), (total - over).Round(time.Second), what)
		},
		func() { fmt.Fprint(w, "\r\x1b[K") }
}
