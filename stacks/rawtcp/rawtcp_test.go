package rawtcp_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, rawtcp.New()) }

func TestTLSOnOneSideOnly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), rpcbench.HeaderTimeout/2)
	defer cancel()
	for _, onServer := range []bool{true, false} {
		f := stacktest.Start(t, rawtcp.New(), rpcbench.Config{TLS: onServer})
		config := rpcbench.ClientConfig{Addr: f.Addr}
		if !onServer {
			config.TLS = &tls.Config{ServerName: "rpcbench.test"}
		}
		_, err := dial(t, rawtcp.New(), config).CreateUser(ctx, rpcbench.SampleUser(0, 0))
		require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(err), err)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "TLS on the server: %t", onServer)
	}
}

func TestConnectionIsKept(t *testing.T) {
	f := stacktest.Start(t, rawtcp.New(), rpcbench.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended, end := context.WithCancel(ctx)
	end()
	badUTF8, tooLarge := rpcbench.SampleUser(0, 0), rpcbench.SampleUser(0, 0)
	badUTF8.Name, tooLarge.Avatar = "in\xffvalid", make([]byte, 2*rpcbench.MaxBody)
	for _, c := range []struct {
		what string
		ctx  context.Context
		user rpcbench.User
		want rpcbench.Code
	}{
		{"a call with a deadline", ctx, rpcbench.SampleUser(0, 0), ""},
		{"an invalid user", ctx, rpcbench.User{}, rpcbench.CodeInvalid},
		{"a request that can't be encoded", ctx, badUTF8, rpcbench.CodeMalformed},
		{"a request that is too large", ctx, tooLarge, rpcbench.CodeTooLarge},
		{"a context that has ended before the call", ended, rpcbench.SampleUser(0, 0), rpcbench.CodeCanceled},
	} {
		_, err := testkit.As[rpcbench.Users](t, f).CreateUser(c.ctx, c.user)
		require.Equal(t, c.want, rpcbench.CodeOf(err), "%s: %v", c.what, err)
		require.EqualValues(t, 1, f.Accepted(), "after %s", c.what)
	}
}

// A dial ends with the call's context, and with the client.
func TestDialEnds(t *testing.T) {
	dialling := make(chan struct{})
	hangs := func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialling <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, c := range []struct {
		why  string
		end  func(client rpcbench.Client, cancel func())
		want rpcbench.Code
	}{
		{"the call is cancelled", func(_ rpcbench.Client, cancel func()) { cancel() }, rpcbench.CodeCanceled},
		{"the client is closed", func(client rpcbench.Client, _ func()) { require.NoError(t, client.Close()) },
			rpcbench.CodeUnavailable},
	} {
		t.Run(c.why, func(t *testing.T) {
			client := dial(t, rawtcp.New(), rpcbench.ClientConfig{DialContext: hangs})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := client.CreateUser(ctx, rpcbench.SampleUser(0, 0))
				result <- err
			}()
			<-dialling
			c.end(client, cancel)
			err := <-result
			require.Equal(t, c.want, rpcbench.CodeOf(err), err)
		})
	}
}

// A TLS handshake that does not come to an end ends with the call's context.
func TestHandshakeEnds(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	client := dial(t, rawtcp.New(), rpcbench.ClientConfig{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil },
		TLS:         &tls.Config{ServerName: "rpcbench.test"},
	})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := client.CreateUser(ctx, rpcbench.SampleUser(0, 0))
		result <- err
	}()
	_, err := far.Read(make([]byte, 1))
	require.NoError(t, err, "the handshake has begun")
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func dial(t *testing.T, stack rpcbench.Stack, config rpcbench.ClientConfig) rpcbench.Users {
	t.Helper()
	if config.DialContext == nil {
		config.DialContext = new(net.Dialer).DialContext
	}
	config.Conns = 1
	c, err := stack.Dial(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.(rpcbench.Users)
}
