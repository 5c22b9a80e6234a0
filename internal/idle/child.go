package idle

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// question is what a child is asked to be: the server of a stack, or a client of the server at Addr.
type question struct {
	Stack       string `json:"stack"`
	State       State  `json:"state"`
	TLS         bool   `json:"tls"`
	Most        int    `json:"most"` // that it will hold
	Addr        string `json:"addr,omitempty"`
	Certificate []byte `json:"certificate,omitempty"`
}

// reply is what a child says for each line that it reads. A client reads how many it should hold.
type reply struct {
	Held
	Addr        string `json:"addr,omitempty"` // of a server
	Certificate []byte `json:"certificate,omitempty"`
	Accepted    int    `json:"accepted"` // connections that a server has accepted, without its own
}

// Held is what a process holds at rest, in bytes. Resident is 0 if the system does not tell.
type Held struct {
	Heap       uint64 `json:"heap"`   // live objects
	Stacks     uint64 `json:"stacks"` // of goroutines, with what the runtime keeps for further ones
	Resident   uint64 `json:"resident,omitempty"`
	Goroutines int    `json:"goroutines"`
}

const (
	openLimit = time.Minute           // for a client to open all that it is asked for
	atRest    = time.Hour             // in which no server closes what is idle, and no handler answers that waits
	patience  = 50 * time.Millisecond // with a call that connects, and whose handler waits
	pause     = 10 * time.Millisecond // between collections
	most      = 30                    // of them, if memory never stands still

	// conns carry the streams, and the calls if they can. More are needed where each of them would carry more than
	// onConn, which is what net/http's HTTP/2 server takes at a time.
	conns, onConn = 4, 250
)

// held collects until two collections leave the same, and reads what is left. A goroutine may end a little after the
// call that it served, and a collection halves a stack at most.
func held() (h Held) {
	var last Held
	var m runtime.MemStats
	for i := range most {
		debug.FreeOSMemory() // collects, and gives back what is free, which would be resident
		runtime.ReadMemStats(&m)
		h = Held{Heap: m.HeapAlloc, Stacks: m.StackInuse, Goroutines: runtime.NumGoroutine()}
		if i > 0 && h == last {
			break
		}
		last = h
		<-time.After(pause)
	}
	h.Resident = inMemory()
	return h
}

// Holding is the job of a child that holds memory at rest: of a server, or of a client.
func Holding() child.Job { return child.NewJob(hold) }

func hold(ctx context.Context, stacks child.Stacks, asked question, lines <-chan []byte, say func(any) error) error {
	stack, err := stacks(asked.Stack)
	switch {
	case err != nil:
		return err
	case asked.Addr != "":
		return call(ctx, stack, asked, lines, say)
	}
	return serve(ctx, stack, asked, lines, say)
}

// serve is the side of a child that is a server. All that it holds goes with its process, for which nobody waits.
func serve(ctx context.Context, stack rpcbench.Stack, asked question, lines <-chan []byte, say func(any) error) error {
	config := rpcbench.Config{TLS: asked.TLS, IdleTimeout: atRest, HeaderTimeout: atRest}
	if asked.State == Calls {
		stack, config.Wait = impatient(stack), atRest
	}
	f, err := child.ServerOnly(ctx, stack, config)
	if err != nil {
		return err
	}
	a, own := reply{Addr: f.Addr}, f.Accepted()
	if state, ok := f.TLS(); ok {
		a.Certificate = state.PeerCertificates[0].Raw
	}
	for range lines {
		a.Held, a.Accepted = held(), int(f.Accepted()-own)
		if err := say(a); err != nil {
			return err
		}
	}
	return nil
}

// impatient is a stack that connects by calls which it soon gives up, since the handlers wait.
func impatient(stack rpcbench.Stack) rpcbench.Stack {
	dial := stack.Dial
	stack.Serves = "none" // or its clients would have to be Users
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		connected, tell := context.WithCancel(context.Background())
		if config.TLS == nil {
			dial := config.DialContext
			config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				defer tell()
				return dial(ctx, network, addr)
			}
		} else {
			verify := config.TLS.VerifyConnection
			config.TLS.VerifyConnection = func(state tls.ConnectionState) error {
				defer tell()
				return verify(state)
			}
		}
		client, err := dial(config)
		return givesUp{client, connected}, err
	}
	return stack
}

type givesUp struct {
	rpcbench.Client
	connected context.Context // is done then
}

func (g givesUp) Messages() (requests, replies rpcbench.Messages) { return requests, replies }

func (g givesUp) Prepare(i int) (rpcbench.Call, error) {
	call, err := prepare(g.Client, i)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(g.connected, func() { time.AfterFunc(patience, cancel) })()
		_ = call(ctx)
		return nil
	}, err
}

func prepare(client rpcbench.Client, i int) (rpcbench.Call, error) {
	if users, ok := client.(rpcbench.Users); ok {
		return users.PrepareUser(rpcbench.SampleUser(i, 0))
	}
	return client.(rpcbench.MethodClient).Prepare(i)
}

// holder is the side of a child that is a client.
type holder struct {
	stack  rpcbench.Stack
	asked  question
	config rpcbench.ClientConfig
	shared rpcbench.Client // whose connections carry all that is held
	kept   []any           // clients and streams, which stay open
	number int             // of what is held
	ended  chan error      // has the calls that should wait, and have ended
}

func call(ctx context.Context, stack rpcbench.Stack, asked question, lines <-chan []byte, say func(any) error) error {
	h := holder{stack: stack, asked: asked, ended: make(chan error, asked.Most)}
	if err := h.reach(ctx); err != nil {
		return err
	}
	for line := range lines {
		n, err := strconv.Atoi(string(line))
		if err == nil {
			err = h.hold(ctx, n)
		}
		if err != nil {
			return err
		}
		a := reply{Held: held()}
		if err = h.waiting(); err == nil {
			err = say(a)
		}
		if err != nil {
			return err
		}
	}
	runtime.KeepAlive(h.kept)
	return nil
}

// reach makes a call of one connection, to know that it is right, and keeps what that client was told. Nothing of the
// fixture stays: it would count.
func (h *holder) reach(ctx context.Context) error {
	stack := h.stack
	if h.asked.State == Calls {
		stack = impatient(stack)
	}
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		h.config = config
		return dial(config)
	}
	f, err := rpcbench.Start(ctx, stack,
		rpcbench.Config{TLS: h.asked.TLS, Remote: h.asked.Addr, Certificate: h.asked.Certificate})
	if err != nil {
		return err
	}
	h.config.DialContext = new(net.Dialer).DialContext // nothing lies between a client and its connections
	if h.config.TLS != nil {
		h.config.TLS.VerifyConnection = nil
	}
	return f.Close()
}

// hold opens more until n are held, as many at a time as the first point has. Each of them takes goroutines that end,
// whose descriptors the runtime keeps for the next ones: with larger steps these would count.
func (h *holder) hold(life context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(life) // a deadline would leave its trace in the header tables of HTTP/2
	defer cancel(nil)
	defer time.AfterFunc(openLimit, func() { cancel(fmt.Errorf("%d were not open after %v", n, openLimit)) }).Stop()
	for h.number < n {
		more, err := min(h.asked.Most/10, n-h.number), error(nil)
		switch h.asked.State {
		case Streams:
			err = h.streams(more)
		case Calls:
			err = h.calls(life, more)
		default:
			err = h.connections(ctx, more)
		}
		if err != nil {
			return err
		}
		h.number += more
	}
	return nil
}

// dial makes a client with so many connections, and keeps it.
func (h *holder) dial(config rpcbench.ClientConfig, conns int) (rpcbench.Client, error) {
	config.Conns = conns
	client, err := h.stack.Dial(config)
	h.kept = append(h.kept, client)
	return client, err
}

// connections opens so many, each for one call.
func (h *holder) connections(ctx context.Context, more int) error {
	config := h.config
	if !h.stack.Traits.Multiplexed {
		ctx = together(ctx, &config, more)
	}
	client, err := h.dial(config, more)
	if err != nil {
		return err
	}
	return once(ctx, client, more)
}

// together holds back the calls of a client that gives the connection of a call that has ended to the next one. Else
// early calls would leave too few that open one. No dial ends before all have begun, and where net/http tells of it, no
// call is sent before all have a connection, so that each connection has one call. Nothing is wrapped.
func together(ctx context.Context, config *rpcbench.ClientConfig, number int) context.Context {
	dial, dialled, ready := config.DialContext, newGate(number), newGate(number)
	config.DialContext = func(of context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(of, network, addr)
		if err == nil {
			dialled.pass(ctx)
		}
		return conn, err
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { ready.pass(ctx) }})
}

// gate lets nobody pass before so many have come.
type gate struct {
	missing atomic.Int64
	open    chan struct{}
}

func newGate(number int) *gate {
	g := &gate{open: make(chan struct{})}
	g.missing.Store(int64(number))
	return g
}

func (g *gate) pass(ctx context.Context) {
	if g.missing.Add(-1) == 0 {
		close(g.open)
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}

// once makes so many calls at a time, until each has its reply. The first failure ends the others.
func once(ctx context.Context, client rpcbench.Client, number int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calls, err := several(client, number)
	if err != nil {
		return err
	}
	var ended sync.WaitGroup
	for _, call := range calls {
		ended.Go(func() {
			if err := call(ctx); err != nil {
				cancel(err)
			}
		})
	}
	ended.Wait()
	return context.Cause(ctx)
}

func several(client rpcbench.Client, number int) (calls []rpcbench.Call, err error) {
	for i := range number {
		call, err := prepare(client, i)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// calls makes so many more, which wait until the context ends. If a connection carries one call at a time, each call
// has a connection of its own.
func (h *holder) calls(ctx context.Context, more int) error {
	dial := h.sharing
	if t := h.stack.Traits; !t.Multiplexed || t.Turns {
		dial = func() (rpcbench.Client, error) { return h.dial(h.config, more) }
	}
	client, err := dial()
	if err != nil {
		return err
	}
	calls, err := several(client, more)
	for _, call := range calls {
		go func() { h.ended <- call(ctx) }()
	}
	return err
}

// waiting says whether calls that should wait do.
func (h *holder) waiting() error {
	select {
	case err := <-h.ended:
		return cmp.Or(err, errors.New("a call was answered whose handler should wait: its server drops ServerConfig.Wait"))
	default:
		return nil
	}
}

// streams opens so many, each for one message.
func (h *holder) streams(more int) error {
	client, err := h.sharing()
	if err != nil {
		return err
	}
	streamer, ok := client.(rpcbench.Streamer)
	if !ok {
		return fmt.Errorf("no streams: %w", errors.ErrUnsupported)
	}
	for range more {
		s, err := streamer.OpenStream(context.Background())
		if err != nil {
			return err
		}
		call, err := s.Prepare(rpcbench.SampleUser(0, 0))
		if err == nil {
			err = call(context.Background())
		}
		if err != nil {
			return err
		}
		h.kept = append(h.kept, s)
	}
	return nil
}

// sharing is the client of a few connections.
func (h *holder) sharing() (_ rpcbench.Client, err error) {
	if h.shared == nil {
		h.shared, err = h.dial(h.config, max(conns, (h.asked.Most+onConn-1)/onConn))
	}
	return h.shared, err
}
