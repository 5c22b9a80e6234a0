//go:build !race

// The race detector allocates on its own account.

package stacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacktest"
)

// settings begin the names of properties of HTTP/2.
const settings = "HTTP/2: "

// row is what sets a variant apart: a text that each value of a property has, and that none of the plain stack's has.
type row map[string]string

// Wants that are no texts.
const (
	gone = "the plain stack has values, and the variant none"
	here = "the variant has values, and the plain stack none"
)

// rows are those of variants, by their names. Both versions of Connect share theirs.
func rows() map[string]row {
	const reads = "io.ReadAll"
	windows, h2 := row{}, row{"request: HTTP": "2", "reply: HTTP": "2", "request: :scheme": "http",
		"protocol over TLS": "h2"}
	for _, side := range []string{"client's ", "server's "} {
		windows[settings+side+"INITIAL_WINDOW_SIZE"], windows[settings+side+"window of the connection"] = "2097152", "2097152"
		windows[settings+side+"pings"] = "none"
	}
	grpc := row{"request: User-Agent": "grpc-go-connect/", "request: Connect-Protocol-Version": gone,
		"reply: Accept-Encoding": gone, "reply: Grpc-Accept-Encoding": here, "request: body": `"\x00\x00\x00\x00`,
		"reply: body": `"\x00\x00\x00\x00`}
	replies := row{"request: Accept-Encoding": "gzip", "reply: Accept-Encoding": "gzip", "reply: Content-Encoding": "gzip",
		"reply: body": `"\x1f\x8b`}
	kept := row{"invalid UTF-8": `arrives as "Anna\xff"`}
	vt := with(kept, row{"request: Content-Type": "grpc+proto", "reply: Content-Type": "grpc+proto"})
	unescaped := row{"request: body": "<", "reply: body": "<"}
	all := map[string]row{
		"grpcprotobuf.windows": windows,
		"grpcprotobuf.tuned":   with(windows, row{"server: google.golang.org/grpc.(*Server).serverWorker": "allocates"}),
		"grpcprotobuf.vt":      vt, "grpcservehttp.vt": vt,
		"grpcprotobuf.gzip": {"request: Grpc-Encoding": "gzip", "reply: Grpc-Encoding": "gzip",
			"request: Grpc-Accept-Encoding": "gzip", "request: body": `\x1f\x8b`, "reply: body": `\x1f\x8b`,
			"client: " + reads: "allocates", "server: " + reads: "allocates"}, // of what is inflated
		"httpjson.decoder": {"request: body": `\n"`, "reply: body": `\n"`, "client: " + reads: gone, "server: " + reads: gone,
			"server: status for more than a value": "200", "client: code for more than a value": `""`},
		"httpjson.tuned": {"client: " + reads: gone, "server: " + reads: gone, "client: net/http.(*Client).do": gone,
			"client: net/http.NewRequestWithContext": gone},
		"httpjson.gzip": with(replies, row{"request: Content-Encoding": "gzip", "request: body": `"\x1f\x8b`}),
		"httpjson.h2c":  with(h2, row{"request: User-Agent": "Go-http-client/2.0"}),
		"httpjson.default": {"request: Accept-Encoding": "gzip", "protocol over TLS": "h2",
			"connections that four callers open again": "2"},
		"httpjson.v2":          with(unescaped, row{"invalid UTF-8": "malformed"}),
		"httpjsoniter.fastest": with(unescaped, kept),
	}
	delete(all["httpjson.gzip"], "reply: Accept-Encoding")
	for _, name := range []string{"connectrpc", "connectrpc2"} {
		all[name+".vt"], all[name+".gzip"], all[name+".h2c"] = kept, replies, h2
		all[name+".json"] = row{"request: Content-Type": "application/json", "reply: Content-Type": "application/json",
			"request: body": `"{`, "reply: body": `"{`}
		all[name+".grpc"] = with(h2, grpc, row{"request: Te": "trailers", "reply: Grpc-Status": "0",
			"request: Content-Type": "application/grpc", "reply: Content-Type": "application/grpc"})
		all[name+".grpcweb"] = with(grpc, row{"request: X-User-Agent": "grpc-go-connect/",
			"reply: Transfer-Encoding": "chunked", "reply: body": `grpc-status: 0`,
			"request: Content-Type": "application/grpc-web+proto", "reply: Content-Type": "application/grpc-web+proto"})
	}
	return all
}

func with(rows ...row) row {
	all := row{}
	for _, r := range rows {
		maps.Copy(all, r)
	}
	return all
}

// TestVariants: a variant does what its name says on both sides, and nothing else. Each differs from its plain stack in
// the properties of its row, and in no other one. The two versions of Connect differ in their names.
func TestVariants(t *testing.T) {
	rows, seen := rows(), map[string]properties{}
	see := func(name string) properties {
		if seen[name] == nil {
			found, err := stacks.Find(name)
			require.NoError(t, err)
			seen[name] = observed(t, found[0])
		}
		return seen[name]
	}
	for _, s := range stacks.All() {
		name, variant, _ := strings.Cut(s.Name, ".")
		if variant != "" {
			require.Contains(t, rows, s.Name, "it needs a row of what sets it apart from %s", name)
			rows[s.Name].check(t, s.Name, name, see(s.Name), see(name))
			delete(rows, s.Name)
		}
		if name == "connectrpc2" {
			version, first := row{"request: User-Agent": "/2.0.2"}, strings.Replace(s.Name, "2", "", 1)
			if variant == "grpcweb" {
				version["request: X-User-Agent"] = "/2.0.2"
			}
			version.check(t, s.Name, first, see(s.Name), see(first))
		}
	}
	delete(rows, "httpjson.v2") // where Go has it, that was seen
	require.Empty(t, rows, "no such variants")
}

func (r row) check(t *testing.T, name, plain string, is, was properties) {
	t.Helper()
	for _, property := range slices.Sorted(maps.Keys(with(is.row(), was.row(), r))) {
		is, was := is[property], was[property]
		want, differs := r[property]
		lacks := func(v string) bool { return !strings.Contains(v, want) }
		has := func(v string) bool { return !lacks(v) }
		switch {
		case !differs && r["request: HTTP"] == "2" && strings.HasPrefix(property, settings): // the plain stack has no HTTP/2
			differs = was == nil
		case !differs:
			differs = slices.Equal(is, was)
		case want == gone || want == here:
			differs = (is == nil) == (want == gone) && (was == nil) == (want == here)
		default:
			differs = is != nil && !slices.ContainsFunc(is, lacks) && !slices.ContainsFunc(was, has)
		}
		if !differs {
			t.Errorf("%s: %s: a variant does what its name says on both sides, and nothing else: %q, of %s %q", name, property,
				is, plain, was)
		}
	}
}

// properties are what can be seen of a stack, with a value of each message or connection that shows it.
type properties map[string][]string

// row has the properties of p.
func (p properties) row() row {
	all := row{}
	for property := range p {
		all[property] = ""
	}
	return all
}

func (p properties) add(property, value string) { p[property] = append(p[property], value) }

func observed(t *testing.T, s rpcbench.Stack) properties {
	p, recorded := properties{}, new(tap.Tap)
	f := stacktest.Start(t, s, rpcbench.Config{WrapClient: recorded.Wrap})
	defer f.Close()
	users, echoer := testkit.As[rpcbench.Users](t, f), testkit.As[rpcbench.Echoer](t, f)
	u, m := rpcbench.SampleUser(0, 10), &rpcbench.Flex{String: "<echo>"}
	u.Name = "Anna <i>"
	call, err := users.PrepareUser(u)
	require.NoError(t, err)
	echo, err := echoer.PrepareEcho(m)
	require.NoError(t, errors.Join(err, call(t.Context()), echo(t.Context())))
	sent, received := recorded.Conns()[0].Bytes()
	requests, replies, err := wire.Read(sent, received)
	require.NoError(t, err)
	for _, n := range []int{2, 1} {
		p.message("request", requests[len(requests)-n])
		p.message("reply", replies[len(replies)-n])
	}
	if frames, ok := bytes.CutPrefix(sent, []byte(http2.ClientPreface)); ok {
		p.frames(t, "client's ", frames)
		p.frames(t, "server's ", received)
	}
	if strings.HasPrefix(s.Protocol, "http/json") {
		p.following(t, f, requests[len(requests)-2], replies[len(replies)-2], call)
	}
	if !strings.HasPrefix(s.Name, "connect") { // whose variants leave the functions below to their library
		p.functions(t, call)
	}
	u.Name, m.String = "Anna\xff", "\xff"
	created, err := users.CreateUser(t.Context(), u)
	if err == nil {
		p.add("invalid UTF-8", fmt.Sprintf("arrives as %+q", created.User.Name))
	} else {
		p.add("invalid UTF-8", string(rpcbench.CodeOf(err)))
	}
	p.connections(t, s)
	return p
}

func (p properties) message(what string, m wire.Message) {
	p.add(what+": HTTP", m.Version)
	p.add(what+": body", fmt.Sprintf("%q", m.Body))
	for _, h := range []http.Header{m.Header, m.Trailer} {
		for name, values := range h {
			switch name {
			case ":authority", "Content-Length", "Date":
			default:
				p.add(what+": "+name, strings.Join(values, ", "))
			}
		}
	}
}

// frames has the settings of a side of HTTP/2, the window of its connection and its pings.
func (p properties) frames(t *testing.T, side string, data []byte) {
	const given = 10_000 // more than was received
	fr, window, pings := http2.NewFramer(nil, bytes.NewReader(data)), uint32(1<<16-1), "none"
	fr.SetMaxReadFrameSize(1 << 22)
	frame, err := fr.ReadFrame()
	for ; err == nil; frame, err = fr.ReadFrame() {
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			_ = f.ForeachSetting(func(s http2.Setting) error {
				p.add(settings+side+s.ID.String(), fmt.Sprint(s.Val))
				return nil
			})
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 && f.Increment > given {
				window += f.Increment
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				pings = "some"
			}
		}
	}
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), err)
	p.add(settings+side+"window of the connection", fmt.Sprint(window))
	p.add(settings+side+"pings", pings)
}

// following tells whether each side takes what follows a complete value.
func (p properties) following(t *testing.T, f *rpcbench.Fixture, request, reply wire.Message, call rpcbench.Call) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(request.Version != "2")
	protocols.SetUnencryptedHTTP2(request.Version == "2")
	const more = " and more"
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+f.Addr+request.Header.Get(":path"), strings.NewReader(string(request.Body)+more))
	require.NoError(t, err)
	ask.Header.Set("Content-Encoding", request.Header.Get("Content-Encoding"))
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(ask)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	p.add("server: status for more than a value", resp.Status)

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", reply.Header.Get("Content-Encoding"))
		_, _ = w.Write(append(slices.Clone(reply.Body), more...))
	}))
	server.Config.Protocols = protocols
	server.Start()
	defer server.Close()
	client, err := f.Stack.Dial(rpcbench.ClientConfig{Addr: server.Listener.Addr().String(), Conns: 1,
		DialContext: new(net.Dialer).DialContext})
	require.NoError(t, err)
	u := rpcbench.SampleUser(0, 10)
	u.Name = "Anna <i>"
	_, err = client.(rpcbench.Users).CreateUser(t.Context(), u)
	p.add("client: code for more than a value", fmt.Sprintf("%q", rpcbench.CodeOf(err)))
	require.NoError(t, client.Close())
}

// functions has which functions allocate in each call, beside what the suite sees of codecs and libraries.
func (p properties) functions(t *testing.T, call rpcbench.Call) {
	const calls = 10
	var err error
	profile, profiled := allocproof.Run(func() {
		for range calls {
			err = errors.Join(err, call(context.Background()))
		}
	})
	require.NoError(t, errors.Join(err, profiled))
	for _, function := range []string{"net/http.(*Client).do", "net/http.NewRequestWithContext", "io.ReadAll",
		"google.golang.org/grpc.(*Server).serverWorker"} {
		elsewhere := int64(0)
		for root, objects := range profile.ObjectsOf(function) {
			if root == allocproof.Client && objects >= calls {
				p.add("client: "+function, "allocates")
			} else if root != allocproof.Client {
				elsewhere += objects
			}
		}
		if elsewhere >= calls {
			p.add("server: "+function, "allocates")
		}
	}
}

// connections has the protocol over TLS, and how many of four connections four calls at once open again, at least: now
// and then net/http leaves one more.
func (p properties) connections(t *testing.T, s rpcbench.Stack) {
	f := stacktest.Start(t, s, rpcbench.Config{TLS: true})
	state, _ := f.TLS()
	p.add("protocol over TLS", state.NegotiatedProtocol)
	require.NoError(t, f.Close())
	const callers = 4
	round := new(atomic.Pointer[meeting])
	f = stacktest.Start(t, s, rpcbench.Config{Conns: callers, WrapServer: func(c net.Conn) net.Conn {
		return meets{c, round}
	}})
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, before := int64(callers), int64(0)
	for i := range 5 {
		m := &meeting{full: make(chan struct{}), until: ctx.Done()}
		m.left.Store(callers)
		round.Store(m)
		before = f.Accepted()
		ended := make(chan error, callers)
		for i := range callers {
			call, err := f.Client.Prepare(i)
			require.NoError(t, err)
			go func() { ended <- call(ctx) }()
		}
		for range callers {
			require.NoError(t, <-ended)
		}
		if i > 0 {
			again = min(again, f.Accepted()-before)
		}
	}
	p.add("connections that four callers open again", fmt.Sprint(again))
}

// meeting is where requests of HTTP/1 wait for each other in front of the server.
type meeting struct {
	left  atomic.Int64
	full  chan struct{}
	until <-chan struct{}
}

type meets struct {
	net.Conn
	round *atomic.Pointer[meeting]
}

func (c meets) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	begins := bytes.HasPrefix(p[:n], []byte("POST ")) || n == 1 && p[0] == 'P' // which net/http may read by itself
	if m := c.round.Load(); m != nil && begins {
		if m.left.Add(-1) == 0 {
			close(m.full)
		}
		select {
		case <-m.full:
		case <-m.until:
		}
	}
	return n, err
}
