package conform

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
)

// LateCalls is how many calls a fixture has made when the check of that looks at it again.
const LateCalls = 1024

const (
	lateWait    = 500 * time.Microsecond // of handlers: several times what a call takes
	lateCallers = 16                     // who hide the waits of each other
	latePayload = 1000
	lateOps     = lateCallers // in each profile
	lateUser    = 100         // index of the first user: the names of all have one length
)

// late makes many calls with one fixture, and then checks what other checks look at on a new one. In clear, where
// handlers wait, the calls are those of several callers. Over TLS they are a quarter, of one Call on one connection.
func late(s Subject) {
	calls, callers, config := LateCalls/4, 1, rpcbench.Config{Headers: corpus.Headers()}
	if !s.TLS {
		calls, callers, config.Conns, config.Wait = LateCalls, lateCallers, s.beside(lateCallers), lateWait
	}
	payload := 0 // JSON of Go 1.27 caches short strings, and then decodes the same user without an object
	if s.TLS {
		payload = latePayload
	}
	if raced() {
		calls /= 8 // each takes as much longer
	}
	sent := recorder{reads: !s.TLS}
	s.bare, config.WrapClient = true, sent.wrap
	f, err := s.start(config)
	if errors.Is(err, errors.ErrUnsupported) {
		config.Headers, sent.reads = nil, false
		f, err = s.start(config)
	}
	must(err, "start")
	defer f.Close()
	var prepared []rpcbench.Call
	for i := range callers {
		prepared = append(prepared, f.call(lateUser+i, payload))
	}
	must(manyTimes(prepared, calls/callers), "%d calls of %d callers", calls, callers)
	must(ended(func() {
		f.lateWaits(config.Wait)
		if sent.reads {
			requests := sent.requests(s)
			failIf(s.Stack.Traits.HTTP != "" && len(requests) < calls, "%d calls took %d requests", calls, len(requests))
			s.carried(corpus.Headers(), sent.raw(), requests, calls)
		}
		f.worksAsBefore(prepared)
		if s.TLS {
			sent.cut()
			f.connectsAnew(prepared[0])
		}
	}), "after %d calls with one fixture", calls)
}

func raced() bool { return strings.Contains(environ.Build(), "-race") }

// manyTimes lets a caller each make a call so many times. One P is enough, and wakes no other.
func manyTimes(calls []rpcbench.Call, times int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var callers [][]rpcbench.Call
	for _, call := range calls {
		callers = append(callers, slices.Repeat([]rpcbench.Call{call}, times))
	}
	return together(callers...)
}

// lateWaits checks that each call takes as long as handlers wait, and that a user who breaks rules is refused.
func (f *session) lateWaits(wait time.Duration) {
	for i := range 4 {
		must(waited(wait, f.call(i, 0)), "a Call")
		must(waited(wait, f.api.anew(i, 0)), "CreateUser")
	}
	f.refused()
}

// worksAsBefore looks at profiles of calls. Reasons to skip are those of other checks, which print them.
func (f *session) worksAsBefore(prepared []rpcbench.Call) {
	if !f.s.TLS {
		for i := range prepared { // late
			prepared[i] = f.call(lateUser+i, latePayload)
		}
		must(goRound(prepared, 2), "call")
	}
	again := leavingAll(slices.Repeat(prepared, lateOps/len(prepared)))
	for attempt := 1; ; attempt++ { // pools of the libraries may fill meanwhile
		err := ended(func() {
			if f.s.own() {
				codecRan(f)
				return
			}
			rounds := []func() error{func() error { return goRound(again, 1) }}
			if !f.s.TLS && !raced() {
				others := f.others(lateUser + attempt*lateOps)
				rounds = append(rounds, func() error { return goRound(others, 1) })
			}
			profiles := f.profiledEach(rounds...)
			f.codecIn(profiles[0], lateOps)
			f.noRivalIn(profiles[0])
			transportsRan(f.Stack.Traits, profiles[0], lateOps)
			f.validatedIn(profiles[0], lateOps)
			if len(profiles) > 1 {
				f.alikeIn(profiles[0], profiles[1])
			}
		})
		if _, skips := errors.AsType[Skip](err); err == nil || skips {
			return
		}
		failIf(attempt == 3, "%w", err)
	}
}

// leavingAll leaves each call another room, so that small objects count as often wherever they are allocated.
func leavingAll(calls []rpcbench.Call) (all []rpcbench.Call) {
	for i, call := range calls {
		all = append(all, leaving(i%(allocproof.Most+1), call))
	}
	return all
}

// others prepares users never seen, from that index on, and calls CreateUser of them. PrepareUser adds nothing to that.
func (f *session) others(index int) (calls []rpcbench.Call) {
	for i := range lateOps {
		u := rpcbench.SampleUser(index+i, latePayload)
		create := f.create(u)
		calls = append(calls, func(ctx context.Context) error { f.prepare(u); return create(ctx) })
	}
	return leavingAll(calls)
}

// alikeIn compares what is allocated for users sent before and for others.
func (f *session) alikeIn(again, unseen allocproof.Profile) {
	const half = lateOps * latePayload / 2
	codec := f.Stack.Traits.Codec
	ofCall, _ := sides(again.Objects(codec, f.Stack.Traits.ClientLibraries...))
	ofOthers, _ := sides(unseen.Objects(codec, f.Stack.Traits.ClientLibraries...))
	failIf(ofOthers-ofCall >= lateOps*3/4, "in %d calls %s allocated %d objects in the client for users sent before, and "+
		"%d for PrepareUser and CreateUser of others: the Call keeps something, or PrepareUser encodes", lateOps, codec,
		ofCall, ofOthers)
	before := again.Bytes(codec)
	for root, bytes := range unseen.Bytes(codec) {
		failIf(bytes-before[root] > half, keptForUsers, lateOps, codec, bytes, before[root], root)
	}
}

// connectsAnew makes calls on connections that are opened when others have been used: by the client, which has lost
// its own, and by another client. What a handshake says of itself is looked at when the check ends.
func (f *session) connectsAnew(call rpcbench.Call) {
	ctx, cancel := context.WithTimeout(context.Background(), f.s.patience())
	defer cancel()
	for range 3 { // the first may fail with the connection
		if call(ctx) == nil {
			break
		}
	}
	other := try(f.Dial())
	defer other.Close()
	must(try(f.s.apiOf(other).prepare(0, 0))(ctx), "a call of another client of the server")
}

// shaking has each TLS handshake of a client looked at. The function that it returns says what was wrong with one.
func (s Subject) shaking() (Subject, func() error) {
	var resumed atomic.Bool
	dial := s.Stack.Dial
	s.Stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		if config.TLS != nil {
			config.TLS = config.TLS.Clone()
			verify := config.TLS.VerifyConnection
			config.TLS.VerifyConnection = func(state tls.ConnectionState) error {
				if state.DidResume {
					resumed.Store(true)
				}
				if verify == nil {
					return nil
				}
				return verify(state)
			}
		}
		return dial(config)
	}
	return s, func() error {
		if resumed.Load() {
			return errors.New("the client resumed a TLS session: each connection must cost a whole handshake")
		}
		return nil
	}
}

// recorder keeps a client's connections and, as long as it reads, what they send. It costs less than a tap.
type recorder struct {
	mu    sync.Mutex
	reads bool
	conns []*recorded
}

type recorded struct {
	net.Conn
	of   *recorder
	sent []byte
}

func (r *recorder) wrap(c net.Conn) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	conn := &recorded{Conn: c, of: r}
	r.conns = append(r.conns, conn)
	return conn
}

func (c *recorded) Write(p []byte) (int, error) {
	c.of.mu.Lock()
	if c.of.reads {
		c.sent = append(c.sent, p...)
	}
	c.of.mu.Unlock()
	return c.Conn.Write(p)
}

// raw is all that was sent.
func (r *recorder) raw() (all []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		all = append(all, c.sent...)
	}
	return all
}

// requests returns the headers of what was sent, if that is HTTP, and ends the recording.
func (r *recorder) requests(s Subject) (headers []http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = false
	for _, c := range r.conns {
		if s.Stack.Traits.HTTP == "" {
			return nil
		}
		if len(c.sent) == 0 {
			continue // net/http dialled it to spare
		}
		messages, _, err := wire.Read(c.sent, nil)
		must(err, "read the recorded bytes")
		for _, m := range messages {
			headers = append(headers, m.Header)
		}
	}
	return headers
}

// cut breaks all connections.
func (r *recorder) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Conn.Close()
	}
}
