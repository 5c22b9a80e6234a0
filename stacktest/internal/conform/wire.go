package conform

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/wire"
)

func connections(s Subject) error {
	for _, conns := range []int{1, 4} {
		for _, avatar := range []int{0, 1000, 100_000} {
			err := with(s.watch, rpcbench.Config{Conns: conns}, func(f *session) error { return f.opens(avatar) })
			if err != nil {
				return fmt.Errorf("payload %d B, %d connections: %w", avatar, conns, err)
			}
		}
	}
	return nil
}

// opens makes calls of one caller, then of many, and counts connections once all is closed.
func (f *session) opens(avatar int) error {
	if err := f.onLoopback(); err != nil {
		return err
	}
	calls := 4
	if avatar > 1000 {
		calls = 2 // they take long under the race detector
	}
	for _, count := range []int{1, 3 * f.conns} {
		callers, err := f.callers(count, calls, avatar)
		if err == nil {
			err = together(callers...)
		}
		if err != nil {
			return fmt.Errorf("%d callers: %w", count, err)
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return f.connected(3 * avatar)
}

func traffic(f *session) error {
	if f.Stack.Traits.Compression != "" && !f.s.TLS {
		return Skip("names can't be read off compressed bodies; the check of compression reads their size")
	}
	calls, err := fixture.Calls(f.Fixture, 0)
	if err != nil {
		return err
	}
	for i, call := range calls {
		if err := f.crosses(users.Sample(i, 0), call); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return f.connected(0)
}

// crosses makes a call of u, whose name must be on the wire in both directions; over TLS in neither.
func (f *session) crosses(u rpcbench.User, call rpcbench.Call) error {
	sent, received, err := f.record(context.Background(), call)
	inSent, inReceived := bytes.Contains(sent, []byte(u.Name)), bytes.Contains(received, []byte(u.Name))
	switch {
	case err != nil:
		return err
	case f.s.TLS && (inSent || inReceived):
		return errors.New("the user's name stands in clear on a connection that should be TLS")
	case len(sent) == 0 || len(received) == 0 || f.s.readable() && !(inSent && inReceived):
		return fmt.Errorf("%d bytes were sent and %d received; the user's name is in the request: %t, in the reply: %t; the call did not cross the connection",
			len(sent), len(received), inSent, inReceived)
	}
	return nil
}

func oneRequest(f *session) error {
	if f.Stack.Traits.HTTP == "" {
		return Skip("messages of an unknown protocol can't be told apart")
	}
	for _, avatar := range []int{0, 1000} {
		if _, err := f.both(users.Sample(0, avatar)); err != nil {
			return err
		}
		requests, _, err := f.messages()
		if err != nil || len(requests) < 2 {
			return fmt.Errorf("read %d requests off the wire: %w", len(requests), err)
		}
		neutral, prepared := requests[len(requests)-2], requests[len(requests)-1]
		if !reflect.DeepEqual(neutral.Header, prepared.Header) || !bytes.Equal(neutral.Body, prepared.Body) {
			return fmt.Errorf("CreateUser and Prepare send different requests:\n%v %q\n%v %q", neutral.Header, neutral.Body, prepared.Header, prepared.Body)
		}
	}
	return nil
}

func protocol(f *session) error {
	if f.s.TLS {
		return verified(f)
	}
	requests, replies, err := wire.Read(f.bytes())
	version := ""
	switch {
	case err != nil && !errors.Is(err, wire.ErrNotHTTP):
		return err
	case err == nil && len(requests) > 0:
		version = requests[0].Version
	}
	if version != f.Stack.Traits.HTTP {
		return fmt.Errorf("the wire carries HTTP version %q, %q is declared", version, f.Stack.Traits.HTTP)
	}
	for _, r := range replies {
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), "+")
		if kind == "application/grpc" && r.Trailer.Get("Grpc-Status") != "0" {
			return fmt.Errorf("a reply of gRPC whose trailers are %v: they must say that the call went well", r.Trailer)
		}
	}
	return nil
}

// verified: the newest TLS with the declared protocol, and a client that asks for the server's certificate.
func verified(f *session) error {
	state, ok := f.TLS()
	if !ok || state.Version != tls.VersionTLS13 {
		return fmt.Errorf("the connection speaks TLS version %#x, 1.3 is asked for", state.Version)
	}
	if p := state.NegotiatedProtocol; (f.Stack.Traits.HTTP == "2") != (p == "h2") {
		return fmt.Errorf("TLS agreed on protocol %q, HTTP version %q is declared", p, f.Stack.Traits.HTTP)
	}
	noRoots := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool(), ServerName: state.ServerName}
	return f.s.outOfReach("a client that does not trust the server's certificate", f.Addr, noRoots)
}

// outOfReach: the first call of a client that can't reach its server fails as Unavailable. A client may as well refuse to be made.
func (s Subject) outOfReach(what, addr string, config *tls.Config) error {
	c, err := s.Stack.Dial(rpcbench.ClientConfig{Addr: addr, DialContext: new(net.Dialer).DialContext, Conns: 1, TLS: config})
	if err == nil {
		defer c.Close()
		_, err = c.CreateUser(context.Background(), users.Sample(0, 0))
	}
	return wantError(what, err, rpcbench.Unavailable)
}

func compression(f *session) error {
	const size = 64 << 10
	u := users.Sample(0, 0)
	u.Avatar = bytes.Repeat([]byte("rpcbench"), size/8)
	call, err := fixture.Call(f.Fixture, u)
	if err != nil {
		return err
	}
	sent, received, err := f.record(context.Background(), call)
	if err != nil {
		return err
	}
	declared := f.Stack.Traits.Compression
	for _, way := range []struct {
		name     string
		bytes    int
		declared bool
	}{{"requests", len(sent), declared == "gzip"}, {"replies", len(received), declared != ""}} {
		if compressed := way.bytes < size/2; compressed != way.declared || !compressed && way.bytes < size {
			return fmt.Errorf("64 kB that compress well cost %d bytes in %s; compression declared: %t", way.bytes, way.name, way.declared)
		}
	}
	requests, replies, err := f.messages()
	for _, m := range append(requests, replies...) {
		for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Accept-Encoding", "Grpc-Accept-Encoding"} {
			asks := strings.Contains(name, "Accept")
			if got := m.Header.Get(name); got != "" && got != "identity" && (declared == "" || !asks && got != "gzip") {
				return fmt.Errorf("%s is %q, compression %q is declared", name, got, declared)
			}
		}
		if !strings.HasPrefix(m.Header.Get("Content-Type"), "application/grpc") {
			continue
		}
		frames, err := wire.GRPCFrames(m.Body)
		if err != nil {
			return err
		}
		if declared == "" && slices.ContainsFunc(frames, func(f wire.GRPCFrame) bool { return f.Compressed }) {
			return errors.New("a gRPC message has its compressed flag set, no compression is declared")
		}
	}
	return err
}

const noHeaders = Skip("the protocol has no headers")

func headers(s Subject) error {
	asked := users.Headers()
	var mu sync.Mutex
	var made []string
	another := asked.Traceparent
	asked.Traceparent = func() string {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, another())
		return made[len(made)-1]
	}
	raw, requests, err := s.sentWith(asked)
	if errors.Is(err, errors.ErrUnsupported) {
		return noHeaders
	}
	if err != nil {
		return fmt.Errorf("with Config.Headers, which Dial may refuse with errors.ErrUnsupported alone: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if requests == nil { // an unknown protocol
		for _, value := range append(made, asked.UserAgent, asked.Authorization) {
			if !bytes.Contains(raw, []byte(value)) {
				return fmt.Errorf("%.60q of Config.Headers was not sent", value)
			}
		}
		return nil
	}
	seen := map[string]bool{}
	for i, h := range requests {
		trace := h.Get("Traceparent")
		switch {
		case !strings.HasPrefix(h.Get("User-Agent"), asked.UserAgent):
			return fmt.Errorf("request %d has the user agent %q, Config.Headers has %q", i, h.Get("User-Agent"), asked.UserAgent)
		case h.Get("Authorization") != asked.Authorization:
			return fmt.Errorf("request %d has the authorization %.60q, Config.Headers has %.60q", i, h.Get("Authorization"), asked.Authorization)
		case !slices.Contains(made, trace) || seen[trace]:
			return fmt.Errorf("request %d has the traceparent %q: it must be one that Config.Headers has made for it alone", i, trace)
		}
		seen[trace] = true
	}
	_, requests, err = s.sentWith(nil)
	for i, h := range requests {
		if h.Get("Authorization") != "" || h.Get("Traceparent") != "" || strings.HasPrefix(h.Get("User-Agent"), asked.UserAgent) {
			return fmt.Errorf("request %d has headers of Config.Headers, which is nil: %v", i, h)
		}
	}
	return err
}

// sentWith returns what one connection carried to the server: if that is HTTP, the headers of its requests too.
func (s Subject) sentWith(h *rpcbench.Headers) (raw []byte, requests []http.Header, err error) {
	err = with(s.watch, rpcbench.Config{Headers: h}, func(f *session) error {
		for i := range users.Round {
			if _, err := f.both(users.Sample(i, 0)); err != nil {
				return err
			}
		}
		callers, err := f.callers(4, 4, 0)
		if err == nil {
			err = together(callers...)
		}
		if err != nil {
			return err
		}
		raw, _ = f.bytes()
		messages, _, err := f.messages()
		if err == nil && f.Stack.Traits.HTTP != "" && len(messages) < 2*users.Round {
			return fmt.Errorf("%d calls took %d requests", 2*users.Round, len(messages))
		}
		for _, m := range messages {
			requests = append(requests, m.Header)
		}
		return err
	})
	return raw, requests, err
}

func headerLimit(s Subject) error {
	for _, size := range []int{rpcbench.MaxHeader / 4, 2 * rpcbench.MaxHeader} {
		h := users.Headers()
		h.Authorization = "Bearer " + strings.Repeat("t", size)
		f, err := s.start(rpcbench.Config{Headers: h}) // which makes a call
		if errors.Is(err, errors.ErrUnsupported) {
			return noHeaders
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
