package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	api "github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/child"
)

const grace = 5 * time.Second // for calls under way when the command is told to end

func serveCommand(p program, stdout io.Writer) command {
	return command{
		name: "serve", args: " [stack...]", does: "Serve stacks to any client, each on a port of its own", example: "rpcbench serve -port 8080 httpjson grpcprotobuf",
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
				if *port > 0 && *port+uint(len(served)) > 1<<16 {
					return wrong("serve: -port %d: there are no %d ports from there", *port, len(served))
				}
				return serve(ctx, stdout, *addr, *port, served)
			}
		},
	}
}

// serve prints the value of -server and a command line per stack, and ends all servers when ctx does.
func serve(ctx context.Context, stdout io.Writer, host string, port uint, stacks []api.Stack) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var servers, lines []string
	for _, stack := range stacks {
		f, err := child.Alone(ctx, forPeople(stack), api.Config{Addr: net.JoinHostPort(host, strconv.Itoa(int(port)))})
		switch {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
		all.Go(func() {
			<-ctx.Done()
			_ = f.Close()
		})
		if port > 0 {
			port++
		}
		servers = append(servers, stack.Name+"="+f.Addr)
		lines = append(lines, "# "+stack.Name+"\n"+commandLine(stack, f.Addr)+"\n")
	}
	fmt.Fprintf(stdout, "%s\n\n%s", strings.Join(servers, ","), strings.Join(lines, ""))
	<-ctx.Done()
	return nil
}

// forPeople is stack whose server ends gracefully and, if it speaks gRPC, describes its services and its health.
func forPeople(stack api.Stack) api.Stack {
	server := stack.Server
	stack.Server = func(config api.ServerConfig) (api.Server, error) {
		s, err := server(config)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(stack.Protocol, "grpc/") {
			describe(s)
		}
		return graceful{s}, nil
	}
	return stack
}

// describe adds grpc-go's reflection and health services.
func describe(server api.Server) {
	var target any = server
	if s, ok := target.(interface{ HTTPHandler() http.Handler }); ok {
		target = s.HTTPHandler()
	}
	if mux, ok := target.(*http.ServeMux); ok { // connect's: it has no such services, so a server of grpc-go answers beside it
		beside := grpc.NewServer()
		beside.RegisterService(&grpc.ServiceDesc{ServiceName: userService}, nil)
		for _, service := range []string{"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection", "grpc.health.v1.Health"} {
			mux.Handle("/"+service+"/", beside)
		}
		target = beside
	}
	s := target.(reflection.GRPCServer)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
}

// graceful lets the calls under way end before it closes, where the library can.
type graceful struct{ api.Server }

func (s graceful) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	switch g := s.Server.(type) {
	case interface{ GracefulStop() }:
		defer context.AfterFunc(ctx, func() { _ = s.Server.Close() })()
		g.GracefulStop()
	case interface{ Shutdown(context.Context) error }:
		_ = g.Shutdown(ctx)
	}
	return s.Server.Close()
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
		"grpc/proto": "grpcurl -plaintext -d JSON ADDR SERVICE/CreateUser",
		"http/json":  "CURL -H 'Content-Type: application/json' -d JSON http://ADDR/users",
		"http/xml": "CURL -H 'Content-Type: application/xml' " +
			"-d '<User><email>ann@example.com</email><name>Anna</name><password>secret</password></User>' http://ADDR/users",
		"http/proto": "printf '" + proto + "' | POST-BINARY/protobuf' http://ADDR/users | od -c",
		"http/msgpack": `printf '\203\245email\257ann@example.com\244name\244Anna\250password\246secret'` +
			" | POST-BINARY/vnd.msgpack' http://ADDR/users | od -c",
		"tcp/proto": `printf '\000\000\000\037\n` + proto + "' | curl -s --max-time 1 --output - telnet://ADDR | od -c",
	}[format[0]+"/"+format[1]]
	if !ok { // connect's servers answer JSON whatever their own client speaks
		line = "CURL -H 'Content-Type: application/json' -d JSON http://ADDR/SERVICE/CreateUser"
	}
	return strings.NewReplacer("POST-BINARY", curl+" --data-binary @- --output - -H 'Content-Type: application", "CURL", curl,
		"JSON", `'{"email":"ann@example.com","name":"Anna","password":"secret"}'`, "ADDR", addr, "SERVICE", userService).Replace(line)
}
