// Package chain makes stacks of the main module whose servers have the five interceptors or middlewares that a service
// usually has. Both sides have the same five, in the same order, chained as their library documents:
//
//   - identify puts the X-Request-Id in the context, or one of a random prefix and a counter if none was sent.
//   - recovered turns a panic into a failure.
//   - logged writes a line for each call with a level that is off, so that it only asks whether the level is on.
//   - metered counts calls and failures, and adds up their time.
//   - authorized refuses an Authorization that is no bearer token. A call without one passes.
//
// The clients are those of grpcprotobuf and httpjson, and both send what they send there.
package chain

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// GRPC is grpcprotobuf with five interceptors of unary calls in its server. Streams have none.
func GRPC() rpcbench.Stack {
	serve := func(config rpcbench.ServerConfig, options ...grpc.ServerOption) rpcbench.Server {
		return grpcapi.OwnServer(config, append(options, grpc.ChainUnaryInterceptor(newService().interceptors()...))...)
	}
	return grpcapi.Transport{Libraries: []string{"google.golang.org/grpc"}, Serve: serve}.Stack("grpcprotobuf.chain", nil)
}

// HTTP is httpjson with five middlewares around its server's handler.
func HTTP() rpcbench.Stack {
	return httpapi.Stack("httpjson.chain", "http/json", jsonstd.Codec{}, binding.Plain(),
		httpapi.Options{Handler: func(h http.Handler) http.Handler { return newService().middlewares(h) }})
}

// service is what one server's interceptors or middlewares share.
type service struct {
	prefix             string // of the request ids that it makes
	ids                atomic.Uint64
	log                *slog.Logger
	calls, failures    atomic.Int64
	nanosecondsOfCalls atomic.Int64
}

func newService() *service {
	return &service{prefix: rand.Text()[:10] + "-", log: slog.New(slog.DiscardHandler)}
}

type requestID struct{}

// withID returns a context with a request's id, which is made if none was sent.
func (s *service) withID(ctx context.Context, sent string) context.Context {
	if sent == "" {
		sent = s.prefix + strconv.FormatUint(s.ids.Add(1), 10)
	}
	return context.WithValue(ctx, requestID{}, sent)
}

// write logs a call that has ended.
func (s *service) write(ctx context.Context, method string, began time.Time, failed bool) {
	if s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "call", slog.Any("id", ctx.Value(requestID{})), slog.String("method", method),
			slog.Duration("took", time.Since(began)), slog.Bool("failed", failed))
	}
}

// count adds a call to the metrics.
func (s *service) count(began time.Time, failed bool) {
	s.calls.Add(1)
	if failed {
		s.failures.Add(1)
	}
	s.nanosecondsOfCalls.Add(int64(time.Since(began)))
}

// mayCall says whether a call may have this Authorization, which is empty for none.
func mayCall(authorization string) bool {
	token, ok := strings.CutPrefix(authorization, "Bearer ")
	return authorization == "" || ok && token != ""
}
