// Package fasthttpjson serves and calls the create-user API as JSON over HTTP/1.1, with fasthttp and encoding/json. It
// speaks the protocol of httpjson. The library takes no contexts and speaks no HTTP/2. Its client sends a request only
// once, even if the server has already closed the connection, and its server limits the time of a whole request where
// others limit that of the headers.
package fasthttpjson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

const users, echo = "/users", "/echo"

// New uses the library's defaults, with pooled requests and replies as its documentation shows, and with the limits
// that every server has.
func New() rpcbench.Stack {
	t := binding.Traits(jsonstd.Codec{}.Traits())
	t.HTTP, t.ServerLibraries = "1.1", []string{"github.com/valyala/fasthttp"}
	t.ClientLibraries = t.ServerLibraries
	t.Background = []string{
		"github.com/valyala/fasthttp.updateServerDate.func1",
		"github.com/valyala/fasthttp.(*HostClient).connsCleaner", // ends within ten seconds of its last connection
	}
	return rpcbench.Stack{Name: "fasthttpjson", Protocol: "http/json", Traits: t, Server: newServer, Dial: dial}
}

func newServer(config rpcbench.ServerConfig) (rpcbench.Server, error) {
	idle, header := config.Limits()
	create := binding.Plain().NewService(config)
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			switch path := string(ctx.Path()); {
			case path != users && path != echo:
				ctx.Error("no such path", fasthttp.StatusNotFound)
			case !ctx.IsPost():
				ctx.Error("no such method", fasthttp.StatusMethodNotAllowed)
			case path == users:
				serve(ctx, create)
			default:
				serve(ctx, func(_ context.Context, f *rpcbench.Flex) (*rpcbench.Flex, error) {
					config.CountAndWait()
					return f, nil
				})
			}
		},
		IdleTimeout:        idle,
		ReadTimeout:        header,
		ReadBufferSize:     rpcbench.MaxHeader,
		MaxRequestBodySize: 4 * rpcbench.MaxBody, // the library would close the connection before its client has sent all
		Logger:             silent{},
	}
	return rpcbench.ServeConns(config, func(conn net.Conn) { _ = server.ServeConn(conn) }), nil
}

// silent drops messages about broken connections, which would appear within rows.
type silent struct{}

func (silent) Printf(string, ...any) {}

func serve[Q, A any](ctx *fasthttp.RequestCtx, do func(context.Context, *Q) (*A, error)) {
	body, q := ctx.PostBody(), new(Q)
	if len(body) > rpcbench.MaxBody {
		fail(ctx, &rpcbench.Error{Code: rpcbench.CodeTooLarge, Message: fmt.Sprintf("a body of %d bytes", len(body))})
		return
	}
	if err := json.Unmarshal(body, q); err != nil {
		fail(ctx, &rpcbench.Error{Code: rpcbench.CodeMalformed, Message: err.Error()})
		return
	}
	a, err := do(ctx, q)
	if err == nil {
		err = reply(ctx, fasthttp.StatusOK, a)
	}
	if err != nil {
		fail(ctx, err)
	}
}

func reply(ctx *fasthttp.RequestCtx, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx.SetContentType(jsonstd.Codec{}.ContentType())
	ctx.SetStatusCode(status)
	ctx.SetBody(data)
	return nil
}

func fail(ctx *fasthttp.RequestCtx, err error) {
	e := binding.AsError(err)
	if err := reply(ctx, httpapi.Status(e.Code), e); err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	}
}

// dial makes a client of one HostClient per connection, so that the end of a context can close the right connection.
func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	closed, cancel := context.WithCancel(context.Background())
	c := &client{config: config, url: httpapi.BaseURL(config), closed: closed, free: make(chan *host, config.Conns)}
	for range config.Conns {
		c.free <- c.newHost()
	}
	return binding.NewClient(binding.Plain(), []*binding.Conn[rpcbench.User, rpcbench.Response, rpcbench.Flex]{{
		Call: func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
			return call[rpcbench.Response](ctx, c, users, u)
		},
		Echo: func(ctx context.Context, f *rpcbench.Flex) (*rpcbench.Flex, error) {
			return call[rpcbench.Flex](ctx, c, echo, f)
		},
		Failure: binding.AsIs,
		Close: func() {
			cancel()
			for range len(c.free) { // now, and not by AfterFunc in a moment
				h := <-c.free
				h.cut()
				c.free <- h
			}
		},
	}}), nil
}

type client struct {
	config rpcbench.ClientConfig
	url    string
	closed context.Context
	free   chan *host // those that no call uses
}

// host is a HostClient of one connection. After an error it is replaced by another.
type host struct {
	*fasthttp.HostClient
	forget func() bool // keeps the client's Close from cutting
	mu     sync.Mutex
	conn   net.Conn
	isCut  bool
}

func (c *client) newHost() *host {
	h := new(host)
	h.HostClient = &fasthttp.HostClient{
		Addr: c.config.Addr, IsTLS: c.config.TLS != nil, TLSConfig: c.config.TLS, MaxConns: 1,
		Dial: func(addr string) (net.Conn, error) {
			conn, err := c.config.DialContext(c.closed, "tcp", addr)
			if err != nil {
				return nil, err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.conn = conn; h.isCut {
				return nil, errors.Join(net.ErrClosed, conn.Close())
			}
			return conn, nil
		},
	}
	h.forget = context.AfterFunc(c.closed, h.cut)
	return h
}

// cut closes the connection, now or as soon as it is open.
func (h *host) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isCut = true
	if h.conn != nil {
		_ = h.conn.Close()
	}
}

func call[A any](ctx context.Context, c *client, path string, q any) (*A, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(c.url + path)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType(jsonstd.Codec{}.ContentType())
	if h := c.config.Headers; h != nil {
		req.Header.SetUserAgent(h.UserAgent)
		req.Header.Set("Authorization", h.Authorization)
		req.Header.Set("Traceparent", h.Traceparent())
	}
	req.SetBodyRaw(data)
	if err := c.do(ctx, req, resp); err != nil {
		return nil, rpcbench.CallError(ctx, err)
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		e := new(rpcbench.Error)
		if err := json.Unmarshal(resp.Body(), e); err != nil || httpapi.Status(e.Code) != resp.StatusCode() {
			unreadable := fmt.Sprintf("status %d with an unreadable body", resp.StatusCode())
			return nil, &rpcbench.Error{Code: rpcbench.CodeInternal, Message: unreadable}
		}
		return nil, e
	}
	a := new(A)
	if err := json.Unmarshal(resp.Body(), a); err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	return a, nil
}

func (c *client) do(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error {
	var h *host
	select {
	case h = <-c.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	stop := func() bool { return true }
	if ctx.Done() != nil { // context.Background costs nothing
		stop = context.AfterFunc(ctx, h.cut)
	}
	err := h.Do(req, resp)
	if !stop() || err != nil {
		h.forget()
		h.cut()
		h.CloseIdleConnections()
		h = c.newHost()
	}
	c.free <- h
	return err
}
