package testkit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// Variable in the environment makes children that measure, count, profile or hold answer with known figures. Its value
// is from Children.
const Variable = "RPCBENCH_TEST_CHILDREN"

// Question is what a child was asked.
type Question[Spec any] struct {
	Does            string // the child's job
	Spec            Spec
	GOMAXPROCS, PID int
	Lines           []string // that it has read after its question
}

// Children returns a value of Variable. With it so many children answer, or all if most is 0. Later ones wait for their
// end.
func Children(t testing.TB, most int) string {
	t.Helper()
	return fmt.Sprint(most, " ", t.TempDir())
}

// Asked returns what the children with a value of Variable were asked, the earliest first.
func Asked[Spec any](value string) (all []Question[Spec]) {
	_, dir := parse(value)
	for {
		data, err := os.ReadFile(file(dir, len(all)))
		var q Question[Spec]
		if err != nil || json.Unmarshal(data, &q) != nil {
			return all
		}
		all = append(all, q)
	}
}

func parse(value string) (most int, dir string) {
	_, _ = fmt.Sscan(value, &most, &dir)
	return most, dir
}

func file(dir string, n int) string { return filepath.Join(dir, fmt.Sprint(n)) }

// Answer is all that such a child does: TestMain calls it first. answer makes what the child says in its n-th round,
// from 1 on, of what it and earlier children were asked. In other processes Answer returns false at once.
func Answer[Spec any](answer func(before []Question[Spec], q Question[Spec], n int) (any, error)) bool {
	value, does := os.Getenv(Variable), os.Getenv(child.Variable)
	job := child.NewJob(func(_ context.Context, _ child.Stacks, spec Spec, lines <-chan []byte,
		reply func(any) error) error {
		q, before := Question[Spec]{Does: does, Spec: spec, GOMAXPROCS: runtime.GOMAXPROCS(0), PID: os.Getpid()},
			Asked[Spec](value)
		most, dir := parse(value)
		tell := func() error {
			data, err := json.Marshal(q)
			name := file(dir, len(before))
			if err == nil {
				err = os.WriteFile(name+" new", data, 0o600)
			}
			return cmp.Or(err, os.Rename(name+" new", name)) // whole, whoever reads it
		}
		if err := tell(); err != nil {
			return err
		}
		for line := range lines {
			q.Lines = append(q.Lines, string(line))
			if err := tell(); err != nil {
				return err
			}
			if most > 0 && len(before) >= most {
				continue
			}
			said, err := answer(before, q, len(q.Lines))
			if err == nil {
				err = reply(said)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	jobs := map[string]child.Job{child.Measures: job, child.Counts: job, child.Profiles: job, child.Holds: job}
	if value == "" || jobs[does] == nil {
		return false
	}
	if _, err := child.Serve(os.Stdin, os.Stdout, nil, jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
