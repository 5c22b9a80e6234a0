package chain

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformanceGRPC(t *testing.T) { stacktest.Conformance(t, GRPC()) }
func TestConformanceHTTP(t *testing.T) { stacktest.Conformance(t, HTTP()) }

// side calls a handler behind the five, with headers, and says how that ended.
type side func(s *service, headers map[string]string, handler func(context.Context)) (ended string)

var sides = map[string]side{
	"gRPC": func(s *service, headers map[string]string, handler func(context.Context)) string {
		next := func(ctx context.Context, _ any) (any, error) {
			handler(ctx)
			return nil, nil
		}
		all := s.interceptors()
		for i := len(all) - 1; i >= 0; i-- { // as grpc.ChainUnaryInterceptor does
			inner := next
			next = func(ctx context.Context, q any) (any, error) {
				return all[i](ctx, q, &grpc.UnaryServerInfo{FullMethod: "/users"}, inner)
			}
		}
		_, err := next(metadata.NewIncomingContext(context.Background(), metadata.New(headers)), nil)
		return map[codes.Code]string{codes.OK: "ok", codes.Internal: "failure",
			codes.Unauthenticated: "refused"}[status.Code(err)]
	},
	"HTTP": func(s *service, headers map[string]string, handler func(context.Context)) string {
		h := s.middlewares(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler(r.Context())
			w.WriteHeader(http.StatusOK)
		}))
		r, w := httptest.NewRequest(http.MethodPost, "/users", nil), httptest.NewRecorder()
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		h.ServeHTTP(w, r)
		return map[int]string{http.StatusOK: "ok", http.StatusInternalServerError: "failure",
			http.StatusUnauthorized: "refused"}[w.Code]
	},
}

// TestEachOfTheFiveWorks on both sides, in the same way.
func TestEachOfTheFiveWorks(t *testing.T) {
	for _, c := range []struct {
		name            string
		headers         map[string]string
		panics          bool
		ended           string
		id              string // of the handler; "made" for one of the service's own, and empty for a handler not called
		calls, failures int64
	}{
		{name: "a call without headers passes with an id", ended: "ok", id: "made", calls: 1},
		{"an id that was sent stays", map[string]string{"x-request-id": "mine"}, false, "ok", "mine", 1, 0},
		{"a bearer token passes", map[string]string{"authorization": "Bearer t"}, false, "ok", "made", 1, 0},
		{"another kind is refused and counted", map[string]string{"authorization": "Basic t"}, false, "refused", "", 1, 1},
		{"no token is refused", map[string]string{"authorization": "Bearer "}, false, "refused", "", 1, 1},
		{"a panic becomes a failure", nil, true, "failure", "made", 0, 0},
	} {
		for name, call := range sides {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				s, id := newService(), ""
				ended := call(s, c.headers, func(ctx context.Context) {
					if id, _ = ctx.Value(requestID{}).(string); id == s.prefix+"1" {
						id = "made"
					}
					if c.panics {
						panic("a bug")
					}
				})
				require.Equal(t, c.ended, ended)
				require.Equal(t, c.id, id)
				require.Equal(t, c.calls, s.calls.Load())
				require.Equal(t, c.failures, s.failures.Load())
				require.Equal(t, c.calls > 0, s.nanosecondsOfCalls.Load() > 0)
			})
		}
	}
}

// TestLogIsOnlyOff: with the level on, both sides log the same line for a call.
func TestLogIsOnlyOff(t *testing.T) {
	for name, call := range sides {
		t.Run(name, func(t *testing.T) {
			lines, s := new(bytes.Buffer), newService()
			s.log = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
			call(s, map[string]string{"x-request-id": "mine"}, func(context.Context) {})
			require.Regexp(t, `level=DEBUG msg=call id=mine method=/users took=\S+ failed=false\n$`, lines)
		})
	}
}

// TestServersHaveTheFive: the client's first call is refused by what only the server has.
func TestServersHaveTheFive(t *testing.T) {
	for _, s := range []rpcbench.Stack{GRPC(), HTTP()} {
		t.Run(s.Name, func(t *testing.T) {
			_, err := rpcbench.Start(t.Context(), s, rpcbench.Config{Headers: &rpcbench.Headers{
				UserAgent: "test", Authorization: "Basic no", Traceparent: func() string { return "00-1-1-00" }}})
			require.ErrorContains(t, err, "Unauth")
		})
	}
}
