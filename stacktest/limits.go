package stacktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
)

// limits: the server ends a connection that is idle for IdleTimeout, and one that sends no request within HeaderTimeout.
func limits(s subject) error {
	const short = 250 * time.Millisecond
	patience := s.patience()
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

// headerLimit: the server takes headers of a quarter of MaxHeader, and refuses those of twice as much as MaxHeader.
func headerLimit(s subject) error {
	for _, size := range []int{rpcbench.MaxHeader / 4, 2 * rpcbench.MaxHeader} {
		h := users.Headers()
		h.Authorization = "Bearer " + strings.Repeat("t", size)
		f, err := s.start(rpcbench.Config{Headers: h}) // which makes a call
		if errors.Is(err, errors.ErrUnsupported) {
			return skipped("the protocol has no headers")
		}
		if err == nil {
			err = f.Close()
		}
		switch {
		case size < rpcbench.MaxHeader && err != nil:
			return fmt.Errorf("headers of %d bytes are refused, MaxHeader is %d: %w", size, rpcbench.MaxHeader, err)
		case size > rpcbench.MaxHeader && err == nil:
			return fmt.Errorf("headers of %d bytes are taken, MaxHeader is %d", size, rpcbench.MaxHeader)
		}
	}
	return nil
}

// holdCall begins a call whose request the server is not given. It returns a check, to be made once, that gives the request to the
// server when the call has waited for as long as this: the call must succeed then, and must not have ended by itself.
func holdCall(s subject, wait time.Duration) func() error {
	failed := func(err error) func() error { return func() error { return err } }
	gate := new(netwrap.Gate)
	f, err := s.start(rpcbench.Config{WrapServer: gate.Wrap})
	if err != nil {
		return failed(err)
	}
	u := users.Sample(0, 0)
	call, err := prepareOne(f, u)
	if err != nil {
		return failed(errors.Join(err, f.Close()))
	}
	began := time.Now()
	result := underway(context.Background(), gate, s.marker(u), func() error { return call(context.Background()) })
	return sync.OnceValue(func() error {
		defer f.Close()
		select {
		case err := <-result:
			return fmt.Errorf("a call without a deadline ended before the server had its request: the client has a timeout of its own: %v", err)
		case <-time.After(wait - time.Since(began)):
		}
		gate.Release()
		if err := within(s.patience(), f, func() error { return <-result }); err != nil {
			return fmt.Errorf("a call that was answered after %v: %w", wait, err)
		}
		return nil
	})
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
