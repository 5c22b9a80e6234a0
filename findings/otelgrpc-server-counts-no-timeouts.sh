#!/usr/bin/env bash
# grpc-go with otelgrpc: nearly every call that runs into its deadline is CANCELLED to the server, and no error.
#
# What one would expect: gRPC sends the deadline along, so both sides know it. A call that takes too long is counted as
# DEADLINE_EXCEEDED on both sides, or, since two timers race, on the server at least about half the time.
#
# What happens with google.golang.org/grpc v1.85.0 and otelgrpc v0.72.0: the client's histogram has DEADLINE_EXCEEDED
# 100 times of 100, and the server's CANCELLED 99 or 100 times. The client sends the timeout that is left, rounded up,
# so the server's timer, which starts later, also ends later; at its deadline the client resets the stream, and that
# comes first. (With a client that never resets it is still 18 to 32 times of 100, because the server resets the stream
# with a second timer of its own.) The handler's ctx.Err() is context.Canceled accordingly. To otelgrpc a server's
# CANCELLED is no error, so these points have no error.type; a DEADLINE_EXCEEDED would have one.
#
# Why it matters to whoever compares RPC stacks: at a load that is too high, the count of errors at the server stays at
# zero while the clients' calls fail, and calls that were timed out look like clients that went away. Connect v1.21.1
# rounds the timeout down to milliseconds, so its handlers see context.DeadlineExceeded more often (40 to 88 of 100
# calls with 5 to 6 ms, 1 to 6 of 20 with 100 ms), and two servers that are equally late differ in their dashboards.
# Count timeouts at the client.
#
# Seen with Go 1.26.8 and 1.27.4:
#   client: DEADLINE_EXCEEDED 100, with error.type 100
#   server: CANCELLED 99, with error.type 0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.72.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	google.golang.org/grpc v1.85.0
)
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const calls = 100

type service struct {
	grpc_health_v1.UnimplementedHealthServer
}

// Check takes as long as its caller waits.
func (service) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (
	*grpc_health_v1.HealthCheckResponse, error,
) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// counts reads how many calls the histogram has with the status, and how many of those have an error.type.
func counts(r metric.Reader, histogram, status string) (of, failed uint64) {
	var m metricdata.ResourceMetrics
	check(r.Collect(context.Background(), &m))
	for _, scope := range m.ScopeMetrics {
		for _, metric := range scope.Metrics {
			h, ok := metric.Data.(metricdata.Histogram[float64])
			if !ok || metric.Name != histogram {
				continue
			}
			for _, point := range h.DataPoints {
				if code, _ := point.Attributes.Value("rpc.response.status_code"); code.AsString() != status {
					continue
				}
				of += point.Count
				if point.Attributes.HasValue("error.type") {
					failed += point.Count
				}
			}
		}
	}
	return of, failed
}

func main() {
	client, server := metric.NewManualReader(), metric.NewManualReader()
	meter := func(r metric.Reader) otelgrpc.Option {
		return otelgrpc.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(r)))
	}
	s := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(meter(server))))
	grpc_health_v1.RegisterHealthServer(s, service{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go s.Serve(l)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(meter(client))))
	check(err)
	for range calls {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, new(grpc_health_v1.HealthCheckRequest))
		cancel()
		if err == nil {
			log.Fatal("changed: a call ended well")
		}
	}
	check(conn.Close())
	s.GracefulStop() // waits for the handlers

	expired, asErrors := counts(client, "rpc.client.call.duration", "DEADLINE_EXCEEDED")
	fmt.Printf("client: DEADLINE_EXCEEDED %d, with error.type %d\n", expired, asErrors)
	cancelled, failed := counts(server, "rpc.server.call.duration", "CANCELLED")
	fmt.Printf("server: CANCELLED %d, with error.type %d\n", cancelled, failed)
	if expired != calls || asErrors != calls || cancelled < calls*3/4 || failed != 0 {
		fmt.Println("changed: it used to be 100 and 100 for the client, and over 75 and 0 for the server")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
