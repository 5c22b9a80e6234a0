package scaffold

import (
	"context"
	"os"
	"os/exec"

	"github.com/rpcbench/rpcbench/internal/command"
)

// call is what the flags say.
type call struct {
	protos, roots                                          []string
	protoset, name, request, reply, requestSize, replySize string
}

// Make is what the command makes modules by.
func Make(ctx context.Context, of command.Messages, dir, name string) (command.Module, error) {
	c := call{of.Protos, of.Roots, of.Protoset, of.Call, of.Request, of.Reply, of.RequestSize, of.ReplySize}
	m, err := c.module(ctx, dir, moduleName(name))
	if err == nil {
		err = m.prove(ctx, dir)
	}
	if err != nil {
		return command.Module{}, err
	}
	return command.Module{Program: m.program, Method: m.Method, Made: m.Made, Lossy: m.Lossy, Schema: m.schema}, nil
}

// child is a process in a folder of ours, which ends with ctx.
func child(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PWD="+dir)
	return cmd
}
