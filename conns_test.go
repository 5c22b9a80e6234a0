package rpcbench_test

import (
	"errors"
	"flag"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/rawtcp"
)

// tooManyFiles is a temporary error, as net/http takes it.
type tooManyFiles struct{}

func (tooManyFiles) Error() string   { return "accept: too many open files" }
func (tooManyFiles) Timeout() bool   { return false }
func (tooManyFiles) Temporary() bool { return true }

// failing is a listener whose Accept fails as often as it has errors, one before each connection.
type failing struct {
	net.Listener
	errs chan error
}

func (l failing) Accept() (net.Conn, error) {
	select {
	case err := <-l.errs:
		return nil, err
	default:
		return l.Listener.Accept()
	}
}

func TestServeConnsAcceptsAgainAfterATemporaryError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := failing{ln, make(chan error, 10)}
	for range 3 {
		l.errs <- tooManyFiles{}
	}
	s := rpcbench.ServeConns(rpcbench.ServerConfig{}, func(c net.Conn) { _, _ = io.Copy(c, c) })
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	echo := func() error {
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	require.NoError(t, echo())

	l.errs <- errors.New("the network is gone")
	second, err := net.Dial("tcp", ln.Addr().String()) // Accept had begun before
	require.NoError(t, err)
	defer second.Close()
	select {
	case err := <-served:
		require.EqualError(t, err, "the network is gone")
	case <-time.After(10 * time.Second):
		require.Fail(t, "Serve waits for connections that nobody closes")
	}
	require.Error(t, echo(), "its connections are closed")
	require.NoError(t, s.Close())
}

// TestStartIsBounded: a server that never answers is an error with the stack and the step, though the caller has set no limit.
func TestStartIsBounded(t *testing.T) {
	if flag.Lookup("long").Value.String() != "true" {
		t.Skip("takes ten seconds: -long")
	}
	deaf := rawtcp.New()
	deaf.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return rpcbench.ServeConns(config, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), nil
	}
	_, err := rpcbench.Start(t.Context(), deaf, rpcbench.Config{})
	require.EqualError(t, err, "rpcbench: rawtcp: connect: not ready after 10s")
}
