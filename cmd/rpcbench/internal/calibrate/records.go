package calibrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Entry is a line of the file of records: what one task measured, or what surrounded those that follow.
type Entry struct {
	Environment []string       `json:"environment,omitempty"`
	Task        string         `json:"task,omitempty"` // experiment/process
	Record      *timing.Record `json:"record,omitempty"`
}

// RecordsFile is the name of the file in the folder of a calibration.
const RecordsFile = "records.jsonl"

// Run measures what plan asks for and the file in dir doesn't have yet, and appends each record as it comes. A process that
// fails leaves no record and does not stop this Run; its error is returned at the end, and the next Run tries it again.
// progress is told how much is left of how long it all takes. There is a program for each layout.
func Run(
	ctx context.Context, dir string, plan []Experiment, programs []versus.Program, progress func(what string, left, all time.Duration),
) error {
	binary, err := os.ReadFile(programs[0].Path)
	if err != nil {
		return err
	}
	env := append(environ.List(), fmt.Sprintf("program=%.6x", sha256.Sum256(binary))) // records of two programs are not mixed
	path := filepath.Join(dir, RecordsFile)
	entries, whole, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, e := range entries {
		if e.Environment != nil && !slices.Equal(lasting(e.Environment), lasting(env)) {
			return fmt.Errorf("rpcbench: calibrate: %s was made on another machine or by another program: name another folder with -out", path)
		}
		done[e.Task] = true
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Truncate(path, whole); err != nil { // the line that an interrupted writer left unfinished
		return err
	}
	defer progress("", 0, 0)
	var failed []string
	out, first, left := json.NewEncoder(file), 0, time.Duration(0)
	for _, t := range tasks(plan) {
		left += t.takes()
	}
	all := left
	for _, t := range tasks(plan) {
		left -= t.takes()
		if done[t.id] {
			continue
		}
		progress(t.id, left+t.takes(), all)
		var own []versus.Program
		for _, layout := range t.layouts {
			own = append(own, programs[layout])
		}
		record, err := versus.Run(ctx, t.spec, own...)
		if ctx.Err() != nil {
			return errors.New("rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
		}
		if err != nil {
			failed = append(failed, t.id+": "+err.Error())
			continue
		}
		lines := []Entry{{Environment: env}, {Task: t.id, Record: &record}}
		for _, line := range lines[first:] {
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		first = 1 // the environment once per session, with its first record
	}
	if failed != nil {
		return fmt.Errorf("rpcbench: calibrate: %s: the same command tries again what failed", strings.Join(failed, "; "))
	}
	return nil
}

// lasting leaves out what may differ between the sessions of one calibration.
func lasting(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(s string) bool {
		return strings.HasPrefix(s, "date=") || strings.HasPrefix(s, "commit=")
	})
}

// read returns the entries of a file of records, and the length of its whole lines.
func read(path string) (entries []Entry, whole int64, err error) {
	data, err := os.ReadFile(path)
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(data) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("rpcbench: calibrate: %s:%d is no record (%w): delete the line to measure its task again", path, len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, int64(len(data)), err
}
