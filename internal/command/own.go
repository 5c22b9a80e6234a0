package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Messages are what flags say of messages of one's own.
type Messages struct {
	Protos, Roots                                          []string
	Protoset, Call, Request, Reply, RequestSize, ReplySize string
}

// Make writes a Go module for messages to a folder, builds its program, and proves it. Only cmd/rpcbench has a Make,
// since it needs generators of code. Without one, the commands say so.
type Make func(ctx context.Context, m Messages, dir, name string) (Module, error)

// Module is what was made.
type Module struct {
	Program, Method, Made string
	Lossy                 []string // paths, and what is lost there
	Schema                []byte   // the .proto, if it was made of samples
}

const ownFlags = "proto I protoset call request reply request-size reply-size" // of Messages

func (m *Messages) flags(f *flag.FlagSet) {
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	f.Func("proto", "`file` with the service; may be repeated", list(&m.Protos))
	f.Func("I", "`folder` in which imports are looked for; may be repeated; the working directory unless "+
		"given", list(&m.Roots))
	f.StringVar(&m.Protoset, "protoset", "", "`file` with a FileDescriptorSet, in place of -proto")
	f.StringVar(&m.Call, "call", "", "`method` to call, such as shop.v1.Orders/Get")
	f.StringVar(&m.Request, "request", "", "`file` or folder of JSON values; an empty message unless given")
	f.StringVar(&m.Reply, "reply", "", "`file` or folder of JSON values, the reply to each request")
	f.StringVar(&m.RequestSize, "request-size", "", "`size` of the request, such as 100B, if you have no messages")
	f.StringVar(&m.ReplySize, "reply-size", "", "`size` of the reply, such as 2kB, if you have no messages")
}

// checkOwn refuses flags of messages that this program, or none, can obey.
func (p program) checkOwn(m Messages) error {
	if p.make == nil {
		return errors.New("this program makes no modules for messages of yours, but rpcbench's own command does: " +
			"go run github.com/rpcbench/rpcbench/cmd/rpcbench init -h")
	}
	for _, side := range [][3]string{{"-request", m.Request, m.RequestSize}, {"-reply", m.Reply, m.ReplySize}} {
		_, missing := os.Stat(side[1])
		if _, err := workload.Size(side[1]); err == nil && missing != nil {
			return fmt.Errorf("%s %s: there is no such file: a size is given by %[1]s-size %[2]s", side[0], side[1])
		}
		if _, err := workload.Size(side[2]); err != nil && side[2] != "" {
			return fmt.Errorf("%s-size: %w", side[0], err)
		}
	}
	described, sizes := len(m.Protos) > 0 || m.Protoset != "", m.RequestSize+m.ReplySize != ""
	switch {
	case len(m.Protos) > 0 && m.Protoset != "":
		return errors.New("-proto and -protoset both describe the call: leave one of the two out")
	case sizes && (described || m.Request+m.Reply != "" || m.RequestSize == "" || m.ReplySize == ""):
		return errors.New("-request-size and -reply-size make both messages: give both, and no file beside them")
	case !described && (m.Call != "" || len(m.Roots) > 0):
		return errors.New("-call and -I belong to a .proto: name its file with -proto")
	case !sizes && m.Reply == "":
		return errors.New("the samples of replies are missing: name them with -reply, or give -request-size 100B " +
			"-reply-size 2kB")
	case described && m.Call == "":
		return errors.New("the method is missing: name it with -call, such as shop.v1.Orders/Get")
	}
	return nil
}

// moduleStacks stand for the stacks of a module that is not there yet.
func moduleStacks() (all []rpcbench.Stack) {
	for _, name := range []string{
		"httpjson", "httpjsoniter", "httpprotobuf", "grpcprotobuf", "connectrpc", "connectrpc2"} {
		all = append(all, rpcbench.Stack{Name: name, Method: "yours"})
	}
	return all
}

// module makes it, and tells what the samples lose.
func (p program) module(ctx context.Context, m Messages, dir, name string, told, stderr io.Writer) (Module, error) {
	show := shell.Progress(ctx, stderr)
	show("building the program for your messages", 15*time.Second)
	made, err := p.make(ctx, m, dir, name)
	show("", 0)
	if ctx.Err() != nil {
		return made, shell.ErrInterrupted
	}
	for _, path := range made.Lossy {
		_, _ = fmt.Fprintln(told, path)
	}
	return made, err
}

// runModule makes the module in a temporary folder, runs its program there with the other flags, and removes the
// folder. The program's report shows what was typed.
func (p program) runModule(ctx context.Context, m Messages, f *flag.FlagSet, o options, stdout, stderr io.Writer) (
	err error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made, err := p.module(ctx, m, dir, "own", stderr, stderr)
	if err != nil {
		return err
	}
	args, own := []string{"run"}, strings.Fields(ownFlags)
	f.Visit(func(f *flag.Flag) {
		if f.Name != "out" && !slices.Contains(own, f.Name) {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	out := ""
	if !o.gate.countsOnly() {
		if out, err = shell.Folder(o.out); err != nil {
			return err
		}
		here, err := filepath.Abs(out) // lies where the caller is
		if err != nil {
			return err
		}
		args = append(args, "-out="+here)
	}
	cmd := exec.CommandContext(ctx, made.Program, append(args, f.Args()...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, stdout, stderr, time.Minute
	cmd.Env = append(append(cmd.Environ(), builds.Here()...), report.Typed+"="+strings.Join(shell.AsTyped(), "\n"))
	err = builds.Run(cmd)
	_ = os.Remove(out) // unless something is in it
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
	case exit.ExitCode() < 0 && ctx.Err() != nil: // before the program listened for signals, so it has said nothing
		err = shell.ErrInterrupted
	default:
		err = shell.ExitStatus(max(1, exit.ExitCode()))
	}
	if _, none := os.Stat(out); made.Schema != nil && none == nil {
		schema := filepath.Join(out, "schema.proto")
		err = errors.Join(err, os.WriteFile(schema, made.Schema, 0o644))
		_, _ = fmt.Fprintf(stderr, "Next: edit %s and pass -proto %[1]s -call %s to go on.\n", schema, made.Method)
	}
	return err
}

func initCommand(p program, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "init", Tidies: true, Does: "Make a Go module that compares ways to serve and call a method of yours",
		Example: "rpcbench init -proto orders.proto -call shop.v1.Orders/Get -reply order.json -out orders",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var m Messages
			m.flags(f)
			out := f.String("out", "", "new `folder` for the module")
			return func(ctx context.Context, _ []string) error {
				switch err := p.checkOwn(m); {
				case err != nil:
					return shell.Wrong("init: %w", err)
				case *out == "":
					return shell.Wrong("init: the folder is missing: name a new one with -out")
				}
				if err := shell.IsNew("init: -out", *out); err != nil {
					return err
				}
				return p.keepModule(ctx, m, *out, stdout, stderr)
			}
		},
	}
}

// keepModule writes the module to a folder that was not there, once it is proved.
func (p program) keepModule(ctx context.Context, m Messages, out string, stdout, stderr io.Writer) (err error) {
	path, err := filepath.Abs(out)
	dir, failed := os.MkdirTemp(filepath.Dir(path), ".rpcbench-")
	if err := cmp.Or(err, failed); err != nil {
		return shell.Wrong("init: -out %s: %w", out, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made, err := p.module(ctx, m, dir, filepath.Base(path), stdout, stderr)
	if err == nil {
		err = cmp.Or(os.Remove(made.Program), os.Chmod(dir, 0o755), os.Rename(dir, path))
	}
	if err == nil {
		samples, _, _ := strings.Cut(made.Made, ";") // the rest has been told
		folder := out
		if strings.Contains(out, " ") {
			folder = strconv.Quote(out)
		}
		err = cmp.Or(shell.Say(stdout, "%s is a Go module that compares stacks of %s: %s.", out, made.Method, samples),
			shell.Say(stdout, "Next: cd %s && go run . run -out answer", folder))
	}
	return err
}
