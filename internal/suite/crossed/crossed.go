// Package crossed joins the client of one stack to the server of another.
package crossed

import (
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench"
)

const to = ".to."

// Of returns a stack with the client of one and the server of another. Both must have the same Protocol, and serve the
// same.
func Of(client, server rpcbench.Stack) (rpcbench.Stack, error) {
	if client.Protocol != server.Protocol || client.Serves != server.Serves {
		return rpcbench.Stack{}, fmt.Errorf("a client of %s, which speaks %s, can't call a server of %s, which speaks %s",
			client.Name, strings.TrimSpace(client.Protocol+" "+client.Serves), server.Name,
			strings.TrimSpace(server.Protocol+" "+server.Serves))
	}
	client.Name += to + server.Name
	client.Server, client.Traits.ServerLibraries = server.Server, server.Traits.ServerLibraries
	return client, nil
}

// Server is the name of the stack whose server s has. It is that of s, unless s is crossed.
func Server(s rpcbench.Stack) (name string, is bool) {
	if _, server, found := strings.Cut(s.Name, to); found {
		return server, true
	}
	return s.Name, false
}
