package rpcbench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
)

// Write a stack of your own over net/http. This one passes the suite. stacktest/testdata/outsider has one without HTTP.
func Example_ownStack() {
	ctx := context.Background()
	fixture, err := rpcbench.Start(ctx, newStack(), rpcbench.Config{Conns: 2, TLS: true})
	if err != nil {
		log.Fatal(err)
	}
	defer fixture.Close()
	users, err := rpcbench.As[rpcbench.Users](fixture)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"Anna", "Ann"} {
		call, err := users.PrepareUser(rpcbench.User{Email: "anna@example.com", Name: name,
			Password: "correct horse"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, call(ctx))
	}
	fmt.Println(fixture.Stack.Name, fixture.Accepted())
	// Output:
	// Anna <nil>
	// Ann invalid: name min=4
	// mystack 2
}

func newStack() rpcbench.Stack {
	return rpcbench.Stack{
		Name:     "mystack",
		Protocol: "mystack/json",
		Traits: rpcbench.Traits{Codec: "encoding/json", HTTP: "1.1", InvalidUTF8: rpcbench.UTF8Replaced,
			ServerLibraries: []string{"net/http"}, ClientLibraries: []string{"net/http"}},
		Server: newServer,
		Dial:   dial,
	}
}

type server struct{ *http.Server }

func (s server) Serve(l net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(l, "", "") // the certificate is in TLSConfig
	}
	return s.Server.Serve(l)
}

func newServer(config rpcbench.ServerConfig) (rpcbench.Server, error) {
	idle, header := config.Limits()
	handler := createUser(rpcbench.NewUserValidator[rpcbench.User](config))
	return server{&http.Server{
		Handler: handler, TLSConfig: config.TLS,
		IdleTimeout: idle, ReadHeaderTimeout: header, MaxHeaderBytes: rpcbench.MaxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // a failed handshake would print amid the rows
	}}, nil
}

func createUser(validate func(*rpcbench.User) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, status := new(rpcbench.User), http.StatusBadRequest
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			err, status = &rpcbench.Error{Code: rpcbench.CodeTooLarge}, http.StatusRequestEntityTooLarge
		} else if err != nil || json.Unmarshal(body, user) != nil {
			err = &rpcbench.Error{Code: rpcbench.CodeMalformed}
		} else {
			err = validate(user)
		}
		var reply any = err
		if err == nil {
			reply, status = rpcbench.AnswerUser(user), http.StatusOK
		}
		data, _ := json.Marshal(reply) // plain structs can't fail
		w.WriteHeader(status)
		_, _ = w.Write(data)
	}
}

type client struct {
	http    *http.Client
	url     string
	headers *rpcbench.Headers
	closed  atomic.Bool
}

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	c := &client{url: "http://" + config.Addr, headers: config.Headers}
	if config.TLS != nil {
		c.url = "https://" + config.Addr
	}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if c.closed.Load() {
				return nil, net.ErrClosed // or a call after Close would dial again
			}
			return config.DialContext(ctx, network, addr)
		},
		TLSClientConfig:     config.TLS.Clone(), // the Transport writes into it
		DisableCompression:  true,               // or each request asks for gzip
		MaxConnsPerHost:     config.Conns,
		MaxIdleConnsPerHost: config.Conns, // 2 unless given
	}}
	return c, nil
}

func (c *client) Close() error {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	return nil
}

func (c *client) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *client) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	return func(ctx context.Context) error {
		reply, err := c.CreateUser(ctx, u)
		if err != nil {
			return err
		}
		return rpcbench.CheckUser(&u, &reply)
	}, nil
}

func (c *client) CreateUser(ctx context.Context, u rpcbench.User) (reply rpcbench.Response, err error) {
	data, err := json.Marshal(&u)
	if err != nil {
		return reply, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(data))
	if err != nil {
		return reply, rpcbench.CallError(ctx, err)
	}
	if h := c.headers; h != nil {
		request.Header.Set("User-Agent", h.UserAgent)
		request.Header.Set("Authorization", h.Authorization)
		request.Header.Set("Traceparent", h.Traceparent())
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply, rpcbench.CallError(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply, rpcbench.CallError(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		failure := new(rpcbench.Error)
		if json.Unmarshal(body, failure) != nil || failure.Code == "" {
			failure = &rpcbench.Error{Code: rpcbench.CodeInternal, Message: response.Status}
		}
		return reply, failure
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return reply, &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	return reply, nil
}
