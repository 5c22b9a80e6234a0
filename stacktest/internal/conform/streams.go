package conform

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
)

// stream is one with a Call for each of some users.
type stream struct {
	rpcbench.Stream
	users []rpcbench.User
	calls []rpcbench.Call
}

// open opens a stream. That a client does not stream is a reason to skip.
func (f *session) open(ctx context.Context, asked ...rpcbench.User) *stream {
	client, ok := f.Client.(rpcbench.Streamer)
	skipIf(!ok, "the client is no Streamer")
	opened, err := client.OpenStream(ctx)
	must(err, "open a stream")
	o := &stream{Stream: opened, users: asked}
	for _, u := range asked {
		o.calls = append(o.calls, try(opened.Prepare(u)))
	}
	return o
}

// next makes a Call of a stream, within the suite's patience.
func (f *session) next(call rpcbench.Call) error {
	return f.within(f.s.patience(), func() error { return call(context.Background()) })
}

// streams: two streams at a time on one connection, then one on each of two.
func streams(s Subject) {
	watched(twoStreams)(s)
	const conns, avatar = 2, 10_000
	with(s.watch, rpcbench.Config{Conns: conns}, func(f *session) {
		for range conns {
			stream := f.open(context.Background(), corpus.Sample(0, avatar))
			must(f.next(stream.calls[0]))
			must(stream.Close())
		}
		f.connected(avatar)
	})
}

func twoStreams(f *session) {
	before := goleak.IgnoreCurrent()
	requestsBefore, _ := f.messages()
	var pair []*stream
	var callers [][]rpcbench.Call
	for i := range 2 {
		var asked []rpcbench.User
		for j := range corpus.Round {
			asked = append(asked, corpus.Sample(i*corpus.Round+j, 1000))
		}
		stream := f.open(context.Background(), append(asked, corpus.Sample(i, rpcbench.MaxAvatar))...)
		pair, callers = append(pair, stream), append(callers, append(slices.Clone(stream.calls), stream.calls[0]))
	}
	for i := range corpus.Round {
		for _, stream := range pair {
			f.crosses(stream.users[i], stream.calls[i], "call %d of a stream", i)
		}
	}
	must(together(callers...), "two streams at a time")
	for _, stream := range pair {
		f.closes(stream)
	}
	requests, _ := f.messages()
	took := len(requests) - len(requestsBefore)
	failIf(len(requests) > 0 && took != len(pair), "%d streams took %d requests", len(pair), took)
	f.connected(0)
	f.leavesNothing("Close of the streams", before)
}

// closes ends a stream that nothing is wrong with. Before, a Call whose context is done must not be sent: the reply would
// be the next Call's.
func (f *session) closes(stream *stream) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	must(wantError(stream.calls[0](done), rpcbench.Canceled), "a stream's Call whose own context is done")
	must(f.next(stream.calls[1]), "a stream's Call after one whose own context was done")
	for range 2 {
		must(f.within(f.s.patience(), stream.Close), "close a stream")
	}
	must(wantError(f.next(stream.calls[0]), rpcbench.Unavailable), "a stream's Call after Close")
}

// changedStreamReplies: as changedReplies, and the stream stays open and in step.
func changedStreamReplies(f *session) {
	ctx, cancel := context.WithTimeout(context.Background(), f.s.limit()/2)
	defer cancel()
	asked, other := corpus.Sample(2, 0), corpus.Sample(1, 0)
	stream := f.open(ctx, other, asked, corpus.Sample(1, 10_000), corpus.Sample(2, 10_000))
	skipIf(!f.s.readable(), cantReplace)
	for _, c := range changes(asked, other) {
		f.refuses(c, stream.calls[0], form{"stream's Call", stream.calls[1]})
	}
	f.refuses(changedByte(), stream.calls[2], form{"stream's Call", stream.calls[3]})
	must(stream.Close())
}

// endedStreams: what ends a stream ends it with the error of a single call; then nothing that is done with the stream hangs.
func endedStreams(s Subject) {
	watched(refusedStreams)(s)
	for code := range interruptions() {
		if code == rpcbench.Unavailable && !s.readable() { // what arrives can't be told from a straggler of the call before
			continue
		}
		watched(func(f *session) {
			var opened *stream
			u := corpus.Sample(1, 0)
			f.interrupt("stream's Call", code, u, func(ctx context.Context) (call func() error, err error) {
				err = ended(func() {
					opened = f.open(ctx, corpus.Sample(0, 0), u)
					must(f.next(opened.calls[0]))
				})
				return func() error { return opened.calls[1](context.Background()) }, err
			})
			f.staysEnded(opened, code)
		})(s)
	}
}

// refusedStreams sends users that are refused, by server, client or library, and at last closes the fixture under a stream.
func refusedStreams(f *session) {
	before := goleak.IgnoreCurrent()
	begin := func(asked ...rpcbench.User) *stream {
		stream := f.open(context.Background(), append([]rpcbench.User{corpus.Sample(0, 0)}, asked...)...)
		must(f.next(stream.calls[0]), "a stream after others that ended with an error")
		return stream
	}
	for _, u := range []rpcbench.User{
		changedUser(func(u *rpcbench.User) { u.Email, u.Password = "", "abc" }),
		changedUser(func(u *rpcbench.User) { u.Name = corpus.InvalidUTF8 }),
		f.s.tooLarge(),
	} {
		_, err := f.Client.CreateUser(context.Background(), u)
		want, refused := errors.AsType[*rpcbench.Error](err)
		stream := begin(u)
		if !refused { // invalid UTF-8 is not refused by every stack
			must(stream.Close())
			continue
		}
		must(refusedAs(f.next(stream.calls[1]), want.Code, want.Violations), "on a stream")
		f.staysEnded(stream, want.Code)
	}
	f.connected(0)
	f.leavesNothing("streams that ended with an error", before)
	stream := begin()
	must(f.Close(), "close under an open stream")
	f.staysEnded(stream, rpcbench.Unavailable)
}

// staysEnded: a Call of a stream that has ended fails with the code that it ended with, or as Unavailable; Close returns the
// error it ended with.
func (f *session) staysEnded(stream *stream, code rpcbench.Code) {
	if err := f.next(stream.calls[0]); rpcbench.CodeOf(err) != code {
		must(wantError(err, rpcbench.Unavailable), "a stream that ended as %q: the next Call", code)
	}
	must(wantError(f.within(f.s.patience(), stream.Close), code), "a stream that ended as %q: Close", code)
}
