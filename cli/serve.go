package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	api "github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/child"
)

func serveCommand(p program, stdout io.Writer) command {
	return command{
		name: "serve", tidies: true, args: " [stack...]", does: "Serve stacks to any client, each on a port of its own",
		example: "rpcbench serve -port 8080 httpjson grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			addr := f.String("addr", "127.0.0.1", "`host` to listen on")
			port := f.Uint("port", 0, "`port` of the first stack, each later one having the next; 0 is any free ones")
			return func(ctx context.Context, names []string) error {
				served := p.stacks
				if len(names) > 0 {
					var err error
					if served, err = p.find(names...); err != nil {
						return err
					}
				}
				for i, name := range names {
					if slices.Contains(names[:i], name) {
						return wrong("serve: %s is named twice: once is enough", name)
					}
				}
				_, _, err := net.SplitHostPort(*addr)
				switch {
				case *addr == "":
					return wrong(`serve: -addr "" names no host: leave -addr out for loopback, or name 0.0.0.0 for all interfaces`)
				case err == nil || strings.ContainsAny(*addr, "[]"):
					return wrong("serve: -addr %s: name a host without port and brackets, as 127.0.0.1 or ::1", *addr)
				case *port >= 1<<16 || *port > 0 && *port+uint(len(served)) > 1<<16:
					return wrong("serve: -port %d is too high: stacks to serve: %d, last port: 65535", *port, len(served))
				}
				return serve(ctx, stdout, *addr, *port, served)
			}
		},
	}
}

// serve prints the value of -server and a command line per stack, and returns when ctx ends. The servers end with the
// process: whoever ends the command waits for no connection and no call.
func serve(ctx context.Context, stdout io.Writer, host string, port uint, stacks []api.Stack) error {
	var servers, lines []string
	for _, stack := range stacks {
		f, err := child.Alone(ctx, forPeople(stack), api.Config{Addr: net.JoinHostPort(host, strconv.Itoa(int(port)))})
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
		lines = append(lines, "# "+stack.Name+"\n"+commandLine(stack, f.Addr)+"\n")
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n%s", strings.Join(servers, ","), strings.Join(lines, "")); err != nil {
		return fmt.Errorf("rpcbench: serve: %w", err) // nobody knows the addresses
	}
	<-ctx.Done()
	return nil
}

// forPeople is stack whose server, if it speaks gRPC, describes its services.
func forPeople(stack api.Stack) api.Stack {
	server := stack.Server
	stack.Server = func(config api.ServerConfig) (api.Server, error) {
		s, err := server(config)
		if err == nil && strings.HasPrefix(stack.Protocol, "grpc/") {
			describe(s)
		}
		return s, err
	}
	return stack
}

// describe adds grpc-go's reflection service.
func describe(server api.Server) {
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
	reflection.Register(target.(reflection.GRPCServer))
}

const userService = "rpcbench.user.v1.UserService"

// commandLine is a shell command that creates a user at addr with a client that is not of this module.
func commandLine(stack api.Stack, addr string) string {
	curl := "curl -s"
	if stack.Traits.HTTP == "2" {
		curl += " --http2-prior-knowledge"
	}
	if stack.Traits.Compression != "" {
		curl += " --compressed"
	}
	const proto = `\022\017ann@example.com\032\004Anna\042\006secret`
	format := strings.Split(stack.Protocol, "/")
	line, ok := map[string]string{
		"grpc/proto":     "grpcurl -plaintext -d JSON ADDR SERVICE/CreateUser",
		"http/json":      "CURL -H 'Content-Type: application/json' -d JSON http://ADDR/users",
		"http/protojson": "CURL -H 'Content-Type: application/json' -d JSON http://ADDR/users",
		"http/xml": "CURL -H 'Content-Type: application/xml' " +
			"-d '<User><email>ann@example.com</email><name>Anna</name><password>secret</password></User>' http://ADDR/users",
		"http/proto": "printf '" + proto + "' | POST-BINARY/protobuf' http://ADDR/users | od -c",
		"http/msgpack": `printf '\203\245email\257ann@example.com\244name\244Anna\250password\246secret'` +
			" | POST-BINARY/vnd.msgpack' http://ADDR/users | od -c",
		"tcp/proto": `printf '\000\000\000\037\n` + proto + "' | curl -s --max-time 1 --output - telnet://ADDR | od -c",
	}[format[0]+"/"+format[1]]
	if strings.HasSuffix(stack.Protocol, "/multipart") {
		line = "CURL -F user=JSON http://ADDR/users"
	}
	if !ok { // connect's servers answer JSON whatever their own client speaks
		line = "CURL -H 'Content-Type: application/json' -d JSON http://ADDR/SERVICE/CreateUser"
	}
	return strings.NewReplacer("POST-BINARY", curl+" --data-binary @- --output - -H 'Content-Type: application",
		"CURL", curl, "JSON", `'{"email":"ann@example.com","name":"Anna","password":"secret"}'`, "ADDR", addr, "SERVICE", userService).Replace(line)
}
