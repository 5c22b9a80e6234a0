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
)

// Config is what surrounds a run and is the same for every stack. The zero value is one bare connection in clear.
type Config struct {
	Addr  string // where to listen; "" is 127.0.0.1:0, any free port of the loopback interface
	Conns int    // connections the client holds; 0 is 1
	TLS   bool   // TLS 1.3, with a certificate made for this fixture and verified by its client

	Headers *Headers // that the client adds to its calls; nil: none. Not every protocol has headers: see ClientConfig

	// IdleTimeout and HeaderTimeout are the server's: see ServerConfig.
	IdleTimeout, HeaderTimeout time.Duration

	// WrapServer and WrapClient see every connection beneath TLS: to count, record, delay. nil leaves it bare.
	WrapServer, WrapClient func(net.Conn) net.Conn

	// Server is the host:port of a server of the stack that runs elsewhere. Start then only dials. The server has settings
	// of its own, so Addr, WrapServer and the timeouts must be zero. "" is a server in this process.
	Server string
	// Certificate is the certificate of Server, in DER. With TLS the client trusts this certificate alone.
	Certificate []byte
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

// maxBursts bounds the bursts of calls that open a fixture's connections: many times what any stack took.
const maxBursts = 1000

// Start serves stack as config says, dials it, and calls until the declared connections are open at both ends and every
// reply has been right. An error names the stack and the step (listen, server, dial, connect), and leaves
// nothing running. ctx bounds the start alone; without a deadline of its own it has 10 s. A start that ends with more connections than declared is tried again: on a
// busy machine net/http gives up a connection whose writer was not scheduled within 50 ms of the reply, and dials another.
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
	startLimit = 10 * time.Second
)

var errTooMany = errors.New("more connections than declared")

func start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	fail := func(step string, err error) (*Fixture, error) {
		return nil, fmt.Errorf("rpcbench: %s: %s: %w", stack.Name, step, err)
	}
	conns := max(config.Conns, 1)
	if h := config.Headers; h != nil && (h.UserAgent == "" || h.Authorization == "" || h.Traceparent == nil) {
		return fail("headers", errors.New("Config.Headers needs a UserAgent, an Authorization and a Traceparent"))
	}
	f := &Fixture{Stack: stack, Addr: config.Server}
	f.stop = sync.OnceValue(f.stopAll)
	certificate := config.Certificate
	if config.Server == "" {
		var err error
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
		var err error
		if clientTLS, err = trusting(certificate); err != nil {
			return fail("certificate", also(err, f.Close()))
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
	client, err := stack.Dial(f.dial)
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
		dialer := new(net.Dialer)
		if f.dialled.Load() == 0 {
			dialer.Deadline = f.readyBy // a machine that is switched off refuses nothing
		}
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if f.server == nil && !f.keep(c) {
			return nil, net.ErrClosed
		}
		if wrap != nil {
			c = wrap(c)
		}
		f.dialled.Add(1)
		return c, nil
	}
}

// keep puts a connection into the ring. It closes the connection and returns false if the fixture is closed.
func (f *Fixture) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close()
		return false
	}
	f.newest[f.next] = c
	f.next = (f.next + 1) % len(f.newest)
	return true
}

// Dial makes another client of the fixture's server, as Client was made but with one connection. Who calls it closes it,
// before the fixture.
func (f *Fixture) Dial() (Client, error) {
	config := f.dial
	config.Conns = 1
	return f.Stack.Dial(config)
}

// Accepted returns how many connections the server's own listener has accepted. A server elsewhere can't be asked: for
// that one it returns how many connections its client has opened.
func (f *Fixture) Accepted() int64 {
	if f.server == nil {
		return f.dialled.Load()
	}
	return f.server.listener.Accepted()
}

// TLS returns what the client's newest handshake agreed on; false in clear.
func (f *Fixture) TLS() (tls.ConnectionState, bool) {
	if s := f.tls.Load(); s != nil {
		return *s, true
	}
	return tls.ConnectionState{}, false
}

// Close closes the client, then the server, and returns when serving has ended. A server elsewhere goes on; the connections
// to it are closed. A second call does nothing and returns the first one's error. Close may be called while a call hangs:
// that call then fails.
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
