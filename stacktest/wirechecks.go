package stacktest

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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// connections: the server accepts as many as are declared, all opened through the given DialContext, with few and many
// callers and small and large payloads; a multiplexed stack uses each of them.
func connections(s subject) error {
	for _, conns := range []int{1, 4} {
		for _, avatar := range []int{0, 1000, 100_000} {
			if err := connectionsOf(s, conns, avatar); err != nil {
				return fmt.Errorf("payload %d B: %w", avatar, err)
			}
		}
	}
	return nil
}

func connectionsOf(s subject, conns, avatar int) error {
	var dials atomic.Int64
	tap := new(netwrap.Tap)
	f, err := s.start(rpcbench.Config{Conns: conns, WrapClient: func(c net.Conn) net.Conn {
		dials.Add(1)
		return tap.Wrap(c)
	}})
	if err != nil {
		return err
	}
	if err := onLoopback(f); err != nil {
		return errors.Join(err, f.Close())
	}
	calls := 4
	if avatar > 1000 {
		calls = 2 // they take long under the race detector
	}
	for _, callers := range []int{1, 3 * conns} {
		if err := callAtOnce(f, callers, calls, avatar); err != nil {
			return errors.Join(fmt.Errorf("%d callers on %d connections: %w", callers, conns, err), f.Close())
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if f.Accepted() != int64(conns) || dials.Load() != int64(conns) {
		return fmt.Errorf("%d connections are declared, %d were accepted, %d dialled%w", conns, f.Accepted(), dials.Load(), errRedialled)
	}
	if !s.stack.Traits.Multiplexed {
		return nil
	}
	for i, c := range tap.Conns() {
		if want := avatar * 3; len(c.Sent()) < want { // calls of each of twelve callers, in turn
			return fmt.Errorf("connection %d of %d sent only %d bytes: Prepare must bind calls to the connections in turn", i+1, conns, len(c.Sent()))
		}
	}
	return nil
}

func onLoopback(f *rpcbench.Fixture) error {
	if host, _, err := net.SplitHostPort(f.Addr); err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("the server listens on %s, which is not the loopback interface", f.Addr)
	}
	return nil
}

// callAtOnce makes calls from several goroutines, each with its own user, so that a reply given to the wrong caller shows.
func callAtOnce(f *rpcbench.Fixture, callers, calls, avatar int) error {
	var group sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		call, err := prepareOne(f, users.Sample(i, avatar))
		if err != nil {
			return err
		}
		group.Go(func() {
			for range calls {
				if errs[i] = call(context.Background()); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// recorded joins what all connections of a tap carried.
func recorded(tap *netwrap.Tap) (sent, received []byte) {
	for _, c := range tap.Conns() {
		sent, received = append(sent, c.Sent()...), append(received, c.Received()...)
	}
	return sent, received
}

// traffic: every call's own name stands on the wire in both directions; with TLS in neither.
func traffic(s subject) error {
	if s.stack.Traits.Compression != "" && !s.tls {
		return skipped("names can't be read off compressed bodies; the check of compression reads their size")
	}
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	calls, err := prepare(f, 0)
	if err != nil {
		return err
	}
	for i, call := range calls {
		sentBefore, receivedBefore := recorded(tap)
		if err := call(context.Background()); err != nil {
			return err
		}
		sent, received := recorded(tap)
		name := []byte(users.Sample(i, 0).Name)
		inSent := bytes.Contains(sent[len(sentBefore):], name)
		inReceived := bytes.Contains(received[len(receivedBefore):], name)
		switch {
		case s.tls && (inSent || inReceived):
			return errors.New("the user's name stands in clear on a connection that should be TLS")
		case s.tls && (len(sent) == len(sentBefore) || len(received) == len(receivedBefore)):
			return errors.New("a call sent or received nothing on the client's connection")
		case !s.tls && (!inSent || !inReceived):
			return fmt.Errorf("call %d: its user's name is in the request: %t, in the reply: %t; the call did not cross the connection", i, inSent, inReceived)
		}
	}
	if f.Accepted() != 1 {
		return fmt.Errorf("the fixture's own listener accepted %d connections, 1 is declared%w", f.Accepted(), errRedialled)
	}
	return nil
}

// changedReplies: the reply is changed on its way, in ways that keep its length and framing or not. A Call must fail each
// time, and the next one, unchanged, succeed; CreateUser must return what came.
func changedReplies(s subject) error {
	if s.stack.Traits.Compression != "" {
		return skipped("compressed bytes can't be replaced one by one; the uncompressed variant of the same code is checked")
	}
	asked, other := users.Sample(2, 0), users.Sample(1, 0)
	for _, c := range replacements(asked, other) {
		if err := changed(s, c.what, asked, func(int) netwrap.Filter { return c.filter() }, true); err != nil {
			return err
		}
	}
	if err := changed(s, "one changed byte of the payload", users.Sample(2, 10_000), changeByte, true); err != nil {
		return err
	}
	cut := func(length int) netwrap.Filter { return netwrap.Cut(length / 2) }
	if err := changed(s, "only its first half", asked, cut, false); err != nil {
		return err
	}
	return replayed(s)
}

type replacement struct{ what, old, with string }

func (r replacement) filter() netwrap.Filter { return netwrap.Replace([]byte(r.old), []byte(r.with)) }

// replacements are changes, each of equal length, to the reply to a user.
func replacements(asked, other rpcbench.User) []replacement {
	return []replacement{
		{"the name of the call before", asked.Name, other.Name},
		{"the email of the call before", asked.Email, other.Email},
		{"the password of the call before", asked.Password, other.Password},
		{"an id with one byte changed", rpcbench.UserID, "1000001"},
		{"the message KO", rpcbench.OKMessage, "KO"},
	}
}

// changeByte makes another letter of one in the middle of a reply, which base64 carries as well as raw bytes do.
func changeByte(length int) netwrap.Filter {
	seen, done := 0, false
	return func(_ *netwrap.TapConn, p []byte) ([]byte, error) {
		for i, b := range p {
			if seen++; seen > length/2 && !done && (b >= 'a' && b < 'z' || b >= 'A' && b < 'Z') {
				p[i], done = b+1, true
			}
		}
		return p, nil
	}
}

// counted counts how often a filter changes anything.
func counted(filter netwrap.Filter, hits *atomic.Int64) netwrap.Filter {
	return func(c *netwrap.TapConn, p []byte) ([]byte, error) {
		in := bytes.Clone(p)
		out, err := filter(c, p)
		if err != nil || !bytes.Equal(in, out) {
			hits.Add(1)
		}
		return out, err
	}
}

// changed makes a call whose reply passes through a filter, which is made for the length of an unchanged reply.
func changed(s subject, what string, u rpcbench.User, filter func(length int) netwrap.Filter, sameFraming bool) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	call, err := prepareOne(f, u)
	if err != nil {
		return err
	}
	sentBefore, before := recorded(tap)
	if err := call(context.Background()); err != nil {
		return err
	}
	sentAfter, after := recorded(tap)
	length, request := len(after)-len(before), len(sentAfter)-len(sentBefore)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()

	var hits atomic.Int64
	tap.SetFilter(counted(filter(length), &hits))
	err = within(s.limit/2, f, func() error { return call(ctx) })
	switch {
	case hits.Load() == 0:
		return fmt.Errorf("%s: the reply does not hold what was to be changed: it does not come over the connection, or not as itself", what)
	case err == nil:
		return fmt.Errorf("the Call succeeded although the reply held %s: %s", what, s.why(tap, len(sentAfter), request))
	}
	if sameFraming {
		tap.SetFilter(filter(length))
		reply, err := f.Client.CreateUser(ctx, u)
		if err == nil && sameReply(u, reply) {
			return fmt.Errorf("CreateUser returned the right answer although the reply held %s: it does not return what came", what)
		}
	}
	tap.SetFilter(nil)
	if !sameFraming {
		return nil // the connection is lost, and a client may well leave dialling again to its owner
	}
	if err := within(s.limit/2, f, func() error { return call(ctx) }); err != nil {
		return fmt.Errorf("the call after one whose reply held %s: %w", what, err)
	}
	return nil
}

// why says how a Call could succeed with a wrong reply: it asked again, or it did not look. It had sent so many bytes before, and one
// request takes as many as request.
func (s subject) why(tap *netwrap.Tap, before, request int) string {
	if sent, _ := recorded(tap); 2*(len(sent)-before) > 3*request {
		return fmt.Sprintf("it asked again, and sent %d bytes where a request has %d", len(sent)-before, request)
	}
	return "the reply is not compared"
}

// replayed gives the client the bytes of the reply before in place of the reply. It has a deadline: a client may rightly
// wait for a reply to this request.
func replayed(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	calls, err := prepare(f, 0)
	if err != nil {
		return err
	}
	for _, call := range calls[:2] {
		if err := call(context.Background()); err != nil {
			return err
		}
	}
	sentBefore, before := recorded(tap)
	if err := calls[2](context.Background()); err != nil {
		return err
	}
	sentAfter, after := recorded(tap)
	tap.SetFilter(netwrap.Replay(after[len(before):]))
	ctx, cancel := context.WithTimeout(context.Background(), min(time.Second, s.patience()))
	defer cancel()
	if err := within(s.limit/2, f, func() error { return calls[3](ctx) }); err == nil {
		return fmt.Errorf("the Call succeeded although it got the bytes of the reply before: %s", s.why(tap, len(sentAfter), len(sentAfter)-len(sentBefore)))
	}
	return nil
}

func sameReply(u rpcbench.User, r rpcbench.Response) bool {
	return rpcbench.Check(&u, &r) == nil
}

// oneRequest: CreateUser and Prepare send the same headers and the same body, so what the suite sees of the one holds
// for the other.
func oneRequest(s subject) error {
	if s.stack.Traits.HTTP == "" {
		return skipped("messages of an unknown protocol can't be told apart")
	}
	for _, avatar := range []int{0, 1000} {
		f, tap, err := s.tapped()
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err, callErr := both(context.Background(), f, users.Sample(0, avatar)); err != nil || callErr != nil {
			return errors.Join(err, callErr)
		}
		requests, _, err := wire.Read(recorded(tap))
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

// protocol: the HTTP version is the declared one, and with TLS the newest, with the server's certificate verified.
func protocol(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	if !s.tls {
		version := ""
		requests, responses, err := wire.Read(recorded(tap))
		switch {
		case err != nil && !errors.Is(err, wire.ErrNotHTTP):
			return err
		case err == nil && len(requests) > 0:
			version = requests[0].Version
		}
		for _, r := range responses {
			if kind := named(r.Header, "Content-Type"); (kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")) && named(r.Trailer, "Grpc-Status") != "0" {
				return fmt.Errorf("a reply of gRPC whose trailers are %v: they must say that the call went well", r.Trailer)
			}
		}
		if version != s.stack.Traits.HTTP {
			return fmt.Errorf("the wire carries HTTP version %q, %q is declared", version, s.stack.Traits.HTTP)
		}
		return nil
	}
	state, ok := f.TLS()
	if !ok || state.Version != tls.VersionTLS13 {
		return fmt.Errorf("the connection speaks TLS version %#x, 1.3 is asked for", state.Version)
	}
	if p := state.NegotiatedProtocol; (s.stack.Traits.HTTP == "2") != (p == "h2") {
		return fmt.Errorf("TLS agreed on protocol %q, HTTP version %q is declared", p, s.stack.Traits.HTTP)
	}
	stranger, err := s.stack.Dial(rpcbench.ClientConfig{
		Addr: f.Addr, DialContext: new(net.Dialer).DialContext, Conns: 1,
		TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool(), ServerName: state.ServerName},
	})
	if err == nil {
		defer stranger.Close()
		_, err = stranger.CreateUser(context.Background(), users.Sample(0, 0))
	}
	return wantCode("a client that does not trust the server's certificate", err, rpcbench.Unavailable)
}

// compression: payload of low entropy costs its size each way unless gzip is declared, and headers agree.
func compression(s subject) error {
	const size = 64 << 10
	u := users.Sample(0, 0)
	u.Avatar = bytes.Repeat([]byte("rpcbench"), size/8)
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	call, err := prepareOne(f, u)
	if err != nil {
		return err
	}
	sentBefore, receivedBefore := recorded(tap)
	if err := call(context.Background()); err != nil {
		return err
	}
	allSent, allReceived := recorded(tap)
	sent, received := len(allSent)-len(sentBefore), len(allReceived)-len(receivedBefore)
	declared := s.stack.Traits.Compression
	for _, way := range []struct {
		name     string
		bytes    int
		declared bool
	}{{"requests", sent, declared == "gzip"}, {"replies", received, declared != ""}} {
		if compressed := way.bytes < size/2; compressed != way.declared || !compressed && way.bytes < size {
			return fmt.Errorf("64 kB that compress well cost %d bytes in %s; compression declared: %t", way.bytes, way.name, way.declared)
		}
	}
	if s.stack.Traits.HTTP == "" {
		return nil
	}
	requests, responses, err := wire.Read(allSent, allReceived)
	if err != nil {
		return err
	}
	for _, m := range append(requests, responses...) {
		for _, header := range []string{"Content-Encoding", "Grpc-Encoding"} {
			if got := named(m.Header, header); got != "" && got != "identity" && (got != "gzip" || declared == "") {
				return fmt.Errorf("%s is %q, compression %q is declared", header, got, declared)
			}
		}
		for _, header := range []string{"Accept-Encoding", "Grpc-Accept-Encoding"} {
			if got := named(m.Header, header); got != "" && got != "identity" && declared == "" {
				return fmt.Errorf("%s: %s asks for compression, none is declared", header, got)
			}
		}
		if !strings.HasPrefix(named(m.Header, "Content-Type"), "application/grpc") {
			continue
		}
		frames, err := wire.GRPCFrames(m.Body)
		if err != nil {
			return err
		}
		for _, frame := range frames {
			if frame.Compressed && declared == "" {
				return errors.New("a gRPC message has its compressed flag set, no compression is declared")
			}
		}
	}
	return nil
}

// named finds a header whatever the case its protocol writes it in.
func named(h http.Header, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) && len(v) > 0 {
			return v[0]
		}
	}
	return ""
}
