package stacktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/rpcbench/rpcbench"
)

// limits: the server ends a connection that is idle for IdleTimeout, and one that sends no request within HeaderTimeout.
func limits(s subject) error {
	const short = 250 * time.Millisecond
	patience := s.limit / 4
	ended := make(chan struct{}, 1)
	idle, err := s.start(rpcbench.Config{IdleTimeout: short, WrapServer: func(c net.Conn) net.Conn { return closing{c, ended} }})
	if err != nil {
		return err
	}
	defer idle.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		return fmt.Errorf("with an IdleTimeout of %v the server has kept an idle connection for %v", short, patience)
	}

	silent, err := s.start(rpcbench.Config{HeaderTimeout: short})
	if err != nil {
		return err
	}
	defer silent.Close()
	conn, err := net.DialTimeout("tcp", silent.Addr, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("with a HeaderTimeout of %v the server has kept a connection without a request for %v", short, patience)
	}
	return nil
}

// closing is a server's connection that says when the server closes it.
type closing struct {
	net.Conn
	ended chan<- struct{}
}

func (c closing) Close() error {
	select {
	case c.ended <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}
