package chain

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func (s *service) interceptors() []grpc.UnaryServerInterceptor {
	return []grpc.UnaryServerInterceptor{s.identify, s.recovered, s.logged, s.metered, s.authorized}
}

func (s *service) identify(
	ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return next(s.withID(ctx, first(metadata.ValueFromIncomingContext(ctx, "x-request-id"))), q)
}

func (s *service) recovered(
	ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (a any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = nil, status.Error(codes.Internal, "panic")
		}
	}()
	return next(ctx, q)
}

func (s *service) logged(
	ctx context.Context, q any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	a, err := next(ctx, q)
	s.write(ctx, info.FullMethod, began, err != nil)
	return a, err
}

func (s *service) metered(
	ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	a, err := next(ctx, q)
	s.count(began, err != nil)
	return a, err
}

func (s *service) authorized(
	ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !mayCall(first(metadata.ValueFromIncomingContext(ctx, "authorization"))) {
		return nil, status.Error(codes.Unauthenticated, "no bearer token")
	}
	return next(ctx, q)
}

// first returns the first of a header's values, as http.Header.Get does.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
