package rpcbench_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func start(t *testing.T, stack rpcbench.Stack, config rpcbench.Config) *rpcbench.Fixture {
	t.Helper()
	f, err := rpcbench.Start(t.Context(), stack, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// mine is an httpjson stack with one thing changed.
func mine(change func(*rpcbench.Stack)) rpcbench.Stack {
	stack := httpjson.New()
	stack.Name = "mine"
	change(&stack)
	return stack
}

// withServer is an httpjson stack whose server is changed.
func withServer(change func(rpcbench.Server) rpcbench.Server) rpcbench.Stack {
	return mine(func(stack *rpcbench.Stack) { *stack = testkit.WithServer(*stack, change) })
}

// withCalls is a stack whose client prepares other calls.
func withCalls(s rpcbench.Stack, prepare func(rpcbench.Users, rpcbench.User) (rpcbench.Call, error)) rpcbench.Stack {
	return testkit.WithClient(s, func(inner rpcbench.Users) rpcbench.Client {
		return testkit.Client{Users: inner, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			return prepare(inner, u)
		}}
	})
}

// twofold has a client each of whose calls takes two connections.
func twofold(t *testing.T) rpcbench.Stack {
	return mine(func(s *rpcbench.Stack) {
		dial := s.Dial
		s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			one, err := dial(config)
			require.NoError(t, err)
			two, err := dial(config)
			return testkit.Client{
				Users: one.(rpcbench.Users),
				OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
					return func(ctx context.Context) error {
						_, err := one.(rpcbench.Users).CreateUser(ctx, u)
						_, err2 := two.(rpcbench.Users).CreateUser(ctx, u)
						return errors.Join(err, err2)
					}, nil
				},
				OnClose: func() error { return errors.Join(one.Close(), two.Close()) },
			}, err
		}
	})
}

// A client of a stack that names a method prepares calls of samples, and one that serves create-user those of users.
func TestClientsPrepareWhatTheStackServes(t *testing.T) {
	named := httpjson.New()
	named.Serves = "test.v1.Users/Get"
	_, err := rpcbench.Start(t.Context(), named, rpcbench.Config{})
	require.EqualError(t, err, "httpjson: dial: the client of httpjson, which serves test.v1.Users/Get, is no "+
		"rpcbench.MethodClient")
	unnamed := httpjson.Of(rpcbench.Method[rpcbench.User, rpcbench.User]{Name: "test.v1.Users/Get",
		Requests: []*rpcbench.User{{}}, Replies: []*rpcbench.User{{}},
		Equal: func(_, _ *rpcbench.User) bool { return true }})
	unnamed.Serves = ""
	_, err = rpcbench.Start(t.Context(), unnamed, rpcbench.Config{})
	require.ErrorContains(t, err, "httpjson: dial: the client of httpjson, which serves create-user, is no rpcbench.Users")
	unnamed.Serves = "test.v1.Users/Get"
	of, users := stacktest.Start(t, unnamed, rpcbench.Config{}), stacktest.Start(t, httpjson.New(), rpcbench.Config{})
	require.Equal(t, of.Client, testkit.As[rpcbench.MethodClient](t, of))
	require.Equal(t, users.Client, testkit.As[rpcbench.Users](t, users))
	_, err = rpcbench.As[rpcbench.Users](of)
	require.EqualError(t, err, "the client of httpjson, which serves test.v1.Users/Get, is no rpcbench.Users")
	for _, f := range []*rpcbench.Fixture{of, users} {
		call, err := f.Client.Prepare(5)
		require.NoError(t, err)
		require.NoError(t, call(t.Context()))
	}
}

// freeAddr returns an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}

func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	nobody, other := freeAddr(t), start(t, httpjson.New(), rpcbench.Config{})
	wrong := errors.New("odd")
	undialled := func(c rpcbench.Client) rpcbench.Stack {
		return mine(func(s *rpcbench.Stack) {
			s.Dial = func(rpcbench.ClientConfig) (rpcbench.Client, error) { return c, wrong }
		})
	}
	served := func(serve func(net.Listener) error, closing func() error) rpcbench.Stack {
		return withServer(func(inner rpcbench.Server) rpcbench.Server {
			return testkit.Server{Server: inner, OnServe: serve, OnClose: closing}
		})
	}
	for _, c := range []struct {
		why    string
		stack  rpcbench.Stack
		config rpcbench.Config
		want   string // after the stack's name
	}{
		{"the port is taken", httpjson.New(), rpcbench.Config{Addr: taken.Addr().String()},
			"listen: listen tcp " + taken.Addr().String() + ": "},
		{"no server", mine(func(s *rpcbench.Stack) {
			s.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, wrong }
		}), rpcbench.Config{}, "server: odd"},
		{"neither a server nor an error", mine(func(s *rpcbench.Stack) {
			s.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, nil }
		}), rpcbench.Config{}, "server: Stack.Server returned no Server and no error"},
		{"neither a client nor an error", mine(func(s *rpcbench.Stack) {
			s.Serves = "test.v1.Users/Create"
			s.Dial = func(rpcbench.ClientConfig) (rpcbench.Client, error) { return nil, nil }
		}), rpcbench.Config{}, "dial: Stack.Dial returned no Client and no error"},
		{"a stack without a Server", mine(func(s *rpcbench.Stack) { s.Server = nil }), rpcbench.Config{},
			"stack: a Stack needs a Server and a Dial"},
		{"a stack without a Dial", mine(func(s *rpcbench.Stack) { s.Dial = nil }), rpcbench.Config{},
			"stack: a Stack needs a Server and a Dial"},
		{"fewer connections than none", httpjson.New(), rpcbench.Config{Conns: -3},
			"connections: Config.Conns is -3: give 1 or more, or 0 for 1"},
		{"a socket's path that is too long", httpjson.New(),
			rpcbench.Config{Unix: true, Addr: filepath.Join(t.TempDir(), strings.Repeat("long", 30))}, "listen: the path has "},
		{"no client", undialled(nil), rpcbench.Config{}, "dial: odd"},
		{"half a client beside the error", undialled((*testkit.Client)(nil)), rpcbench.Config{}, "dial: odd"},
		{"no call can be prepared", withCalls(mine(func(*rpcbench.Stack) {}),
			func(rpcbench.Users, rpcbench.User) (rpcbench.Call, error) { return nil, wrong }),
			rpcbench.Config{}, "connect: odd"},
		{"the call fails, and so does closing", served(func(ln net.Listener) error {
			return (&http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: rpcbench.HeaderTimeout}).Serve(ln)
		}, func() error { return wrong }), rpcbench.Config{},
			"connect: internal: status 404 Not Found with an unreadable body"},
		{"Serve fails at once", served(func(net.Listener) error { return wrong }, nil), rpcbench.Config{}, "serve: odd"},
		{"Serve closes the listener and fails at once",
			served(func(ln net.Listener) error { return errors.Join(wrong, ln.Close()) }, nil),
			rpcbench.Config{}, "serve: odd"},
		{"fewer connections than declared",
			testkit.Dialling(grpcprotobuf.New(), func(c *rpcbench.ClientConfig) { c.Conns-- }),
			rpcbench.Config{Conns: 2},
			"connect: the server accepted 1 connection and the client dialled 1 with ClientConfig.DialContext, 2 are declared"},
		{"more connections than declared", twofold(t), rpcbench.Config{},
			"connect: the server accepted 2 connections and the client dialled 2 with ClientConfig.DialContext, 1 are declared"},
		{"a client that opens connections as it needs them, by itself",
			testkit.Dialling(mine(func(s *rpcbench.Stack) { s.Traits.Reconnects = true }),
				func(c *rpcbench.ClientConfig) { c.DialContext = new(net.Dialer).DialContext }), rpcbench.Config{},
			"connect: the server accepted 1 connection and the client dialled 0 with ClientConfig.DialContext, 1 are declared"},
		{"a server elsewhere, and an address to listen on", httpjson.New(),
			rpcbench.Config{Remote: "127.0.0.1:http", Addr: taken.Addr().String()},
			"server elsewhere: the Addr, WrapServer, Wait and timeouts of Config are for a server in this process"},
		{"a server elsewhere over TLS without its certificate", httpjson.New(),
			rpcbench.Config{Remote: taken.Addr().String(), TLS: true}, "certificate: x509: "},
		{"a server elsewhere with a certificate that is none", httpjson.New(),
			rpcbench.Config{Remote: taken.Addr().String(), TLS: true, Certificate: []byte("odd")}, "certificate: x509: "},
		{"a server elsewhere that is to wait", httpjson.New(), rpcbench.Config{Remote: nobody, Wait: time.Second},
			"server elsewhere: the Addr, WrapServer, Wait and timeouts of Config are for a server in this process"},
		{"a wait below zero", httpjson.New(), rpcbench.Config{Wait: -time.Second},
			"wait: Config.Wait is -1s: give 0 or more"},
		{"nobody listens elsewhere", httpjson.New(), rpcbench.Config{Remote: nobody}, "connect: unavailable: "},
		{"a server elsewhere of another protocol", rawtcp.New(), rpcbench.Config{Remote: other.Addr},
			"connect: unavailable: "},
		{"headers that lack one", httpjson.New(), rpcbench.Config{Headers: &rpcbench.Headers{UserAgent: "mine/1.0",
			Traceparent: corpus.Headers().Traceparent}},
			"headers: Config.Headers needs a UserAgent, an Authorization and a Traceparent"},
		{"headers over a protocol without", rawtcp.New(), rpcbench.Config{Headers: corpus.Headers()},
			"dial: the protocol has no headers: " + errors.ErrUnsupported.Error()},
	} {
		t.Run(c.why, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			if c.config.Addr == "" && c.config.Remote == "" {
				c.config.Addr = freeAddr(t)
			}
			// A Start that never ends fails here.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f, err := rpcbench.Start(ctx, c.stack, c.config)
			require.Nil(t, f)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), c.stack.Name+": "), "the stack comes first: %v", err)
			require.NotContains(t, err.Error(), "\n", "one line")
			if strings.HasSuffix(c.want, "odd") {
				require.ErrorIs(t, err, wrong)
			}
			require.Equal(t, strings.Contains(c.want, "has no headers"), errors.Is(err, errors.ErrUnsupported),
				"so that a loop can skip the row")
			if c.config.Remote == "" && c.config.Addr != taken.Addr().String() {
				refused(t, c.config.Addr)
			}
		})
	}
}

// TestStartOfNothing: a Stack that is still empty is an error, as is one whose client alone is wanted.
func TestStartOfNothing(t *testing.T) {
	for _, config := range []rpcbench.Config{{}, {Remote: freeAddr(t)}} {
		_, err := rpcbench.Start(t.Context(), rpcbench.Stack{}, config)
		require.EqualError(t, err, "no name: stack: a Stack needs a Server and a Dial")
	}
}

func TestStartWithAServerElsewhere(t *testing.T) {
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New()} {
		server := start(t, stack, rpcbench.Config{TLS: true})
		state, ok := server.TLS()
		require.True(t, ok)
		config := rpcbench.Config{Conns: 2, TLS: true, Remote: server.Addr, Certificate: state.PeerCertificates[0].Raw}
		if stack.Traits.HTTP != "" {
			config.Headers = corpus.Headers()
		}
		var told rpcbench.ClientConfig
		f := start(t, testkit.Dialling(stack, func(c *rpcbench.ClientConfig) { told = *c }), config)
		require.Same(t, config.Headers, told.Headers)
		require.Equal(t, server.Addr, f.Addr)
		require.EqualValues(t, 2, f.Accepted(), "what its client has opened")
		require.EqualValues(t, 3, server.Accepted())
		state, ok = f.TLS()
		require.True(t, ok)
		require.Equal(t, config.Certificate, state.PeerCertificates[0].Raw)
		require.NoError(t, f.Close())
		_, err := testkit.As[rpcbench.Users](t, server).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		require.NoError(t, err, "the server goes on")
	}
}

// refused fails when somebody listens on addr.
func refused(t *testing.T, addr string) {
	t.Helper()
	_, err := net.Dial("tcp", addr)
	require.Error(t, err, "the listener is closed")
}

// accepting is a listener with another Accept.
type accepting struct {
	net.Listener
	accept func() (net.Conn, error)
}

func (l accepting) Accept() (net.Conn, error) { return l.accept() }

// noFile is the error of Accept without a file descriptor left for the connection.
func noFile() error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestStartIsCancelled: no fixture is left. Servers accept again, and clients may dial again, for as long as they are
// let: why they had to is the reason, and not that the time was up.
func TestStartIsCancelled(t *testing.T) {
	// lastCall cancels when the reply is there.
	lastCall := func(stack rpcbench.Stack, cancel func()) rpcbench.Stack {
		return withCalls(stack, func(inner rpcbench.Users, u rpcbench.User) (rpcbench.Call, error) {
			call, err := inner.PrepareUser(u)
			return func(ctx context.Context) error {
				defer cancel()
				return call(ctx)
			}, err
		})
	}
	nobody := freeAddr(t)
	for _, c := range []struct {
		why   string
		begin func(cancel func()) (rpcbench.Stack, rpcbench.Config)
		tried string
	}{
		{"the server accepts again", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			return withServer(func(inner rpcbench.Server) rpcbench.Server {
				return testkit.Server{Server: inner, OnServe: func(ln net.Listener) error {
					counted := ln.(*rpcbench.Listener)
					asked := 0
					counted.Listener = accepting{counted.Listener, func() (net.Conn, error) {
						if asked++; asked == 2 {
							cancel()
						}
						return nil, noFile()
					}}
					return inner.Serve(ln)
				}}
			}), rpcbench.Config{}
		}, ": accept tcp: accept4: " + syscall.EMFILE.Error()},
		{"the client dials again", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			return mine(func(s *rpcbench.Stack) {
				s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
					return testkit.Client{OnPrepare: func(rpcbench.User) (rpcbench.Call, error) {
						return func(ctx context.Context) error {
							_, err := config.DialContext(ctx, "tcp", config.Addr)
							cancel()
							return errors.Join(errors.New("odd"), err)
						}, nil
					}, OnClose: func() error { return nil }}, nil
				}
			}), rpcbench.Config{Remote: nobody}
		}, ": dial tcp " + nobody + ": .*"},
		{"before", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			cancel()
			return httpjson.New(), rpcbench.Config{}
		}, ""},
		{"while the server never answers", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			return mine(func(s *rpcbench.Stack) {
				s.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) {
					return &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body) // from here on net/http sees the connection close
						cancel()
						select {
						case <-r.Context().Done():
						case <-time.After(time.Minute):
							t.Error("the call has not been ended")
						}
					}), ReadHeaderTimeout: rpcbench.HeaderTimeout}, nil
				}
			}), rpcbench.Config{}
		}, ""},
		{"by the last call", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			return lastCall(httpjson.New(), cancel), rpcbench.Config{}
		}, ""},
		{"by the last call of a multiplexed stack", func(cancel func()) (rpcbench.Stack, rpcbench.Config) {
			return lastCall(grpcprotobuf.New(), cancel), rpcbench.Config{}
		}, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stack, config := c.begin(cancel)
			if config.Remote == "" {
				config.Addr = freeAddr(t)
			}
			f, err := rpcbench.Start(ctx, stack, config)
			require.ErrorIs(t, err, context.Canceled, "a fixture that has been stopped is none")
			require.Nil(t, f)
			require.Regexp(t, "^"+stack.Name+": connect: context canceled"+c.tried+"$", err.Error())
			refused(t, config.Addr)
		})
	}
}

func TestCtxBoundsTheStartAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{})
	require.NoError(t, err)
	defer f.Close()
	cancel()
	for range 100 { // what follows a context's end begins on another goroutine
		_, err = testkit.As[rpcbench.Users](t, f).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		require.NoError(t, err)
	}
}

// hurried is a context with a deadline, at which nothing ends.
type hurried struct {
	context.Context
	until time.Time
}

func (c hurried) Deadline() (time.Time, bool) { return c.until, true }

// TestDeadlineBoundsTheFirstConnectionAlone: a client may dial again after it.
func TestDeadlineBoundsTheFirstConnectionAlone(t *testing.T) {
	for limit := time.Second; ; limit *= 2 {
		ctx := hurried{t.Context(), time.Now().Add(limit)}
		f, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{})
		if errors.Is(err, os.ErrDeadlineExceeded) { // a busy machine
			continue
		}
		require.NoError(t, err)
		defer f.Close()
		<-time.After(time.Until(ctx.until))
		again, err := f.Dial()
		require.NoError(t, err)
		defer again.Close()
		_, err = again.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		require.NoError(t, err)
		return
	}
}

func TestClose(t *testing.T) {
	t.Run("twice", func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		closed, wrong := 0, errors.New("odd")
		f, err := rpcbench.Start(t.Context(), withServer(func(inner rpcbench.Server) rpcbench.Server {
			return testkit.Server{Server: inner, OnClose: func() error {
				closed++
				return errors.Join(wrong, inner.Close())
			}}
		}), rpcbench.Config{})
		require.NoError(t, err)
		err = f.Close()
		require.ErrorIs(t, err, wrong)
		require.Equal(t, err, f.Close())
		require.Equal(t, 1, closed)
		refused(t, f.Addr)
	})
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New()} {
		for _, where := range []string{"here", "elsewhere"} { // a server elsewhere does not end with the fixture
			t.Run("while "+stack.Name+" has a call that hangs in a server "+where, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				gate := new(tap.Gate)
				f := start(t, stack, rpcbench.Config{WrapServer: gate.Wrap})
				defer f.Close()
				if where == "elsewhere" {
					f = start(t, stack, rpcbench.Config{Remote: f.Addr})
				}
				u := rpcbench.SampleUser(0, 0)
				call, err := testkit.As[rpcbench.Users](t, f).PrepareUser(u)
				require.NoError(t, err)
				held := gate.Hold([]byte(u.Name))
				result := make(chan error, 1)
				go func() { result <- call(context.Background()) }()
				<-held
				require.NoError(t, f.Close())
				select {
				case err = <-result:
				case <-time.After(time.Minute):
					require.Fail(t, "the call still waits")
				}
				require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(err), err)
				require.NotErrorIs(t, err, context.Canceled, "the caller did not cancel")
				require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(call(context.Background())), "a call after Close")
			})
		}
	}
	t.Run("when Serve never returns", func(t *testing.T) {
		// In the bubble 10 seconds pass as soon as nothing else can happen.
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			defer close(end)
			f, err := rpcbench.Start(t.Context(), withServer(func(inner rpcbench.Server) rpcbench.Server {
				return testkit.Server{Server: inner, OnServe: func(ln net.Listener) error {
					err := inner.Serve(ln)
					<-end
					return err
				}}
			}), rpcbench.Config{})
			require.NoError(t, err)
			require.EqualError(t, f.Close(), "mine: close: Serve has not returned after 10s")
		})
	})
}

func TestConnections(t *testing.T) {
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()} {
		require.EqualValues(t, 1, start(t, stack, rpcbench.Config{}).Accepted(), "0 is 1")
		for name, tls := range map[string]bool{"clear": false, "tls": true} {
			t.Run(stack.Name+"/"+name, func(t *testing.T) {
				var server, client tap.Tap
				f := start(t, stack, rpcbench.Config{Conns: 3, TLS: tls, WrapServer: server.Wrap, WrapClient: client.Wrap})
				require.EqualValues(t, 3, f.Accepted())
				_, shaken := f.TLS()
				require.Equal(t, tls, shaken)
				// net/http dials on goroutines of their own, which may lag behind the calls.
				for name, tap := range map[string]*tap.Tap{"WrapServer": &server, "WrapClient": &client} {
					require.Len(t, tap.Conns(), 3, "%s sees every connection", name)
					var seen []byte
					for _, c := range tap.Conns() {
						sent, _ := c.Bytes()
						seen = append(seen, sent...)
					}
					require.NotEmpty(t, seen)
					require.Equal(t, !tls, bytes.Contains(seen, []byte("anna.1000@example.com")), "%s is beneath TLS", name)
				}
			})
		}
	}
}

// TestConnectionsAsNeeded: a stack that reconnects is ready after one call of each caller, with more connections than
// callers or with fewer.
func TestConnectionsAsNeeded(t *testing.T) {
	more := twofold(t)
	more.Traits.Reconnects = true
	require.EqualValues(t, 2, start(t, more, rpcbench.Config{}).Accepted())

	fewer := rawtcp.New()
	fewer.Traits.Reconnects = true
	dial := fewer.Dial
	fewer.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) { config.Conns = 1; return dial(config) }
	require.EqualValues(t, 1, start(t, fewer, rpcbench.Config{Conns: 3}).Accepted())
}

// TestSidesAreLabelled: profiles tell client and server apart, and the caller's goroutine keeps its labels.
func TestSidesAreLabelled(t *testing.T) {
	goleak.VerifyNone(t, // or one of the fixture before, which is about to end, would be among them
		goleak.IgnoreAnyFunction("runtime/pprof.profileWriter")) // of -cpuprofile
	var profile bytes.Buffer
	pprof.Do(t.Context(), pprof.Labels("mine", "yes"), func(ctx context.Context) {
		for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.Tuned()} {
			f, err := rpcbench.Start(ctx, stack, rpcbench.Config{})
			require.NoError(t, err)
			defer f.Close()
		}
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	})
	labels := map[string]string{}
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		_, rest, _ := strings.Cut(group, "# labels: ")
		label, _, _ := strings.Cut(rest, "\n")
		for _, function := range []string{"(*persistConn).readLoop", "(*conn).serve", "(*Server).serverWorker",
			"(*http2Client).reader", "(*http2Server).HandleStreams", "TestSidesAreLabelled"} {
			if strings.Contains(group, function) {
				labels[function] = label
			}
		}
	}
	const client, server = `{"mine":"yes", "side":"client"}`, `{"mine":"yes", "side":"server"}`
	require.Equal(t, map[string]string{"(*persistConn).readLoop": client, "(*http2Client).reader": client,
		"(*conn).serve": server, "(*Server).serverWorker": server, "(*http2Server).HandleStreams": server,
		"TestSidesAreLabelled": `{"mine":"yes"}`}, labels)
}

func TestAHundredStartsOpenWhatIsDeclared(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()} {
		for range 100 {
			f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{Conns: 8})
			require.NoError(t, err)
			require.EqualValues(t, 8, f.Accepted(), stack.Name)
			require.NoError(t, f.Close())
			require.EqualValues(t, 8, f.Accepted(), "%s: none was left in the queue", stack.Name)
		}
	}
}

func TestServeConnsAcceptsAgainAfterATemporaryError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	errs := make(chan error, 10) // one before each connection
	for range 3 {
		errs <- noFile()
	}
	l := accepting{ln, func() (net.Conn, error) {
		select {
		case err := <-errs:
			return nil, err
		default:
			return ln.Accept()
		}
	}}
	s := rpcbench.ServeConns(rpcbench.ServerConfig{}, func(c net.Conn) { _, _ = io.Copy(c, c) })
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	echo := func() error {
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	require.NoError(t, echo())

	errs <- errors.New("the network is gone")
	second, err := net.Dial("tcp", ln.Addr().String()) // Accept had begun before
	require.NoError(t, err)
	defer second.Close()
	select {
	case err := <-served:
		require.EqualError(t, err, "the network is gone")
	case <-time.After(10 * time.Second):
		require.Fail(t, "Serve waits for connections that nobody closes")
	}
	require.Error(t, echo(), "its connections are closed")
	require.NoError(t, s.Close())
}

// TestStartIsBounded: a server that never answers is an error with the stack and the step, though the caller has set no
// limit.
func TestStartIsBounded(t *testing.T) {
	if flag.Lookup("long").Value.String() != "true" {
		t.Skip("takes ten seconds: -long")
	}
	deaf := rawtcp.New()
	deaf.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return rpcbench.ServeConns(config, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), nil
	}
	_, err := rpcbench.Start(t.Context(), deaf, rpcbench.Config{})
	require.EqualError(t, err, "rawtcp: connect: not ready after 10s")
}

// TestHandshakesAreEqual: every stack's clients shake hands as crypto/tls does by default, in full at each connection.
func TestHandshakesAreEqual(t *testing.T) {
	type handshake struct {
		version, cipher uint16
		group           tls.CurveID
		resumed         bool
	}
	var want handshake
	for _, stack := range stacks.All() {
		f := start(t, stack, rpcbench.Config{TLS: true})
		shaken := func() handshake {
			s, ok := f.TLS()
			require.True(t, ok, stack.Name)
			key, ok := s.PeerCertificates[0].PublicKey.(*ecdsa.PublicKey)
			require.True(t, ok && key.Curve == elliptic.P256() && len(s.PeerCertificates) == 1, stack.Name)
			return handshake{s.Version, s.CipherSuite, s.CurveID, s.DidResume}
		}
		first := shaken()
		if want == (handshake{}) {
			want = first
		}
		require.Equal(t, want, first, stack.Name)
		require.False(t, first.resumed)
		again, err := f.Dial()
		require.NoError(t, err)
		_, err = again.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		require.NoError(t, err, stack.Name)
		require.NoError(t, again.Close())
		require.Equal(t, first, shaken(), "%s: a second connection", stack.Name)
	}
}

func TestCertificateIsOfOneFixture(t *testing.T) {
	start := func() (*rpcbench.Fixture, rpcbench.ClientConfig) {
		var dialed rpcbench.ClientConfig
		stack := testkit.Dialling(grpcprotobuf.New(), func(c *rpcbench.ClientConfig) { dialed = *c })
		return start(t, stack, rpcbench.Config{TLS: true}), dialed
	}
	one, client := start()
	other, _ := start()

	state, ok := one.TLS()
	require.True(t, ok)
	otherState, ok := other.TLS()
	require.True(t, ok)
	cert := state.PeerCertificates[0]
	require.False(t, cert.Equal(otherState.PeerCertificates[0]), "each fixture makes its own")
	require.NotEqual(t, cert.PublicKey, otherState.PeerCertificates[0].PublicKey, "and its own key")
	require.True(t, cert.NotAfter.After(time.Now().Add(12*time.Hour)), "it lasts as long as a run: %v", cert.NotAfter)
	require.True(t, cert.NotBefore.Before(time.Now().Add(-time.Minute)), "clocks that are set back do no harm: %v",
		cert.NotBefore)
	require.EqualValues(t, tls.VersionTLS13, client.TLS.MinVersion)

	create := func(addr string) error {
		config := client
		config.Addr = addr
		c, err := grpcprotobuf.New().Dial(config)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.(rpcbench.Users).CreateUser(context.Background(), rpcbench.SampleUser(0, 0))
		return err
	}
	require.NoError(t, create(one.Addr))
	err := create(other.Addr)
	require.Equal(t, rpcbench.CodeUnavailable, rpcbench.CodeOf(err),
		"a client of one fixture refuses the other's server: %v",
		err)
	require.ErrorContains(t, err, "certificate")
}

// Connections are opened however early a call ends: here each begins a moment later than the one before it takes, as on
// a machine with many cores, and would find that one's connection idle.
func TestCallsThatEndEarlyOpenTheirConnections(t *testing.T) {
	const conns = 5
	for name, stack := range map[string]rpcbench.Stack{"httpjson": httpjson.New(), "grpcprotobuf": grpcprotobuf.New()} {
		t.Run(name, func(t *testing.T) {
			prepared := 0
			late := testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
				return testkit.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
					call, err := c.PrepareUser(u)
					wait := time.Duration(prepared) * 3 * time.Millisecond
					prepared++
					return func(ctx context.Context) error {
						<-time.After(wait)
						return call(ctx)
					}, err
				}}
			})
			f, err := rpcbench.Start(t.Context(), late, rpcbench.Config{Conns: conns})
			require.NoError(t, err)
			require.EqualValues(t, conns, f.Accepted())
			require.NoError(t, f.Close())
		})
	}
}

func TestListenerCounts(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln := &rpcbench.Listener{Listener: inner}
	for i := range int64(3) {
		if i == 2 {
			ln.Wrap = func(c net.Conn) net.Conn {
				require.Equal(t, i, ln.Accepted.Load(), "a connection counts when it is wrapped")
				return c
			}
		}
		require.Equal(t, i, ln.Accepted.Load())
		dialed, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer dialed.Close()
		c, err := ln.Accept()
		require.NoError(t, err)
		defer c.Close()
		require.IsType(t, (*net.TCPConn)(nil), c, "without Wrap nothing stands in the timed path")
	}
	require.NoError(t, ln.Close())
	_, err = ln.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, int64(3), ln.Accepted.Load(), "a failed Accept is no connection")
}

// TestHandled: a fixture tells how many calls its server has handled: users, refused ones too, and echoes. Nothing is
// known of a server elsewhere.
func TestHandled(t *testing.T) {
	for _, s := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New(), rawtcp.New()} {
		f := start(t, s, rpcbench.Config{Conns: 2})
		before := f.Handled()
		require.GreaterOrEqual(t, before, int64(2), "%s: those that opened the connections", s.Name)
		for range 3 {
			_, err := testkit.As[rpcbench.Users](t, f).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
			require.NoError(t, err, s.Name)
		}
		_, err := testkit.As[rpcbench.Users](t, f).CreateUser(t.Context(), rpcbench.User{})
		require.Equal(t, rpcbench.CodeInvalid, rpcbench.CodeOf(err), s.Name)
		require.EqualValues(t, 4, f.Handled()-before, s.Name)
		_, err = f.Client.(rpcbench.Echoer).Echo(t.Context(), &rpcbench.Flex{String: "echo"})
		require.NoError(t, err, s.Name)
		require.EqualValues(t, 5, f.Handled()-before, s.Name)
		other := start(t, s, rpcbench.Config{Remote: f.Addr})
		require.Zero(t, other.Handled(), s.Name)
		require.Greater(t, f.Handled()-before, int64(5), "%s: the calls of another client", s.Name)
	}
	require.Zero(t, new(rpcbench.Fixture).Handled())
	new(rpcbench.ServerConfig).CountAndWait() // of no fixture
}
