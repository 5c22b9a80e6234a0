package otel

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformanceGRPC(t *testing.T)             { stacktest.Conformance(t, GRPC()) }
func TestConformanceGRPCUnsampled(t *testing.T)    { stacktest.Conformance(t, GRPCUnsampled()) }
func TestConformanceHTTP(t *testing.T)             { stacktest.Conformance(t, HTTP()) }
func TestConformanceHTTPUnsampled(t *testing.T)    { stacktest.Conformance(t, HTTPUnsampled()) }
func TestConformanceConnect(t *testing.T)          { stacktest.Conformance(t, Connect()) }
func TestConformanceConnectUnsampled(t *testing.T) { stacktest.Conformance(t, ConnectUnsampled()) }

// keep is an exporter that keeps spans.
type keep struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
}

func (k *keep) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

func (*keep) Shutdown(context.Context) error { return nil }

// of returns the spans of one side.
func (k *keep) of(kind trace.SpanKind) []sdk.ReadOnlySpan {
	return slices.DeleteFunc(slices.Clone(k.spans), func(s sdk.ReadOnlySpan) bool { return s.SpanKind() != kind })
}

// TestEachSideMakesASpan: a call makes one span in the client and one in the server, which has the client's for its
// parent, or for its link in otelconnect, which trusts no remote span by default. An SDK that samples nothing has none.
func TestEachSideMakesASpan(t *testing.T) {
	const calls = 20
	for _, c := range []struct {
		name string
		of   making
	}{{"grpcprotobuf.otel", overGRPC}, {"httpjson.otel", overHTTP}, {"connectrpc.otel", overConnect}} {
		t.Run(c.name, func(t *testing.T) {
			made := new(keep)
			run(t, sampled(c.name, c.of, made), calls)
			clients, servers := made.of(trace.SpanKindClient), made.of(trace.SpanKindServer)
			require.GreaterOrEqual(t, len(clients), calls)
			// The server's last span may end after the reply, and then after the SDK was shut down.
			require.InDelta(t, len(clients), len(servers), 1, "a span of the server for each of the client's")
			require.Len(t, made.spans, len(clients)+len(servers), "and no others")
			sent := map[trace.SpanID]bool{}
			for _, s := range clients {
				sent[s.SpanContext().SpanID()] = true
			}
			for _, s := range servers {
				from := s.Parent().SpanID()
				if len(s.Links()) == 1 {
					from = s.Links()[0].SpanContext.SpanID()
				}
				require.True(t, sent[from], "the server's span follows a span of the client")
				delete(sent, from)
			}
			none := new(keep)
			run(t, unsampled(c.name, c.of, none), calls)
			require.Empty(t, none.spans)
		})
	}
}

func run(t *testing.T, s rpcbench.Stack, calls int) {
	t.Helper()
	f, err := rpcbench.Start(t.Context(), s, rpcbench.Config{})
	require.NoError(t, err)
	for i := range calls {
		_, err := f.Client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(i, 0))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close(), "which exports what is left")
}
