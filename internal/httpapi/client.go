package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/binding"
)

// BaseURL is the scheme and host of a client's requests.
func BaseURL(config rpcbench.ClientConfig) string {
	if config.TLS != nil {
		return "https://" + config.Addr
	}
	return "http://" + config.Addr
}

// NewHTTPClient holds conns keep-alive connections, of which HTTP/1.1 calls take any that is idle. It neither asks for
// compression nor undoes it.
func NewHTTPClient(config rpcbench.ClientConfig, conns int, http2 bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         config.DialContext,
		TLSClientConfig:     config.TLS.Clone(), // the Transport writes into it
		Protocols:           Protocols(http2),
		DisableCompression:  true,
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
	}}
}

// HTTPClients are the clients to bind calls to: one for all connections of HTTP/1.1, one for each of HTTP/2, whose
// Transport would send everything over one.
func HTTPClients(config rpcbench.ClientConfig, http2 bool) []*http.Client {
	if !http2 {
		return []*http.Client{NewHTTPClient(config, config.Conns, false)}
	}
	var clients []*http.Client
	for range config.Conns {
		clients = append(clients, NewHTTPClient(config, 1, true))
	}
	return clients
}

// CloseIdle makes the closer of an http.Client.
func CloseIdle(c *http.Client) func() error {
	return func() error {
		c.CloseIdleConnections()
		return nil
	}
}

func newClient[U, R, F, E any](config rpcbench.ClientConfig, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Client {
	b := newBodies(c, options, options.Tuned.ClientBuffers)
	usersURL, echoURL := BaseURL(config)+usersPath, BaseURL(config)+echoPath
	var made templates
	if options.Tuned.Templates {
		made = newTemplates(c.ContentType(), config.Headers, usersURL, echoURL)
	}
	var conns []*conn[U, R, F, E]
	var closers []func() error
	for _, h := range HTTPClients(config, options.HTTP2) {
		c := &conn[U, R, F, E]{bodies: b, http: h, templates: made, headers: config.Headers, toError: api.ToError, usersURL: usersURL, echoURL: echoURL}
		if options.Tuned.RoundTrip {
			c.transport = h.Transport
		}
		conns = append(conns, c)
		closers = append(closers, CloseIdle(h))
	}
	return binding.NewClient(api, conns, closers...)
}

// conn calls through one http.Client.
type conn[U, R, F, E any] struct {
	*bodies
	http              *http.Client
	transport         http.RoundTripper // nil: through http
	templates         templates         // nil: each request is made anew
	headers           *rpcbench.Headers // nil: none but the library's own
	toError           func(*E) *rpcbench.Error
	usersURL, echoURL string
}

func (c *conn[U, R, F, E]) CreateUser(ctx context.Context, u *U) (*R, error) {
	r := new(R)
	if err := c.call(ctx, c.usersURL, u, r); err != nil {
		return nil, err
	}
	return r, nil
}

func (c *conn[U, R, F, E]) Echo(ctx context.Context, f *F) (*F, error) {
	echo := new(F)
	if err := c.call(ctx, c.echoURL, f, echo); err != nil {
		return nil, err
	}
	return echo, nil
}

func (c *conn[U, R, F, E]) call(ctx context.Context, url string, request, reply any) error {
	body, err := c.encode(request)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	req, err := c.request(ctx, url, body)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	}
	resp, err := c.send(req)
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.failure(ctx, resp)
	}
	err = c.decode(resp.Body, resp.Header, reply)
	if err == nil && c.stream == nil {
		return nil // the whole body is read
	}
	// What follows a value is drained, or the connection could not be used again. If that fails, so did the connection.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return rpcbench.CallError(ctx, err)
	}
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	return nil
}

func (c *conn[U, R, F, E]) encode(v any) (io.Reader, error) {
	if c.stream != nil {
		buf := new(bytes.Buffer)
		return buf, c.stream.Encode(buf, v)
	}
	data, err := c.marshal(v)
	return bytes.NewReader(data), err
}

func (c *conn[U, R, F, E]) request(ctx context.Context, url string, body io.Reader) (*http.Request, error) {
	if c.templates != nil {
		return c.templates.request(ctx, url, body.(*bytes.Reader), c.headers), nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", c.codec.ContentType())
	if c.gzip != nil {
		c.setEncoding(req.Header)
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if c.headers != nil {
		req.Header.Set("User-Agent", c.headers.UserAgent)
		req.Header.Set("Authorization", c.headers.Authorization)
		req.Header.Set("Traceparent", c.headers.Traceparent())
	}
	return req, nil
}

func (c *conn[U, R, F, E]) send(req *http.Request) (*http.Response, error) {
	if c.transport != nil {
		return c.transport.RoundTrip(req)
	}
	return c.http.Do(req)
}

// failure reads the error out of a reply whose status says that the call failed.
func (c *conn[U, R, F, E]) failure(ctx context.Context, resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, rpcbench.MaxBody))
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	body := new(E)
	if err := c.decode(bytes.NewReader(data), resp.Header, body); err != nil {
		body = new(E) // and no code
	}
	e := c.toError(body)
	if e.Code == "" || status(e.Code) != resp.StatusCode {
		return &rpcbench.Error{Code: rpcbench.Internal, Message: fmt.Sprintf("status %s with an unreadable body", resp.Status)}
	}
	return e
}
