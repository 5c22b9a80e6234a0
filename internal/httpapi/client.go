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

func newClient[U, R, F, E any](config rpcbench.ClientConfig, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Client {
	usersURL, echoURL := BaseURL(config)+usersPath, BaseURL(config)+echoPath
	header := requestHeader(config, c, options)
	b := clientBodies(c, options)
	var conns []conn[U, R, F]
	var closers []func() error
	for _, h := range HTTPClients(config, options.HTTP2) {
		var call calling = &caller[E]{bodies: b, http: h, header: header, headers: config.Headers, toError: api.ToError}
		if options.Tuned {
			call = newTuned(call.(*caller[E]), usersURL, echoURL)
		}
		conns = append(conns, conn[U, R, F]{call, usersURL, echoURL})
		closers = append(closers, CloseIdle(h))
	}
	return binding.NewClient(api, conns, closers...)
}

// conn is the operations, by way of calling.
type conn[U, R, F any] struct {
	calling
	usersURL, echoURL string
}

type calling interface {
	call(ctx context.Context, url string, request, reply any) error
}

func (c conn[U, R, F]) CreateUser(ctx context.Context, u *U) (*R, error) {
	r := new(R)
	if err := c.call(ctx, c.usersURL, u, r); err != nil {
		return nil, err
	}
	return r, nil
}

func (c conn[U, R, F]) Echo(ctx context.Context, f *F) (*F, error) {
	echo := new(F)
	if err := c.call(ctx, c.echoURL, f, echo); err != nil {
		return nil, err
	}
	return echo, nil
}

// caller calls through one http.Client.
type caller[E any] struct {
	bodies
	http    *http.Client
	header  [][2]string       // names and values that all requests have
	headers *rpcbench.Headers // nil: none but the library's own
	toError func(*E) *rpcbench.Error
}

func requestHeader(config rpcbench.ClientConfig, c codec.Codec, options Options) [][2]string {
	header := [][2]string{{"Content-Type", c.ContentType()}}
	if options.Gzip {
		header = append(header, [2]string{"Content-Encoding", "gzip"}, [2]string{"Accept-Encoding", "gzip"})
	}
	if h := config.Headers; h != nil {
		header = append(header, [2]string{"User-Agent", h.UserAgent}, [2]string{"Authorization", h.Authorization})
	}
	return header
}

func (c *caller[E]) call(ctx context.Context, url string, request, reply any) error {
	body, err := c.encode(request)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	}
	for _, h := range c.header {
		req.Header.Set(h[0], h[1])
	}
	if c.headers != nil {
		req.Header.Set("Traceparent", c.headers.Traceparent())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	return c.receive(ctx, resp, reply)
}

func (c *caller[E]) receive(ctx context.Context, resp *http.Response, reply any) error {
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.failure(ctx, resp)
	}
	err := c.decode(resp.Header, resp.Body, reply)
	if err == nil {
		return nil
	}
	// What is left of the body is drained, or the connection could not be used again. If that fails, so did the connection.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return rpcbench.CallError(ctx, err)
	}
	return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
}

// failure reads the error out of a reply whose status says that the call failed.
func (c *caller[E]) failure(ctx context.Context, resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, rpcbench.MaxBody))
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	body := new(E)
	if err := c.decode(resp.Header, bytes.NewReader(data), body); err != nil {
		body = new(E) // and no code
	}
	e := c.toError(body)
	if e.Code == "" || status(e.Code) != resp.StatusCode {
		return &rpcbench.Error{Code: rpcbench.Internal, Message: fmt.Sprintf("status %s with an unreadable body", resp.Status)}
	}
	return e
}
