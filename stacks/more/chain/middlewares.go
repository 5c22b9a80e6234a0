package chain

import (
	"cmp"
	"net/http"
	"time"
)

func (s *service) middlewares(h http.Handler) http.Handler {
	return s.identifying(s.recovering(s.logging(s.metering(s.authorizing(h)))))
}

func (s *service) identifying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(s.withID(r.Context(), r.Header.Get("X-Request-Id"))))
	})
}

func (s *service) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // net/http's own way to close a connection
				panic(p)
			default:
				http.Error(w, "panic", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *service) logging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, kept := time.Now(), &statusWriter{ResponseWriter: w}
		next.ServeHTTP(kept, r)
		s.write(r.Context(), r.URL.Path, began, kept.failed())
	})
}

func (s *service) metering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, kept := time.Now(), &statusWriter{ResponseWriter: w}
		next.ServeHTTP(kept, r)
		s.count(began, kept.failed())
	})
}

func (s *service) authorizing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayCall(r.Header.Get("Authorization")) {
			http.Error(w, "no bearer token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// statusWriter keeps the status of a reply, which a handler doesn't return.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 for a handler that wrote none
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) failed() bool { return w.status >= http.StatusBadRequest }
