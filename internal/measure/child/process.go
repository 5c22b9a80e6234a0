package child

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
)

// Protocol is the number of what a parent and its children tell each other. Raise it with each change of what a line
// means or of what is measured by it. Else a build from before the change would measure something else by that name.
const Protocol = 5

// Variable stands in the environment of a child, and says what the child does: Serves, Measures or Holds. Builds that
// knew no Protocol looked for other names, so a child of such a build measures nothing.
const (
	Variable = "RPCBENCH_CHILD"
	Serves   = "serve"
	Measures = "measure"
	Holds    = "hold" // connections or streams, at rest
)

const limit = 15 * time.Second // for a report, and for the end; rpcbench.Start and Fixture.Close take less

// Command is a program that is to be started as a child.
type Command struct {
	Path  string        // "" is this program
	Env   []string      // what it has in its environment besides
	Does  string        // Serves, Measures or Holds
	Procs int           // its GOMAXPROCS; 0 is the default
	Files bool          // it has a temporary folder of its own, which goes even if the child is killed
	Asked any           // its first line, as JSON
	Limit time.Duration // for an answer
}

// Process is a child of this process. One goroutine at a time.
type Process struct {
	// End ends the child's input and waits for the child's end, a minute at most. The error of a child that fails is what
	// it has said of that: its reply, or the first two lines of standard error, since a trace of goroutines would fill
	// pages.
	End func() error

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	failed *failure // what the child has said last
	stderr bytes.Buffer
	limit  time.Duration
	kill   func()
	folder string // of its files, "" without one
}

// Start starts the program, refuses it if it speaks another protocol, and sends what it is asked. The child is killed
// when ctx ends.
func (c Command) Start(ctx context.Context) (*Process, error) {
	self, err := os.Executable()
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{cmd: exec.CommandContext(ctx, cmp.Or(c.Path, self)), limit: c.Limit}
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	p.cmd.Env = append(p.cmd.Env, Variable+"="+c.Does)
	if c.Procs > 0 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS="+strconv.Itoa(c.Procs))
	}
	if c.Files && err == nil {
		p.folder, err = os.MkdirTemp("", "rpcbench-")
		p.cmd.Env = append(p.cmd.Env, "TMPDIR="+p.folder, "TMP="+p.folder) // TMP is Windows'
	}
	p.cmd.Env = append(p.cmd.Env, c.Env...)
	p.cmd.Stderr, p.cmd.WaitDelay = &p.stderr, limit
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err = cmp.Or(err, inErr, outErr); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("child: %w", err), p.remove())
	}
	p.in, p.out, p.End = in, json.NewDecoder(out), sync.OnceValue(p.end)
	p.kill = func() {
		_ = p.cmd.Process.Kill()
		cancel()
		_ = out.Close() // which its own children may hold
	}
	if err := p.greet(); err != nil {
		p.kill()
		_ = p.End()
		return nil, err
	}
	_ = json.NewEncoder(in).Encode(c.Asked) // if the child has died, its end says so
	return p, nil
}

// greet reads the number of the child's protocol.
func (p *Process) greet() error {
	late := time.AfterFunc(limit, p.kill)
	var number int
	err := p.out.Decode(&number)
	switch {
	case late.Stop() && errors.Is(err, io.EOF) && p.End() != nil:
		return p.End()
	case err != nil:
		return fmt.Errorf("its process names no protocol, and this program speaks %d: it is too old, "+
			"or does not call cli.Main", Protocol)
	case number != Protocol:
		return fmt.Errorf("its process speaks protocol %d, and this program %d: compare builds of one protocol",
			number, Protocol)
	}
	return nil
}

// Ask sends a line and reads what the child answers.
func (p *Process) Ask(line string, answer any) error {
	defer time.AfterFunc(p.limit, p.kill).Stop()
	_, _ = io.WriteString(p.in, line+"\n") // if it fails, so does reading
	r := reply{Answer: answer}
	err := p.out.Decode(&r)
	switch {
	case err == nil && r.Failed == nil:
		return nil
	case err == nil:
		p.failed = r.Failed
		return p.End()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed):
		return cmp.Or(p.End(), errors.New("a child ended before its time"))
	}
	p.kill()
	_ = p.End()
	return fmt.Errorf("a child printed something else than an answer: %w", err)
}

func (p *Process) end() error {
	defer p.kill()
	defer time.AfterFunc(4*limit, p.kill).Stop() // it may have three fixtures to close
	_ = p.in.Close()
	for r := (reply{}); p.out.Decode(&r) == nil; { // it may be amid an answer
		p.failed = cmp.Or(p.failed, r.Failed)
	}
	err, said := cmp.Or(p.cmd.Wait(), p.remove()), begins(p.stderr.String())
	switch {
	case p.failed != nil:
		return p.failed
	case err != nil && said != "":
		return errors.New(said)
	}
	return err
}

// begins has the first two lines of a text on one.
func begins(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	return strings.Join(lines[:min(2, len(lines))], "; ")
}

// remove deletes the folder.
func (p *Process) remove() error {
	if p.folder == "" {
		return nil
	}
	return os.RemoveAll(p.folder)
}

// reply is a line of a child after that of its protocol: an answer, or why no more come.
type reply struct {
	Answer any      `json:"answer,omitempty"`
	Failed *failure `json:"failed,omitempty"`
}

// failure is the error of a child, with those of its causes by which a parent decides what to do.
type failure struct {
	Said        string `json:"said"`
	Unsupported bool   `json:"unsupported,omitempty"` // errors.ErrUnsupported
	Clock       bool   `json:"clock,omitempty"`       // timing.ErrClock
	Files       bool   `json:"files,omitempty"`       // syscall.EMFILE
}

func failureOf(err error) *failure {
	return &failure{Said: begins(err.Error()), Unsupported: errors.Is(err, errors.ErrUnsupported),
		Clock: errors.Is(err, timing.ErrClock), Files: errors.Is(err, syscall.EMFILE)}
}

func (f *failure) Error() string { return f.Said }

func (f *failure) Is(cause error) bool {
	return f.Unsupported && cause == errors.ErrUnsupported || f.Clock && cause == timing.ErrClock ||
		f.Files && cause == syscall.EMFILE
}

// Work is what a child does: a reply for each of lines. Its error is told to the parent.
type Work func(ctx context.Context, lines <-chan []byte, answer func(any) error) error

// Answer is the child's side. It tells its protocol and reads what is asked. Then do answers the lines that follow.
//
// When in ends, lines is closed and the context of do ends: a parent that was killed closes its end of the pipe, and a
// child that went on would disturb what is measured next.
func Answer(ctx context.Context, in io.Reader, out io.Writer, asked any, do Work) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in == io.Reader(os.Stdin) {
		in = stdin()
	}
	fmt.Fprintln(out, Protocol) // if it fails, the parent has ended, and so has in
	lines := make(chan []byte)
	go func() {
		defer cancel() // also amid an answer
		defer close(lines)
		for input := bufio.NewScanner(in); input.Scan(); {
			select {
			case lines <- bytes.Clone(input.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	given, replies := json.NewDecoder(bytes.NewReader(<-lines)), json.NewEncoder(out)
	given.DisallowUnknownFields() // what a parent of another revision asks for in them would not be measured
	err := given.Decode(asked)
	if err != nil {
		err = fmt.Errorf("%s is set, which is for children of rpcbench, but standard input has no question "+
			"that this build reads: %w", Variable, err)
	} else {
		err = do(ctx, lines, func(answer any) error { return replies.Encode(reply{Answer: answer}) })
	}
	if err != nil {
		_ = replies.Encode(reply{Failed: failureOf(err)}) // it fails if the parent has ended
	}
	return err
}

// stdin is standard input whose reader is parked. With the race detector of Go 1.26.8 and one P, a collection that
// began while the reader was in a system call sometimes never ended.
func stdin() *os.File {
	if runtime.GOOS == "windows" || syscall.SetNonblock(0, true) != nil {
		return os.Stdin
	}
	return os.NewFile(0, "/dev/stdin")
}
