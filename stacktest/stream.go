package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// streamer starts a fixture. The Streamer is nil if its client is none: an ability that a stack may lack.
const errNoStreams = skipped("the client is no Streamer")

func (s subject) streamer(config rpcbench.Config) (*rpcbench.Fixture, rpcbench.Streamer, error) {
	f, err := s.start(config)
	if err != nil {
		return nil, nil, err
	}
	client, _ := f.Client.(rpcbench.Streamer)
	return f, client, nil
}

// readable says whether the bytes on the wire can be read, and changed one by one.
func (s subject) readable() bool { return !s.tls && s.stack.Traits.Compression == "" }

// marker is what a Gate can know the user's request by; nil where it can't be read.
func (s subject) marker(u rpcbench.User) []byte {
	if s.readable() {
		return []byte(u.Name)
	}
	return nil
}

// messages reads what one connection carried; nothing with TLS, nor of an unknown protocol.
func (s subject) messages(tap *netwrap.Tap) (requests, replies []wire.Message, err error) {
	if s.tls || s.stack.Traits.HTTP == "" {
		return nil, nil, nil
	}
	return wire.Read(recorded(tap))
}

// tookRequests: there are n more than before, where they can be counted.
func tookRequests(s subject, tap *netwrap.Tap, before []wire.Message, n int) error {
	after, _, err := s.messages(tap)
	if took := len(after) - len(before); err == nil && len(after) > 0 && took != n {
		return fmt.Errorf("%d streams took %d requests", n, took)
	}
	return err
}

// opened is a stream with one Call for each of some users.
type opened struct {
	rpcbench.Stream
	users []rpcbench.User
	calls []rpcbench.Call
}

func open(ctx context.Context, client rpcbench.Streamer, asked ...rpcbench.User) (opened, error) {
	stream, err := client.OpenStream(ctx)
	if err != nil {
		return opened{}, fmt.Errorf("open a stream: %w", err)
	}
	o := opened{Stream: stream, users: asked}
	for _, u := range asked {
		call, err := stream.Prepare(u)
		if err != nil {
			return opened{}, fmt.Errorf("prepare on a stream: %w", err)
		}
		o.calls = append(o.calls, call)
	}
	return o, nil
}

// some are n users from first on.
func some(n, first, avatar int) []rpcbench.User {
	all := make([]rpcbench.User, n)
	for i := range all {
		all[i] = users.Sample(first+i, avatar)
	}
	return all
}

// streams: replies come back right and in order on two streams of one connection, each of them one request; Close leaves
// nothing of them. Streams take the declared connections in turn.
func streams(s subject) error {
	tap := new(netwrap.Tap)
	f, client, err := s.streamer(rpcbench.Config{WrapClient: tap.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	if client == nil {
		return errNoStreams
	}
	before := goleak.IgnoreCurrent()
	requestsBefore, _, err := s.messages(tap)
	if err != nil {
		return err
	}
	pair := make([]opened, 2)
	for i := range pair {
		if pair[i], err = open(context.Background(), client, some(users.Round, i*users.Round, 1000)...); err != nil {
			return err
		}
	}
	for i := range users.Round {
		for _, stream := range pair {
			if err := crosses(s, tap, stream, i); err != nil {
				return fmt.Errorf("call %d of a stream: %w", i, err)
			}
		}
	}
	if err := atOnce(pair); err != nil {
		return fmt.Errorf("two streams at a time: %w", err)
	}
	for _, stream := range pair {
		if err := closes(s, f, stream); err != nil {
			return err
		}
	}
	if err := tookRequests(s, tap, requestsBefore, len(pair)); err != nil {
		return err
	}
	if f.Accepted() != 1 {
		return fmt.Errorf("one connection is declared, %d were accepted with streams", f.Accepted())
	}
	if err := leftBehind(append(background(s.stack), before)...); err != nil {
		return fmt.Errorf("goroutines left after Close of the streams: %w", err)
	}
	return streamsInTurn(s)
}

// crosses makes call i, whose user's name must stand on the wire in both directions.
func crosses(s subject, tap *netwrap.Tap, stream opened, i int) error {
	sentBefore, receivedBefore := recorded(tap)
	if err := stream.calls[i](context.Background()); err != nil || !s.readable() {
		return err
	}
	sent, received := recorded(tap)
	name := []byte(stream.users[i].Name)
	inSent := bytes.Contains(sent[len(sentBefore):], name)
	inReceived := bytes.Contains(received[len(receivedBefore):], name)
	if !inSent || !inReceived {
		return fmt.Errorf("its user's name is in what was sent: %t, in what was received: %t; the call did not cross the connection", inSent, inReceived)
	}
	return nil
}

// atOnce makes the calls of several streams at a time, and one large one on each.
func atOnce(streams []opened) error {
	var group sync.WaitGroup
	errs := make([]error, len(streams))
	for i, stream := range streams {
		large, err := stream.Prepare(users.Sample(i, rpcbench.MaxAvatar))
		if err != nil {
			return fmt.Errorf("prepare on a stream: %w", err)
		}
		group.Go(func() {
			for _, call := range append(slices.Clone(stream.calls), large, stream.calls[0]) {
				if errs[i] = call(context.Background()); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// closes ends a stream that nothing is wrong with. Before, a Call whose context is done must not be sent: the reply would
// be the next Call's.
func closes(s subject, f *rpcbench.Fixture, stream opened) error {
	done, cancel := cancellable()
	cancel()
	if err := wantCode("a stream's Call whose own context is done", stream.calls[0](done), rpcbench.Canceled); err != nil {
		return err
	}
	if err := stream.calls[1](context.Background()); err != nil {
		return fmt.Errorf("a stream's Call after one whose own context was done: %w", err)
	}
	for range 2 {
		if err := within(s.patience(), f, stream.Close); err != nil {
			return fmt.Errorf("close a stream: %w", err)
		}
	}
	err := within(s.patience(), f, func() error { return stream.calls[0](context.Background()) })
	return wantCode("a stream's Call after Close", err, rpcbench.Unavailable)
}

func streamsInTurn(s subject) error {
	const conns, avatar = 2, 10_000
	tap := new(netwrap.Tap)
	f, client, err := s.streamer(rpcbench.Config{Conns: conns, WrapClient: tap.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	for range conns {
		stream, err := open(context.Background(), client, users.Sample(0, avatar))
		if err != nil {
			return err
		}
		if err := errors.Join(stream.calls[0](context.Background()), stream.Close()); err != nil {
			return err
		}
	}
	for i, c := range tap.Conns() {
		if len(c.Sent()) < avatar {
			return fmt.Errorf("connection %d of %d sent only %d bytes: OpenStream must take the connections in turn", i+1, conns, len(c.Sent()))
		}
	}
	if f.Accepted() != conns {
		return fmt.Errorf("%d connections are declared, %d were accepted with a stream on each", conns, f.Accepted())
	}
	return nil
}

// changedStreamReplies: as changedReplies, and the stream stays open and in step.
func changedStreamReplies(s subject) error {
	tap := new(netwrap.Tap)
	f, client, err := s.streamer(rpcbench.Config{WrapClient: tap.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	if client == nil {
		return errNoStreams
	}
	if !s.readable() {
		return skipped("compressed bytes can't be replaced one by one; the uncompressed variant of the same code is checked")
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit/2)
	defer cancel()
	asked, other := users.Sample(2, 0), users.Sample(1, 0)
	stream, err := open(ctx, client, other, asked, users.Sample(2, 10_000))
	if err != nil {
		return err
	}
	for _, c := range replacements(asked, other) {
		if err := refuses(ctx, tap, c.what, c.filter(), stream.calls[1], stream.calls[0]); err != nil {
			return err
		}
	}
	_, before := recorded(tap)
	if err := stream.calls[2](ctx); err != nil {
		return err
	}
	_, after := recorded(tap)
	filter := changeByte(len(after) - len(before))
	if err := refuses(ctx, tap, "one changed byte of the payload", filter, stream.calls[2], stream.calls[0]); err != nil {
		return err
	}
	return stream.Close()
}

// refuses makes a call whose reply passes through filter, which must fail, and then next, which must not.
func refuses(ctx context.Context, tap *netwrap.Tap, what string, filter netwrap.Filter, call, next rpcbench.Call) error {
	var hits atomic.Int64
	tap.SetFilter(counted(filter, &hits))
	err := call(ctx)
	tap.SetFilter(nil)
	switch {
	case hits.Load() == 0:
		return fmt.Errorf("%s: the reply does not hold what was to be changed", what)
	case err == nil:
		return fmt.Errorf("a Call of a stream succeeded although the reply held %s: the reply is not compared", what)
	}
	if err := next(ctx); err != nil {
		return fmt.Errorf("the Call after one whose reply held %s: %w", what, err)
	}
	return nil
}
