package stacktest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
)

// fake is a JSON stack written by hand with one fault at a time. The zero value has none.
type fake struct {
	answer    func(*rpcbench.Response) *rpcbench.Response // what the server sends in place of the right answer
	body      func([]byte) []byte                         // what becomes of the encoded reply
	gzip      bool                                        // the server compresses
	transport func(*http.Transport)
	server    func(*http.Server)
	encode    func(rpcbench.User) func() []byte                      // the client's, made by PrepareUser
	decode    func([]byte, *rpcbench.Response) (found bool)          // what the client tries before it decodes
	known     func(request []byte) (reply []byte, keep func([]byte)) // what the server tries before it decodes
	context   func(context.Context) context.Context                  // what the client makes of the caller's context
	verdict   func(error) error                                      // what the client makes of the call's error
	validate  func(*rpcbench.User) error
	status    int                                              // of a reply to an invalid user, in place of the right one
	closes    bool                                             // the server, after an error reply
	redials   bool                                             // the client, after Close
	limit     int64                                            // of a body, in place of MaxBody
	again     bool                                             // the Call asks again if it fails
	unchecked bool                                             // the Call does not compare the reply
	overlooks func(asked *rpcbench.User, r *rpcbench.Response) // what the Call makes equal before it compares
	numbered  bool                                             // messages are JSON-RPC's, with an id that counts
}

// message is one of JSON-RPC: a request, or a reply.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Failed  *rpcbench.Error `json:"error,omitempty"`
	ID      int64           `json:"id"`
}

func (k fake) stack() rpcbench.Stack {
	stack := httpjson.New()
	stack.Name, stack.Traits.Lossy = "fake", nil // what its messages would lose: it has none
	if k.numbered {
		stack.Traits.Varies = rpcbench.VariesNumbered
	}
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		idle, header := config.Limits()
		k := k
		if k.validate == nil {
			k.validate = rpcbench.NewUserValidator[rpcbench.User](config)
		}
		s := &http.Server{
			Handler: http.HandlerFunc(k.serve), TLSConfig: config.TLS, Protocols: onlyHTTP1(),
			ReadHeaderTimeout: header, IdleTimeout: idle,
		}
		if k.server != nil {
			k.server(s)
		}
		if config.TLS == nil {
			return s, nil
		}
		return testkit.Server{Server: s, OnServe: func(ln net.Listener) error { return s.ServeTLS(ln, "", "") }}, nil
	}
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		closed := new(atomic.Bool)
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if closed.Load() && !k.redials {
				return nil, net.ErrClosed
			}
			return config.DialContext(ctx, network, addr)
		}
		transport := &http.Transport{
			DialContext: dial, TLSClientConfig: config.TLS, DisableCompression: !k.gzip,
			MaxConnsPerHost: config.Conns, MaxIdleConnsPerHost: config.Conns,
		}
		if k.transport != nil {
			k.transport(transport)
		}
		scheme := "http://"
		if config.TLS != nil {
			scheme = "https://"
		}
		client := &http.Client{Transport: transport}
		return &fakeClient{fake: k, url: scheme + config.Addr, http: client, sends: config.Headers, closed: closed,
			calls: new(atomic.Int64)}, nil
	}
	return stack
}

func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

func (k fake) serve(w http.ResponseWriter, r *http.Request) {
	var asked rpcMessage
	send := func(status int, v any) {
		data, _ := json.Marshal(v)
		if k.numbered {
			reply := rpcMessage{Version: "2.0", Result: data, ID: asked.ID}
			if failed, ok := v.(*rpcbench.Error); ok {
				reply.Result, reply.Failed = nil, failed
			}
			data, _ = json.Marshal(reply)
		}
		if k.body != nil {
			data = k.body(data)
		}
		if k.gzip {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(status)
			z := gzip.NewWriter(w)
			_, _ = z.Write(data)
			_ = z.Close()
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write(data)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cmp.Or(k.limit, rpcbench.MaxBody)))
	if err != nil {
		send(http.StatusRequestEntityTooLarge, &rpcbench.Error{Code: rpcbench.CodeTooLarge})
		return
	}
	if k.known != nil {
		reply, keep := k.known(data)
		if reply != nil {
			_, _ = w.Write(reply)
			return
		}
		k.body = func(data []byte) []byte { keep(data); return data }
	}
	if k.numbered {
		_ = json.Unmarshal(data, &asked)
		data = asked.Params
	}
	u := new(rpcbench.User)
	if err := json.Unmarshal(data, u); err != nil {
		send(http.StatusBadRequest, &rpcbench.Error{Code: rpcbench.CodeMalformed})
		return
	}
	if err := k.validate(u); err != nil {
		if k.closes {
			w.Header().Set("Connection", "close")
		}
		send(cmp.Or(k.status, http.StatusBadRequest), err)
		return
	}
	reply := rpcbench.AnswerUser(u)
	if k.answer != nil {
		reply = k.answer(reply)
	}
	send(http.StatusOK, reply)
}

type fakeClient struct {
	fake
	url   string
	http  *http.Client
	sends *rpcbench.Headers

	closed *atomic.Bool
	calls  *atomic.Int64 // so far
}

func (c *fakeClient) Close() error {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	return nil
}

func (c *fakeClient) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	data, _ := json.Marshal(u)
	return c.send(ctx, data)
}

func (c *fakeClient) send(ctx context.Context, data []byte) (rpcbench.Response, error) {
	if c.context != nil {
		ctx = c.context(ctx)
	}
	id := c.calls.Add(1)
	if c.numbered {
		data, _ = json.Marshal(rpcMessage{Version: "2.0", Method: "create_user", Params: data, ID: id})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(data))
	if err != nil {
		return rpcbench.Response{}, err
	}
	if c.sends != nil {
		req.Header.Set("User-Agent", c.sends.UserAgent)
		req.Header.Set("Authorization", c.sends.Authorization)
		req.Header.Set("Traceparent", c.sends.Traceparent())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return rpcbench.Response{}, rpcbench.CallError(ctx, err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err != nil {
		return rpcbench.Response{}, rpcbench.CallError(ctx, err)
	}
	if c.numbered {
		return c.result(data, id)
	}
	if resp.StatusCode != http.StatusOK {
		e := new(rpcbench.Error)
		if err := json.Unmarshal(data, e); err != nil {
			return rpcbench.Response{}, err
		}
		return rpcbench.Response{}, e
	}
	var reply rpcbench.Response
	if c.decode != nil && c.decode(data, &reply) {
		return reply, nil
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return reply, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	return reply, nil
}

// result is of JSON-RPC's reply to request id.
func (c *fakeClient) result(data []byte, id int64) (reply rpcbench.Response, err error) {
	var m rpcMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return reply, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	if m.Failed != nil {
		return reply, m.Failed
	}
	if m.ID != id {
		return reply, &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "a reply to another request"}
	}
	if c.decode != nil && c.decode(m.Result, &reply) {
		return reply, nil
	}
	if err := json.Unmarshal(m.Result, &reply); err != nil {
		return reply, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	return reply, nil
}

func (c *fakeClient) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *fakeClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	encode := func() []byte { data, _ := json.Marshal(u); return data }
	if c.encode != nil {
		encode = c.encode(u)
	}
	once := func(ctx context.Context) error {
		reply, err := c.send(ctx, encode())
		if c.verdict != nil {
			err = c.verdict(err)
		}
		if err != nil || c.unchecked {
			return err
		}
		if c.overlooks != nil {
			c.overlooks(&u, &reply)
		}
		return rpcbench.CheckUser(&u, &reply)
	}
	if !c.again {
		return once, nil
	}
	return func(ctx context.Context) error {
		if err := once(ctx); err == nil {
			return nil
		}
		return once(ctx)
	}, nil
}

// TestAFaultlessFakePasses: JSON-RPC, which has the connections of the fake, passes what reads its messages, and all
// with -long.
func TestAFaultlessFakePasses(t *testing.T) {
	for _, c := range []struct {
		name   string
		stack  rpcbench.Stack
		checks []string // nil is all
	}{
		{"WebSocket", webSocket{}.stack(), nil}, // first: of net/http, connections that were refused live half a second
		{"JSON-RPC", fake{numbered: true}.stack(), []string{"traffic", "codec", "repeats", "changed replies", "one request",
			"protocol", "compression", "outcomes", "body limit", "cancel"}},
		{"fake", fake{}.stack(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "fake" {
				t.Skip("takes long under the race detector")
			}
			if c.checks == nil || long() {
				Conformance(t, c.stack)
				return
			}
			for _, check := range c.checks {
				require.NoError(t, run(check, conform.Subject{Stack: c.stack}), check)
			}
		})
	}
}

// long tells of the flag that Main adds.
func long() bool { return current.long }

// TestFakesFail: each fault of published benchmarks, made on purpose, turns the named check red.
func TestFakesFail(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	relabelled := func(name, library string, server, client rpcbench.Stack) rpcbench.Stack {
		return rpcbench.Stack{
			Name: name, Protocol: client.Protocol, Server: server.Server, Dial: client.Dial,
			Traits: rpcbench.Traits{
				Codec: library, HTTP: "1.1", InvalidUTF8: rpcbench.UTF8Replaced,
				ServerLibraries: []string{"net/http"}, ClientLibraries: []string{"net/http"},
			},
		}
	}
	forgetsPassword := func(r *rpcbench.Response) *rpcbench.Response {
		r.User.Password = ""
		return r
	}
	var lastReply atomic.Pointer[rpcbench.Response]
	before := func(r *rpcbench.Response) *rpcbench.Response {
		if last := lastReply.Swap(r); last != nil {
			return last
		}
		return r
	}
	forgives := func(error) error { return nil }

	sending := func(change func(*rpcbench.Headers)) rpcbench.Stack {
		return testkit.Dialling(fake{}.stack(), func(c *rpcbench.ClientConfig) {
			if c.Headers != nil {
				own := *c.Headers
				change(&own)
				c.Headers = &own
			}
		})
	}
	for _, c := range []struct {
		fault string
		stack rpcbench.Stack
		fails string // checks, and after a bar what the first one says
	}{
		{"shortcut without network", shortcut(), "connections, traffic, codec"},
		{"shortcut that keeps a connection for show", decoy(fake{}.stack()), "traffic, changed replies"},
		{"wrong server behind the address", elsewhere(t), "connections, traffic"},
		{"a shared mux answers for another stack",
			relabelled("httpjsoniter", "github.com/json-iterator/go", httpjson.New(), httpjsoniter.New()), "codec"},
		{"a rival's codec in the client", relabelled("httpjson", "encoding/json", httpjson.New(), httpjsoniter.New()),
			"codec | the declared codec, allocated these objects"},
		{"grpc-go's own server behind the label of ServeHTTP",
			servedBy(grpcservehttp.VT(), grpcprotobuf.VT()), "codec"},
		{"ServeHTTP behind the label of grpc-go's own server",
			servedBy(grpcprotobuf.New(), grpcservehttp.New()), "codec"},
		{"v1 of Connect at the server of v2", servedBy(connectrpc2.New(), connectrpc.New()), "codec"},
		{"v2 of Connect at the server of v1", servedBy(connectrpc.New(), connectrpc2.New()), "codec"},
		{"v1 of Connect in the client of v2", servedBy(labelled(connectrpc.New(), connectrpc2.New()), connectrpc2.New()),
			"codec"},
		{"v2 of Connect in the client of v1", servedBy(labelled(connectrpc2.New(), connectrpc.New()), connectrpc.New()),
			"codec"},
		{"a client of net/http behind no label", declaring(func(t *rpcbench.Traits) { t.ClientLibraries = nil }), "codec"},
		{"a request each behind the label of leased streams",
			claiming(grpcprotobuf.New(), func(t *rpcbench.Traits) { t.Leased = true }),
			"one request | one must be open all the time"},
		{"leased streams behind no label", claiming(onStreams{}.stack(), func(t *rpcbench.Traits) { t.Leased = false }),
			"one request | two calls took 0 requests"},
		{"a leased stream for each call", onStreams{anew: true}.stack(),
			"one request | one must be open all the time"},
		{"a CreateUser that sends more on a leased stream", onStreams{unalike: true}.stack(),
			"one request | send different messages"},
		{"spans that nobody makes", declaring(func(t *rpcbench.Traits) { t.Traced = "sampled" }),
			"headers | must have that of its span"},
		{"a word for spans that says nothing", declaring(func(t *rpcbench.Traits) { t.Traced = "yes" }), "declared"},
		{"dropped field that nobody compares", fake{answer: forgetsPassword, unchecked: true}.stack(),
			`hostile values, changed replies | a payload: Password "pw-00" came back as ""; Traits.Lossy does`},
		{"reply of the call before that nobody compares",
			fake{answer: before, unchecked: true}.stack(), "traffic, changed replies"},
		{"replies that nobody compares", fake{unchecked: true}.stack(), "changed replies | the reply is not compared"},
		{"error counted as success", fake{verdict: forgives, unchecked: true}.stack(),
			"changed replies, outcomes, deadline, cancel, unavailable"},
		{"a timeout that nobody asked for", fake{context: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}}.stack(), "patience | the client has a timeout of its own"},
		{"ignored deadline", fake{context: context.WithoutCancel}.stack(), "deadline, cancel"},
		{"a connection per call", fake{transport: func(t *http.Transport) { t.DisableKeepAlives = true }}.stack(),
			"changed replies, connections | connections are declared"},
		{"calls on one connection of several", onTheFirst(), "connections | must take the connections in turn"},
		{"more connections than declared",
			fake{transport: func(t *http.Transport) { t.MaxConnsPerHost, t.MaxIdleConnsPerHost = 0, 1 }}.stack(),
			"connections"},
		{"connections as needed, of a pool that keeps its own", reconnects(fake{}.stack()), "shared"},
		{"connections as needed, of callers who share one", reconnects(grpcprotobuf.New()),
			"shared | leave Traits.Reconnects out"},
		{"connections as needed, beside DialContext", testkit.Dialling(reconnecting(), func(c *rpcbench.ClientConfig) {
			first, given := new(atomic.Bool), c.DialContext
			c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if first.CompareAndSwap(false, true) {
					return given(ctx, network, addr)
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}), "connections | 1 dialled with ClientConfig.DialContext"},
		{"an Accept-Encoding declared and not sent",
			declaring(func(t *rpcbench.Traits) { t.AsksGzip = true }), "compression | leave AsksGzip out"},
		{"another HTTP version over TLS than there is",
			declaring(func(t *rpcbench.Traits) { t.HTTPOverTLS = "3" }), "declared"},
		{"gzip nobody asked for", fake{gzip: true}.stack(), "compression"},
		{"an Accept-Encoding nobody asked for",
			fake{transport: func(t *http.Transport) { t.DisableCompression = false }}.stack(), "compression"},
		{"gzip that no header tells of", fake{body: deflated, decode: inflated}.stack(),
			"compression | bytes in replies; compression declared: false"},
		{"gzip declared and not sent", declaring(func(t *rpcbench.Traits) { t.Compression = "gzip" }), "compression"},
		{"a status of gRPC that says that the call went wrong", failingInTrailers(),
			"protocol | they must say that the call went well"},
		{"another HTTP version than declared", declaring(func(t *rpcbench.Traits) { t.HTTP = "2" }), "protocol"},
		{"a negative zero that nobody declares", claiming(grpcprotobuf.VT(), func(t *rpcbench.Traits) { t.Lossy = nil }),
			"echo | zero: Double -0 came back as 0, Float -0 came back as 0; T"},
		{"invalid UTF-8 declared to be rejected",
			declaring(func(t *rpcbench.Traits) { t.InvalidUTF8 = rpcbench.UTF8Rejected }), "hostile values"},
		{"invalid UTF-8 declared to be kept", declaring(func(t *rpcbench.Traits) { t.InvalidUTF8 = rpcbench.UTF8Kept }),
			`hostile values | declared to be kept: "in\xffvalid" came back as "in`},
		{"a name that benchmark tools can't read", named("HTTP-JSON", fake{}.stack()), "declared"},
		{"a Call with headers of its own", secondHeader(), "one request"},
		{"headers that are left out",
			testkit.Dialling(fake{}.stack(), func(c *rpcbench.ClientConfig) { c.Headers = nil }), "headers"},
		{"one traceparent for all calls", sending(func(h *rpcbench.Headers) {
			once := h.Traceparent()
			h.Traceparent = func() string { return once }
		}), "headers"},
		{"an authorization of the stack's own",
			sending(func(h *rpcbench.Headers) { h.Authorization = "Bearer short" }), "headers"},
		{"the library's own user agent",
			sending(func(h *rpcbench.Headers) { h.UserAgent = "Go-http-client/1.1" }), "headers"},
		{"headers that nobody asked for", testkit.Dialling(fake{}.stack(),
			func(c *rpcbench.ClientConfig) { c.Headers = corpus.Headers() }), "headers"},
		{"headers refused without a reason", testkit.Dialling(fake{}.stack(), func(c *rpcbench.ClientConfig) {
			if c.Headers != nil {
				c.Addr = "none"
			}
		}), "headers"},
		{"encoded once, in PrepareUser", fake{encode: func(u rpcbench.User) func() []byte {
			data, _ := json.Marshal(u)
			return func() []byte { return data }
		}}.stack(), "repeats | it encodes what each Call must encode"},
		{"a client that keeps what it encoded", fake{encode: func(u rpcbench.User) func() []byte {
			var data []byte
			return func() []byte {
				if data == nil {
					data, _ = json.Marshal(u)
				}
				return data
			}
		}}.stack(), "repeats | the Call keeps something"},
		{"a client that keeps what it encoded the hundredth time", fake{encode: func(u rpcbench.User) func() []byte {
			made := 0
			var data []byte
			return func() []byte {
				if made++; made <= 100 {
					data, _ = json.Marshal(u)
				}
				return data
			}
		}}.stack(), "repeats | the Call keeps something"},
		{"a Call that decodes into values of a pool", pooledByCall(), "repeats | the value that it decodes into"},
		{"a Call that answers from memory after a while", clientOf(func(c rpcbench.Users) rpcbench.Client {
			return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
				made := 0
				return func(ctx context.Context) error {
					if made++; made > 60 {
						return nil
					}
					return call(ctx)
				}
			})
		}), "traffic | it did not cross the connection"},
		{"a client that knows replies by their bytes", fake{decode: decodedBefore()}.stack(),
			"repeats | something is kept from call to call"},
		{"a server that knows requests by their bytes", fake{known: answeredBefore()}.stack(),
			"repeats | something is kept from call to call"},
		{"a client that compares replies as bytes", fake{decode: comparedBytes(true)}.stack(),
			"replies in another order | which a Call must decode"},
		{"a client that decodes only what it does not expect", fake{decode: comparedBytes(false)}.stack(),
			"replies in another order | replies that come as expected are not decoded"},
		{"a client that decodes into one value again", clientOf(func(c rpcbench.Users) rpcbench.Client {
			own := *c.(*fakeClient)
			own.decode = decodedAgain()
			return &own
		}), "hostile values | decode into a used value"},
		{"a Call that decodes into one value again", keptByCall(), "repeats | the value that it decodes into"},
		{"a user that is validated twice", fake{validate: validated(2)}.stack(),
			"validation | validates its user 2.0 times"},
		{"a user that is validated by other rules", fake{validate: validated(0)}.stack(), "validation, outcomes"},
		{"a client that validates", validating(), "validation | the client validates the user"},
		{"a Call that asks again", fake{again: true}.stack(), "changed replies | it asked again"},
		{"HTTP status 200 for an invalid user", fake{status: http.StatusOK}.stack(),
			`outcomes | with the code "invalid"`},
		{"a connection closed after an error reply", fake{closes: true}.stack(),
			"outcomes | must leave the connection open"},
		{"a body limit that the client keeps alone",
			clientOf(func(c rpcbench.Users) rpcbench.Client { return limiting{c} }),
			"outcomes | sent nothing: the server must refuse it"},
		{"a header limit far below MaxHeader", fake{server: func(s *http.Server) { s.MaxHeaderBytes = 10_000 }}.stack(),
			"header limit | are refused, MaxHeader is larger"},
		{"a header limit far above MaxHeader",
			fake{server: func(s *http.Server) { s.MaxHeaderBytes = 16 * rpcbench.MaxHeader }}.stack(),
			"header limit | are taken, MaxHeader is smaller"},
		{"a body limit of 1.5 MiB", fake{limit: 3 << 19}.stack(),
			`body limit | Call: want an *rpcbench.Error with the code "invalid", got: too_large`},
		{"a body limit of 3 MiB", fake{limit: 3 << 20}.stack(),
			`body limit | Call: want an *rpcbench.Error with the code "too_large", got: invalid`},
		{"no body limit", fake{limit: 1 << 40}.stack(),
			"outcomes, body limit | with a payload of 4194304 bytes where MaxBody is 2097152"},
		{"an Echoer whose Call compares nothing", echoing(forgiving("wrong reply")),
			"echo | the echo's Call succeeded although the reply held another string"},
		{"an Echoer whose Call answers from memory after a while", echoing(func(call rpcbench.Call) rpcbench.Call {
			made := 0
			return func(ctx context.Context) error {
				if made++; made > 60 {
					return nil
				}
				return call(ctx)
			}
		}), "traffic | of one request sent 0 bytes"},
		{"an Echoer whose server does not echo",
			clientOf(func(c rpcbench.Users) rpcbench.Client { return echoless{c} }),
			"echo | a plain message does not come back"},
		{"a loss declared that only an Echoer can have",
			declaring(func(t *rpcbench.Traits) { t.Lossy = []rpcbench.Loss{rpcbench.LossNegativeZero} }),
			"echo | the client is no Echoer"},
		{"no idle timeout", fake{server: func(s *http.Server) { s.IdleTimeout = time.Hour }}.stack(),
			"limits | the server keeps an idle connection"},
		{"an idle connection that the client alone ends", fake{
			server:    func(s *http.Server) { s.IdleTimeout = time.Hour },
			transport: func(t *http.Transport) { t.IdleConnTimeout = 500 * time.Millisecond },
		}.stack(), "limits | the client ended an idle connection, and the server had not"},
		{"a Client.Close that does nothing",
			clientOf(func(c rpcbench.Users) rpcbench.Client { return testkit.Client{Users: c, OnClose: nothing} }),
			"close | Client.Close leaves connection 1 of 2 open"},
		{"a Server.Close that does nothing", testkit.WithServer(fake{}.stack(),
			func(s rpcbench.Server) rpcbench.Server {
				return testkit.Server{Server: s, OnServe: s.Serve, OnClose: nothing}
			}),
			"close | Server.Close leaves connection 1 of 2 open"},
		{"a client that dials again after its Close", fake{redials: true}.stack(),
			"close | a Call after Client.Close alone: want"},
		{"a pool whose wait ignores the context", inTurn(fake{}.stack()),
			"cancel, deadline | interrupted while another call has the only connection"},
		{"a late reply to another call", lateReplies(), "cancel | the call after one that ended as \"canceled\", of another"},
		{"calls that take turns on a connection without saying so", inTurn(grpcprotobuf.New()), "shared"},
		{"calls that don't take the turns that are declared",
			claiming(grpcprotobuf.New(), func(t *rpcbench.Traits) { t.Turns = true }), "shared"},
		{"turns on connections that nobody shares", declaring(func(t *rpcbench.Traits) { t.Turns = true }), "declared"},
		{"fixtures that share a pool, which the first one closes", sharedPool(),
			"connections | is something shared, such as a transport"},
		{"clients that decode into one value", fake{decode: decodedAgain()}.stack(),
			"connections | is a value shared, such as the one that replies are decoded into?"},
		{"fixtures that share a pool", sharedPool(), "neighbours | a second fixture, beside the first: "},
		{"fixtures that share their connections' end", sharedEnd(), "neighbours | closing one fixture broke the other"},
		{"a handler that does not wait", fake{validate: validated(1)}.stack(),
			"wait | NewUserValidator, and all handlers wait"},
		{"an echo that does not wait", oneWaits("/users"), "wait | an echo: took"},
		{"calls that wait in turn", validatedBy(func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
			var mu sync.Mutex
			validate := rpcbench.NewUserValidator[rpcbench.User](config)
			return func(u *rpcbench.User) error {
				mu.Lock()
				defer mu.Unlock()
				return validate(u)
			}
		}), "wait | 4 calls at a time waited one after the other"},
		{"a handler that waits before it validates", validatedBy(
			func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
				validate := validated(1)
				return func(u *rpcbench.User) error {
					<-time.After(config.Wait)
					return validate(u)
				}
			}), "wait | a user who is refused took"},
		{"a handler that waits by itself, and counts nothing", validatedBy(
			func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
				return rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{Wait: config.Wait})
			}), "wait | the server counted "},
		{"a handler that waits for the first calls only", validatedBy(
			func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
				return fromCall(rpcbench.NewUserValidator[rpcbench.User](config), validated(1))
			}), "late | NewUserValidator, and all handlers wait"},
		{"a validation that ends", validatedBy(func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
			return fromCall(rpcbench.NewUserValidator[rpcbench.User](config),
				func(*rpcbench.User) error { config.CountAndWait(); return nil })
		}), "late | a user who breaks rules: want"},
		{"a validation that ends for users it knows", validatedBy(
			func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
				validate := rpcbench.NewUserValidator[rpcbench.User](config)
				return fromCall(validate, func(u *rpcbench.User) error {
					if u.Name == "" {
						return validate(u)
					}
					config.CountAndWait()
					return nil
				})
			}), "late | validates its user 0.0 times"},
		{"a user who is validated twice from some call on", validatedBy(
			func(config rpcbench.ServerConfig) func(*rpcbench.User) error {
				validate := rpcbench.NewUserValidator[rpcbench.User](config)
				return fromCall(validate, func(u *rpcbench.User) error { return cmp.Or(validate(u), validate(u)) })
			}), "late | validates its user 2.0 times"},
		{"headers that end", endingHeaders(), "late | must have Config.Headers"},
		{"a server that answers from memory in the end", fake{known: lateKnown()}.stack(),
			"late | at least one per call is expected in the client's and in the server's"},
		{"a client that decodes from memory in the end", lateDecoder(decodedBefore()),
			"late | the Call keeps something"},
		{"a client that decodes with another codec in the end",
			lateDecoder(func(data []byte, r *rpcbench.Response) bool {
				return jsoniter.ConfigCompatibleWithStandardLibrary.Unmarshal(data, r) == nil
			}),
			"late | functions of github.com/json-iterator/go allocated"},
		{"a PrepareUser that encodes in the end", encodingEarly(), "late | or PrepareUser encodes"},
		{"no header timeout", fake{server: func(s *http.Server) { s.ReadHeaderTimeout = 0 }}.stack(),
			"limits | the server keeps a connection without a request"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			limit := time.Minute // as for anybody's stack: a busy machine takes a while
			switch {
			case slices.Contains([]string{"ignored deadline", "no idle timeout", "no header timeout",
				"a Client.Close that does nothing", "a Server.Close that does nothing",
				"a pool whose wait ignores the context", "connections as needed, of a pool that keeps its own",
				"calls that take turns on a connection without saying so"}, c.fault):
				limit = 2 * time.Second // what never comes is waited for
			case slices.Contains([]string{"calls that wait in turn", "a handler that waits before it validates"}, c.fault):
				limit = 10 * time.Second // of which each wait is a part
			}
			checks, cause, _ := strings.Cut(c.fails, " | ")
			if regexp.MustCompile("deadline|limits|header limit|patience|shared|wait").MatchString(checks) {
				t.Parallel() // these wait, and read nothing of the process as a whole
			}
			for i, name := range strings.Split(checks, ", ") {
				err := run(name, conform.Subject{Stack: c.stack, Limit: limit, Wait: time.Second / 2})
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

// TestFieldsThatNobodyCompares: a Call compares each field of the reply.
func TestFieldsThatNobodyCompares(t *testing.T) {
	for field, overlook := range map[string]func(asked *rpcbench.User, r *rpcbench.Response){
		"code":     func(_ *rpcbench.User, r *rpcbench.Response) { r.Code = rpcbench.OKCode },
		"id":       func(_ *rpcbench.User, r *rpcbench.Response) { r.User.ID = rpcbench.UserID },
		"email":    func(asked *rpcbench.User, r *rpcbench.Response) { r.User.Email = asked.Email },
		"name":     func(asked *rpcbench.User, r *rpcbench.Response) { r.User.Name = asked.Name },
		"password": func(asked *rpcbench.User, r *rpcbench.Response) { r.User.Password = asked.Password },
		"payload":  func(asked *rpcbench.User, r *rpcbench.Response) { r.User.Avatar = asked.Avatar },
		"message":  func(_ *rpcbench.User, r *rpcbench.Response) { r.Message = rpcbench.OKMessage },
	} {
		err := run("changed replies", conform.Subject{Stack: fake{overlooks: overlook}.stack()})
		require.ErrorContains(t, err, field, field)
		require.ErrorContains(t, err, "the reply is not compared", field)
	}
}

// TestRulesThatNobodyChecks: a server checks each rule of a user.
func TestRulesThatNobodyChecks(t *testing.T) {
	check := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	for _, rule := range []string{"email required", "email email", "email max=254", "name min=4", "name max=100",
		"password min=4", "password max=72", "avatar max=1048576"} {
		err := run("outcomes", conform.Subject{Stack: fake{validate: func(u *rpcbench.User) error {
			e, _ := errors.AsType[*rpcbench.Error](check(u))
			if e != nil {
				e.Violations = slices.DeleteFunc(e.Violations, func(v rpcbench.Violation) bool {
					return v.Field+" "+v.Rule == rule
				})
			}
			if e == nil || len(e.Violations) == 0 {
				return nil
			}
			return e
		}}.stack()})
		require.ErrorContains(t, err, `with the code "invalid", got: <nil>`, rule)
	}
}

// check is the check of a name, and run makes that.
func check(name string) conform.Check {
	all := conform.Checks()
	return all[slices.IndexFunc(all, func(c conform.Check) bool { return c.Name == name })]
}
func run(name string, s conform.Subject) error { return check(name).Run(s) }

// TestAServerMayKeepConnectionsInAMap: what the suite wraps a connection in can be a key, as one of package net can.
func TestAServerMayKeepConnectionsInAMap(t *testing.T) {
	var mu sync.Mutex
	open := map[net.Conn]http.ConnState{}
	keeps := fake{server: func(s *http.Server) {
		s.ConnState = func(c net.Conn, state http.ConnState) {
			mu.Lock()
			defer mu.Unlock()
			open[c] = state
		}
	}}.stack()
	for _, check := range []string{"connections", "limits", "close"} { // each wrapper of the suite
		require.NoError(t, run(check, conform.Subject{Stack: keeps}), check)
	}
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, open)
}

// TestANewConnectionIsNoFault: net/http dials anew when a busy machine made it drop a connection. The reply to that
// call is not changed on its way, whichever call of a check it is.
func TestANewConnectionIsNoFault(t *testing.T) {
	for n := range int64(4) {
		stack := clientOf(func(c rpcbench.Users) rpcbench.Client {
			var made atomic.Int64
			return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					if made.Add(1) == n {
						c.(*fakeClient).http.CloseIdleConnections()
					}
					return call(ctx)
				}
			})
		})
		require.NoError(t, run("changed replies", conform.Subject{Stack: stack}), "call %d", n)
	}
}

// TestSlowStarts: a start that takes longer than the server's timeout is tried again. One that fails at once is not.
func TestSlowStarts(t *testing.T) {
	late := func(c net.Conn) error { // who waits until the server has ended it
		_, _ = io.Copy(io.Discard, c)
		return nil
	}
	for _, c := range []struct {
		why    string
		times  int64
		change func(net.Conn) error // of the first connections
		want   string
	}{
		{"two slow starts", 2, late, ""},
		{"slow starts alone", 100, late, "machine busy? Three starts took longer than the server's timeout"},
		{"a start that fails once, and at once", 1, func(net.Conn) error { return io.ErrUnexpectedEOF }, "unexpected EOF"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var strict atomic.Bool // the server has the check's HeaderTimeout
			var dials atomic.Int64
			stack := fake{server: func(s *http.Server) { strict.Store(s.ReadHeaderTimeout < time.Second) }}.stack()
			stack = testkit.Dialling(stack, func(config *rpcbench.ClientConfig) {
				dial := config.DialContext
				config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					if err == nil && strict.Load() && dials.Add(1) <= c.times {
						err = c.change(conn)
					}
					return conn, err
				}
			})
			err := run("limits", conform.Subject{Stack: stack})
			for attempt := 0; attempt < 3 && c.want != "" && err == nil; attempt++ { // a busy machine was slow beside it
				dials.Store(0)
				err = run("limits", conform.Subject{Stack: stack})
			}
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// TestACrossedServerNeedNotEcho: it is skipped by name. A server that echoes is not.
func TestACrossedServerNeedNotEcho(t *testing.T) {
	serverOf := fake{}.stack()
	serverOf.Protocol = httpjson.New().Protocol
	joined, err := crossed.Of(httpjson.New(), serverOf)
	require.NoError(t, err)
	err = run("echo", conform.Subject{Stack: joined})
	require.ErrorAs(t, err, new(conform.Skip))
	require.ErrorContains(t, err, "the server of fake does not echo: ")

	joined, err = crossed.Of(httpjson.New(), httpjson.Decoder())
	require.NoError(t, err)
	require.NoError(t, run("echo", conform.Subject{Stack: joined}))
}

// TestTLSFaults: what a check sees over TLS alone.
func TestTLSFaults(t *testing.T) {
	upgraded := httpjson.Default()
	upgraded.Traits.HTTPOverTLS = ""
	inClear := testkit.Dialling(httpjson.New(), func(c *rpcbench.ClientConfig) { c.TLS = nil })
	server := inClear.Server
	inClear.Server = func(c rpcbench.ServerConfig) (rpcbench.Server, error) { c.TLS = nil; return server(c) }
	resuming := fake{transport: func(t *http.Transport) {
		if t.TLSClientConfig != nil {
			t.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}
	}}.stack()
	cache := tls.NewLRUClientSessionCache(0)
	resumingOthers := testkit.Dialling(httpjson.New(), func(c *rpcbench.ClientConfig) {
		c.TLS = c.TLS.Clone()
		c.TLS.ClientSessionCache = cache
	})
	trusting := testkit.Dialling(httpjson.New(), func(c *rpcbench.ClientConfig) {
		c.TLS = c.TLS.Clone()
		c.TLS.InsecureSkipVerify = true
	})
	for _, c := range []struct {
		fault       string
		stack       rpcbench.Stack
		check, want string
	}{
		{"no TLS", inClear, "protocol", "TLS version"},
		{"names in clear", inClear, "traffic", "in clear"},
		{"a version that is declared without need", declaring(func(t *rpcbench.Traits) { t.HTTPOverTLS = "2" }),
			"protocol", `protocol "", HTTP version "2"`},
		{"a version that is not declared", upgraded, "protocol", `protocol "h2", HTTP version "1.1"`},
		{"a client that resumes its sessions", resuming, "late", "resumed a TLS session"},
		{"a client that resumes another's sessions", resumingOthers, "late", "resumed a TLS session"},
		{"any certificate is accepted", trusting, "protocol", "does not trust"},
	} {
		require.ErrorContains(t, run(c.check, conform.Subject{Stack: c.stack, TLS: true}), c.want, c.fault)
	}
}

func declaring(change func(*rpcbench.Traits)) rpcbench.Stack {
	return claiming(fake{}.stack(), change)
}

func claiming(stack rpcbench.Stack, change func(*rpcbench.Traits)) rpcbench.Stack {
	change(&stack.Traits)
	return stack
}

// inTurn is a stack whose clients make one call at a time, and let the others wait whatever happens.
func inTurn(stack rpcbench.Stack) rpcbench.Stack {
	return testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
		lock := new(sync.Mutex)
		return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				lock.Lock()
				defer lock.Unlock()
				return call(ctx)
			}
		})
	})
}

func reconnects(stack rpcbench.Stack) rpcbench.Stack {
	return claiming(stack, func(t *rpcbench.Traits) { t.Reconnects = true })
}

// reconnecting is a stack with a connection for each call, which says so.
func reconnecting() rpcbench.Stack {
	return reconnects(fake{transport: func(t *http.Transport) { t.DisableKeepAlives = true }}.stack())
}

func named(name string, stack rpcbench.Stack) rpcbench.Stack {
	stack.Name = name
	return stack
}

// shortcut answers in the client, without any connection.
func shortcut() rpcbench.Stack {
	stack := fake{}.stack()
	stack.Dial = func(rpcbench.ClientConfig) (rpcbench.Client, error) { return inProcess{}, nil }
	return stack
}

type inProcess struct{}

func (inProcess) Close() error { return nil }
func (inProcess) CreateUser(_ context.Context, u rpcbench.User) (rpcbench.Response, error) {
	return *rpcbench.AnswerUser(&u), nil
}
func (c inProcess) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (inProcess) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	return func(context.Context) error { return rpcbench.CheckUser(&u, rpcbench.AnswerUser(&u)) }, nil
}

// decoy opens the declared connection, sends one real call over it, and answers all others itself.
func decoy(stack rpcbench.Stack) rpcbench.Stack {
	return testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
		return testkit.Around(c, func(u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
			return func(context.Context) error { return rpcbench.CheckUser(&u, rpcbench.AnswerUser(&u)) }
		})
	})
}

// elsewhere talks to another server than the one at its address.
func elsewhere(t *testing.T) rpcbench.Stack {
	other := Start(t, httpjson.New(), rpcbench.Config{})
	return testkit.Dialling(httpjson.New(), func(c *rpcbench.ClientConfig) { c.Addr = other.Addr })
}

// leaky leaves a goroutine behind at Close, until the test ends.
func leaky(t *testing.T) rpcbench.Stack {
	return testkit.WithServer(fake{}.stack(), func(s rpcbench.Server) rpcbench.Server {
		go keptAround(t.Context())
		return s
	})
}

// decodedBefore hands out clones of what it has decoded before.
func decodedBefore() func([]byte, *rpcbench.Response) bool {
	var replies sync.Map
	return func(data []byte, r *rpcbench.Response) bool {
		before, ok := replies.Load(string(data))
		if !ok {
			if json.Unmarshal(data, r) != nil {
				return false
			}
			u := *r.User
			replies.Store(string(data), rpcbench.Response{Code: r.Code, Message: r.Message, User: &u})
			return true
		}
		*r = before.(rpcbench.Response)
		u := *r.User
		r.User = &u
		return true
	}
}

// comparedBytes knows the replies to users by their bytes, and decodes none of them. Others are decoded, or, if strict,
// they are wrong where they are as long.
func comparedBytes(strict bool) func([]byte, *rpcbench.Response) bool {
	known := map[string]rpcbench.User{}
	for i := range 100 {
		u := rpcbench.SampleUser(i, 0)
		data, _ := json.Marshal(rpcbench.AnswerUser(&u))
		known[string(data)] = u
	}
	first := rpcbench.SampleUser(2, 0)
	expected, _ := json.Marshal(rpcbench.AnswerUser(&first))
	return func(data []byte, r *rpcbench.Response) bool {
		u, found := known[string(data)]
		if found {
			*r = *rpcbench.AnswerUser(&u)
		}
		return found || strict && len(data) == len(expected)
	}
}

// decodedAgain decodes every reply into the same value.
func decodedAgain() func([]byte, *rpcbench.Response) bool {
	var kept rpcbench.Response
	return func(data []byte, r *rpcbench.Response) bool {
		err := json.Unmarshal(data, &kept)
		*r = kept
		return err == nil
	}
}

// keptByCall is a stack each of whose Calls decodes into a value of its own.
func keptByCall() rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return testkit.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			own := *c.(*fakeClient)
			own.decode = decodedAgain()
			return own.PrepareUser(u)
		}}
	})
}

// pooledByCall is a stack whose Calls decode into values that calls before have used, and cleared.
func pooledByCall() rpcbench.Stack {
	values := sync.Pool{New: func() any { return &rpcbench.Response{User: new(rpcbench.User)} }}
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return testkit.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			own := *c.(*fakeClient)
			own.decode = func(data []byte, r *rpcbench.Response) bool {
				kept := values.Get().(*rpcbench.Response)
				defer values.Put(kept)
				*kept.User = rpcbench.User{}
				*kept = rpcbench.Response{User: kept.User}
				err := json.Unmarshal(data, kept)
				*r = *kept
				return err == nil
			}
			return own.PrepareUser(u)
		}}
	})
}

// validated is the check of a user, made so many times.
func validated(times int) func(*rpcbench.User) error {
	check := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	return func(u *rpcbench.User) (err error) {
		for range times {
			err = check(u)
		}
		return err
	}
}

// validatedBy is a fake whose server makes its validation of its configuration.
func validatedBy(of func(rpcbench.ServerConfig) func(*rpcbench.User) error) rpcbench.Stack {
	stack := fake{}.stack()
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return fake{validate: of(config)}.stack().Server(config)
	}
	return stack
}

// oneWaits is httpjson of whose handlers the one at path waits.
func oneWaits(path string) rpcbench.Stack {
	stack := httpjson.New()
	server := stack.Server
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		handler := func(wait time.Duration) http.Handler {
			config.Wait = wait
			s, _ := server(config) // which fails for no configuration
			return s.(interface{ HTTPHandler() http.Handler }).HTTPHandler()
		}
		mux := http.NewServeMux()
		mux.Handle("POST "+path, handler(config.Wait))
		mux.Handle("/", handler(0))
		return httpapi.NewServer(config, mux, false), nil
	}
	return stack
}

// validating checks users in the client as well.
func validating() rpcbench.Stack {
	check := validated(1)
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return testkit.Around(c, func(u rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error { return cmp.Or(check(&u), call(ctx)) }
		})
	})
}

// limiting refuses what is too large before it is sent.
type limiting struct{ rpcbench.Users }

func (c limiting) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	if len(u.Avatar) > rpcbench.MaxBody {
		return rpcbench.Response{}, &rpcbench.Error{Code: rpcbench.CodeTooLarge}
	}
	return c.Users.CreateUser(ctx, u)
}

// fromCall does one thing up to a call below those of the check of late calls, and another from then on.
func fromCall(early, late func(*rpcbench.User) error) func(*rpcbench.User) error {
	later := after()
	return func(u *rpcbench.User) error {
		if later() {
			return late(u)
		}
		return early(u)
	}
}

// after returns a function that says whether it has been called as often as is drawn at random.
func after() func() bool {
	var calls atomic.Int64
	limit := 100 + rand.Int64N(conform.LateCalls-100)
	return func() bool { return calls.Add(1) > limit }
}

// endingHeaders are sent with the first requests.
func endingHeaders() rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		with, without := *c.(*fakeClient), *c.(*fakeClient)
		without.sends = nil
		later := after()
		return testkit.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			early, err := with.PrepareUser(u)
			late, _ := without.PrepareUser(u)
			return func(ctx context.Context) error {
				if later() {
					return late(ctx)
				}
				return early(ctx)
			}, err
		}}
	})
}

// lateKnown is answeredBefore from some request on.
func lateKnown() func([]byte) ([]byte, func([]byte)) {
	known, later := answeredBefore(), after()
	return func(request []byte) ([]byte, func([]byte)) {
		if later() {
			<-time.After(time.Millisecond) // as handlers do
			return known(request)
		}
		return nil, func([]byte) {}
	}
}

// lateDecoder decodes as others from some reply on.
func lateDecoder(decode func([]byte, *rpcbench.Response) bool) rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		own, later := *c.(*fakeClient), after()
		own.decode = func(data []byte, r *rpcbench.Response) bool { return later() && decode(data, r) }
		return &own
	})
}

// encodingEarly encodes in PrepareUser once some calls were made.
func encodingEarly() rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		own := *c.(*fakeClient)
		own.calls = new(atomic.Int64)
		limit := 100 + rand.Int64N(conform.LateCalls-100)
		own.encode = func(u rpcbench.User) func() []byte {
			if own.calls.Load() < limit {
				return func() []byte { data, _ := json.Marshal(u); return data }
			}
			data, _ := json.Marshal(u)
			return func() []byte { return data }
		}
		return &own
	})
}

// echoless is an Echoer in name.
type echoless struct{ rpcbench.Users }

func (echoless) Echo(context.Context, *rpcbench.Flex) (*rpcbench.Flex, error) {
	return nil, errors.New("404 Not Found")
}
func (echoless) PrepareEcho(*rpcbench.Flex) (rpcbench.Call, error) {
	return nil, errors.New("404 Not Found")
}

// deflated and inflated are what gzip makes of a reply, and the reply.
func deflated(reply []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(reply)
	_ = z.Close()
	return out.Bytes()
}

func inflated(data []byte, r *rpcbench.Response) bool {
	z, err := gzip.NewReader(bytes.NewReader(data))
	return err == nil && json.NewDecoder(z).Decode(r) == nil
}

// echoing is httpjson with something around the Calls of echoes.
func echoing(change func(rpcbench.Call) rpcbench.Call) rpcbench.Stack {
	return testkit.WithClient(httpjson.New(), func(c rpcbench.Users) rpcbench.Client {
		return echoes{c, c.(rpcbench.Echoer), change}
	})
}

type echoes struct {
	rpcbench.Users
	rpcbench.Echoer
	change func(rpcbench.Call) rpcbench.Call
}

func (c echoes) PrepareEcho(m *rpcbench.Flex) (rpcbench.Call, error) {
	call, err := c.Echoer.PrepareEcho(m)
	return c.change(call), err
}

// onTheFirst is grpcprotobuf whose Calls share the first connection, but for those that connect the fixture.
func onTheFirst() rpcbench.Stack {
	stack := grpcprotobuf.New()
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		users := c.(rpcbench.Users)
		return testkit.Around(users, func(u rpcbench.User, call rpcbench.Call) rpcbench.Call {
			for range config.Conns - 1 {
				_, _ = users.PrepareUser(u) // takes the next connection
			}
			return call
		}), err
	}
	return stack
}

// failingInTrailers has replies of gRPC whose status is another than 0, and a client that does not look.
func failingInTrailers() rpcbench.Stack {
	overHTTP2 := new(http.Protocols)
	overHTTP2.SetUnencryptedHTTP2(true)
	return claiming(fake{transport: func(t *http.Transport) { t.Protocols = overHTTP2 }, server: func(s *http.Server) {
		s.Protocols = overHTTP2
		inner := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "13")
			inner.ServeHTTP(w, r)
		})
	}}.stack(), func(t *rpcbench.Traits) { t.HTTP = "2" })
}

// lateReplies is a stack whose CreateUser returns the reply that a call before it no longer awaited.
func lateReplies() rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client { return &late{Users: c} })
}

type late struct {
	rpcbench.Users
	missed atomic.Pointer[rpcbench.User]
}

func (c *late) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	r, err := c.Users.CreateUser(ctx, u)
	if missed := c.missed.Swap(nil); missed != nil && err == nil {
		return *rpcbench.AnswerUser(missed), nil
	}
	if err != nil {
		c.missed.Store(&u)
	}
	return r, err
}

// answeredBefore sends the bytes that answered the same request before.
func answeredBefore() func([]byte) ([]byte, func([]byte)) {
	var replies sync.Map
	return func(request []byte) ([]byte, func([]byte)) {
		if reply, ok := replies.Load(string(request)); ok {
			return reply.([]byte), nil
		}
		return nil, func(reply []byte) { replies.Store(string(request), reply) }
	}
}

// servedBy is a stack with another's server, under its own name and traits.
func servedBy(stack, other rpcbench.Stack) rpcbench.Stack {
	stack.Server = other.Server
	return stack
}

// labelled is a stack under the name and traits of another.
func labelled(stack, other rpcbench.Stack) rpcbench.Stack {
	stack.Name, stack.Traits = other.Name, other.Traits
	return stack
}

func keptAround(ctx context.Context) { <-ctx.Done() }

// TestDeclaredGoroutinesMayStay: a library that keeps a goroutine for the life of the process passes if its stack says
// so.
func TestDeclaredGoroutinesMayStay(t *testing.T) {
	stack := leaky(t)
	require.ErrorContains(t, run("close", conform.Subject{Stack: stack, Limit: 2 * time.Second}),
		"goroutines left after Close, which Traits.Background does not name")
	stack.Traits.Background = []string{"github.com/rpcbench/rpcbench/stacktest.keptAround"}
	require.NoError(t, run("close", conform.Subject{Stack: stack}))
}

// secondHeader sends another path from Calls than from CreateUser.
func secondHeader() rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		other := *c.(*fakeClient)
		other.url += "/?prepared"
		return testkit.Client{Users: c, OnPrepare: other.PrepareUser}
	})
}

func nothing() error { return nil }

// sharedPool is a stack all of whose clients take the connections of the first.
func sharedPool() rpcbench.Stack {
	var shared *http.Client
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		own := c.(*fakeClient)
		if shared == nil {
			shared = own.http
		}
		own.http = shared
		return own
	})
}

// sharedEnd is a stack whose clients all end with the first.
func sharedEnd() rpcbench.Stack {
	var all []rpcbench.Client
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		all = append(all, c)
		return testkit.Client{Users: c, OnClose: func() error {
			for _, each := range all {
				_ = each.Close()
			}
			return nil
		}}
	})
}
