package stacktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// fakeStreams is grpcprotobuf with one fault at a time in its client's streams. The zero value has none.
type fakeStreams struct {
	open  func(*fakeStreamer, context.Context) (rpcbench.Stream, error)
	call  func(s *fakeStream, u rpcbench.User, real rpcbench.Call) rpcbench.Call
	close func(*fakeStream) error
}

func (k fakeStreams) stack() rpcbench.Stack {
	stack := grpcprotobuf.New()
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		if err != nil {
			return nil, err
		}
		another := func() (rpcbench.Client, error) { return dial(config) }
		return &fakeStreamer{Users: c.(rpcbench.Users), Streamer: c.(rpcbench.Streamer), fake: k, another: another}, nil
	}
	return stack
}

type fakeStreamer struct {
	rpcbench.Users
	rpcbench.Streamer
	fake    fakeStreams
	another func() (rpcbench.Client, error)
	others  []rpcbench.Client // to be closed with this one
}

func (c *fakeStreamer) Close() error {
	for _, other := range c.others {
		_ = other.Close()
	}
	return c.Users.Close()
}

func (c *fakeStreamer) OpenStream(ctx context.Context) (rpcbench.Stream, error) {
	open := c.fake.open
	if open == nil {
		open = func(c *fakeStreamer, ctx context.Context) (rpcbench.Stream, error) { return c.Streamer.OpenStream(ctx) }
	}
	s, err := open(c, ctx)
	if err != nil {
		return nil, err
	}
	return &fakeStream{Stream: s, client: c, ctx: ctx}, nil
}

type fakeStream struct {
	rpcbench.Stream
	client *fakeStreamer
	ctx    context.Context
	ended  bool
}

func (s *fakeStream) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	call, err := s.Stream.Prepare(u)
	if err != nil || s.client.fake.call == nil {
		return call, err
	}
	return s.client.fake.call(s, u, call), nil
}

func (s *fakeStream) Close() error {
	if s.client.fake.close != nil {
		return s.client.fake.close(s)
	}
	return s.Stream.Close()
}

// onStreams is grpcprotobuf whose calls are messages on a stream that stays open, with one fault at a time. The zero
// value has none.
type onStreams struct {
	anew    bool // each call opens a stream
	unalike bool // CreateUser sends another message than a Call
}

func (k onStreams) stack() rpcbench.Stack {
	leased := claiming(fakeStreams{}.stack(), func(t *rpcbench.Traits) { t.Leased = true })
	return testkit.WithClient(leased, func(c rpcbench.Users) rpcbench.Client {
		return &onStreamsClient{fakeStreamer: c.(*fakeStreamer), onStreams: k}
	})
}

type onStreamsClient struct {
	*fakeStreamer
	onStreams
	stream rpcbench.Stream // ends with the client
}

func (c *onStreamsClient) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	if c.unalike {
		u.Name += "+"
	}
	call, _ := c.PrepareUser(u)
	return *rpcbench.AnswerUser(&u), call(ctx)
}

func (c *onStreamsClient) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *onStreamsClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	return func(ctx context.Context) (err error) {
		if c.stream == nil || c.anew {
			if c.stream, err = c.OpenStream(context.Background()); err != nil {
				return err
			}
		}
		call, err := c.stream.Prepare(u)
		if err != nil {
			return err
		}
		return call(ctx)
	}, nil
}

// TestLeasedStreamsPass: checks that read requests off the wire find those of a leased stream.
func TestLeasedStreamsPass(t *testing.T) {
	for _, check := range []string{"one request", "protocol"} {
		require.NoError(t, run(check, conform.Subject{Stack: onStreams{}.stack()}), check)
	}
}

// forgiving makes a success of errors that say some words.
func forgiving(words string) func(rpcbench.Call) rpcbench.Call {
	return func(real rpcbench.Call) rpcbench.Call {
		return func(ctx context.Context) error {
			if err := real(ctx); err != nil && !strings.Contains(err.Error(), words) {
				return err
			}
			return nil
		}
	}
}

// TestStreamFakesFail: faults of streams, each of which turns the named check red.
func TestStreamFakesFail(t *testing.T) {
	type streamCall = func(*fakeStream, rpcbench.User, rpcbench.Call) rpcbench.Call
	just := func(change func(rpcbench.Call) rpcbench.Call) streamCall {
		return func(_ *fakeStream, _ rpcbench.User, real rpcbench.Call) rpcbench.Call { return change(real) }
	}
	for _, c := range []struct {
		fault string
		fake  fakeStreams
		fails string // a check, and after a bar what it says; "" for none
	}{
		{"no fault", fakeStreams{}, ""},
		{"replies that nobody compares", fakeStreams{call: just(forgiving("wrong reply"))}, "changed stream replies"},
		{"a user answered in the client",
			fakeStreams{call: func(_ *fakeStream, u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
				call, _ := inProcess{}.PrepareUser(u)
				return call
			}}, "streams"},
		{"a request for each user",
			fakeStreams{call: func(s *fakeStream, u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
				call, _ := s.client.PrepareUser(u)
				return func(ctx context.Context) error {
					if s.ended {
						return &rpcbench.Error{Code: rpcbench.CodeUnavailable}
					}
					return call(ctx)
				}
			}, close: func(s *fakeStream) error {
				s.ended = true
				return s.Stream.Close()
			}}, "streams | 2 streams took 70 requests"},
		{"a Call that sends although its context is done",
			fakeStreams{call: just(func(real rpcbench.Call) rpcbench.Call {
				return func(context.Context) error { return real(context.Background()) }
			})}, "streams"},
		{"a Call that ends the stream because its own context is done",
			fakeStreams{call: func(s *fakeStream, _ rpcbench.User, real rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					if ctx.Err() != nil {
						_ = s.Stream.Close()
					}
					return real(ctx)
				}
			}}, "streams"},
		{"a stream out of step after a Call whose own context is done",
			fakeStreams{call: func(s *fakeStream, _ rpcbench.User, real rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					if s.ended {
						return &rpcbench.Error{Code: rpcbench.CodeInternal}
					}
					s.ended = ctx.Err() != nil
					return real(ctx)
				}
			}}, "streams | a stream's Call after one whose own context was done"},
		{"a connection for each stream",
			fakeStreams{open: func(c *fakeStreamer, ctx context.Context) (rpcbench.Stream, error) {
				own, err := c.another()
				if err != nil {
					return nil, err
				}
				c.others = append(c.others, own)
				return own.(rpcbench.Streamer).OpenStream(ctx)
			}}, "streams | connections are declared"},
		{"all streams on one connection",
			fakeStreams{open: func(c *fakeStreamer, ctx context.Context) (rpcbench.Stream, error) {
				s, err := c.Streamer.OpenStream(ctx)
				_, _ = c.Users.PrepareUser(rpcbench.SampleUser(0, 0)) // the next one is the first again
				return s, err
			}}, "streams | must take the connections in turn"},
		{"a stream that Close leaves open", fakeStreams{close: func(*fakeStream) error { return nil }}, "streams"},
		{"a stream that outlives its context",
			fakeStreams{open: func(c *fakeStreamer, ctx context.Context) (rpcbench.Stream, error) {
				return c.Streamer.OpenStream(context.WithoutCancel(ctx))
			}}, "ended streams"},
		{"a stream that is opened again when it has ended",
			fakeStreams{call: func(s *fakeStream, u rpcbench.User, real rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					if s.ended {
						again, _ := s.client.Streamer.OpenStream(s.ctx)
						real, _ = again.Prepare(u)
					}
					err := real(ctx)
					s.ended = err != nil
					return err
				}
			}}, "ended streams"},
		{"errors counted as success", fakeStreams{call: just(forgiving(""))}, "ended streams"},
		{"an error without its violations", fakeStreams{call: just(func(real rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				if err := real(ctx); err != nil {
					return &rpcbench.Error{Code: rpcbench.CodeOf(err)}
				}
				return nil
			}
		})}, "ended streams"},
		{"a call on a stream for which nobody waits", fakeStreams{call: just(func(rpcbench.Call) rpcbench.Call {
			return func(context.Context) error { return nil }
		})}, "wait | a call on a stream: took"},
		{"an ended stream's error that Close does not return", fakeStreams{close: func(s *fakeStream) error {
			_ = s.Stream.Close()
			return nil
		}}, "ended streams"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			fails, cause, _ := strings.Cut(c.fails, " | ")
			for _, check := range conform.Checks() {
				if !strings.Contains(check.Name, "stream") && check.Name != "wait" || fails != "" && fails != check.Name {
					continue
				}
				subject := conform.Subject{Stack: c.fake.stack()}
				if check.Name != "wait" { // which takes its waits from the limit
					subject.Limit = 8 * time.Second
				}
				err := check.Run(subject)
				if c.fails == "" {
					require.NoError(t, err, check.Name)
				} else {
					require.Error(t, err, check.Name)
					require.ErrorContains(t, err, cause, "the error names the cause")
					require.NotErrorAs(t, err, new(conform.Skip), check.Name)
					t.Logf("%s: %v", check.Name, err)
				}
			}
		})
	}
}
