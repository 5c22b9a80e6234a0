package direct

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/jsonstd"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/stacktest"
)

// BenchmarkTuned measures what each option of a tuned stack buys: the stack with all of them against the same without
// that one.
//
//	go test ./internal/direct -run '^$' -bench Tuned -benchtime 15s -cpu 1,2
//
// Its ns/op is the tuned stack's and without-ns/op the other's. without-ratio, how many times as long as without the
// option the tuned stack takes, is below 1 if the option buys something; [without-ratio-lo, without-ratio-hi] is its
// interval of 95 % within this process. Run several: two fixtures of one stack may differ by a hundredth.
func BenchmarkTuned(b *testing.B) {
	for _, o := range append(grpcOptions(), httpOptions()...) {
		b.Run("stack="+o.tuned.Name+"/option="+o.name, func(b *testing.B) { measureTuned(b, o) })
	}
}

// tunedOption is one of a tuned stack's.
type tunedOption struct {
	name           string
	tuned, without rpcbench.Stack
}

// grpcOptions repeats by hand what grpcprotobuf.Tuned sets, each time but for one.
func grpcOptions() []tunedOption {
	const window = rpcbench.MaxBody
	workers := grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0)))
	return []tunedOption{
		{"streamworkers", grpcprotobuf.Tuned(), grpcWith(
			[]grpc.ServerOption{grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window)},
			[]grpc.DialOption{grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window)})},
		{"staticwindows", grpcprotobuf.Tuned(), grpcWith([]grpc.ServerOption{workers}, nil)},
	}
}

func grpcWith(server []grpc.ServerOption, client []grpc.DialOption) rpcbench.Stack {
	s := grpcprotobuf.New()
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return stopped{grpcapi.NewServer(config, server...)}, nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) { return grpcapi.Dial(config, client...) }
	return s
}

type stopped struct{ *grpc.Server }

func (s stopped) Close() error {
	s.Stop()
	return nil
}

// httpOptions takes every switch of httpapi.Tuned for an option.
func httpOptions() (options []tunedOption) {
	for field := range reflect.TypeFor[httpapi.Tuning]().Fields() {
		tuning := httpapi.Tuned()
		reflect.ValueOf(&tuning).Elem().FieldByIndex(field.Index).SetBool(false)
		without := httpapi.Stack("httpjson", "http/json", jsonstd.Codec{}, binding.Plain(), httpapi.Options{Tuned: tuning})
		options = append(options, tunedOption{strings.ToLower(field.Name), httpjson.Tuned(), without})
	}
	return options
}

func measureTuned(b *testing.B, o tunedOption) {
	b.Helper()
	stacktest.Procs(b)
	const without, with = 0, 1
	pairing, err := timing.New([]timing.Arm{
		without: {Name: "without", Op: inTurn(b, form{stack: o.without}.viaStack(b, nil, sample()))},
		with:    {Name: "with", Op: inTurn(b, form{stack: o.tuned}.viaStack(b, nil, sample()))},
	}, slice, 1)
	require.NoError(b, err)
	for b.Loop() {
		if err := pairing.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	r := pairing.Record()
	b.ReportMetric(r.NsPerOp(with), "ns/op")
	b.ReportMetric(r.NsPerOp(without), "without-ns/op")
	reportRatio(b, r, with, without, "without-ratio")
}
