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
	Began       time.Time      `json:"began,omitzero"`
	Record      *timing.Record `json:"record,omitempty"`
	Error       string         `json:"error,omitempty"` // of a process that failed: its record is incomplete
}

// RecordsFile is the name of the file in the folder of a calibration.
const RecordsFile = "records.jsonl"

// Run measures what plan asks for and the file in dir doesn't have yet, and appends each record as it comes. A process
// that fails is recorded as such, tried again by the next Run, and does not stop this one; its error is returned at the
// end. progress is told how much of the time is over.
func Run(ctx context.Context, dir string, plan []Experiment, program versus.Program, progress func(what string, done, total time.Duration)) (err error) {
	binary, err := os.ReadFile(string(program))
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
		done[e.Task] = done[e.Task] || e.Error == ""
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := os.Truncate(path, whole); err != nil { // the line that an interrupted writer left unfinished
		return err
	}
	out := json.NewEncoder(file)
	var over, total time.Duration
	all := tasks(plan)
	for _, t := range all {
		total += t.takes()
	}
	var failed []string
	for _, t := range all {
		if !done[t.id] {
			progress(t.id, over, total)
			e := Entry{Task: t.id, Began: time.Now().UTC().Truncate(time.Second)}
			record, err := program.Run(ctx, t.spec)
			if ctx.Err() != nil {
				return errors.New("rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
			}
			e.Record = &record
			if err != nil {
				e.Error = err.Error()
				failed = append(failed, t.id)
			}
			if env != nil { // once per session, with its first record
				if err := out.Encode(Entry{Environment: env}); err != nil {
					return err
				}
				env = nil
			}
			if err := out.Encode(e); err != nil {
				return err
			}
		}
		over += t.takes()
	}
	if failed != nil {
		return fmt.Errorf("rpcbench: calibrate: failed, see %s: %s: the same command tries them again", path, strings.Join(failed, ", "))
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
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("rpcbench: calibrate: %s:%d is no record (%w): delete the line to measure its task again", path, len(entries)+1, err)
		}
		entries, whole = append(entries, e), whole+int64(len(line))
	}
	return entries, whole, nil
}
