package httpapi

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/gzipped"
)

func newServer[U, R, F, E any](config rpcbench.ServerConfig, c codec.Codec, api binding.API[U, R, F, E],
	create func(context.Context, *U) (*R, error), options Options) rpcbench.Server {
	b := newBodies(c, options, false)
	echo := func(_ context.Context, f *F) (*F, error) {
		config.CountAndWait()
		return f, nil
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+usersPath, &handler[U, R, E]{b, create, api.FromError})
	mux.Handle("POST "+echoPath, &handler[F, F, E]{b, echo, api.FromError})
	if options.Handler != nil {
		return listening(config, options.Handler(mux), options)
	}
	return listening(config, mux, options)
}

// listening makes a server of h with the HTTP version that the options say, or with those of net/http's defaults.
func listening(config rpcbench.ServerConfig, h http.Handler, options Options) rpcbench.Server {
	s := NewServer(config, h, options.HTTP2)
	if options.Defaults {
		s.(server).Protocols = nil
	}
	return s
}

// handler serves one operation.
type handler[Q, A, E any] struct {
	bodies
	do        func(context.Context, *Q) (*A, error)
	fromError func(*rpcbench.Error) *E
}

func (h *handler[Q, A, E]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := new(Q)
	body := http.MaxBytesReader(w, r.Body, rpcbench.MaxBody)
	if err := h.decode(r.Header, body, q); err != nil {
		h.fail(w, requestError(body, err))
		return
	}
	a, err := h.do(r.Context(), q)
	if err == nil {
		err = h.reply(w, http.StatusOK, a)
	}
	if err != nil {
		h.fail(w, err)
	}
}

// requestError tells a body that is too large from a body that can't be decoded. Decoders may hide the difference.
func requestError(body io.Reader, err error) error {
	_, readErr := body.Read(make([]byte, 1))
	if _, ok := errors.AsType[*http.MaxBytesError](readErr); ok || errors.Is(err, gzipped.ErrTooLarge) {
		return &rpcbench.Error{Code: rpcbench.CodeTooLarge, Message: err.Error()}
	}
	return &rpcbench.Error{Code: rpcbench.CodeMalformed, Message: err.Error()}
}

// fail sends the error in the stack's own wire format, with the error's status.
func (h *handler[Q, A, E]) fail(w http.ResponseWriter, err error) {
	e := binding.AsError(err)
	if err := h.reply(w, Status(e.Code), h.fromError(e)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// HTTPHandler returns the server's handler, to which rpcbench serve adds others.
func (s server) HTTPHandler() http.Handler { return s.Handler }

// NewServer makes a server of h with the limits that every server has.
func NewServer(config rpcbench.ServerConfig, h http.Handler, http2 bool) rpcbench.Server {
	idle, header := config.Limits()
	return server{&http.Server{
		Handler:           h,
		ErrorLog:          log.New(io.Discard, "", 0), // messages about handshakes would appear within rows
		TLSConfig:         config.TLS,
		Protocols:         protocols(http2),
		ReadHeaderTimeout: header,
		IdleTimeout:       idle,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}}
}

// server is an *http.Server whose Serve uses TLS if there is a TLS configuration.
type server struct{ *http.Server }

func (s server) Serve(ln net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(ln, "", "")
	}
	return s.Server.Serve(ln)
}

// protocols returns one HTTP version alone, with and without TLS.
func protocols(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetHTTP2(http2)
	p.SetUnencryptedHTTP2(http2)
	return p
}
