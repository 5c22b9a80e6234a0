package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
)

type client[U, R any] struct {
	format Format[U, R]
	codec  codec.Codec
	stream codec.Stream // nil: whole bodies
	http   *http.Client
	url    string
}

// newClient holds config.Conns keep-alive connections; a call takes any that is idle.
func newClient[U, R any](config rpcbench.ClientConfig, format Format[U, R]) rpcbench.Client {
	scheme := "http://"
	if config.TLS != nil {
		scheme = "https://"
	}
	stream, _ := format.Codec.(codec.Stream)
	return &client[U, R]{
		format: format,
		codec:  format.Codec,
		stream: stream,
		url:    scheme + config.Addr + path,
		http: &http.Client{Transport: &http.Transport{
			DialContext:         config.DialContext,
			TLSClientConfig:     config.TLS,
			Protocols:           http1(),
			DisableCompression:  true,
			MaxConnsPerHost:     config.Conns,
			MaxIdleConnsPerHost: config.Conns,
		}},
	}
}

func (c *client[U, R]) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func (c *client[U, R]) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	r, err := c.create(ctx, c.format.FromUser(u))
	if err != nil {
		return rpcbench.Response{}, err
	}
	return c.format.ToResponse(r), nil
}

func (c *client[U, R]) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	native := c.format.FromUser(u)
	return func(ctx context.Context) error {
		r, err := c.create(ctx, native)
		if err != nil {
			return err
		}
		return c.format.Check(native, r)
	}, nil
}

func (c *client[U, R]) create(ctx context.Context, u *U) (*R, error) {
	body, err := c.encode(u)
	if err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
	if err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	}
	req.Header.Set("Content-Type", c.codec.ContentType())
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, rpcbench.CallError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.failure(ctx, resp)
	}
	r := new(R)
	if c.stream != nil {
		if err := c.stream.Decode(resp.Body, r); err != nil {
			return nil, replyError(ctx, err)
		}
		// What follows the value is drained, or the connection could not be used again.
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, rpcbench.CallError(ctx, err)
		}
		return r, nil
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, rpcbench.CallError(ctx, err)
	}
	if err := c.codec.Unmarshal(data, r); err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	return r, nil
}

func (c *client[U, R]) encode(u *U) (io.Reader, error) {
	if c.stream != nil {
		buf := new(bytes.Buffer)
		return buf, c.stream.Encode(buf, u)
	}
	data, err := c.codec.Marshal(u)
	return bytes.NewReader(data), err
}

// replyError tells a reply that does not decode from a connection that broke under the decoder.
func replyError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return rpcbench.CallError(ctx, err)
	}
	return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
}

// failure reads the error out of a reply whose status says that the call failed.
func (c *client[U, R]) failure(ctx context.Context, resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, rpcbench.MaxBody))
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	e := new(rpcbench.Error)
	if c.codec.Unmarshal(data, e) != nil || e.Code == "" || status(e.Code) != resp.StatusCode {
		return &rpcbench.Error{Code: rpcbench.Internal, Message: fmt.Sprintf("status %s with an unreadable body", resp.Status)}
	}
	return e
}
