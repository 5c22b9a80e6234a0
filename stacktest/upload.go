package stacktest

import (
	"bytes"
	"context"
	"fmt"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
)

// uploads: every user of an upload is sent, in one request, and the one reply compared; mistakes end it as they end any call.
func uploads(s subject) error {
	tap := new(netwrap.Tap)
	f, client, err := s.streamer(rpcbench.Config{WrapClient: tap.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	if client == nil {
		return errNoStreams
	}
	hundred, none, large := some(100, 0, 0), some(0, 0, 0), some(10, 0, 100_000)
	for _, all := range [][]rpcbench.User{hundred, none, large, hundred} {
		if err := uploaded(s, tap, client, all); err != nil {
			return fmt.Errorf("an upload of %d users: %w", len(all), err)
		}
	}
	if err := endedUploads(s); err != nil || !s.readable() {
		return err
	}
	return changedUploads(s)
}

func uploaded(s subject, tap *netwrap.Tap, client rpcbench.Streamer, all []rpcbench.User) error {
	call, err := client.PrepareUpload(all)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	requestsBefore, _, err := s.messages(tap)
	if err != nil {
		return err
	}
	before, _ := recorded(tap)
	if err := call(context.Background()); err != nil {
		return err
	}
	if err := tookRequests(s, tap, requestsBefore, 1); err != nil {
		return err
	}
	sent, _ := recorded(tap)
	for _, u := range all {
		if s.readable() && !bytes.Contains(sent[len(before):], []byte(u.Name)) {
			return fmt.Errorf("user %s is not in what was sent", u.Name)
		}
	}
	return nil
}

// endedUploads: as endedStreams.
func endedUploads(s subject) error {
	f, client, err := s.streamer(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	before := goleak.IgnoreCurrent()
	right, err := client.PrepareUpload(some(100, 0, 0))
	if err != nil {
		return fmt.Errorf("prepare an upload: %w", err)
	}
	for _, u := range badUsers(s) {
		_, want := f.Client.CreateUser(context.Background(), u)
		if want == nil {
			continue
		}
		all := some(100, 0, 0)
		all[50] = u
		call, err := client.PrepareUpload(all)
		if err != nil {
			return fmt.Errorf("prepare an upload: %w", err)
		}
		err = within(s.patience(), f, func() error { return call(context.Background()) })
		if err := sameError("in the middle of an upload", err, want); err != nil {
			return err
		}
		if err := right(context.Background()); err != nil {
			return fmt.Errorf("an upload after one that failed as %q: %w", rpcbench.CodeOf(want), err)
		}
	}
	done, cancel := cancellable()
	cancel()
	if err := wantCode("an upload whose context is done", right(done), rpcbench.Canceled); err != nil {
		return err
	}
	if f.Accepted() != 1 {
		return fmt.Errorf("one connection is declared, %d were accepted with uploads", f.Accepted())
	}
	if err := leftBehind(append(background(s.stack), before)...); err != nil {
		return fmt.Errorf("goroutines left of uploads: %w", err)
	}
	return nil
}

// changedUploads: a reply with another message, or that tells of another number of users, makes the Call fail.
func changedUploads(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	var call rpcbench.Call
	var bodies [][]byte
	for _, n := range []int{3, 4} {
		if call, err = f.Client.(rpcbench.Streamer).PrepareUpload(some(n, 0, 0)); err != nil {
			return fmt.Errorf("prepare an upload: %w", err)
		}
		if err := call(context.Background()); err != nil {
			return err
		}
		_, replies, err := s.messages(tap)
		if err != nil {
			return err
		}
		if len(replies) > 0 {
			bodies = append(bodies, replies[len(replies)-1].Body)
		}
	}
	filter := netwrap.Replace([]byte(rpcbench.OKMessage), []byte("KO"))
	if err := refuses(context.Background(), tap, "the message KO", filter, call, call); err != nil || bodies == nil {
		return err
	}
	three, four := bodies[0], bodies[1]
	last := len(four) - 1 // the last byte that tells the number
	for last >= 0 && len(three) == len(four) && three[last] == four[last] {
		last--
	}
	if len(three) != len(four) || last < 0 {
		return fmt.Errorf("replies to uploads of 3 and of 4 users are %q and %q: they must differ in the number alone", three, four)
	}
	filter = netwrap.Replace(four[:last+1], three[:last+1])
	return refuses(context.Background(), tap, "the number 3 in place of 4", filter, call, call)
}
