package count

import (
	"fmt"
	"os"
	"testing"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/stacks"
)

// TestMain is also the processes that count.
func TestMain(m *testing.M) {
	jobs := map[string]child.Job{child.Serves: child.Serving(), child.Counts: versus.Counting()}
	switch done, err := child.Serve(os.Stdin, os.Stdout, child.List(stacks.All()), jobs); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		os.Exit(m.Run())
	}
}
