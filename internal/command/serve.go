package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/shell"
)

func serveCommand(p program, stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "serve", Tidies: true, Args: " [stack...]", Does: "Serve stacks to any client, each on a port of its " +
			"own, until it is interrupted",
		Example: "rpcbench serve -port 8080 httpjson grpcprotobuf",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			addr := f.String("addr", "127.0.0.1", "`host` to listen on")
			port := f.Uint("port", 0, "`port` of the first stack; each later stack has the next one. 0 takes any that are free")
			return func(ctx context.Context, names []string) error {
				served := p.Stacks
				if len(names) > 0 {
					var err error
					if served, err = p.Find(names...); err != nil {
						return err
					}
				}
				if err := shell.Once("serve", names); err != nil {
					return err
				}
				_, _, err := net.SplitHostPort(*addr)
				switch {
				case err == nil || strings.ContainsAny(*addr, "[]"):
					return shell.Wrong("serve: -addr %s: name a host without port and brackets, as 127.0.0.1 or ::1", *addr)
				case *port >= 1<<16 || *port > 0 && *port+uint(len(served)) > 1<<16:
					return shell.Wrong("serve: -port %d is too high: the last port is 65535, and each stack takes one (stacks: "+
						"%d)", *port, len(served))
				}
				return serve(ctx, stdout, *addr, *port, served)
			}
		},
	}
}

// serve prints the value of -server and how to call each stack, and returns when ctx ends. The servers end with the
// process: whoever ends the command waits for no connection and no call.
func serve(ctx context.Context, stdout io.Writer, host string, port uint, stacks []rpcbench.Stack) error {
	var servers, lines []string
	for _, stack := range stacks {
		described := false
		start := stack.Server
		stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			s, err := start(config)
			described = err == nil && strings.HasPrefix(stack.Protocol, "grpc/") && describe(s)
			return s, err
		}
		f, err := child.ServerOnly(ctx, stack, rpcbench.Config{Addr: net.JoinHostPort(host, strconv.Itoa(int(port)))})
		switch {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
		if port > 0 {
			port++
		}
		servers = append(servers, stack.Name+"="+f.Addr)
		lines = append(lines, "# "+stack.Name+"\n"+commandLine(stack, f.Addr, described)+"\n")
	}
	next := "# Next: call one from another terminal, or compare them: rpcbench run -server and the first line.\n"
	if _, err := fmt.Fprint(stdout, strings.Join(servers, ","), "\n\n", strings.Join(lines, ""), next); err != nil {
		return fmt.Errorf("serve: %w", err) // nobody knows the addresses
	}
	<-ctx.Done()
	return nil
}

// describe adds grpc-go's reflection service to a server that can have it.
func describe(server rpcbench.Server) bool {
	var target any = server
	if s, ok := target.(interface{ HTTPHandler() http.Handler }); ok {
		target = s.HTTPHandler()
	}
	if mux, ok := target.(*http.ServeMux); ok { // connect's lacks the service: a server of grpc-go answers beside it
		beside := grpc.NewServer()
		beside.RegisterService(&grpc.ServiceDesc{ServiceName: userService}, nil)
		mux.Handle("/grpc.reflection.v1.ServerReflection/", beside)
		mux.Handle("/grpc.reflection.v1alpha.ServerReflection/", beside)
		target = beside
	}
	described, ok := target.(reflection.GRPCServer)
	if ok {
		reflection.Register(described)
	}
	return ok
}

const userService = "rpcbench.user.v1.UserService"

// commandLine is a shell command that creates a user at addr: by grpcurl if the server describes its services, by curl
// if it takes JSON over HTTP/1.1. Of other stacks, and of other methods, it is a comment that names protocol and
// address.
func commandLine(stack rpcbench.Stack, addr string, described bool) string {
	const user = `'{"email":"ann@example.com","name":"Anna","password":"secret"}'`
	curl := func(path string) string {
		return "curl -s -H 'Content-Type: application/json' http://" + addr + path + " \\\n  -d " + user
	}
	switch {
	case stack.Serves != "":
	case described:
		return "grpcurl -plaintext -d " + user + " \\\n  " + addr + " " + userService + "/CreateUser"
	case stack.Protocol == "http/json":
		return curl("/users")
	case stack.Protocol == "http/json/gzip":
		return strings.Replace(curl("/users"), "-s", "-s --compressed", 1)
	case stack.Protocol == "connect/json", stack.Protocol == "connect/proto": // connect's servers take both
		return curl("/" + userService + "/CreateUser")
	}
	return "# " + stack.Protocol + " at " + addr
}
