package testkit

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

// WithServer is a stack whose server is changed.
func WithServer(s rpcbench.Stack, change func(rpcbench.Server) rpcbench.Server) rpcbench.Stack {
	server := s.Server
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		inner, err := server(config)
		if err != nil {
			return nil, err
		}
		return change(inner), nil
	}
	return s
}

// WithClient is a stack whose client is changed.
func WithClient(s rpcbench.Stack, change func(rpcbench.Users) rpcbench.Client) rpcbench.Stack {
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		inner, err := dial(config)
		if err != nil {
			return nil, err
		}
		return change(inner.(rpcbench.Users)), nil
	}
	return s
}

// WithMessages is a stack of a method of one's own whose client says something else of the messages.
func WithMessages(s rpcbench.Stack, change func(requests, replies *rpcbench.Messages)) rpcbench.Stack {
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		if err != nil {
			return nil, err
		}
		said := messages{MethodClient: c.(rpcbench.MethodClient)}
		said.requests, said.replies = said.MethodClient.Messages()
		change(&said.requests, &said.replies)
		return said, nil
	}
	return s
}

type messages struct {
	rpcbench.MethodClient
	requests, replies rpcbench.Messages
}

func (m messages) Messages() (requests, replies rpcbench.Messages) { return m.requests, m.replies }

// Dialling is a stack whose client is told something else.
func Dialling(s rpcbench.Stack, change func(*rpcbench.ClientConfig)) rpcbench.Stack {
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		change(&config)
		return dial(config)
	}
	return s
}

// Serve serves on an address that it returns, until the test ends.
func Serve(t testing.TB, s rpcbench.Server) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		<-served
	})
	return ln.Addr().String()
}

// Server is a server with other methods where they are not nil.
type Server struct {
	rpcbench.Server
	OnServe func(net.Listener) error
	OnClose func() error
}

// Serve is OnServe.
func (s Server) Serve(ln net.Listener) error {
	if s.OnServe != nil {
		return s.OnServe(ln)
	}
	return s.Server.Serve(ln)
}

// Close is OnClose.
func (s Server) Close() error {
	if s.OnClose != nil {
		return s.OnClose()
	}
	return s.Server.Close()
}

// Client is a client with other methods where they are not nil.
type Client struct {
	rpcbench.Users
	OnPrepare func(rpcbench.User) (rpcbench.Call, error)
	OnClose   func() error
}

// Around is a client with something around its calls, but for those that connect the fixture.
func Around(c rpcbench.Users, change func(rpcbench.User, rpcbench.Call) rpcbench.Call) rpcbench.Client {
	return Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
		call, err := c.PrepareUser(u)
		if err != nil || Connects(u) {
			return call, err
		}
		return change(u, call), nil
	}}
}

// Connects tells whether the call of a user connects a fixture.
func Connects(u rpcbench.User) bool { return len(u.Name) == len("Anna1000") }

// Prepare is OnPrepare of a sample.
func (c Client) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

// PrepareUser is OnPrepare.
func (c Client) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	if c.OnPrepare != nil {
		return c.OnPrepare(u)
	}
	return c.Users.PrepareUser(u)
}

// Close is OnClose.
func (c Client) Close() error {
	if c.OnClose != nil {
		return c.OnClose()
	}
	return c.Users.Close()
}

// Listener wraps each connection that it accepts.
type Listener struct {
	net.Listener
	Wrap func(net.Conn) net.Conn
}

func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		c = l.Wrap(c)
	}
	return c, err
}

// Watched counts the calls of a stack, those under way, and its clients. A call takes so long at least.
type Watched struct {
	Made, Most, Clients atomic.Int64
	Takes               time.Duration

	inside atomic.Int64
}

// Stack is s, whose calls are watched.
func (w *Watched) Stack(s rpcbench.Stack) rpcbench.Stack {
	return WithClient(s, func(c rpcbench.Users) rpcbench.Client {
		w.Clients.Add(1)
		return Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			call, err := c.PrepareUser(u)
			return func(ctx context.Context) error {
				w.Made.Add(1)
				n := w.inside.Add(1)
				defer w.inside.Add(-1)
				for most := w.Most.Load(); n > most && !w.Most.CompareAndSwap(most, n); most = w.Most.Load() {
				}
				if w.Takes > 0 {
					<-time.After(w.Takes)
				}
				return call(ctx)
			}, err
		}, OnClose: func() error {
			w.Clients.Add(-1)
			return c.Close()
		}}
	})
}
