package rpcbench

import (
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
	addr := config.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	s := &localServer{name: stack.Name, served: make(chan struct{})}
	var serverTLS *tls.Config
	if config.TLS {
		var err error
		if serverTLS, err = selfSigned(); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		s.certificate = serverTLS.Certificates[0].Certificate[0]
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.listener = &relay.Listener{Listener: ln, Wrap: config.WrapServer}
	if s.server, err = stack.Server(ServerConfig{TLS: serverTLS, IdleTimeout: config.IdleTimeout, HeaderTimeout: config.HeaderTimeout}); err != nil {
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

// serveGrace is for a Serve that fails: it closes its listener, and so lets calls fail, before it returns its error.
const serveGrace = 100 * time.Millisecond

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

// closeTimeout bounds the wait for Serve to return.
const closeTimeout = 10 * time.Second

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
