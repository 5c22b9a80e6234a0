package scaffold

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench/internal/report"
)

// Takes says whether a command line is for this package: init, or run with flags that describe a call.
func Takes(args []string) bool {
	if len(args) == 0 || args[0] != "run" {
		return len(args) > 0 && args[0] == "init"
	}
	mine, _ := split(args[1:], words...)
	return len(mine) > 0
}

// Main carries out such a command line, and returns the exit status: 2 for a wrong command line, 1 for what fails
// later, or that of the program that it starts.
func Main(args []string, stdout, stderr io.Writer) int {
	runtime.LockOSThread() // a child that ends with its parent ends with the thread that started it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := command(ctx, args, stdout, stderr)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && args[0] == "run": // the program has said why
		return max(1, exit.ExitCode())
	}
	said := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "rpcbench: ")), " ")
	_, _ = fmt.Fprintln(stderr, "rpcbench: "+args[0]+": "+said)
	if errors.As(err, new(wrongUse)) {
		return 2
	}
	return 1
}

// wrongUse is the error of a command line that can't be carried out.
type wrongUse struct{ error }

func wrong(format string, args ...any) error { return wrongUse{fmt.Errorf(format, args...)} }

// call is what the flags say.
type call struct {
	protos, roots                       []string
	protoset, name, request, reply, out string
	requestSize, replySize              string
}

func (c *call) flags(f *flag.FlagSet) {
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	f.Func("proto", "`file` with the service; may be repeated", list(&c.protos))
	f.Func("I", "`folder` that imports are below; may be repeated; the working directory unless given", list(&c.roots))
	f.StringVar(&c.protoset, "protoset", "", "`file` with a FileDescriptorSet, in place of -proto")
	f.StringVar(&c.name, "call", "", "`method` to call, such as shop.v1.Orders/Get")
	f.StringVar(&c.request, "request", "", "`file` of JSON values, or folder; without a .proto, a size such as 100B")
	f.StringVar(&c.reply, "reply", "", "`file` or folder with the reply to each request, or a size such as 2kB")
}

var (
	words = []string{"proto", "I", "protoset", "call", "request", "reply"} // the flags, but for -out

	// switches are flags of run that take no value.
	switches = []string{"quick", "tls", "unix", "apart", "new-connections", "stream", "headers", "prove", "h", "help"}
)

// split takes the flags of these names out of the arguments of run, up to the first stack.
func split(args []string, words ...string) (mine, rest []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, _, whole := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		n := min(2, len(args))
		if whole || slices.Contains(switches, name) {
			n = 1
		}
		if slices.Contains(words, name) {
			mine = append(mine, args[:n]...)
		} else {
			rest = append(rest, args[:n]...)
		}
		args = args[n:]
	}
	return mine, append(rest, args...)
}

// Help describes the flags of run that are for messages of one's own.
func Help() string {
	var text strings.Builder
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(&text)
	new(call).flags(f)
	f.PrintDefaults()
	return text.String()
}

const usage = `usage: rpcbench init [flags]

Make a Go module that compares ways to serve and call a method of yours.

example: rpcbench init -proto orders.proto -call shop.v1.Orders/Get -request get.json -reply order.json -out orders

`

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c call
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard)
	c.flags(f)
	f.StringVar(&c.out, "out", "", "new `folder` for the module")
	mine, rest := args[1:], []string(nil)
	if args[0] == "run" {
		mine, rest = split(mine, append(slices.Clone(words), "out")...)
	}
	switch err := f.Parse(mine); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return nil
	case err != nil:
		return wrong("%w: rpcbench init -h shows the flags", err)
	case f.NArg() > 0:
		return wrong("%q is no flag: rpcbench init -h shows the flags", f.Arg(0))
	}
	if err := c.check(); err != nil {
		return err
	}
	if args[0] == "run" {
		return c.run(ctx, args[1:], rest, stdout, stderr)
	}
	return c.init(ctx, stdout)
}

func (c *call) check() error {
	sizes := sized.MatchString(c.request) && sized.MatchString(c.reply)
	switch described := len(c.protos) > 0 || c.protoset != ""; {
	case c.request == "" || c.reply == "":
		return wrong("-request and -reply name the samples, or sizes such as 100B and 2kB")
	case len(c.protos) > 0 && c.protoset != "":
		return wrong("-proto and -protoset both describe the call: leave one of the two out")
	case !described && !sizes:
		return wrong("-proto or -protoset describes the call; without them, -request and -reply are sizes such as 100B")
	case described && c.name == "":
		return wrong("-call names the method, such as shop.v1.Orders/Get")
	case !described && c.name != "":
		return wrong("-call %s: -proto names the file that has it", c.name)
	}
	return nil
}

// init writes the module to a folder that was not there, once it is proved.
func (c *call) init(ctx context.Context, stdout io.Writer) (err error) {
	if c.out == "" {
		return wrong("-out names the folder for the module")
	}
	if _, missing := os.Lstat(c.out); missing == nil {
		return wrong("-out %s: it is there already: name another", c.out)
	}
	out, err := filepath.Abs(c.out)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(out)); err != nil {
		return wrong("-out %s: make the folder %s first", c.out, filepath.Dir(c.out))
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := c.proved(ctx, dir, moduleName(filepath.Base(out)), stdout)
	if err != nil {
		return err
	}
	if err := os.Remove(m.program); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.Rename(dir, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s, %s. To compare: cd %[1]s && go run . run -out answer\n", c.out, m.Method, m.Made)
	return err
}

// run makes the module in a temporary folder, runs its program there with the other flags, and removes the folder. The
// program's report shows what was typed.
func (c *call) run(ctx context.Context, typed, args []string, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.out != "" { // lies where the caller is, who is in another folder
		if c.out, err = filepath.Abs(c.out); err != nil {
			return err
		}
		args = append([]string{"-out", c.out}, args...)
	}
	m, err := c.proved(ctx, dir, "own", stderr)
	if err != nil {
		return err
	}
	// The program keeps what was measured when it is told to end.
	cmd := child(ctx, dir, m.program, append([]string{"run"}, args...)...)
	cmd.Env = append(cmd.Env, report.Typed+"=rpcbench\nrun\n"+strings.Join(typed, "\n"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	return cmd.Run()
}

// proved writes the module to dir, proves what was written, and tells what the samples lose.
func (c *call) proved(ctx context.Context, dir, name string, told io.Writer) (*made, error) {
	m, err := c.module(ctx, dir, name)
	if err == nil {
		err = m.prove(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	for _, path := range m.Lossy {
		_, _ = fmt.Fprintln(told, path)
	}
	return m, nil
}

// child is a process that is told to end with ctx, and killed if that takes a minute.
func child(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "PWD="+dir)
	cmd.WaitDelay = time.Minute
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	endWithParent(cmd)
	return cmd
}
