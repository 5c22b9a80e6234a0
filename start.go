package rpcbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config has the settings of a run that are the same for every stack. The zero value is one bare connection in clear.
type Config struct {
	Addr  string // where to listen; "" is 127.0.0.1:0, any free port of the loopback interface
	Conns int    // connections the client holds; 0 is 1
	TLS   bool   // TLS 1.3, with a certificate made for this fixture and verified by its client

	Headers *Headers // see ClientConfig

	IdleTimeout, HeaderTimeout time.Duration // see ServerConfig

	// WrapServer and WrapClient see every connection beneath TLS: to count, record, delay. nil leaves it bare.
	WrapServer, WrapClient func(net.Conn) net.Conn

	// Server is the host:port of a server of the stack that runs elsewhere; Addr, WrapServer and the timeouts must then be
	// zero. "" is a server in this process.
	Server      string
	Certificate []byte // of Server, in DER; with TLS the client trusts no other
}

// Fixture is a running server and a client that has called it.
type Fixture struct {
	Stack  Stack
	Addr   string // host:port the server listens on
	Client Client

	server  *localServer // nil: elsewhere
	dial    ClientConfig // of Client
	stop    func() error
	tls     atomic.Pointer[tls.ConnectionState] // of the newest handshake
	shaken  atomic.Int64                        // handshakes the client has completed
	dialled atomic.Int64                        // connections the client has been given

	// With a server elsewhere alone:
	mu      sync.Mutex
	newest  []net.Conn // a ring of dialled connections, more than are open at a time
	next    int        // place in the ring
	closed  bool
	readyBy time.Time // for the first connection
}

// Start serves stack as config says, dials it, and calls until the declared connections are open at both ends and every
// reply has been right. An error names the stack and the step (listen, server, dial, connect), and leaves nothing running.
// ctx bounds the start alone; without a deadline of its own it has 10 s.
//
// A start that ends with more connections than declared is tried again: on a busy machine net/http gives up a connection whose
// writer was not scheduled within 50 ms of the reply, and dials another.
func Start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
		defer cancel()
	}
	for attempt := 1; ; attempt++ {
		f, err := start(ctx, stack, config)
		if !errors.Is(err, errTooMany) || attempt == maxStarts {
			return f, err
		}
	}
}

const (
	maxStarts  = 3
	maxBursts  = 1000 // of calls that open a fixture's connections: many times what any stack took
	startLimit = 10 * time.Second
)

var errTooMany = errors.New("more connections than declared")

func start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	f := &Fixture{Stack: stack, Addr: config.Server}
	f.stop = sync.OnceValue(f.stopAll)
	fail := func(step string, err error) (*Fixture, error) {
		return nil, fmt.Errorf("rpcbench: %s: %s: %w", stack.Name, step, also(err, f.stop()))
	}
	if h := config.Headers; h != nil && (h.UserAgent == "" || h.Authorization == "" || h.Traceparent == nil) {
		return fail("headers", errors.New("Config.Headers needs a UserAgent, an Authorization and a Traceparent"))
	}
	conns, certificate := max(config.Conns, 1), config.Certificate
	var err error
	if config.Server == "" {
		if f.server, err = serve(ctx, stack, config); err != nil {
			return nil, fmt.Errorf("rpcbench: %s: %w", stack.Name, err)
		}
		f.Addr, certificate = f.server.listener.Addr().String(), f.server.certificate
	} else {
		if config.Addr != "" || config.WrapServer != nil || config.IdleTimeout != 0 || config.HeaderTimeout != 0 {
			return fail("server elsewhere", errors.New("the Addr, WrapServer and timeouts of Config are for a server in this process"))
		}
		f.newest = make([]net.Conn, max(64, 2*conns))
		f.readyBy, _ = ctx.Deadline()
	}

	var clientTLS *tls.Config
	if config.TLS {
		if clientTLS, err = trusting(certificate); err != nil {
			return fail("certificate", err)
		}
		clientTLS.VerifyConnection = func(s tls.ConnectionState) error {
			f.tls.Store(&s)
			f.shaken.Add(1)
			return nil
		}
	}
	f.dial = ClientConfig{
		Addr: f.Addr, DialContext: f.dialer(config.WrapClient), TLS: clientTLS, Conns: conns, Headers: config.Headers,
	}
	if f.Client, err = stack.Dial(f.dial); err != nil {
		f.Client = nil // or a typed nil would be closed
		return fail("dial", err)
	}
	if err = f.connect(ctx, conns); err != nil {
		return fail("connect", err)
	}
	return f, nil
}

// connect calls from conns goroutines at once until as many connections are accepted. One burst may not do: a call that
// ends early gives its connection to the next. A deadline of the calls would leave its trace in HTTP/2's header table: when
// ctx ends, the fixture is stopped under them.
func (f *Fixture) connect(ctx context.Context, conns int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	release := context.AfterFunc(ctx, func() { _ = f.stop() })
	defer release()
	calls := make([]Call, conns)
	for i := range calls {
		var err error
		u := User{Email: fmt.Sprintf("connect%d@example.com", i), Name: "connect", Password: "connect"}
		if calls[i], err = f.Client.Prepare(u); err != nil {
			return err
		}
	}
	for range maxBursts {
		if err := burst(calls); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if f.server != nil {
				err = also(err, f.server.failure())
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
				return context.Cause(ctx)
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

// burst makes every call once, all at a time, and returns the first error.
func burst(calls []Call) error {
	errs := make(chan error, len(calls))
	for _, call := range calls {
		go func() { errs <- call(context.Background()) }()
	}
	var first error
	for range calls {
		first = cmp.Or(first, <-errs)
	}
	return first
}

func (f *Fixture) dialer(wrap func(net.Conn) net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialer := new(net.Dialer)
		if f.dialled.Load() == 0 {
			dialer.Deadline = f.readyBy // a machine that is switched off refuses nothing
		}
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if f.server == nil && !f.keep(c) {
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
		if wrap != nil {
			c = wrap(c)
		}
		f.dialled.Add(1)
		return c, nil
	}
}

// keep puts a connection into the ring, unless the fixture is closed.
func (f *Fixture) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.newest[f.next] = c
		f.next = (f.next + 1) % len(f.newest)
	}
	return !f.closed
}

// Dial makes another client of the fixture's server, with one connection. The caller closes it before the fixture.
func (f *Fixture) Dial() (Client, error) {
	config := f.dial
	config.Conns = 1
	return f.Stack.Dial(config)
}

// Accepted returns how many connections the server's own listener has accepted; of a server elsewhere, how many its client
// has opened.
func (f *Fixture) Accepted() int64 {
	if f.server == nil {
		return f.dialled.Load()
	}
	return f.server.listener.Accepted.Load()
}

// TLS returns what the client's newest handshake agreed on; false in clear.
func (f *Fixture) TLS() (tls.ConnectionState, bool) {
	s := f.tls.Load()
	return *cmp.Or(s, new(tls.ConnectionState)), s != nil
}

// Close closes the client, then the server, and returns when serving has ended. A server elsewhere goes on. A call that hangs
// meanwhile fails. A second Close does nothing and returns the first one's error.
func (f *Fixture) Close() error { return f.stop() }

func (f *Fixture) stopAll() error {
	var err error
	if f.Client != nil {
		err = f.Client.Close()
	}
	if f.server != nil {
		return also(err, f.server.stop())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.newest {
		if c != nil {
			_ = c.Close() // or a call that hangs would wait for its reply; most are closed already
		}
	}
	return err
}
