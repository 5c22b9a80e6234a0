package rpcbench

import (
	"net"
	"sync/atomic"
)

// listener counts the connections it accepts.
type listener struct {
	net.Listener
	Wrap     func(net.Conn) net.Conn // wraps each accepted connection unless nil
	Accepted atomic.Int64            // connections that Accept has returned
	Failed   func(error)             // is told why Accept fails, unless nil
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		if l.Wrap != nil {
			c = l.Wrap(c)
		}
		l.Accepted.Add(1) // who sees the number finds the connection wrapped
	} else if l.Failed != nil {
		l.Failed(err)
	}
	return c, err
}
