// Package own makes a Go module for messages of one's own: what flags say of them, what is wrong with that, and the
// command init. A program that has no [Make] says who has one.
package own

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
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

// Flags are the names of those that Register registers.
const Flags = "proto I protoset call request reply request-size reply-size"

// Register registers the flags.
func (m *Messages) Register(f *flag.FlagSet) {
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	f.Func("proto", "`file` with the service; may be repeated", list(&m.Protos))
	f.Func("I", "`folder` in which imports are looked for; may be repeated (default the "+
		"working directory)", list(&m.Roots))
	f.StringVar(&m.Protoset, "protoset", "", "`file` with a FileDescriptorSet, in place of -proto")
	f.StringVar(&m.Call, "call", "", "`method` to call, such as shop.v1.Orders/Get")
	f.StringVar(&m.Request, "request", "", "`file` or folder of JSON values (default an empty message)")
	f.StringVar(&m.Reply, "reply", "", "`file` or folder of JSON values, the reply to each request")
	f.StringVar(&m.RequestSize, "request-size", "", "`size` of the request, such as 100B, if you have no messages")
	f.StringVar(&m.ReplySize, "reply-size", "", "`size` of the reply, such as 2kB, if you have no messages")
}

// Check refuses flags of messages that this program, or none, can obey.
func (maker Make) Check(m Messages) error {
	if maker == nil {
		return errors.New("this program makes no modules for your own messages, but rpcbench's own command does: " +
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

// Stacks stand for the stacks of a module that is not there yet.
func Stacks() (all []rpcbench.Stack) {
	for _, name := range []string{
		"httpjson", "httpjsoniter", "httpprotobuf", "grpcprotobuf", "connectrpc", "connectrpc2"} {
		all = append(all, rpcbench.Stack{Name: name, Serves: "yours"})
	}
	return all
}

// Build makes the module, and tells what the samples lose.
func (maker Make) Build(ctx context.Context, m Messages, dir, name string, told, stderr io.Writer) (Module, error) {
	show := shell.Progress(ctx, stderr)
	show("building the program for your messages", 15*time.Second)
	made, err := maker(ctx, m, dir, name)
	show("", 0)
	if ctx.Err() != nil {
		return made, shell.ErrInterrupted
	}
	for _, path := range made.Lossy {
		_, _ = fmt.Fprintln(told, path)
	}
	return made, err
}
