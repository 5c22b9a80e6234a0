//go:build !linux

package network

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Network is a network that can't be made here.
type Network struct{}

var errSystem = fmt.Errorf("network: %w: a link with a loss is made of Linux's network namespaces, which %s has not: "+
	"leave the loss out, which emulates the link", errors.ErrUnsupported, runtime.GOOS)

// Make fails.
func Make(context.Context, Spec) (*Network, error) { return nil, errSystem }

// Check fails.
func Check(context.Context, tap.Link, tcp.Settings) (tcp.Settings, error) { return nil, errSystem }

// Routing is the job of a child that is the router.
func Routing() child.Job {
	return child.NewJob(func(context.Context, child.Stacks, routing, <-chan []byte, func(any) error) error {
		return errSystem
	})
}

// Trying is the job of a child that makes a network.
func Trying() child.Job { return Routing() }

// There fails.
func (*Network) There(func() error) error { return errSystem }

// Settings are none.
func (*Network) Settings() tcp.Settings { return nil }

// Counters fails.
func (*Network) Counters() (tcp.Counters, error) { return tcp.Counters{}, errSystem }

// Used is not known.
func (*Network) Used() (time.Duration, bool) { return 0, false }

// Router fails.
func (*Network) Router() (tcp.Router, error) { return tcp.Router{}, errSystem }

// Lose fails.
func (*Network) Lose(float64) error { return errSystem }

// Close does nothing.
func (*Network) Close() error { return nil }
