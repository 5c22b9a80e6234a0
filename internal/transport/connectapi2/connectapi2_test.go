package connectapi2_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/connectapi2"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
)

// The tests of package connectapi run against both versions. Here is what they can't reach.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every code crosses every protocol, as it does with v1, which shares the numbers.
func TestFailuresHaveOneCodeEach(t *testing.T) {
	broken := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	misleading := &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "grpc: failed to unmarshal"}
	invalid := &rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: broken}
	failed := func(c rpcbench.Code) error { return &rpcbench.Error{Code: c} }
	cases := []struct {
		err    error
		status connect.Code
		code   rpcbench.Code
	}{
		{invalid, connect.CodeInvalidArgument, rpcbench.CodeInvalid},
		{failed(rpcbench.CodeInvalid), connect.CodeInvalidArgument, rpcbench.CodeInvalid},
		{failed(rpcbench.CodeMalformed), connect.CodeInvalidArgument, rpcbench.CodeMalformed},
		{failed(rpcbench.CodeTooLarge), connect.CodeResourceExhausted, rpcbench.CodeTooLarge},
		{failed(rpcbench.CodeDeadlineExceeded), connect.CodeDeadlineExceeded, rpcbench.CodeDeadlineExceeded},
		{failed(rpcbench.CodeUnavailable), connect.CodeUnavailable, rpcbench.CodeUnavailable},
		{failed(rpcbench.CodeCanceled), connect.CodeCanceled, rpcbench.CodeCanceled},
		{misleading, connect.CodeInternal, rpcbench.CodeInternal},
		{fmt.Errorf("create: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded, rpcbench.CodeDeadlineExceeded},
		{io.ErrClosedPipe, connect.CodeInternal, rpcbench.CodeInternal},
		{new(rpcbench.Error), connect.CodeInternal, rpcbench.CodeInternal},
	}
	for _, s := range []rpcbench.Stack{connectrpc2.New(), connectrpc2.H2C(), connectrpc2.GRPC(), connectrpc2.GRPCWeb(),
		connectrpc2.JSON(), connectrpc2.Gzip(), connectrpc2.VT()} {
		t.Run(s.Name, func(t *testing.T) {
			var current error // of the service; set between calls
			create := func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) { return nil, current }
			// The codec of vtprotobuf is also of errors, for gRPC's clients.
			addr := testkit.Serve(t, connectapi2.NewServer(rpcbench.ServerConfig{}, create, s.Traits.HTTP == "2",
				connecthttp.WithCodecs(connectapi2.Codec{}, connectproto.NewJSONCodec())))
			c, err := s.Dial(rpcbench.ClientConfig{Addr: addr, DialContext: new(net.Dialer).DialContext, Conns: 1})
			require.NoError(t, err)
			defer c.Close()
			for _, tc := range cases {
				current = tc.err
				_, err := c.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
				e, ok := errors.AsType[*rpcbench.Error](err)
				require.True(t, ok, "%T", err)
				failure, ok := errors.AsType[*connect.Error](err)
				require.True(t, ok, "the library's own error stays")
				require.Equal(t, tc.status, failure.Code(), tc.err)
				require.Equal(t, strings.TrimSpace(tc.err.Error()), strings.TrimSpace(failure.Message()), "the server's words")
				require.True(t, failure.IsRemote(), tc.err)
				require.Equal(t, tc.code, e.Code, tc.err)
				require.Equal(t, map[bool][]rpcbench.Violation{true: broken}[tc.err == invalid], e.Violations, tc.err)
				require.Equal(t, tc.code == rpcbench.CodeCanceled, errors.Is(e, context.Canceled), tc.err)
				require.Equal(t, tc.code == rpcbench.CodeDeadlineExceeded, errors.Is(e, context.DeadlineExceeded), tc.err)
			}
		})
	}
}

// The library's client may return errors that are not of its own type.
func TestErrorsOfOtherTypes(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	remote := connect.NewError(connect.CodeResourceExhausted, "").WithRemote()
	for _, c := range []struct {
		why  string
		ctx  context.Context
		err  error
		want rpcbench.Code
	}{
		{"the caller's cancelling", canceled, context.Canceled, rpcbench.CodeCanceled},
		{"the deadline, wrapped", late, fmt.Errorf("send: %w", context.DeadlineExceeded), rpcbench.CodeDeadlineExceeded},
		{"a connection that breaks", t.Context(), net.ErrClosed, rpcbench.CodeUnavailable},
		{"nobody has cancelled", t.Context(), context.Canceled, rpcbench.CodeUnavailable},
		{"no error of the type", t.Context(), fmt.Errorf("%w", (*connect.Error)(nil)), rpcbench.CodeUnavailable},
		{"one beside that of closing", t.Context(), errors.Join(remote, net.ErrClosed), rpcbench.CodeTooLarge},
	} {
		err := connectapi2.FromConnect(c.ctx, c.err)
		require.Equal(t, c.want, rpcbench.CodeOf(err), c.why)
		require.ErrorIs(t, err, c.err, c.why)
	}
}
