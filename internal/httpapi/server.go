package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
	"github.com/rpcbench/rpcbench/internal/binding"
)

func newServer[U, R, F, E any](config rpcbench.ServerConfig, c codec.Codec, api binding.API[U, R, F, E],
	create func(context.Context, *U) (*R, error), options Options) rpcbench.Server {
	b := newBodies(c, options, false)
	echo := func(_ context.Context, f *F) (*F, error) { return f, nil }
	mux := http.NewServeMux()
	mux.Handle("POST "+usersPath, &handler[U, R, E]{b, create, api.FromError})
	mux.Handle("POST "+echoPath, &handler[F, F, E]{b, echo, api.FromError})
	return NewServer(config, mux, options.HTTP2)
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
	if err != nil {
		h.fail(w, err)
		return
	}
	if err := h.reply(w, http.StatusOK, a); err != nil {
		h.fail(w, err)
	}
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
		if e.Err != nil {
			body.Message = strings.TrimPrefix(e.Message+": "+e.Err.Error(), ": ")
		}
	}
	if err := h.reply(w, status(body.Code), h.fromError(body)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
