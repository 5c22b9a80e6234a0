package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/timing"
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
// end. progress is told how much of the time is over, both in seconds of slices.
func Run(ctx context.Context, dir string, plan []Experiment, command replicate.Command, progress func(what string, done, total time.Duration)) (err error) {
	program, err := identity(command[0])
	if err != nil {
		return err
	}
	env := append(environ.List(), program)
	path := filepath.Join(dir, RecordsFile)
	entries, err := Read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	done := map[string]bool{}
	for _, e := range entries {
		if e.Environment != nil && !slices.Equal(lasting(e.Environment), lasting(env)) {
			return fmt.Errorf("rpcbench: calibrate: %s was made on another machine or by another program: name another folder with -out", path)
		}
		if e.Task != "" && e.Error == "" {
			done[e.Task] = true
		}
	}
	file, err := appendTo(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	write := func(e Entry) error {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = file.Write(append(line, '\n'))
		return err
	}
	headed := false
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
			record, err := command.Run(ctx, t.spec)
			if ctx.Err() != nil {
				return fmt.Errorf("rpcbench: calibrate: interrupted: the same command goes on where this one stopped")
			}
			e.Record = &record
			if err != nil {
				e.Error = err.Error()
				failed = append(failed, t.id)
			}
			if !headed {
				if err := write(Entry{Environment: env}); err != nil {
					return err
				}
				headed = true
			}
			if err := write(e); err != nil {
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

// identity names the program that measures by its content: records of two programs are not mixed.
func identity(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("program=%x", sha256.Sum256(data))[:len("program=")+12], nil
}

// appendTo opens a file for appending, and cuts off the line that an interrupted writer left unfinished.
func appendTo(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err == nil {
		whole := int64(bytes.LastIndexByte(data, '\n') + 1)
		if err = file.Truncate(whole); err == nil {
			_, err = file.Seek(whole, io.SeekStart)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Read returns the entries of a file of records. A last line without an end is what an interrupted writer left, and is
// passed over.
func Read(path string) (entries []Entry, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("rpcbench: calibrate: %s:%d is no record (%w): delete the line to measure its task again", path, n, err)
		}
		entries = append(entries, e)
	}
}
