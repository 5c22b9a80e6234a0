package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/binding"
)

func newClient[U, R, F, E any](config rpcbench.ClientConfig, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Client {
	header := [][2]string{{"Content-Type", c.ContentType()}}
	if options.Gzip {
		header = append(header, [2]string{"Content-Encoding", "gzip"}, [2]string{"Accept-Encoding", "gzip"})
	}
	if h := config.Headers; h != nil {
		header = append(header, [2]string{"User-Agent", h.UserAgent}, [2]string{"Authorization", h.Authorization})
	}
	b := newBodies(c, options, true)
	var conns []*binding.Conn[U, R, F]
	for _, h := range HTTPClients(config, options.HTTP2) {
		to := func(path string) calling {
			c := &caller[E]{b, h, BaseURL(config) + path, header, config.Headers, api.ToError}
			if options.Tuned {
				return c.tuned()
			}
			return c.call
		}
		conns = append(conns, &binding.Conn[U, R, F]{
			CreateUser: operation[U, R](to(usersPath)), Echo: operation[F, F](to(echoPath)), Close: CloseIdle(h),
		})
	}
	return binding.NewClient(api, conns)
}

// calling sends a request and decodes the reply.
type calling func(ctx context.Context, request, reply any) error

func operation[Q, A any](call calling) func(context.Context, *Q) (*A, error) {
	return func(ctx context.Context, q *Q) (*A, error) {
		a := new(A)
		return a, call(ctx, q, a)
	}
}

// caller calls one operation through one http.Client.
type caller[E any] struct {
	bodies
	http    *http.Client
	url     string
	header  [][2]string       // names and values that all requests have
	headers *rpcbench.Headers // nil: none but the library's own
	toError func(*E) *rpcbench.Error
}

func (c *caller[E]) call(ctx context.Context, request, reply any) error {
	body, err := c.encode(request)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
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
	if err := c.decode(resp.Header, resp.Body, reply); err != nil {
		return drain(ctx, resp.Body, &rpcbench.Error{Code: rpcbench.Malformed, Err: err})
	}
	return nil
}

// failure reads the error out of a reply whose status says that the call failed.
func (c *caller[E]) failure(ctx context.Context, resp *http.Response) error {
	limited, body := io.LimitReader(resp.Body, rpcbench.MaxBody), new(E)
	err := c.decode(resp.Header, limited, body)
	e := c.toError(body)
	if err != nil || e.Code == "" || status(e.Code) != resp.StatusCode {
		e = &rpcbench.Error{Code: rpcbench.Internal, Message: fmt.Sprintf("status %s with an unreadable body", resp.Status)}
	}
	return drain(ctx, limited, e)
}

// drain reads what is left of the body, or the connection could not be used again. Where drain fails, so did the connection.
func drain(ctx context.Context, body io.Reader, result *rpcbench.Error) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return rpcbench.CallError(ctx, err)
	}
	return result
}
