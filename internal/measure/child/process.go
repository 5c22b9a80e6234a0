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
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
)

// Protocol is the number of what a parent and its children tell each other. Raise it with each change of what a line
// means or of what is measured by it. Else a build from before the change would measure something else by that name.
const Protocol = 8

// Variable stands in the environment of a child, and names its job. Builds that knew no Protocol looked for other
// names, so a child of such a build measures nothing.
const Variable = "RPCBENCH_CHILD"

// The jobs of children.
const (
	Serves   = "serve"
	Measures = "measure"
	Counts   = "count"
	Profiles = "profile"
	Holds    = "hold"    // connections or streams, at rest
	Routes   = "route"   // between two network namespaces
	Networks = "network" // tries to make a network
)

const limit = 15 * time.Second // to begin, and for the end; rpcbench.Start and Fixture.Close take less

// Command is a program that is to be started as a child.
type Command struct {
	Path  string        // "" is this program
	Env   []string      // what it has in its environment besides
	Does  string        // its job: Serves, Measures …
	Procs int           // its GOMAXPROCS; 0 is the default
	Files bool          // it has a temporary folder of its own, which goes even if the child is killed
	Asked any           // its first line, as JSON
	Limit time.Duration // for a reply

	// Alone starts it in a network namespace of its own, with rights there and no way to any other network. Linux alone
	// has them. It then knows no HTTP proxy.
	Alone bool
	Gets  []*os.File // it has them as its files from 3 on
}

// Process is a child of this process. One goroutine at a time.
type Process struct {
	// End ends the child's input and waits for the child's end, a minute at most. The error of a child that fails is what
	// it has said of that: its reply, or the first two lines of standard error, since a trace of goroutines would fill
	// pages.
	End func() error

	cmd    *exec.Cmd
	in     io.WriteCloser
	reads  sync.Mutex // guards out and failed: a watchdog may end a child that is being asked
	out    *json.Decoder
	failed *failure // what the child has said last
	stderr bytes.Buffer
	limit  time.Duration
	late   atomic.Pointer[string] // what it has not done in time
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
	p.cmd.Env, p.cmd.ExtraFiles = append(p.cmd.Env, c.Env...), c.Gets
	if c.Alone {
		p.cmd.Env = slices.DeleteFunc(p.cmd.Env, ofProxy)
		err = cmp.Or(err, isolate(p.cmd))
	}
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

// ofProxy tells variables that send calls to a proxy: HTTP_PROXY, https_proxy and their like.
func ofProxy(variable string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
	return strings.HasSuffix(name, "_PROXY")
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

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

// Ask sends a line and reads the child's reply.
func (p *Process) Ask(line string, to any) error {
	defer time.AfterFunc(p.limit, func() { p.quit(fmt.Sprintf("its process gave no answer in %v", p.limit)) }).Stop()
	_, _ = io.WriteString(p.in, line+"\n") // if it fails, so does reading
	r := reply{Found: to}
	p.reads.Lock()
	err := p.out.Decode(&r)
	if err == nil {
		p.heard(r.Failed)
	}
	p.reads.Unlock()
	switch {
	case err == nil && r.Failed == nil:
		return nil
	case err == nil:
		return p.End()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed):
		return cmp.Or(p.End(), errors.New("a child ended before its time"))
	}
	p.kill()
	_ = p.End()
	return fmt.Errorf("a child printed something else than a reply: %w", err)
}

func (p *Process) end() error {
	defer p.kill()
	const most = 4 * limit // it may have three fixtures to close
	defer time.AfterFunc(most, func() { p.quit(fmt.Sprintf("its process had not ended after %v", most)) }).Stop()
	_ = p.in.Close()
	p.reads.Lock()
	defer p.reads.Unlock()
	for r := (reply{}); p.out.Decode(&r) == nil; { // it may be amid a reply
		p.heard(r.Failed)
	}
	err, said, late := cmp.Or(p.cmd.Wait(), p.remove()), begins(p.stderr.String()), p.late.Load()
	switch {
	case p.failed != nil:
		return p.failed
	case late != nil:
		return &Hang{Said: *late, Goroutines: ofPackages(p.stderr.String()), Arm: -1}
	case err != nil && said != "":
		return errors.New(said)
	}
	return err
}

// heard keeps what the child has said first of why it fails. One whose stack hangs has ended all else, and can't go on.
func (p *Process) heard(failed *failure) {
	p.failed = cmp.Or(p.failed, failed)
	if failed != nil && failed.Hang != nil {
		p.kill()
	}
}

// quit ends a process that is late. It has a second to tell what its goroutines do.
func (p *Process) quit(late string) {
	p.late.CompareAndSwap(nil, &late)
	if p.cmd.Process == nil || p.cmd.Process.Signal(syscall.SIGQUIT) != nil { // there is none on Windows
		p.kill()
		return
	}
	time.AfterFunc(time.Second, p.kill)
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

// reply is a line of a child after that of its protocol: what it found, or why no more come.
type reply struct {
	Found  any      `json:"answer,omitempty"`
	Failed *failure `json:"failed,omitempty"`
}

// failure is the error of a child, with those of its causes by which a parent decides what to do.
type failure struct {
	Said        string `json:"said"`
	Unsupported bool   `json:"unsupported,omitempty"` // errors.ErrUnsupported
	Clock       bool   `json:"clock,omitempty"`       // timing.ErrClock
	Files       bool   `json:"files,omitempty"`       // syscall.EMFILE
	NoSamples   bool   `json:"no_samples,omitempty"`  // ErrNoSamples
	Hang        *Hang  `json:"hang,omitempty"`
}

// ErrNoSamples is the error of a job whose profile is of too little CPU time.
var ErrNoSamples = errors.New("the profile has no samples: a longer one has some, 100 per second of CPU time")

func failureOf(err error) *failure {
	hang, _ := errors.AsType[*Hang](err)
	return &failure{Said: begins(err.Error()), Unsupported: errors.Is(err, errors.ErrUnsupported),
		Clock: errors.Is(err, timing.ErrClock), Files: errors.Is(err, syscall.EMFILE),
		NoSamples: errors.Is(err, ErrNoSamples), Hang: hang}
}

func (f *failure) Error() string { return f.Said }

// Unwrap is for who asks for the Hang.
func (f *failure) Unwrap() error {
	if f.Hang == nil {
		return nil
	}
	return f.Hang
}

func (f *failure) Is(cause error) bool {
	return f.Unsupported && cause == errors.ErrUnsupported || f.Clock && cause == timing.ErrClock ||
		f.Files && cause == syscall.EMFILE || f.NoSamples && cause == ErrNoSamples
}

// Stacks finds a stack by its name.
type Stacks func(name string) (rpcbench.Stack, error)

// List finds those of a list.
func List(all []rpcbench.Stack) Stacks {
	return func(name string) (rpcbench.Stack, error) {
		i := slices.IndexFunc(all, func(s rpcbench.Stack) bool { return s.Name == name })
		if i < 0 {
			return rpcbench.Stack{}, fmt.Errorf("its process has no stack %q: cli.Main takes all stacks", name)
		}
		return all[i], nil
	}
}

// Named are the stacks with the given names.
func (s Stacks) Named(names []string) (found []rpcbench.Stack, err error) {
	for _, name := range names {
		stack, err := s(name)
		if err != nil {
			return nil, err
		}
		found = append(found, stack)
	}
	return found, nil
}

// Job is what a child does: a reply for each of lines, about what it is asked. Its error is told to the parent, and so
// is a reply that is a Hang, for which the parent kills the child.
type Job func(ctx context.Context, stacks Stacks, asked []byte, lines <-chan []byte, reply func(any) error) error

// NewJob makes a job of what is done about a question. A question with a field that Question has not is refused: what a
// parent of another revision asks for in it would not be measured.
func NewJob[Question any](do func(ctx context.Context, stacks Stacks, asked Question, lines <-chan []byte,
	reply func(any) error) error) Job {
	return func(ctx context.Context, stacks Stacks, asked []byte, lines <-chan []byte, reply func(any) error) error {
		var question Question
		given := json.NewDecoder(bytes.NewReader(asked))
		given.DisallowUnknownFields()
		if err := given.Decode(&question); err != nil {
			return fmt.Errorf("%s is set, which is for children of rpcbench, but standard input has no question "+
				"that this build reads: %w", Variable, err)
		}
		return do(ctx, stacks, question, lines, reply)
	}
}

// Serve is the side of a child. It tells its protocol, and does the job that Variable names about the first line of in.
// It returns false at once in a process that is no child.
//
// When in ends, or a signal comes, lines is closed and the context of the job ends: a parent that was killed closes its
// end of the pipe, and a child that went on would disturb what is measured next.
func Serve(in io.Reader, out io.Writer, stacks Stacks, jobs map[string]Job) (bool, error) {
	does := os.Getenv(Variable)
	if does == "" {
		return false, nil
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	fmt.Fprintln(out, Protocol) // if it fails, the parent has ended, and so has in
	say := replies(out)
	if in == io.Reader(os.Stdin) {
		own := stdin()
		in = own
		context.AfterFunc(ctx, func() {
			_ = own.Close() // which ends lines
			time.AfterFunc(3*limit, func() { abandon(does, say) })
		})
	}
	lines := make(chan []byte)
	go func() {
		defer cancel() // also amid a reply
		defer close(lines)
		for input := bufio.NewScanner(in); input.Scan(); {
			select {
			case lines <- bytes.Clone(input.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	var err error
	if job := jobs[does]; job == nil {
		err = fmt.Errorf("%s is %q, and the children of this build know %s", Variable, does,
			strings.Join(slices.Sorted(maps.Keys(jobs)), ", "))
	} else {
		err = job(ctx, stacks, <-lines, lines, func(found any) error {
			if hang, hangs := found.(*Hang); hangs {
				return say(reply{Failed: failureOf(hang)})
			}
			return say(reply{Found: found})
		})
	}
	if err != nil {
		_ = say(reply{Failed: failureOf(err)}) // it fails if the parent has ended
	}
	return true, err
}

// replies writes lines, each whole: a Hang is told from another goroutine.
func replies(out io.Writer) (say func(reply) error) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(r reply) error {
		mu.Lock()
		defer mu.Unlock()
		return lines.Encode(r)
	}
}

// abandon ends this process, whose job has not ended long after its input: it would run on when the parent is gone.
func abandon(job string, say func(reply) error) {
	_ = say(reply{Failed: failureOf(&Hang{Stack: "the job " + job, Said: fmt.Sprintf("it had not ended after %v", 3*limit),
		Goroutines: Goroutines(), Arm: -1})})
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
}

// stdin is standard input whose reader is parked. With the race detector of Go 1.26.8 and one P, a collection that
// began while the reader was in a system call sometimes never ended.
func stdin() *os.File {
	if runtime.GOOS == "windows" || syscall.SetNonblock(0, true) != nil {
		return os.Stdin
	}
	return os.NewFile(0, "/dev/stdin")
}
