package stacktest

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// webSocket is JSON in WebSocket's frames, of which a client masks its own, as RFC 6455 has it. The zero value has no
// fault.
type webSocket struct {
	validate func(*rpcbench.User) error
	unmasked bool // the mask is zero
}

func (k webSocket) stack() rpcbench.Stack {
	return rpcbench.Stack{
		Name: "websocket", Protocol: "websocket/json",
		Traits: rpcbench.Traits{Codec: "encoding/json", InvalidUTF8: rpcbench.UTF8Replaced, Multiplexed: true, Turns: true,
			Varies: rpcbench.VariesMasked},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return rpcbench.ServeConns(config, k.serve(config)), nil
		},
		Dial: k.dial,
	}
}

// answer is a Response or an Error.
type answer struct {
	*rpcbench.Response
	Failed *rpcbench.Error `json:"failed,omitempty"`
}

func (k webSocket) serve(config rpcbench.ServerConfig) func(net.Conn) {
	if k.validate == nil {
		k.validate = rpcbench.NewUserValidator[rpcbench.User](config)
	}
	idle, header := config.Limits()
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		_ = conn.SetReadDeadline(time.Now().Add(header))
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, err := io.WriteString(conn,
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		for err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(idle))
			if _, err = r.Peek(1); err != nil {
				return
			}
			_ = conn.SetReadDeadline(time.Time{})
			var reply answer
			reply.Response, err = k.reply(r)
			if failed, ok := errors.AsType[*rpcbench.Error](err); ok {
				reply.Failed, err = failed, nil
			}
			if err == nil {
				data, _ := json.Marshal(reply)
				_, err = conn.Write(frame(data, nil))
			}
		}
	}
}

func (k webSocket) reply(r *bufio.Reader) (*rpcbench.Response, error) {
	data, err := readFrame(r)
	if err != nil {
		return nil, err
	}
	u := new(rpcbench.User)
	if err := json.Unmarshal(data, u); err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.CodeMalformed}
	}
	if err := k.validate(u); err != nil {
		return nil, err
	}
	return rpcbench.AnswerUser(u), nil
}

// frame is a text in one frame, masked unless mask is nil.
func frame(data, mask []byte) []byte {
	const text, extended, masked = 0x81, 127, 0x80
	f := binary.BigEndian.AppendUint64([]byte{text, extended}, uint64(len(data)))
	if mask == nil {
		return append(f, data...)
	}
	f[1] |= masked
	f = append(f, mask...)
	begin := len(f)
	f = append(f, data...)
	unmask(f[begin:], mask)
	return f
}

func unmask(data, mask []byte) {
	for i := range data {
		data[i] ^= mask[i%len(mask)]
	}
}

// readFrame reads what frame makes. It skips a text larger than MaxBody, which is TooLarge.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head := make([]byte, 10)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	mask := make([]byte, 4)
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, mask); err != nil {
			return nil, err
		}
	}
	size := int64(binary.BigEndian.Uint64(head[2:]))
	if size > rpcbench.MaxBody {
		_, err := io.CopyN(io.Discard, r, size)
		return nil, cmp.Or[error](err, &rpcbench.Error{Code: rpcbench.CodeTooLarge})
	}
	data := make([]byte, size)
	_, err := io.ReadFull(r, data)
	unmask(data, mask)
	return data, err
}

func (k webSocket) dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	if config.Headers != nil {
		return nil, fmt.Errorf("messages have no headers: %w", errors.ErrUnsupported)
	}
	c := &socketClient{}
	c.closed, c.end = context.WithCancel(context.Background())
	for range config.Conns {
		c.sockets = append(c.sockets, &socket{webSocket: k, config: config, closed: c.closed, turn: make(chan struct{}, 1)})
	}
	return c, nil
}

type socketClient struct {
	sockets []*socket
	next    atomic.Uint64
	closed  context.Context
	end     context.CancelFunc
}

func (c *socketClient) Close() error {
	c.end()
	for _, s := range c.sockets {
		s.turn <- struct{}{}
		s.drop()
		<-s.turn
	}
	return nil
}

func (c *socketClient) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	return c.sockets[0].call(ctx, &u)
}

func (c *socketClient) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *socketClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	s := c.sockets[c.next.Add(1)%uint64(len(c.sockets))]
	return func(ctx context.Context) error {
		reply, err := s.call(ctx, &u)
		if err != nil {
			return err
		}
		return rpcbench.CheckUser(&u, &reply)
	}, nil
}

// socket is a connection, which the first call opens, and the next one after a call that ended half way.
type socket struct {
	webSocket
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{} // full while a call uses the connection
	bare   net.Conn      // beneath TLS; nil without a connection
	conn   net.Conn
	r      *bufio.Reader
}

func (s *socket) call(ctx context.Context, u *rpcbench.User) (rpcbench.Response, error) {
	data, _ := json.Marshal(u)
	data, err := s.exchange(ctx, data)
	if err != nil {
		return rpcbench.Response{}, rpcbench.CallError(ctx, err)
	}
	var reply answer
	if err := json.Unmarshal(data, &reply); err != nil {
		return rpcbench.Response{}, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	if reply.Failed != nil {
		return rpcbench.Response{}, reply.Failed
	}
	if reply.Response == nil {
		return rpcbench.Response{}, &rpcbench.Error{Code: rpcbench.CodeMalformed}
	}
	return *reply.Response, nil
}

func (s *socket) exchange(ctx context.Context, request []byte) (reply []byte, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.bare == nil {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
	}
	bare := s.bare
	defer context.AfterFunc(s.closed, func() { _ = bare.Close() })()
	stop := context.AfterFunc(ctx, func() { _ = bare.Close() })
	mask := binary.BigEndian.AppendUint32(nil, rand.Uint32()|1<<31)
	if s.unmasked {
		clear(mask)
	}
	if _, err = s.conn.Write(frame(request, mask)); err == nil {
		reply, err = readFrame(s.r)
	}
	if !stop() || err != nil || s.r.Buffered() > 0 {
		s.drop()
	}
	return reply, err
}

// open dials and upgrades.
func (s *socket) open(ctx context.Context) (err error) {
	if s.closed.Err() != nil {
		return net.ErrClosed
	}
	if s.bare, err = s.config.DialContext(ctx, "tcp", s.config.Addr); err != nil {
		return err
	}
	bare := s.bare
	defer context.AfterFunc(s.closed, func() { _ = bare.Close() })()
	defer context.AfterFunc(ctx, func() { _ = bare.Close() })()
	if s.conn = bare; s.config.TLS != nil {
		s.conn = tls.Client(bare, s.config.TLS)
	}
	s.r = bufio.NewReader(s.conn)
	_, err = fmt.Fprintf(s.conn, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", base64.StdEncoding.EncodeToString(make([]byte, 16)))
	if err == nil {
		_, err = http.ReadResponse(s.r, nil)
	}
	if err != nil {
		s.drop()
	}
	return err
}

// drop closes the connection. The caller has the turn.
func (s *socket) drop() {
	if s.bare != nil {
		_ = s.bare.Close()
		s.bare = nil
	}
}

// remembering is a stack whose Calls answer from memory once they have been made.
func remembering(stack rpcbench.Stack) rpcbench.Stack {
	return testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
		var known sync.Map
		return testkit.Around(c, func(u rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				if _, ok := known.Load(u.Email); ok {
					return nil
				}
				known.Store(u.Email, true)
				return call(ctx)
			}
		})
	})
}

// onlyClient is a stack all of whose clients are the first one.
func onlyClient(stack rpcbench.Stack) rpcbench.Stack {
	var first rpcbench.Client
	return testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
		if first == nil {
			first = c
		}
		return first
	})
}

func oneConnection(stack rpcbench.Stack) rpcbench.Stack {
	return testkit.Dialling(stack, func(c *rpcbench.ClientConfig) { c.Conns = 1 })
}

// TestVaryingFakesFail: faults of stacks whose requests the suite can't follow, or only in part.
func TestVaryingFakesFail(t *testing.T) {
	longID := fake{numbered: true, encode: func(u rpcbench.User) func() []byte {
		u.ID = strings.Repeat("1", 65)
		return func() []byte { data, _ := json.Marshal(u); return data }
	}}
	numbered := func(change func(*rpcbench.Traits)) rpcbench.Stack {
		return claiming(fake{numbered: true}.stack(), change)
	}
	for _, c := range []struct {
		fault string
		stack rpcbench.Stack
		fails string // checks, and after a bar what the first one says
	}{
		{"numbered, and answered from memory", remembering(fake{numbered: true}.stack()),
			"repeats | the Call keeps something"},
		{"numbered, and answered in the client", decoy(fake{numbered: true}.stack()),
			"traffic, changed replies | did not cross the connection"},
		{"numbered, on one connection", oneConnection(fake{numbered: true}.stack()), "connections | 4 are declared"},
		{"numbered, of one client", onlyClient(fake{numbered: true}.stack()), "neighbours"},
		{"numbered, without validation", fake{numbered: true, validate: validated(0)}.stack(),
			"validation, outcomes | validates its user 0.0 times"},
		{"numbered, and not compared", fake{numbered: true, unchecked: true}.stack(),
			"changed replies | the reply is not compared"},
		{"numbered, and encoded once", fake{numbered: true, encode: func(u rpcbench.User) func() []byte {
			data, _ := json.Marshal(u)
			return func() []byte { return data }
		}}.stack(), "repeats | it encodes what each Call must encode"},
		{"a number that is not declared", numbered(func(t *rpcbench.Traits) { t.Varies = "" }),
			"one request | send different requests"},
		{"a number that there is not", declaring(func(t *rpcbench.Traits) { t.Varies = rpcbench.VariesNumbered }),
			"one request | leave Traits.Varies out"},
		{"more than a number", longID.stack(), "one request | send different requests"},
		{"a number of what is no HTTP", numbered(func(t *rpcbench.Traits) { t.HTTP = "" }), "declared | leave it out"},
		{"a word that says nothing", declaring(func(t *rpcbench.Traits) { t.Varies = "a little" }), "declared"},

		{"masked, and answered from memory", remembering(webSocket{}.stack()),
			"repeats | the Call keeps something"},
		{"masked, and answered in the client", decoy(webSocket{}.stack()),
			"traffic, changed replies | did not cross the connection"},
		{"masked, on one connection", oneConnection(webSocket{}.stack()), "connections | 4 are declared"},
		{"masked, of one client", onlyClient(webSocket{}.stack()), "neighbours"},
		{"masked, without validation", webSocket{validate: validated(0)}.stack(),
			"validation, outcomes | validates its user 0.0 times"},
		{"masks that are not declared", claiming(webSocket{}.stack(), func(t *rpcbench.Traits) { t.Varies = "" }),
			"traffic | the name is in the request: false"},
		{"masks that change nothing", webSocket{unmasked: true}.stack(), "traffic | leave Traits.Varies out"},
		{"requests in clear that are declared to be masked",
			declaring(func(t *rpcbench.Traits) { t.Varies = rpcbench.VariesMasked }), "traffic | leave Traits.Varies out"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			checks, cause, _ := strings.Cut(c.fails, " | ")
			if checks == "repeats" && strings.Contains(environ.Build(), "-race") {
				t.Skip("the race detector drops objects from pools at random")
			}
			for i, name := range strings.Split(checks, ", ") {
				err := run(name, conform.Subject{Stack: c.stack})
				require.Error(t, err, name)
				require.NotErrorAs(t, err, new(conform.Skip), name)
				if i == 0 {
					require.ErrorContains(t, err, cause, "the error names the cause")
				}
				t.Logf("%s: %v", name, err)
			}
		})
	}
}

func BenchmarkVarying(b *testing.B) {
	for _, s := range []rpcbench.Stack{fake{numbered: true}.stack(), webSocket{}.stack()} {
		b.Run("stack="+s.Name, func(b *testing.B) { Benchmark(b, s, rpcbench.Workload{}) })
	}
}

// TestRowsSayWhatIsNotSeen: once for each stack, in a comment beside its rows.
func TestRowsSayWhatIsNotSeen(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkVarying$", "-test.benchtime=2x", "-test.count=2")
	require.NoError(t, err, out)
	rows, _ := testkit.Rows(t, out)
	require.Len(t, rows, 4, out)
	for _, says := range []string{
		"fake numbers its requests: no test sees", "websocket masks its requests: no test reads",
	} {
		require.Equal(t, 1, strings.Count(out, "\n# rpcbench: "+says), out)
	}
}
