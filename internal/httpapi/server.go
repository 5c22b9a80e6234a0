package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
)

// server is an *http.Server that serves TLS when it was given a TLS configuration.
type server struct{ *http.Server }

func (s server) Serve(ln net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(ln, "", "")
	}
	return s.Server.Serve(ln)
}

func newServer[U, R any](config rpcbench.ServerConfig, format Format[U, R]) rpcbench.Server {
	h := &handler[U, R]{codec: format.Codec, create: format.NewService()}
	h.stream, _ = format.Codec.(codec.Stream)
	mux := http.NewServeMux()
	mux.Handle("POST "+path, h)
	return server{&http.Server{
		Handler:           mux,
		TLSConfig:         config.TLS,
		Protocols:         http1(),
		ReadHeaderTimeout: rpcbench.HeaderTimeout,
		IdleTimeout:       rpcbench.IdleTimeout,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}}
}

type handler[U, R any] struct {
	codec  codec.Codec
	stream codec.Stream // nil: whole bodies
	create func(context.Context, *U) (*R, error)
}

func (h *handler[U, R]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u := new(U)
	if err := h.decode(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody), u); err != nil {
		h.fail(w, err)
		return
	}
	reply, err := h.create(r.Context(), u)
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", h.codec.ContentType())
	if h.stream != nil {
		_ = h.stream.Encode(w, reply) // the status is sent: all that is left is a broken reply, which the client refuses
		return
	}
	body, err := h.codec.Marshal(reply)
	if err != nil {
		h.fail(w, err)
		return
	}
	_, _ = w.Write(body) // fails only when the client has gone
}

func (h *handler[U, R]) decode(body io.Reader, u *U) error {
	var err error
	if h.stream != nil {
		err = h.stream.Decode(body, u)
	} else {
		var data []byte
		if data, err = io.ReadAll(body); err == nil {
			err = h.codec.Unmarshal(data, u)
		}
	}
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &rpcbench.Error{Code: rpcbench.TooLarge, Err: err}
	}
	return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
}

// fail answers with the error's status and, in the stack's own wire format, its code and violations.
func (h *handler[U, R]) fail(w http.ResponseWriter, err error) {
	body := &rpcbench.Error{Code: failureCode(err)}
	if e, ok := errors.AsType[*rpcbench.Error](err); ok {
		body.Violations = e.Violations
	}
	if len(body.Violations) == 0 {
		body.Message = err.Error()
	}
	data, err := h.codec.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", h.codec.ContentType())
	w.WriteHeader(status(body.Code))
	_, _ = w.Write(data) // fails only when the client has gone
}

// failureCode is the code of an error of the service: also of the context's own errors, as a service may return them.
func failureCode(err error) rpcbench.Code {
	switch {
	case errors.Is(err, context.Canceled):
		return rpcbench.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpcbench.DeadlineExceeded
	}
	return rpcbench.CodeOf(err)
}
