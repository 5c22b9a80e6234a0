package stacktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
)

// endedStreams: what is wrong with a request, a context or a connection ends a stream with the same error as a call that is
// no stream's; then nothing that is done with it hangs, and the next stream is unharmed.
func endedStreams(s subject) error {
	f, client, err := s.streamer(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	if client == nil {
		return errNoStreams
	}
	before := goleak.IgnoreCurrent()
	for _, u := range badUsers(s) {
		_, want := f.Client.CreateUser(context.Background(), u)
		if want == nil { // invalid UTF-8 is not refused by every stack
			continue
		}
		stream, err := open(context.Background(), client, users.Sample(0, 0), u)
		if err != nil {
			return err
		}
		if err := stream.calls[0](context.Background()); err != nil {
			return fmt.Errorf("a stream after others that ended with an error: %w", err)
		}
		err = within(s.patience(), f, func() error { return stream.calls[1](context.Background()) })
		if err := sameError("on a stream", err, want); err != nil {
			return err
		}
		if err := staysEnded(s, f, stream, rpcbench.CodeOf(want)); err != nil {
			return err
		}
	}
	if f.Accepted() != 1 {
		return fmt.Errorf("one connection is declared, %d were accepted with streams that ended with an error", f.Accepted())
	}
	if err := leftBehind(append(background(s.stack), before)...); err != nil {
		return fmt.Errorf("goroutines left of streams that ended with an error: %w", err)
	}
	stream, err := open(context.Background(), client, users.Sample(0, 0))
	if err != nil {
		return err
	}
	if err := stream.calls[0](context.Background()); err != nil {
		return fmt.Errorf("a stream after others that ended with an error: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close under an open stream: %w", err)
	}
	if err := staysEnded(s, f, stream, rpcbench.Unavailable); err != nil {
		return err
	}
	return interruptedStreams(s)
}

// badUsers are refused, by server, client or library.
func badUsers(s subject) []rpcbench.User {
	change := func(fn func(*rpcbench.User)) rpcbench.User {
		u := users.Sample(1, 0)
		fn(&u)
		return u
	}
	return []rpcbench.User{
		change(func(u *rpcbench.User) { u.Email, u.Password = "", "abc" }),
		change(func(u *rpcbench.User) { u.Name = "in\xffvalid" }),
		change(func(u *rpcbench.User) { u.Avatar = s.tooLarge() }),
	}
}

// sameError compares an error with that of the same mistake elsewhere.
func sameError(where string, err, want error) error {
	e, _ := errors.AsType[*rpcbench.Error](want)
	if err := wantCode(where, err, e.Code); err != nil {
		return err
	}
	if got, _ := errors.AsType[*rpcbench.Error](err); !reflect.DeepEqual(got.Violations, e.Violations) {
		return fmt.Errorf("%s: the violations are %v, they must be %v", where, got.Violations, e.Violations)
	}
	return nil
}

// staysEnded: a Call of a stream that has ended fails with the code that it ended with, or as Unavailable; Close returns the
// error it ended with.
func staysEnded(s subject, f *rpcbench.Fixture, stream opened, code rpcbench.Code) error {
	what := fmt.Sprintf("a stream that ended as %q: ", code)
	err := within(s.patience(), f, func() error { return stream.calls[0](context.Background()) })
	if rpcbench.CodeOf(err) != code {
		if err := wantCode(what+"the next Call", err, rpcbench.Unavailable); err != nil {
			return err
		}
	}
	return wantCode(what+"Close", within(s.patience(), f, stream.Close), code)
}

// interruption is what ends a Call that waits for its reply, and its stream.
type interruption struct {
	what  string
	code  rpcbench.Code
	begin func() (context.Context, context.CancelFunc) // the stream's context
	end   func(context.CancelFunc, *netwrap.Gate)
}

func interruptedStreams(s subject) error {
	all := []interruption{
		{"the stream's context is cancelled", rpcbench.Canceled, cancellable,
			func(cancel context.CancelFunc, _ *netwrap.Gate) { cancel() }},
		{"the deadline of the stream's context passes", rpcbench.DeadlineExceeded, func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 50*time.Millisecond)
		}, func(context.CancelFunc, *netwrap.Gate) {}},
	}
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		all = append(all, interruption{"the server closes the connection", rpcbench.Unavailable, cancellable,
			func(_ context.CancelFunc, gate *netwrap.Gate) { gate.Drop() }})
	}
	for _, i := range all {
		if err := interruptedStream(s, i); err != nil {
			return err
		}
	}
	return nil
}

func cancellable() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}

func interruptedStream(s subject, i interruption) error {
	gate := new(netwrap.Gate)
	f, client, err := s.streamer(rpcbench.Config{WrapServer: gate.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := i.begin()
	defer cancel()
	stream, err := open(ctx, client, users.Sample(0, 0), users.Sample(1, 0))
	if err == nil {
		err = stream.calls[0](context.Background())
	}
	if ctx.Err() != nil {
		return skipped("the machine is too slow to tell")
	}
	if err != nil {
		return err
	}
	result := underway(ctx, gate, s.marker(stream.users[1]), func() error { return stream.calls[1](context.Background()) })
	i.end(cancel, gate)
	err = within(s.patience(), f, func() error { return <-result })
	if err := wantCode(i.what+" under a Call", err, i.code); err != nil {
		return err
	}
	return staysEnded(s, f, stream, i.code)
}
