package rpcbench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench/internal/netwrap"
)

// Config is what surrounds a run and is the same for every stack. The zero value is one bare connection in clear.
type Config struct {
	Addr  string // where to listen; "" is 127.0.0.1:0, any free port of the loopback interface
	Conns int    // connections the client holds; 0 is 1
	TLS   bool   // TLS 1.3, with a certificate made for this fixture and verified by its client

	// WrapServer and WrapClient see every connection beneath TLS: to count, record, delay. nil leaves it bare.
	WrapServer, WrapClient func(net.Conn) net.Conn
}

// Fixture is a running server and a client that has called it.
type Fixture struct {
	Stack  Stack
	Addr   string // host:port the server listens on
	Client Client

	listener *netwrap.Listener
	server   Server
	served   chan struct{} // closed when Serve has returned
	serveErr error         // of Serve; read after served
	stopping atomic.Bool
	stop     func() error
	tls      atomic.Pointer[tls.ConnectionState] // of the newest handshake
	shaken   atomic.Int64                        // handshakes the client has completed
	dialled  atomic.Int64                        // connections the client has been given
}

// serveGrace is for a Serve that fails: it closes its listener, and so lets calls fail, before it returns its error.
const serveGrace = 100 * time.Millisecond

// maxBursts bounds the bursts of calls that open a fixture's connections: many times what any stack took.
const maxBursts = 1000

// Start serves stack as config says, dials it, and calls until the declared connections are open at both ends and every
// reply has been right. An error names the stack and the step (listen, server, dial, connect), and leaves
// nothing running; ctx bounds the start alone. A start that ends with more connections than declared is tried again: on a
// busy machine net/http gives up a connection whose writer was not scheduled within 50 ms of the reply, and dials another.
func Start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	for attempt := 1; ; attempt++ {
		f, err := start(ctx, stack, config)
		if !errors.Is(err, errTooMany) || attempt == maxStarts {
			return f, err
		}
	}
}

const maxStarts = 3

var errTooMany = errors.New("more connections than declared")

func start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	fail := func(step string, err error) (*Fixture, error) {
		return nil, fmt.Errorf("rpcbench: %s: %s: %w", stack.Name, step, err)
	}
	conns := max(config.Conns, 1)
	addr := config.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	f := &Fixture{Stack: stack, served: make(chan struct{})}
	f.stop = sync.OnceValue(f.stopAll)

	var serverTLS, clientTLS *tls.Config
	if config.TLS {
		var err error
		if serverTLS, clientTLS, err = selfSigned(); err != nil {
			return fail("certificate", err)
		}
		clientTLS.VerifyConnection = func(s tls.ConnectionState) error {
			f.tls.Store(&s)
			f.shaken.Add(1)
			return nil
		}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fail("listen", err)
	}
	f.listener = &netwrap.Listener{Listener: ln, Wrap: config.WrapServer}
	f.Addr = ln.Addr().String()
	if f.server, err = stack.Server(ServerConfig{TLS: serverTLS}); err != nil {
		return fail("server", also(err, ln.Close()))
	}
	go func() {
		f.serveErr = f.server.Serve(f.listener)
		close(f.served)
		if !f.stopping.Load() { // or calls would wait for an answer
			_, _ = f.listener.Close(), f.server.Close()
		}
	}()
	client, err := stack.Dial(ClientConfig{Addr: f.Addr, DialContext: f.dialer(config.WrapClient), TLS: clientTLS, Conns: conns})
	if err != nil {
		return fail("dial", also(err, f.Close()))
	}
	f.Client = client
	if err := f.connect(ctx, conns); err != nil {
		return fail("connect", also(err, f.Close()))
	}
	return f, nil
}

// connect calls from conns goroutines at once until as many connections are accepted. One burst may not do: a call that
// ends early gives its connection to the next. The calls carry no deadline of ctx's, which would leave its trace in
// HTTP/2's header table; when ctx ends, the fixture is stopped under them.
func (f *Fixture) connect(ctx context.Context, conns int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	release := context.AfterFunc(ctx, func() { _ = f.stop() })
	defer release()
	calls := make([]Call, conns)
	for i := range calls {
		var err error
		if calls[i], err = f.Client.Prepare(connectUser(i)); err != nil {
			return err
		}
	}
	for range maxBursts {
		if err := burst(calls); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			select {
			case <-f.served:
				if !f.stopping.Load() {
					err = also(err, fmt.Errorf("serve: %w", f.serveErr))
				}
			case <-time.After(serveGrace):
			}
			return err
		}
		accepted := f.Accepted()
		if accepted > int64(conns) {
			return fmt.Errorf("%w: the server accepted %d connections, %d are declared", errTooMany, accepted, conns)
		}
		// A server accepts before its client has the connection in hand: wait for both ends, and for TLS.
		if min(accepted, f.dialled.Load()) == int64(conns) && (f.tls.Load() == nil || f.shaken.Load() >= accepted) {
			if !release() { // ctx has ended, and the fixture with it
				return ctx.Err()
			}
			return nil
		}
	}
	return fmt.Errorf("the server accepted %d connections and the client dialled %d in %d bursts of calls, %d are declared",
		f.Accepted(), f.dialled.Load(), maxBursts, conns)
}

// also joins two errors, either of which may be nil, on one line.
func also(first, second error) error {
	switch {
	case second == nil:
		return first
	case first == nil:
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

func connectUser(i int) User {
	return User{Email: "connect" + strconv.Itoa(i) + "@example.com", Name: "connect", Password: "connect"}
}

// burst makes every call once, all at a time, and returns the first error.
func burst(calls []Call) error {
	errs := make(chan error, len(calls))
	for _, call := range calls {
		go func() { errs <- call(context.Background()) }()
	}
	var first error
	for range calls {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (f *Fixture) dialer(wrap func(net.Conn) net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if wrap != nil {
			c = wrap(c)
		}
		f.dialled.Add(1)
		return c, nil
	}
}

// Accepted returns how many connections the fixture's own listener has accepted.
func (f *Fixture) Accepted() int64 { return f.listener.Accepted() }

// TLS returns what the client's newest handshake agreed on; false in clear.
func (f *Fixture) TLS() (tls.ConnectionState, bool) {
	if s := f.tls.Load(); s != nil {
		return *s, true
	}
	return tls.ConnectionState{}, false
}

// Close closes the client, then the server, and returns when serving has ended. A second call does nothing and returns
// the first one's error. It may be called while a call hangs: that call then fails.
func (f *Fixture) Close() error { return f.stop() }

// closeTimeout bounds the wait for Serve to return.
const closeTimeout = 10 * time.Second

func (f *Fixture) stopAll() error {
	f.stopping.Store(true)
	var err error
	if f.Client != nil {
		err = f.Client.Close()
	}
	err = also(err, f.server.Close())
	if e := f.listener.Close(); !errors.Is(e, net.ErrClosed) {
		err = also(err, e)
	}
	select {
	case <-f.served:
	case <-time.After(closeTimeout):
		err = also(err, fmt.Errorf("rpcbench: %s: close: Serve has not returned after %v", f.Stack.Name, closeTimeout))
	}
	return err
}
