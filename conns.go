package rpcbench

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// ServeConns makes a Server for a protocol that is served connection by connection, such as net/rpc's. handle owns the
// connection, above TLS if config asks for it, and returns when it is done with it; Close closes all of them, and Serve
// returns when every handle has.
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
	for {
		bare, err := ln.Accept()
		if err != nil {
			return err
		}
		handlers.Go(func() {
			defer context.AfterFunc(s.closed, func() { _ = bare.Close() })()
			defer bare.Close()
			if s.tls != nil {
				s.handle(tls.Server(bare, s.tls))
			} else {
				s.handle(bare)
			}
		})
	}
}

func (s *connServer) Close() error {
	s.cancel()
	return nil
}
