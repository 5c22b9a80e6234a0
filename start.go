package rpcbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// Config has the settings of a fixture that are the same for every stack. The zero value is one connection without TLS.
type Config struct {
	Addr    string   // where to listen; "" is 127.0.0.1:0, any free port of the loopback interface, or a new socket
	Conns   int      // connections the client holds; 0 is 1: see ClientConfig
	Unix    bool     // use a Unix socket; Addr and Remote are then paths
	TLS     bool     // use TLS 1.3 with a certificate made for this fixture, which its client verifies
	Headers *Headers // see ClientConfig

	IdleTimeout, HeaderTimeout, Wait time.Duration // see ServerConfig

	// WrapServer and WrapClient replace each connection, beneath TLS, by the one that they return, which may count bytes,
	// record or delay. With nil the connection stays as it is.
	WrapServer, WrapClient func(net.Conn) net.Conn

	// Remote is the host:port of a server of the stack that runs elsewhere. Addr, WrapServer, Wait and the timeouts must
	// then be zero. "" starts a server in this process.
	Remote      string
	Certificate []byte // of Remote, in DER; with TLS the client trusts this one alone
}

// Fixture is a running server and a client that is connected to it.
type Fixture struct {
	Stack  Stack
	Addr   string // host:port of the server, or the path of its Unix socket
	Client Client // As finds what else it can do

	network string // tcp or unix
	folder  string // of a socket that Start has made
	stop    func() error
	closing atomic.Bool
	failed  atomic.Pointer[error] // the newest error of dialling or accepting, before closing began
	dials   dials
	local   local
}

// dials are the connections of a fixture's client.
type dials struct {
	config  ClientConfig // of the client
	wrap    func(net.Conn) net.Conn
	readyBy time.Time                           // deadline of the first: a machine that is switched off refuses nothing
	dialled atomic.Int64                        // so far
	tls     atomic.Pointer[tls.ConnectionState] // of the newest handshake
	shaken  atomic.Int64                        // handshakes that are complete
	newest  []atomic.Pointer[net.Conn]          // to a server elsewhere, a ring of them: more than are open at a time
	meeting atomic.Pointer[meeting]             // of the first dials; nil when it is over
}

// meeting is where a dial waits until all declared connections are dialled. On a machine with many cores a call would
// else end, and leave its connection to the next, before so many have begun.
type meeting struct {
	full chan struct{}
	end  func()
}

// local is a fixture's server in this process.
type local struct {
	listener *listener // nil: the server is elsewhere
	server   Server
	served   chan struct{} // closed when Serve has returned
	err      error         // of Serve; read after served
	handled  *handled      // calls
}

const (
	connecting   = 1000 // index of the first call: rows make those below 100
	maxStarts    = 3
	maxBursts    = 1000 // of calls, to open the connections: many times what any stack took
	startLimit   = 10 * time.Second
	serveGrace   = 100 * time.Millisecond // for a Serve that fails: calls may fail before it returns its error
	meetingLimit = 200 * time.Millisecond // for a stack that dials one connection after the other
	closeTimeout = 10 * time.Second       // for Serve to return after Close
)

// Start starts a server and a client of stack. It makes calls until config.Conns connections are open at both ends and
// every reply was right. For a stack with Traits.Reconnects it makes config.Conns calls at once, and the stack opens as
// many connections as it needs. An error names the stack and the step (listen, server, dial, connect), and nothing is
// left running. ctx bounds only the start; without a deadline in ctx, Start takes at most 10 s.
//
// Goroutines that the server and the client start have the pprof label side=server or side=client. The caller's own
// goroutine keeps the labels of ctx: make calls within pprof.Do to label them.
func Start(ctx context.Context, stack Stack, config Config) (*Fixture, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
		defer cancel()
	}
	for attempt := 1; ; attempt++ {
		f := &Fixture{Stack: stack, Addr: config.Remote, network: "tcp"}
		if config.Unix {
			f.network = "unix"
		}
		f.stop = sync.OnceValue(f.stopAll)
		step, err := f.start(ctx, config)
		if err == nil {
			return f, nil
		}
		// On a busy machine net/http gives up a connection whose writer was not scheduled within 50 ms of the reply, and
		// dials another.
		tooMany := f.Accepted() > int64(f.dials.config.Conns)
		_ = f.stop()
		if !tooMany || attempt == maxStarts {
			return nil, fmt.Errorf("%s: %s: %w", cmp.Or(stack.Name, "no name"), step, err)
		}
	}
}

// start is one attempt. It returns the step that failed.
func (f *Fixture) start(ctx context.Context, config Config) (step string, err error) {
	if f.Stack.Dial == nil || f.Stack.Server == nil && config.Remote == "" {
		return "stack", errors.New("a Stack needs a Server and a Dial")
	}
	if config.Conns < 0 {
		return "connections", fmt.Errorf("Config.Conns is %d: give 1 or more, or 0 for 1", config.Conns)
	}
	if config.Wait < 0 {
		return "wait", fmt.Errorf("Config.Wait is %v: give 0 or more", config.Wait)
	}
	if h := config.Headers; h != nil && (h.UserAgent == "" || h.Authorization == "" || h.Traceparent == nil) {
		return "headers", errors.New("Config.Headers needs a UserAgent, an Authorization and a Traceparent")
	}
	if config.Remote == "" {
		pprof.Do(ctx, pprof.Labels("side", "server"), func(context.Context) { step, err = f.serve(ctx, &config) })
		if err != nil {
			return step, err
		}
	} else {
		if config.Addr != "" || config.WrapServer != nil || config.IdleTimeout != 0 || config.HeaderTimeout != 0 ||
			config.Wait != 0 {
			const refused = "the Addr, WrapServer, Wait and timeouts of Config are for a server in this process"
			return "server elsewhere", errors.New(refused)
		}
		f.dials.newest = make([]atomic.Pointer[net.Conn], max(64, 2*config.Conns))
	}
	f.dials.config = ClientConfig{Addr: f.Addr, DialContext: f.dialContext, Conns: max(config.Conns, 1),
		Headers: config.Headers}
	if config.Unix {
		f.dials.config.Addr = "127.0.0.1:0" // for headers and the like; dialContext knows the socket
	}
	f.dials.wrap = config.WrapClient
	f.dials.readyBy, _ = ctx.Deadline()
	if config.TLS {
		if f.dials.config.TLS, err = trusting(config.Certificate); err != nil {
			return "certificate", err
		}
		f.dials.config.TLS.VerifyConnection = func(s tls.ConnectionState) error {
			f.dials.tls.Store(&s)
			f.dials.shaken.Add(1)
			return nil
		}
	}
	pprof.Do(ctx, pprof.Labels("side", "client"), func(context.Context) { step, err = f.call(ctx) })
	return step, err
}

// call dials and connects. It returns the step that failed.
func (f *Fixture) call(ctx context.Context) (step string, err error) {
	if f.Client, err = f.dial(ctx); err != nil {
		f.Client = nil // or a typed nil would be closed
		return "dial", err
	}
	if f.Stack.Serves == "" {
		_, err = As[Users](f)
	} else {
		_, err = As[MethodClient](f)
	}
	if err != nil {
		return "dial", err
	}
	// A deadline of the calls would leave its trace in HTTP/2's header table: when ctx ends, the fixture is stopped.
	release := context.AfterFunc(ctx, func() { _ = f.stop() })
	err = f.connect()
	if !release() {
		err = context.Cause(ctx)
		if failed := f.failed.Load(); failed != nil { // clients and servers may try again for as long as they can
			err = fmt.Errorf("%w: %w", err, *failed)
		}
	}
	return "connect", err
}

// dial makes the fixture's client. Where the stack has a Method, Dial may ask its Handle, which may never answer.
func (f *Fixture) dial(ctx context.Context) (Client, error) {
	if f.Stack.Serves == "" {
		return f.Stack.client(f.dials.config)
	}
	type dialled struct {
		Client
		err error
	}
	made := make(chan dialled)
	go func() {
		c, err := f.Stack.client(f.dials.config)
		select {
		case made <- dialled{c, err}:
		case <-ctx.Done(): // nobody waits any more
			if err == nil {
				_ = c.Close()
			}
		}
	}()
	select {
	case d := <-made:
		return d.Client, d.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: does the Handle of %s answer?", context.Cause(ctx), f.Stack.Serves)
	}
}

// client dials.
func (s Stack) client(config ClientConfig) (Client, error) {
	c, err := s.Dial(config)
	if c == nil && err == nil {
		err = errors.New("Stack.Dial returned no Client and no error")
	}
	return c, err
}

// serve runs the server in this process, and adds its certificate to config. It returns the step that failed.
func (f *Fixture) serve(ctx context.Context, config *Config) (step string, err error) {
	var serverTLS *tls.Config
	if config.TLS {
		if serverTLS, err = selfSigned(); err != nil {
			return "certificate", err
		}
		config.Certificate = serverTLS.Certificates[0].Certificate[0]
	}
	addr := cmp.Or(config.Addr, "127.0.0.1:0")
	if config.Unix && config.Addr == "" {
		if f.folder, err = os.MkdirTemp("", "rpcbench"); err != nil {
			return "listen", err
		}
		addr = filepath.Join(f.folder, "socket")
	}
	bare, err := new(net.ListenConfig).Listen(ctx, f.network, addr)
	if err != nil {
		if config.Unix && len(addr) > 100 { // Linux takes 107, macOS 103
			err = fmt.Errorf("the path has %d bytes, of which a socket may have about a hundred: %w", len(addr), err)
		}
		return "listen", err
	}
	f.local.handled = new(handled)
	f.local.server, err = f.Stack.Server(ServerConfig{serverTLS, config.IdleTimeout, config.HeaderTimeout, config.Wait,
		f.local.handled})
	if f.local.server == nil && err == nil {
		err = errors.New("Stack.Server returned no Server and no error")
	}
	if err != nil {
		_ = bare.Close()
		return "server", err
	}
	f.Addr, f.local.served = bare.Addr().String(), make(chan struct{})
	f.local.listener = &listener{Listener: bare, Wrap: config.WrapServer, Failed: f.keep}
	go func() {
		f.local.err = f.local.server.Serve(f.local.listener)
		close(f.local.served)
		if !f.closing.Load() { // Serve failed, and calls would wait for a reply
			_, _ = f.local.listener.Close(), f.local.server.Close()
		}
	}()
	return "serve", nil
}

// connect makes bursts of calls, one per declared connection at a time, until all connections are open. One burst may
// be too little: a call that ends early gives its connection to the next.
func (f *Fixture) connect() error {
	calls := make([]Call, f.dials.config.Conns)
	for i := range calls {
		var err error
		if calls[i], err = f.Client.Prepare(connecting + i); err != nil {
			return err
		}
	}
	declared, errs := int64(len(calls)), make([]error, len(calls))
	if !f.Stack.Traits.Reconnects {
		full := make(chan struct{})
		m := &meeting{full, sync.OnceFunc(func() { close(full) })}
		f.dials.meeting.Store(m)
		defer time.AfterFunc(meetingLimit, m.end).Stop()
		defer f.dials.meeting.Store(nil)
		defer m.end()
	}
	for burst := 0; burst < maxBursts && f.Accepted() <= declared; burst++ {
		var ended sync.WaitGroup
		for i, call := range calls {
			ended.Go(func() { errs[i] = call(context.Background()) })
		}
		ended.Wait()
		if err := cmp.Or(errs...); err != nil {
			select {
			case <-f.local.served:
				return fmt.Errorf("%w; serve: %w", err, f.local.err)
			case <-time.After(serveGrace):
				return err
			}
		}
		// A server accepts before its client has the connection in hand: wait for both ends, and for TLS.
		accepted := f.Accepted()
		if f.Stack.Traits.Reconnects && accepted > 0 && f.dials.dialled.Load() > 0 {
			return nil
		}
		shaken := f.dials.tls.Load() == nil || f.dials.shaken.Load() >= declared
		if accepted == declared && f.dials.dialled.Load() >= declared && shaken {
			return nil
		}
	}
	accepted := fmt.Sprintf("%d connections", f.Accepted())
	if f.Accepted() == 1 {
		accepted = "1 connection"
	}
	return fmt.Errorf("the server accepted %s and the client dialled %d with ClientConfig.DialContext, %d are declared",
		accepted, f.dials.dialled.Load(), declared)
}

func (f *Fixture) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := new(net.Dialer)
	if f.dials.dialled.Load() == 0 {
		dialer.Deadline = f.dials.readyBy
	}
	if f.network == "unix" {
		network, addr = f.network, f.Addr
	}
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		f.keep(err)
		return nil, err
	}
	if f.dials.wrap != nil {
		c = f.dials.wrap(c)
	}
	place := f.dials.dialled.Add(1)
	if f.dials.newest != nil {
		kept := c // a variable of its own, or each dial would allocate one
		f.dials.newest[place%int64(len(f.dials.newest))].Store(&kept)
		if f.closing.Load() {
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
	}
	if m := f.dials.meeting.Load(); m != nil {
		if place >= int64(f.dials.config.Conns) {
			m.end()
		}
		<-m.full
	}
	return c, nil
}

// keep keeps why a connection failed.
func (f *Fixture) keep(err error) {
	if !f.closing.Load() {
		f.failed.Store(&err)
	}
}

// Dial makes another client of the fixture's server, with one connection. The caller closes it before the fixture.
func (f *Fixture) Dial() (Client, error) {
	config := f.dials.config
	config.Conns = 1
	return f.Stack.client(config)
}

// As returns the fixture's client as a C, such as [Users], [MethodClient], [Echoer] or [Streamer]. The error says that
// the client is none.
func As[C any](f *Fixture) (C, error) {
	c, is := f.Client.(C)
	if !is {
		return c, fmt.Errorf("the client of %s, which serves %s, is no %v", f.Stack.Name,
			cmp.Or(f.Stack.Serves, "create-user"), reflect.TypeFor[C]())
	}
	return c, nil
}

// Accepted returns how many connections the server has accepted. With Config.Remote, it returns how many connections
// the client has opened.
func (f *Fixture) Accepted() int64 {
	if f.local.listener == nil {
		return f.dials.dialled.Load()
	}
	return f.local.listener.Accepted.Load()
}

// Handled returns how many calls the server has handled, those of Start included: as NewUserValidator's functions and
// ServerConfig.CountAndWait count them. With Config.Remote it returns 0.
func (f *Fixture) Handled() int64 {
	if f.local.handled == nil {
		return 0
	}
	return f.local.handled.Load()
}

// TLS returns the state of the client's newest TLS connection, and false without TLS.
func (f *Fixture) TLS() (tls.ConnectionState, bool) {
	s := f.dials.tls.Load()
	return *cmp.Or(s, new(tls.ConnectionState)), s != nil
}

// Close closes the client, then the server, and returns when Serve has returned. Calls under way fail. A server that
// Config.Remote names keeps running. A second Close does nothing and returns the first one's error.
func (f *Fixture) Close() error { return f.stop() }

func (f *Fixture) stopAll() (err error) {
	if f.folder != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(f.folder)) }()
	}
	f.closing.Store(true)
	if f.Client != nil {
		err = f.Client.Close()
	}
	for i := range f.dials.newest {
		if c := f.dials.newest[i].Load(); c != nil {
			_ = (*c).Close() // or a call that hangs would wait for its reply; most are closed already
		}
	}
	if f.local.listener == nil {
		return err
	}
	err = errors.Join(err, f.local.server.Close())
	_ = f.local.listener.Close() // many a server has closed it
	select {
	case <-f.local.served:
		return err
	case <-time.After(closeTimeout):
		return fmt.Errorf("%s: close: Serve has not returned after %v", f.Stack.Name, closeTimeout)
	}
}
