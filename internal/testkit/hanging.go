package testkit

import (
	"context"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
)

// Hanging is a stack of which each Call hangs after ten times, or Close of client and server does, or both.
// Without a hanging Close, calls that hang fail when their client is closed. What hangs returns when until is closed,
// or never if that is nil.
func Hanging(s rpcbench.Stack, name string, until <-chan struct{}, calls, closes bool) rpcbench.Stack {
	s.Name = name
	closing := func(inner func() error) func() error {
		return func() error {
			if closes {
				<-until
			}
			return inner()
		}
	}
	s = WithClient(s, func(c rpcbench.Users) rpcbench.Client {
		closed := make(chan struct{})
		client := Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			var made atomic.Int64
			return func(ctx context.Context) error {
				if !calls || made.Add(1) <= 10 {
					return call(ctx)
				}
				select {
				case <-closed:
				case <-until:
				}
				return &rpcbench.Error{Code: rpcbench.CodeUnavailable, Message: "closed"}
			}
		}).(Client)
		client.OnClose = closing(func() error {
			close(closed)
			return c.Close()
		})
		return client
	})
	return WithServer(s, func(inner rpcbench.Server) rpcbench.Server {
		return Server{Server: inner, OnClose: closing(inner.Close)}
	})
}
