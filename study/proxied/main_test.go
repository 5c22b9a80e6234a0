package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// serves starts a stack's server.
func serves(t *testing.T, s rpcbench.Stack) (addr string) {
	t.Helper()
	f, err := child.ServerOnly(t.Context(), s, rpcbench.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f.Addr
}

// fronts starts an HTTP/1.1 server, and says where.
func fronts(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// forwards is a proxy that answers 502 after so many calls.
func forwards(addr string, calls int64) http.Handler {
	proxy, left := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr}), new(atomic.Int64)
	left.Store(calls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) < 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// TestRow: each load of each stack has a row with all its figures. Server and proxy are this process.
func TestRow(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	self := fmt.Sprint(os.Getpid())
	direct, grpc := serves(t, httpjson.New()), serves(t, grpcprotobuf.New())
	proxied := fronts(t, forwards(direct, 1<<40))
	for _, c := range []struct{ stack, addr, rate, proxy, want string }{
		{"httpjson", direct, "2000", "", `^BenchmarkProxied/way=w/load=2000/stack=httpjson-\d+\t\d+\t\d+ ns/op\t` +
			`[1-9]\d* client-cpu-ns/op\t[1-9]\d* server-cpu-ns/op\t.*[1-9]\d* p50-ns.*reconnects/op\t[\d.]+ completed-%\n$`},
		{"grpcprotobuf", grpc, "0", "", `/load=saturated/stack=grpcprotobuf-.*\t0 reconnects/op\n$`},
		{"httpjson", proxied, "0", self, `server-cpu-ns/op\t[1-9]\d* proxy-cpu-ns/op\t`},
	} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), []string{"-way", "w", "-stack", c.stack, "-addr", c.addr, "-rate", c.rate,
			"-windows", "1", "-server", self, "-proxy", c.proxy}, &out))
		require.Regexp(t, c.want, out.String())
		require.Equal(t, c.proxy != "", strings.Contains(out.String(), "proxy-cpu"))
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
	}
}

// TestNoRowOfErrors: what a proxy does wrong is an error, and no figure.
func TestNoRowOfErrors(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	closes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	json := serves(t, httpjson.New())
	for _, c := range []struct{ name, stack, addr, more, want string }{
		{"it answers 502", "httpjson", fronts(t, forwards(json, 0)), "-rate=0", "502 Bad Gateway"},
		{"it answers 502 later", "httpjson", fronts(t, forwards(json, 150)), "-rate=0", "502 Bad Gateway"},
		{"it closes", "httpjson", fronts(t, closes), "-rate=0", "connect: unavailable: "},
		{"its HTTP/2 is off", "grpcprotobuf", fronts(t, forwards(json, 0)), "-rate=0", "connect: unavailable: "},
		{"nobody listens", "httpjson", nobody.Addr().String(), "-rate=0", "refused"},
		{"it is no process", "httpjson", json, "-proxy=0x", "invalid syntax"},
		{"no such stack", "httpjsno", json, "-rate=0", "httpjsno"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := run(t.Context(), []string{"-stack", c.stack, "-addr", c.addr, "-windows", "1", c.more}, &out)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, out.String())
		})
	}
}
