// Package network makes a network that delays, queues and loses packets beneath the kernel's own TCP: two network
// namespaces with a router between them, which is a child of this process. Nothing of it has a name outside, and all of
// it ends with this process.
//
// It needs Linux, /dev/net/tun, and a process that [child.Command] has started in a namespace of its own. That
// namespace is the clients', and has the address [Client]. Servers that [Network.There] starts have [Server].
package network

import (
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// The addresses of both sides, of RFC 2544's range for benchmarks.
const (
	Client = "198.18.0.1"
	Server = "198.18.0.2"
)

// Spec is which network to make.
type Spec struct {
	Link     tap.Link     // whose round trip, rate and loss the router has
	Seed     uint64       // of the packets that are lost
	Settings tcp.Settings // that both namespaces get
}

// routing is what a router is asked: a child's question.
type routing struct {
	Link tap.Link `json:"link"`
	Seed uint64   `json:"seed"`
}
