package httpapi

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
	"github.com/rpcbench/rpcbench/internal/binding"
)

// server is an *http.Server that serves TLS when it was given a TLS configuration.
type server struct{ *http.Server }

func (s server) Serve(ln net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(ln, "", "")
	}
	return s.Server.Serve(ln)
}

// HTTPHandler is what the server serves: rpcbench serve adds to it.
func (s server) HTTPHandler() http.Handler { return s.Handler }

// NewServer serves h with the limits that every server has.
func NewServer(config rpcbench.ServerConfig, h http.Handler, http2 bool) rpcbench.Server {
	idle, header := config.Limits()
	return server{&http.Server{
		Handler:           h,
		ErrorLog:          log.New(io.Discard, "", 0), // a handshake cut short would print between a row's name and its figures
		TLSConfig:         config.TLS,
		Protocols:         Protocols(http2),
		ReadHeaderTimeout: header,
		IdleTimeout:       idle,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}}
}

func newServer[U, R, F, E any](config rpcbench.ServerConfig, c codec.Codec, api binding.API[U, R, F, E],
	create func(context.Context, *U) (*R, error), options Options) rpcbench.Server {
	b := newBodies(c, options, options.Tuned.HandlerBuffers)
	mux := http.NewServeMux()
	mux.Handle("POST "+usersPath, &handler[U, R, E]{b, create, api.FromError})
	mux.Handle("POST "+echoPath, &handler[F, F, E]{b, binding.Echo[F], api.FromError})
	return NewServer(config, mux, options.HTTP2)
}

// handler serves one operation.
type handler[Q, A, E any] struct {
	*bodies
	do        func(context.Context, *Q) (*A, error)
	fromError func(*rpcbench.Error) *E
}

func (h *handler[Q, A, E]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := new(Q)
	body := http.MaxBytesReader(w, r.Body, rpcbench.MaxBody)
	if err := h.decode(body, r.Header, q); err != nil {
		h.fail(w, requestError(body, err))
		return
	}
	a, err := h.do(r.Context(), q)
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", h.codec.ContentType())
	if h.stream != nil {
		_ = h.stream.Encode(w, a) // the status is sent: all that is left is a broken reply, which the client refuses
		return
	}
	data, err := h.marshal(a)
	if err != nil {
		h.fail(w, err)
		return
	}
	h.setEncoding(w.Header())
	_, _ = w.Write(data) // fails only when the client has gone
}

// requestError tells a body that is too large, which a decoder may not say, from one that can't be decoded.
func requestError(body io.Reader, err error) error {
	_, readErr := body.Read(make([]byte, 1))
	if _, ok := errors.AsType[*http.MaxBytesError](readErr); ok || errors.Is(err, gzipped.ErrTooLarge) {
		return &rpcbench.Error{Code: rpcbench.TooLarge, Err: err}
	}
	return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
}

// fail answers with the error's status and, in the stack's own wire format, its code and violations.
func (h *handler[Q, A, E]) fail(w http.ResponseWriter, err error) {
	body := &rpcbench.Error{Code: rpcbench.CodeOf(err), Message: err.Error()}
	if e, ok := errors.AsType[*rpcbench.Error](err); ok {
		body.Violations, body.Message = e.Violations, e.Message
		switch {
		case e.Err != nil && e.Message != "":
			body.Message += ": " + e.Err.Error()
		case e.Err != nil:
			body.Message = e.Err.Error()
		}
	}
	data, err := h.marshal(h.fromError(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", h.codec.ContentType())
	h.setEncoding(w.Header())
	w.WriteHeader(status(body.Code))
	_, _ = w.Write(data) // fails only when the client has gone
}
