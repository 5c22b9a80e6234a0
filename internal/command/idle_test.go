package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// holdKnown is all that a child does whose known figures are those of memory: each connection takes what knownRest
// tells, and of what else may be held the stacks have nothing. Other processes go on.
func holdKnown() bool {
	if os.Getenv(testkit.Variable) == "" || os.Getenv(child.Variable) != child.Holds {
		return false
	}
	type question struct {
		Stack, State, Addr string
		Certificate        []byte
		TLS                bool
		Most               int
	}
	job := func(_ context.Context, _ child.Stacks, asked question, lines <-chan []byte, say func(any) error) (err error) {
		if asked.State != string(idle.Connections) {
			return fmt.Errorf("no %s: %w", asked.State, errors.ErrUnsupported)
		}
		if begun := os.Getenv(ofRest); begun != "" && later(begun, 16) {
			for range lines { // until the process is ended
			}
		}
		of, held := knownRest[asked.Stack+" server"], []int{0, asked.Most / 10, asked.Most / 2, asked.Most}
		if asked.Addr != "" {
			of, held = knownRest[asked.Stack+" client"], held[1:]
		}
		for i := 0; <-lines != nil && err == nil; i++ {
			n := uint64(held[i])
			err = say(map[string]any{"addr": "nowhere", "accepted": n + 1, "heap": of.Heap * n, "stacks": of.Stacks * n,
				"resident": of.Resident * n, "goroutines": of.Goroutines * int(n)})
		}
		return err
	}
	jobs := map[string]child.Job{child.Holds: child.NewJob(job)}
	if _, err := child.Serve(os.Stdin, os.Stdout, nil, jobs); err != nil {
		os.Exit(1)
	}
	return true
}

// ofRest names a file with a byte for each process that holds connections. All that begin after the second round wait.
const ofRest = "RPCBENCH_TEST_REST"

// later adds a byte to a file, and tells whether so many were there before.
func later(name string, most int64) bool {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return true
	}
	defer file.Close()
	_, err = file.WriteString(".")
	info, failed := file.Stat()
	return err != nil || failed != nil || info.Size() > most
}

// knownRest is what a connection takes of each side.
var knownRest = map[string]idle.Held{
	"base server":  {Heap: 9000, Stacks: 8000, Resident: 7000, Goroutines: 6},
	"base client":  {Heap: 5000, Stacks: 4000, Resident: 3000, Goroutines: 2},
	"other server": {Heap: 9090, Stacks: 8080, Resident: 14000, Goroutines: 5},
	"other client": {Heap: 2500, Stacks: 4040, Resident: 3030, Goroutines: 1},
}

// TestHolds: the command is also the processes of memory at rest, whose figures are known elsewhere.
func TestHolds(t *testing.T) {
	var server, client struct {
		idle.Held
		Addr     string
		Accepted int
	}
	asked := map[string]any{"stack": "rawtcp", "state": idle.Connections, "most": 10}
	ask := func(line string, answer any) func(answer any) error {
		p, err := child.Command{Does: child.Holds, Asked: asked, Limit: time.Minute}.Start(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.End() }) // the test's end has killed it
		require.NoError(t, p.Ask(line, answer))
		return func(answer any) error { return p.Ask(line, answer) }
	}
	again := ask("", &server)
	asked["addr"] = server.Addr
	ask("10", &client)
	require.Positive(t, client.Heap)
	before := server.Heap
	require.NoError(t, again(&server))
	require.Equal(t, 11, server.Accepted, "the first call has a connection of its own")
	require.Greater(t, server.Heap, before)
}
