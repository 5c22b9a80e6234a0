package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/users"
)

// stream is one with a Call for each of some users.
type stream struct {
	rpcbench.Stream
	users []rpcbench.User
	calls []rpcbench.Call
}

// open opens a stream. That a client does not stream is a reason to skip.
func (f *session) open(ctx context.Context, asked ...rpcbench.User) (*stream, error) {
	client, ok := f.Client.(rpcbench.Streamer)
	if !ok {
		return nil, Skip("the client is no Streamer")
	}
	opened, err := client.OpenStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	o := &stream{Stream: opened, users: asked}
	for _, u := range asked {
		call, err := opened.Prepare(u)
		if err != nil {
			return nil, fmt.Errorf("prepare on a stream: %w", err)
		}
		o.calls = append(o.calls, call)
	}
	return o, nil
}

// streams: two streams at a time on one connection, then one on each of two.
func streams(s Subject) error {
	if err := watched(twoStreams)(s); err != nil {
		return err
	}
	const conns, avatar = 2, 10_000
	return with(s.watch, rpcbench.Config{Conns: conns}, func(f *session) error {
		for range conns {
			stream, err := f.open(context.Background(), users.Sample(0, avatar))
			if err != nil {
				return err
			}
			if err := errors.Join(stream.calls[0](context.Background()), stream.Close()); err != nil {
				return err
			}
		}
		return f.connected(avatar)
	})
}

func twoStreams(f *session) error {
	before := goleak.IgnoreCurrent()
	requestsBefore, _, err := f.messages()
	if err != nil {
		return err
	}
	var pair []*stream
	var callers [][]rpcbench.Call
	for i := range 2 {
		asked := make([]rpcbench.User, users.Round)
		for j := range asked {
			asked[j] = users.Sample(i*users.Round+j, 1000)
		}
		stream, err := f.open(context.Background(), asked...)
		if err != nil {
			return err
		}
		large, err := stream.Prepare(users.Sample(i, rpcbench.MaxAvatar))
		if err != nil {
			return fmt.Errorf("prepare on a stream: %w", err)
		}
		pair, callers = append(pair, stream), append(callers, append(slices.Clone(stream.calls), large, stream.calls[0]))
	}
	for i := range users.Round {
		for _, stream := range pair {
			if err := f.crosses(stream.users[i], stream.calls[i]); err != nil {
				return fmt.Errorf("call %d of a stream: %w", i, err)
			}
		}
	}
	if err := together(callers...); err != nil {
		return fmt.Errorf("two streams at a time: %w", err)
	}
	for _, stream := range pair {
		if err := f.closes(stream); err != nil {
			return err
		}
	}
	requests, _, err := f.messages()
	if took := len(requests) - len(requestsBefore); len(requests) > 0 && took != len(pair) {
		return fmt.Errorf("%d streams took %d requests", len(pair), took)
	}
	return errors.Join(err, f.connected(0), f.leavesNothing("Close of the streams", before))
}

// closes ends a stream that nothing is wrong with. Before, a Call whose context is done must not be sent: the reply would
// be the next Call's.
func (f *session) closes(stream *stream) error {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := wantError("a stream's Call whose own context is done", stream.calls[0](done), rpcbench.Canceled); err != nil {
		return err
	}
	if err := stream.calls[1](context.Background()); err != nil {
		return fmt.Errorf("a stream's Call after one whose own context was done: %w", err)
	}
	for range 2 {
		if err := fixture.Within(f.s.patience(), f.Fixture, stream.Close); err != nil {
			return fmt.Errorf("close a stream: %w", err)
		}
	}
	return wantError("a stream's Call after Close", f.next(stream), rpcbench.Unavailable)
}

// next makes the first Call of a stream, within the suite's patience.
func (f *session) next(stream *stream) error {
	return fixture.Within(f.s.patience(), f.Fixture, func() error { return stream.calls[0](context.Background()) })
}

// changedStreamReplies: as changedReplies, and the stream stays open and in step.
func changedStreamReplies(f *session) error {
	ctx, cancel := context.WithTimeout(context.Background(), f.s.limit()/2)
	defer cancel()
	asked, other := users.Sample(2, 0), users.Sample(1, 0)
	stream, err := f.open(ctx, other, asked, users.Sample(1, 10_000), users.Sample(2, 10_000))
	if err != nil {
		return err
	}
	if !f.s.readable() {
		return cantReplace
	}
	for _, c := range changes(asked, other) {
		if err := f.refuses(c, stream.calls[0], form{"a stream's Call", stream.calls[1]}); err != nil {
			return err
		}
	}
	if err := f.refuses(changedByte(), stream.calls[2], form{"a stream's Call", stream.calls[3]}); err != nil {
		return err
	}
	return stream.Close()
}

// endedStreams: what is wrong with a request, a context or a connection ends a stream with the same error as a single call; then
// nothing that is done with the stream hangs, and the next stream is unharmed.
func endedStreams(s Subject) error {
	if err := watched(refusedStreams)(s); err != nil {
		return err
	}
	kinds := []func() interruption{deadlinePasses, contextCancelled}
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		kinds = append(kinds, connectionDropped)
	}
	for _, kind := range kinds {
		err := with(s.watch, rpcbench.Config{}, func(f *session) error {
			var opened *stream
			u := users.Sample(1, 0)
			err := f.interrupt(kind(), u, func(ctx context.Context) (func() error, error) {
				stream, err := f.open(ctx, users.Sample(0, 0), u)
				if err != nil {
					return nil, err
				}
				opened = stream
				return func() error { return stream.calls[1](context.Background()) }, f.next(stream)
			})
			if err != nil {
				return named("a Call of a stream", err)
			}
			return f.staysEnded(opened, kind().code)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refusedStreams sends users that are refused, by server, client or library, and at last closes the fixture under a stream.
func refusedStreams(f *session) error {
	before := goleak.IgnoreCurrent()
	for _, u := range []rpcbench.User{
		changedUser(func(u *rpcbench.User) { u.Email, u.Password = "", "abc" }),
		changedUser(func(u *rpcbench.User) { u.Name = "in\xffvalid" }),
		f.s.tooLarge(),
	} {
		stream, err := f.open(context.Background(), users.Sample(0, 0), u)
		if err != nil {
			return err
		}
		if err := f.next(stream); err != nil {
			return fmt.Errorf("a stream after others that ended with an error: %w", err)
		}
		want, refused := errors.AsType[*rpcbench.Error](f.create(u)(context.Background()))
		if !refused { // invalid UTF-8 is not refused by every stack
			if err := stream.Close(); err != nil {
				return err
			}
			continue
		}
		err = fixture.Within(f.s.patience(), f.Fixture, func() error { return stream.calls[1](context.Background()) })
		if err := wantError("on a stream", err, want.Code, want.Violations...); err != nil {
			return err
		}
		if err := f.staysEnded(stream, want.Code); err != nil {
			return err
		}
	}
	if err := errors.Join(f.connected(0), f.leavesNothing("streams that ended with an error", before)); err != nil {
		return err
	}
	stream, err := f.open(context.Background(), users.Sample(0, 0))
	if err != nil {
		return err
	}
	if err := f.next(stream); err != nil {
		return fmt.Errorf("a stream after others that ended with an error: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close under an open stream: %w", err)
	}
	return f.staysEnded(stream, rpcbench.Unavailable)
}

// staysEnded: a Call of a stream that has ended fails with the code that it ended with, or as Unavailable; Close returns the
// error it ended with.
func (f *session) staysEnded(stream *stream, code rpcbench.Code) error {
	what := fmt.Sprintf("a stream that ended as %q: ", code)
	if err := f.next(stream); rpcbench.CodeOf(err) != code {
		if err := wantError(what+"the next Call", err, rpcbench.Unavailable); err != nil {
			return err
		}
	}
	err := fixture.Within(f.s.patience(), f.Fixture, stream.Close)
	if e, ok := errors.AsType[*rpcbench.Error](err); ok && e.Code == code {
		return nil
	}
	return wantError(what+"Close", err, code)
}
