package rpcbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench/internal/relay"
)

// serve runs the server of stack in this process. An error names the step (certificate, listen, server), to which Start
// adds the stack, and leaves nothing running; ctx bounds the start alone.
func serve(ctx context.Context, stack Stack, config Config) (*localServer, error) {
	s := &localServer{name: stack.Name, served: make(chan struct{})}
	var serverTLS *tls.Config
	if config.TLS {
		var err error
		if serverTLS, err = selfSigned(); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		s.certificate = serverTLS.Certificates[0].Certificate[0]
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(config.Addr, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.listener = &relay.Listener{Listener: ln, Wrap: config.WrapServer}
	s.server, err = stack.Server(ServerConfig{serverTLS, config.IdleTimeout, config.HeaderTimeout})
	if err != nil {
		return nil, fmt.Errorf("server: %w", also(err, ln.Close()))
	}
	go func() {
		s.serveErr = s.server.Serve(s.listener)
		close(s.served)
		if !s.stopping.Load() { // or calls would wait for an answer
			_, _ = s.listener.Close(), s.server.Close()
		}
	}()
	return s, nil
}

type localServer struct {
	name        string // of the stack
	certificate []byte
	listener    *relay.Listener
	server      Server
	served      chan struct{} // closed when Serve has returned
	serveErr    error         // of Serve; read after served
	stopping    atomic.Bool
}

const (
	serveGrace   = 100 * time.Millisecond // for a Serve that fails: calls may fail before it returns its error
	closeTimeout = 10 * time.Second       // for Serve to return after Close
)

// failure is why Serve has ended by itself; nil if it has not.
func (s *localServer) failure() error {
	select {
	case <-s.served:
		if !s.stopping.Load() {
			return fmt.Errorf("serve: %w", s.serveErr)
		}
	case <-time.After(serveGrace):
	}
	return nil
}

// stop ends serving and returns when Serve has returned.
func (s *localServer) stop() error {
	s.stopping.Store(true)
	err := s.server.Close()
	if e := s.listener.Close(); !errors.Is(e, net.ErrClosed) {
		err = also(err, e)
	}
	select {
	case <-s.served:
	case <-time.After(closeTimeout):
		err = also(err, fmt.Errorf("rpcbench: %s: close: Serve has not returned after %v", s.name, closeTimeout))
	}
	return err
}
