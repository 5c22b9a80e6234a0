package rpcbench

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// ServeConns makes a Server that calls handle for each connection, for protocols such as net/rpc's. With config.TLS,
// handle gets a connection over TLS. The Server closes the connection when handle returns.
//
// Close closes all connections. Serve returns when every handle has returned. After a temporary error of Accept, such
// as too many open files, Serve tries again in 5 ms to 1 s, as net/http does. After any other error Serve closes all
// connections and returns that error.
func ServeConns(config ServerConfig, handle func(net.Conn)) Server {
	s := &connServer{tls: config.TLS, handle: handle}
	s.closed, s.cancel = context.WithCancel(context.Background())
	return s
}

type connServer struct {
	tls    *tls.Config
	handle func(net.Conn)
	closed context.Context
	cancel context.CancelFunc
}

func (s *connServer) Serve(ln net.Listener) error {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer context.AfterFunc(s.closed, func() { _ = ln.Close() })()
	var pause time.Duration
	for {
		bare, err := ln.Accept()
		//lint:ignore SA1019 net/http's own rule
		if temporary, ok := errors.AsType[net.Error](err); ok && temporary.Temporary() {
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
				continue
			case <-s.closed.Done():
			}
		}
		if err != nil {
			s.cancel()
			return err
		}
		pause = 0
		handlers.Go(func() {
			defer context.AfterFunc(s.closed, func() { _ = bare.Close() })()
			defer bare.Close()
			conn := bare
			if s.tls != nil {
				conn = tls.Server(bare, s.tls)
			}
			s.handle(conn)
		})
	}
}

func (s *connServer) Close() error {
	s.cancel()
	return nil
}
