// Package calls measures stacks under the profiler and without it, in turn, in processes of their own, and prints the
// layers of their calls. Package layers splits the profiles.
package calls

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// turn is how long a stack is measured before the next one has its turn. In a process each has as many rounds: one with
// the profiler first, one with it last.
const (
	turn   = 500 * time.Millisecond
	rounds = 2
	Each   = rounds * 2 * turn // of a stack in a process
)

// OneProcess is said of a workload that is apart.
const OneProcess = "%s is explained in one process: a profile of it has both the client and the server."

// Explanation is a call of one stack, split among layers.
type Explanation struct {
	Name      string
	Processes []Process // or a profile that was read
}

// Explain has stacks measured in one process after the other, each stack for as long as length. With an error comes
// what was measured before. An explanation may then have no process.
func Explain(ctx context.Context, r Rounds, length time.Duration, show shell.Show) (all []*Explanation, err error) {
	for _, name := range r.Arms {
		all = append(all, &Explanation{Name: name})
	}
	r.Slice, r.Number = turn, rounds
	defer show("", 0)
	takes := Each * time.Duration(len(all))
	for n, left := length/Each, length/Each; left > 0 && takes > 0; left-- {
		show(fmt.Sprintf("process %d of %d", n-left+1, n), takes*left)
		found, err := r.process(ctx)
		for i, one := range found {
			all[i].Processes = append(all[i].Processes, one)
		}
		if ctx.Err() != nil {
			err = shell.ErrInterrupted
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Keep writes the profile of all processes of a stack to a folder.
func (e *Explanation) Keep(folder string) error {
	var recordings [][]byte
	for _, p := range e.Processes {
		recordings = append(recordings, p.Recordings...)
	}
	_, calls, _ := e.count(layers.All)
	var data bytes.Buffer
	taken, err := layers.Merge(e.Name, calls, recordings...)
	if err == nil {
		name := filepath.Join(folder, filepath.Base(e.Name)+".pprof")
		err = cmp.Or(taken.Write(&data), os.WriteFile(name, data.Bytes(), 0o666))
	}
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	return nil
}
