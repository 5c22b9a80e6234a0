package conform

import (
	"context"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
)

// stream is an open stream with one Call per user.
type stream struct {
	rpcbench.Stream
	calls []rpcbench.Call
}

// open opens a stream. It skips the check if the client does not stream.
func (f *session) open(ctx context.Context, asked ...rpcbench.User) *stream {
	client, ok := f.Client.(rpcbench.Streamer)
	skipIf(!ok, "the client is no Streamer")
	opened := &stream{Stream: try(client.OpenStream(ctx))}
	for _, u := range asked {
		opened.calls = append(opened.calls, try(opened.Prepare(u)))
	}
	return opened
}

// next makes a Call of a stream, and gives up after the suite's patience.
func (f *session) next(call rpcbench.Call) error {
	return within(f.s.patience(), func() error { return call(context.Background()) })
}

// streams checks two streams at a time on one connection, then one stream on each of two connections.
func streams(s Subject) {
	watched(twoStreams)(s)
	const conns, avatar = 2, 10_000
	s.with(rpcbench.Config{Conns: conns}, func(f *session) {
		for range conns {
			stream := f.open(context.Background(), rpcbench.SampleUser(0, avatar))
			must(f.next(stream.calls[0]), "the only Call of a stream")
			must(stream.Close(), "close a stream")
		}
		f.connected(avatar)
	})
}

func twoStreams(f *session) {
	before := goleak.IgnoreCurrent()
	requestsBefore, _ := f.messages()
	var pair []*stream
	var callers [][]rpcbench.Call
	user := func(stream, i int) rpcbench.User { return rpcbench.SampleUser(stream*corpus.Round+i, 1000) }
	for i := range 2 {
		asked := []rpcbench.User{rpcbench.SampleUser(i, rpcbench.MaxAvatar)}
		for j := range corpus.Round {
			asked = append(asked, user(i, j))
		}
		stream := f.open(context.Background(), asked...)
		pair, callers = append(pair, stream), append(callers, stream.calls)
	}
	for j := range corpus.Round {
		for i, stream := range pair {
			f.crosses(user(i, j), stream.calls[1+j])
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

// closes checks that a healthy stream closes without an error. Before that, a Call whose context is done must not be
// sent: its reply would go to the next Call.
func (f *session) closes(stream *stream) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	wantError(stream.calls[0](done), rpcbench.CodeCanceled, "a stream's Call whose own context is done")
	must(f.next(stream.calls[1]), "a stream's Call after one whose own context was done")
	for range 2 {
		must(within(f.s.patience(), stream.Close), "close a stream")
	}
	wantError(f.next(stream.calls[0]), rpcbench.CodeUnavailable, "a stream's Call after Close")
}

// changedStreamReplies is changedReplies on a stream, which must stay open and in step.
func changedStreamReplies(f *session) {
	must(f.open(context.Background()).Close(), "close a stream")
	skipIf(!f.s.readable(), cantReplace)
	for _, c := range f.changed() {
		stream := f.open(context.Background(), rpcbench.SampleUser(1, c.avatar), rpcbench.SampleUser(2, c.avatar))
		f.refuses("stream's Call", c, stream.calls[0], stream.calls[1])
		must(stream.Close(), "close a stream")
	}
}

// endedStreams checks that a stream ends with the same error as a single call, and that no later use of it hangs.
func endedStreams(s Subject) {
	watched(ofUsersAlone(func(f *session) {
		before := goleak.IgnoreCurrent()
		f.outcomes([]string{onStream})
		if f.Stack.Traits.InvalidUTF8 == rpcbench.UTF8Rejected {
			call := f.streamed(context.Background(), invalidUTF8())
			wantError(f.next(call), rpcbench.CodeMalformed, "invalid UTF-8 on a stream")
		}
		f.connected(0)
		f.leavesNothing("streams that ended with an error", before)
		stream := f.open(context.Background(), rpcbench.SampleUser(0, 0))
		must(f.next(stream.calls[0]), "a stream after others that ended with an error")
		must(f.Close(), "close under an open stream")
		f.staysEnded(stream, rpcbench.CodeUnavailable)
	}))(s)
	s.interrupted(rpcbench.CodeDeadlineExceeded, []string{onStream})
	s.interrupted(rpcbench.CodeCanceled, []string{onStream})
	if s.readable() { // else late bytes of the previous call can't be told apart
		s.interrupted(rpcbench.CodeUnavailable, []string{onStream})
	}
}

// staysEnded checks that a Call of an ended stream fails with the code of the end, or as Unavailable, and that Close
// returns the error of the end.
func (f *session) staysEnded(stream *stream, code rpcbench.Code) {
	if err := f.next(stream.calls[0]); rpcbench.CodeOf(err) != code {
		wantError(err, rpcbench.CodeUnavailable, "a stream that ended as %q: the next Call", code)
	}
	wantError(within(f.s.patience(), stream.Close), code, "a stream that ended as %q: Close", code)
}
