package child

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Patience is how long a stack may take for a call, or to start, until it hangs. Tests have less of it.
var Patience = 10 * time.Second

// ToClose is how long a fixture may take to close: rpcbench.Start gives up a Serve in two thirds of it.
func ToClose() time.Duration { return Patience * 3 / 2 }

// Hang is the error of a stack that does not return.
type Hang struct {
	Stack      string `json:"stack"`
	Said       string `json:"said"`                 // what has not returned, and since when
	Goroutines string `json:"goroutines,omitempty"` // their stacks; "" if the process could not tell them in a second

	Arm int `json:"-"` // the place of the stack in what was measured; -1 if nobody knows
}

func (h *Hang) Error() string { return cmp.Or(h.Stack, "a stack") + " hangs: " + h.Said }

// Goroutines has the stacks of all goroutines of this process.
func Goroutines() string {
	const most = 16 << 20
	for all := make([]byte, 1<<20); ; all = make([]byte, 2*len(all)) {
		if n := runtime.Stack(all, true); n < len(all) || n >= most {
			return ofPackages(string(all[:n]))
		}
	}
}

// ofPackages has the goroutines of a trace, without what else a signal makes the runtime print. The path of a file is
// that of its package, wherever the file lies.
func ofPackages(trace string) string {
	goroutines := slices.DeleteFunc(strings.Split(strings.TrimSpace(trace), "\n\n"), func(part string) bool {
		return !strings.HasPrefix(part, "goroutine ")
	})
	var out strings.Builder
	function := ""
	for line := range strings.Lines(strings.Join(goroutines, "\n\n") + "\n") {
		if path, is := strings.CutPrefix(line, "\t"); is && strings.ContainsAny(path, `/\`) {
			line = "\t" + packageOf(function) + "/" + path[strings.LastIndexAny(path, `/\`)+1:]
		} else {
			function = line
		}
		out.WriteString(line)
	}
	return strings.TrimSpace(out.String())
}

// packageOf is the import path of a function, as a trace names it.
func packageOf(function string) string {
	function, _, _ = strings.Cut(strings.TrimPrefix(function, "created by "), "[") // of type arguments
	folder := strings.LastIndex(function, "/") + 1
	name, _, _ := strings.Cut(function[folder:], ".")
	return strings.ReplaceAll(function[:folder]+name, "%2e", ".")
}

// closes closes the server of a stack.
func closes(stack string, server func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- server() }()
	select {
	case err := <-ended:
		if err != nil {
			err = fmt.Errorf("close: %w", err)
		}
		return err
	case <-time.After(ToClose()):
		return &Hang{Stack: stack, Said: fmt.Sprintf("Close of its server had not returned after %v", ToClose()),
			Goroutines: Goroutines()}
	}
}
