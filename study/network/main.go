// Command network measures what rpcbench run can't ask over a network that loses packets: HTTP/3, another least time of
// TCP's retransmission timer, and a peer that vanishes. The network is that of run: two namespaces with a router
// between them. Client and server are in one process, whose sockets are on both sides of the router, and messages are
// plain JSON of this program's own, so no figure is the suite's.
//
//	go -C study run ./network http3      HTTP/1.1, HTTP/2 and HTTP/3 over TLS, at 20 ms and 1%
//	go -C study run ./network rto        HTTP/1.1 and HTTP/2 at 1 ms and 0.1%, with timers of 200 and 5 ms
//	go -C study run ./network vanish     all packets are dropped for a minute: how long calls fail
//	go -C study run ./network can        exits with 0 where such a network can be made
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

const usage = "want http3, rto, vanish or can, and perhaps how many rounds and the seconds of each"

// The jobs of children beside the router's.
const (
	calls    = "calls"
	vanishes = "vanish"
)

// served does the job of a child, if this process is one.
func served() (bool, error) {
	return child.Serve(os.Stdin, os.Stdout, nil, map[string]child.Job{child.Routes: network.Routing(),
		child.Networks: network.Trying(), calls: child.NewJob(call), vanishes: child.NewJob(vanish)})
}

func main() {
	done, err := served()
	if !done {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "network: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	rounds, seconds := 6, 20
	if len(args) == 0 || len(args) > 3 || !slices.Contains([]string{"http3", "rto", "vanish", "can"}, args[0]) {
		return errors.New(usage)
	}
	for i, to := range []*int{&rounds, &seconds} {
		if len(args) > i+1 {
			if _, err := fmt.Sscan(args[i+1], to); err != nil || *to < 1 {
				return fmt.Errorf("%s: %q is no number of them", usage, args[i+1])
			}
		}
	}
	link, err := tap.FindLink("20ms/100Mbps/1%")
	if err == nil {
		_, err = network.Check(ctx, link, tcp.Present())
	}
	if err != nil || args[0] == "can" {
		return err
	}
	fmt.Fprintf(out, "# network %s\n# %s\n", strings.Join(args, " "), strings.Join(environ.List(), " "))
	window := time.Duration(seconds) * time.Second
	switch args[0] {
	case "http3":
		return compare(ctx, out, rounds, window, []asked{{Protocol: "http1", Link: "20ms/100Mbps/1%"},
			{Protocol: "http2", Link: "20ms/100Mbps/1%"}, {Protocol: "http3", Link: "20ms/100Mbps/1%"}})
	case "rto":
		var all []asked
		for _, least := range []string{"200000", "5000"} {
			for _, protocol := range []string{"http1", "http2"} {
				all = append(all, asked{Protocol: protocol, Link: "1ms/100Mbps/0.1%", Least: least})
			}
		}
		return compare(ctx, out, rounds, window, all)
	}
	return vanishing(ctx, out, window)
}
