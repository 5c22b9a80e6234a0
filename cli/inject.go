package cli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
)

// measured returns the stack of a name, and copies of grpcprotobuf with more to do: the handlers of
// "grpcprotobuf+work=500ns" are busy for that long.
func (p program) measured(name string) (rpcbench.Stack, error) {
	plain, amount, injected := strings.Cut(name, "+work=")
	found, err := p.find(plain)
	if err != nil {
		return rpcbench.Stack{}, err
	}
	if !injected {
		return found[0], nil
	}
	d, err := time.ParseDuration(amount)
	if plain != "grpcprotobuf" || err != nil || d < 0 {
		return rpcbench.Stack{}, fmt.Errorf("rpcbench: nothing can be injected as %q, only grpcprotobuf+work=500ns", name)
	}
	rounds := int(float64(d) / nsPerRound())
	return injectedInto(found[0], name, func() { work(rounds) }), nil
}

func injectedInto(s rpcbench.Stack, name string, inject func()) rpcbench.Stack {
	s.Name = name
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return grpcapi.OwnServer(config, grpc.UnaryInterceptor(
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				inject()
				return handle(ctx, request)
			})), nil
	}
	return s
}

// work runs a generator of random numbers, which touches no memory.
//
//go:noinline
func work(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x) // or a compiler might leave it all out
}

// nsPerRound is the median of a hundred measurements: what a round takes on this machine most of the time.
func nsPerRound() float64 {
	const rounds = 10_000
	var took [100]time.Duration
	for i := range took {
		start := time.Now()
		work(rounds)
		took[i] = time.Since(start)
	}
	slices.Sort(took[:])
	return float64(took[len(took)/2]) / rounds
}
