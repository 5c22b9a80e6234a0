// Package otel makes stacks of the main module that trace each call with OpenTelemetry, by otelgrpc, otelhttp and
// otelconnect. Client and server have a TracerProvider each, by option and never global. The SDK hands its spans in
// batches to an exporter that drops them. There are no metrics.
package otel

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/connectapi"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// GRPC is grpcprotobuf with otelgrpc's stats handlers. Each call makes a span in the client and one in the server.
func GRPC() rpcbench.Stack { return sampled("grpcprotobuf.otel", overGRPC, drop{}) }

// GRPCUnsampled is GRPC with an SDK that samples nothing.
func GRPCUnsampled() rpcbench.Stack {
	return unsampled("grpcprotobuf.otel.unsampled", overGRPC, drop{})
}

// HTTP is httpjson with otelhttp's handler and transport. Each call makes a span in the client and one in the server.
func HTTP() rpcbench.Stack { return sampled("httpjson.otel", overHTTP, drop{}) }

// HTTPUnsampled is HTTP with an SDK that samples nothing.
func HTTPUnsampled() rpcbench.Stack { return unsampled("httpjson.otel.unsampled", overHTTP, drop{}) }

// Connect is connectrpc with otelconnect's interceptor. Each call makes a span in the client and one in the server.
func Connect() rpcbench.Stack { return sampled("connectrpc.otel", overConnect, drop{}) }

// ConnectUnsampled is Connect with an SDK that samples nothing.
func ConnectUnsampled() rpcbench.Stack {
	return unsampled("connectrpc.otel.unsampled", overConnect, drop{})
}

func overGRPC(name string, p trace.TracerProvider) (rpcbench.Stack, error) {
	options := []otelgrpc.Option{otelgrpc.WithTracerProvider(p), otelgrpc.WithMeterProvider(metrics.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{})}
	t := grpcapi.Transport{Libraries: []string{"google.golang.org/grpc"}, Serve: grpcapi.OwnServer}
	return t.Stack(name, []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(options...))},
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(options...))), nil
}

func overHTTP(name string, p trace.TracerProvider) (rpcbench.Stack, error) {
	options := []otelhttp.Option{otelhttp.WithTracerProvider(p), otelhttp.WithMeterProvider(metrics.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{})}
	return httpapi.Stack(name, "http/json", jsonstd.Codec{}, binding.Plain(), httpapi.Options{
		Handler:   func(h http.Handler) http.Handler { return otelhttp.NewHandler(h, "users", options...) },
		Transport: func(t http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(t, options...) },
	}), nil
}

func overConnect(name string, p trace.TracerProvider) (rpcbench.Stack, error) {
	interceptor, err := otelconnect.NewInterceptor(otelconnect.WithTracerProvider(p), otelconnect.WithoutMetrics(),
		otelconnect.WithPropagator(propagation.TraceContext{}))
	return connectapi.Stack(name, "connect/proto", connectapi.Traits("1.1"),
		[]connect.HandlerOption{connect.WithInterceptors(interceptor)}, connect.WithInterceptors(interceptor)), err
}

// making makes a stack whose server and client trace with p.
type making func(name string, p trace.TracerProvider) (rpcbench.Stack, error)

func sampled(name string, of making, to sdk.SpanExporter) rpcbench.Stack {
	return traced(name, "sampled", of, to) // the SDK's default
}

func unsampled(name string, of making, to sdk.SpanExporter) rpcbench.Stack {
	return traced(name, "unsampled", of, to, sdk.WithSampler(sdk.NeverSample()))
}

// traced makes a stack each of whose servers and clients has a TracerProvider of its own, which it shuts down.
func traced(name string, how rpcbench.Traced, of making, to sdk.SpanExporter, options ...sdk.TracerProviderOption,
) rpcbench.Stack {
	s, err := of(name, noop.NewTracerProvider())
	s.Traits.Traced = how
	own := func() (rpcbench.Stack, *sdk.TracerProvider, error) {
		p := sdk.NewTracerProvider(append([]sdk.TracerProviderOption{sdk.WithBatcher(to)}, options...)...)
		s, ownErr := of(name, p)
		return s, p, errors.Join(err, ownErr)
	}
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		s, p, err := own()
		if err != nil {
			return nil, errors.Join(err, shutdown(p))
		}
		inner, err := s.Server(config)
		if err != nil {
			return nil, errors.Join(err, shutdown(p))
		}
		return server{inner, p}, nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		s, p, err := own()
		if err != nil {
			return nil, errors.Join(err, shutdown(p))
		}
		inner, err := s.Dial(config)
		if err != nil {
			return nil, errors.Join(err, shutdown(p))
		}
		c := client{inner.(api), p}
		if streams, ok := inner.(rpcbench.Streamer); ok {
			return struct {
				client
				rpcbench.Streamer
			}{c, streams}, nil
		}
		return c, nil
	}
	return s
}

type server struct {
	rpcbench.Server
	provider *sdk.TracerProvider
}

func (s server) Close() error { return errors.Join(s.Server.Close(), shutdown(s.provider)) }

type api interface {
	rpcbench.Users
	rpcbench.Echoer
}

type client struct {
	api
	provider *sdk.TracerProvider
}

func (c client) Close() error { return errors.Join(c.api.Close(), shutdown(c.provider)) }

// shutdown exports what is left, and ends the provider's goroutine.
func shutdown(p *sdk.TracerProvider) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return p.Shutdown(ctx)
}

// drop is an exporter that drops spans.
type drop struct{}

func (drop) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (drop) Shutdown(context.Context) error                        { return nil }
