package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

func newClient[U, R, F, E any](
	config rpcbench.ClientConfig, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Client {
	b := newBodies(c, options, true)
	var conns []*binding.Conn[U, R, F]
	for _, o := range open(config, c, options) {
		users := &caller[U, R, E]{b, o.to(usersPath), api.ToError}
		echoes := &caller[F, F, E]{b, o.to(echoPath), api.ToError}
		conns = append(conns, &binding.Conn[U, R, F]{
			Call: users.call, Echo: echoes.call, Failure: binding.AsIs, Close: o.Close,
		})
	}
	return binding.NewClient(api, conns)
}

// opened is an HTTPClient with what makes the requests of a path.
type opened struct {
	HTTPClient
	to func(path string) sending
}

func open(config rpcbench.ClientConfig, c codec.Codec, options Options) (all []opened) {
	header := [][2]string{{"Content-Type", c.ContentType()}}
	if options.Gzip {
		header = append(header, [2]string{"Content-Encoding", "gzip"}, [2]string{"Accept-Encoding", "gzip"})
	}
	if h := config.Headers; h != nil {
		header = append(header, [2]string{"User-Agent", h.UserAgent}, [2]string{"Authorization", h.Authorization})
	}
	clients := HTTPClients(config, options.HTTP2)
	if options.Defaults {
		clients = []HTTPClient{clientOf(config, http.DefaultTransport.(*http.Transport).Clone(), config.TLS != nil)}
	}
	for _, h := range clients {
		if options.Transport != nil {
			h.Client.Transport = options.Transport(h.Client.Transport)
		}
		all = append(all, opened{h, func(path string) sending {
			r := &requests{h.Client, BaseURL(config) + path, header, config.Headers}
			if options.Tuned {
				return r.tuned()
			}
			return r.post
		}})
	}
	return all
}

// sending sends a request with a body and returns the reply.
type sending func(ctx context.Context, body io.Reader) (*http.Response, error)

// caller calls one operation.
type caller[Q, A, E any] struct {
	bodies
	send    sending
	toError func(*E) *rpcbench.Error
}

func (c *caller[Q, A, E]) call(ctx context.Context, q *Q) (*A, error) {
	body, err := c.encode(q)
	if err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	resp, err := c.send(ctx, body)
	if err != nil {
		return nil, rpcbench.CallError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		a := new(A)
		if err = c.decode(resp.Header, resp.Body, a); err == nil {
			return a, nil
		}
		err = &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	rest := io.LimitReader(resp.Body, rpcbench.MaxBody)
	if err == nil {
		err = c.failure(resp, rest)
	}
	// Read the rest of the body, since the connection could not be used again otherwise. If that fails, the connection
	// broke.
	if _, broken := io.Copy(io.Discard, rest); broken != nil {
		return nil, rpcbench.CallError(ctx, broken)
	}
	return nil, err
}

// failure returns the error that a reply with another status than 200 contains.
func (c *caller[Q, A, E]) failure(resp *http.Response, body io.Reader) error {
	sent := new(E)
	err := c.decode(resp.Header, body, sent)
	e := c.toError(sent)
	if err != nil || e.Code == "" || Status(e.Code) != resp.StatusCode {
		return &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "status " + resp.Status + " with an unreadable body"}
	}
	return e
}

// requests makes the requests of one operation through one http.Client.
type requests struct {
	http    *http.Client
	url     string
	header  [][2]string       // names and values that all requests have
	headers *rpcbench.Headers // nil for the library's own alone
}

func (r *requests) post(ctx context.Context, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, body)
	if err != nil {
		return nil, err
	}
	for _, h := range r.header {
		req.Header.Set(h[0], h[1])
	}
	if r.headers != nil {
		req.Header.Set("Traceparent", r.headers.Traceparent())
	}
	return r.http.Do(req)
}

// tuned calls the Transport directly, without the Client above it, which handles redirects and cookies. Requests are
// copies of a template. They share its URL and header, which a RoundTripper must not modify.
func (r *requests) tuned() sending {
	made, err := http.NewRequest(http.MethodPost, r.url, nil)
	if err != nil {
		return r.post // which reports the invalid URL
	}
	for _, h := range r.header {
		made.Header.Set(h[0], h[1])
	}
	return func(ctx context.Context, body io.Reader) (*http.Response, error) {
		req, data := made.WithContext(ctx), body.(*bytes.Reader)
		if r.headers != nil {
			req.Header = maps.Clone(req.Header) // the values stay shared
			req.Header.Set("Traceparent", r.headers.Traceparent())
		}
		// As http.NewRequestWithContext does: the body can be sent again if the server has closed this connection.
		req.ContentLength, req.Body = int64(data.Len()), io.NopCloser(data)
		unread := *data
		req.GetBody = func() (io.ReadCloser, error) {
			again := unread
			return io.NopCloser(&again), nil
		}
		return r.http.Transport.RoundTrip(req)
	}
}

// BaseURL returns the scheme and host of a client's requests.
func BaseURL(config rpcbench.ClientConfig) string {
	if config.TLS != nil {
		return "https://" + config.Addr
	}
	return "http://" + config.Addr
}

// HTTPClient is a client whose calls fail after Close.
type HTTPClient struct {
	*http.Client
	Close func()
}

// HTTPClients returns the clients of a stack, which neither ask for compression nor undo it. For HTTP/1.1 one client
// holds all connections, and a call takes an idle one. For HTTP/2 there is a client per connection, since a Transport
// would send everything over one.
func HTTPClients(config rpcbench.ClientConfig, http2 bool) []HTTPClient {
	clients, conns := 1, config.Conns
	if http2 {
		clients, conns = conns, 1
	}
	all := make([]HTTPClient, clients)
	for i := range all {
		all[i] = clientOf(config, &http.Transport{
			Protocols:           protocols(http2),
			DisableCompression:  true,
			MaxConnsPerHost:     conns,
			MaxIdleConnsPerHost: conns,
		}, http2)
	}
	return all
}

// clientOf makes a client of a Transport, whose connections are those of config. Close closes each of HTTP/2 by itself:
// a Transport leaves those open whose last call has ended just before.
func clientOf(config rpcbench.ClientConfig, transport *http.Transport, http2 bool) HTTPClient {
	closed := new(atomic.Bool)
	var mu sync.Mutex
	var dialled []net.Conn
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if closed.Load() {
			return nil, net.ErrClosed // the next call of a Transport without connections would dial again
		}
		conn, err := config.DialContext(ctx, network, addr)
		if err == nil && http2 {
			mu.Lock()
			defer mu.Unlock()
			if dialled = append(dialled, conn); closed.Load() {
				return nil, errors.Join(net.ErrClosed, conn.Close())
			}
		}
		return conn, err
	}
	transport.TLSClientConfig = config.TLS.Clone() // the Transport writes into it
	return HTTPClient{&http.Client{Transport: transport}, func() {
		closed.Store(true)
		transport.CloseIdleConnections()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range dialled {
			_ = conn.Close() // fails if it is closed
		}
	}}
}
