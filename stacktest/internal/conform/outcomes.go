package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/hostile"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
)

func declared(s Subject) error {
	t := s.Stack.Traits
	switch {
	case !regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`).MatchString(s.Stack.Name):
		return fmt.Errorf("the name %q is not made of [a-z0-9.]: benchmark tools could not read its rows", s.Stack.Name)
	case s.Stack.Protocol == "" || s.Stack.Server == nil || s.Stack.Dial == nil:
		return errors.New("a stack has a Protocol, a Server and a Dial")
	case t.Codec == "":
		return errors.New("Traits.Codec must name the import path of the library that encodes and decodes")
	}
	lossy := map[string]bool{}
	for _, c := range hostile.Users() {
		lossy[c.Name] = true
	}
	for _, c := range hostile.Flexes() {
		lossy[c.Name] = true
	}
	for _, name := range t.Lossy {
		if !lossy[name] {
			return fmt.Errorf("Traits.Lossy names %q, which is no case of the suite", name)
		}
	}
	for _, trait := range []struct {
		name, value string
		allowed     []string
	}{
		{"HTTP", t.HTTP, []string{"", "1.1", "2"}},
		{"Compression", t.Compression, []string{"", "gzip", rpcbench.GzipReplies}},
		{"InvalidUTF8", t.InvalidUTF8, []string{rpcbench.Rejected, rpcbench.Replaced, rpcbench.Kept}},
	} {
		if !slices.Contains(trait.allowed, trait.value) {
			return fmt.Errorf("Traits.%s is %q, it must be one of %q", trait.name, trait.value, trait.allowed)
		}
	}
	return nil
}

// hostileValues begins with what was not decoded into a fresh value: a user without a payload shows it, after one with.
func hostileValues(f *session) error {
	first := users.Sample(0, 1000)
	reply, err := f.both(first)
	if err != nil {
		return err
	}
	if _, err := f.both(users.Sample(1, 0)); err != nil {
		return fmt.Errorf("a user without a payload, after one with: is a value decoded into again? %w", err)
	}
	if rpcbench.Check(&first, &reply) != nil {
		return errors.New("the reply that CreateUser returned was changed by the next call: a value is decoded into again")
	}
	for _, c := range hostile.Users() {
		reply, err := f.both(c.User)
		came := err == nil && rpcbench.Check(&c.User, &reply) == nil
		if err := f.deviates(c.Name, came, fmt.Sprintf("%.200q came back as %.200q: %v", c.User, reply.User, err)); err != nil {
			return err
		}
	}
	return f.invalidUTF8()
}

// deviates compares what became of a hostile value with what the stack declares.
func (f *session) deviates(name string, came bool, detail string) error {
	switch declared := slices.Contains(f.Stack.Traits.Lossy, name); {
	case !came && !declared:
		return fmt.Errorf("%s: %s; Traits.Lossy does not declare it", name, detail)
	case came && declared:
		return fmt.Errorf("%s: comes back as it was sent, Traits.Lossy declares that it does not", name)
	}
	return nil
}

func (f *session) invalidUTF8() error {
	u := users.Sample(0, 0)
	u.Name = hostile.InvalidUTF8
	reply, err := f.Client.CreateUser(context.Background(), u)
	declared, want := f.Stack.Traits.InvalidUTF8, u.Name
	switch declared {
	case rpcbench.Rejected:
		return wantError("invalid UTF-8, declared to be rejected", err, rpcbench.Malformed)
	case rpcbench.Replaced:
		want = strings.ToValidUTF8(u.Name, "\ufffd")
	}
	if err != nil || reply.User == nil {
		return fmt.Errorf("invalid UTF-8, declared to be %s: %w", declared, err)
	}
	if reply.User.Name != want {
		return fmt.Errorf("invalid UTF-8, declared to be %s, came back as %q", declared, reply.User.Name)
	}
	return nil
}

func echo(f *session) error {
	client, ok := f.Client.(rpcbench.Echoer)
	if !ok {
		for _, c := range hostile.Flexes() {
			ofUsers := slices.ContainsFunc(hostile.Users(), func(u hostile.User) bool { return u.Name == c.Name })
			if slices.Contains(f.Stack.Traits.Lossy, c.Name) && !ofUsers {
				return fmt.Errorf("Traits.Lossy declares %q, which only a stack that echoes can lose: the client is no Echoer", c.Name)
			}
		}
		return Skip("the client is no Echoer")
	}
	if _, err := client.Echo(context.Background(), &message.Flex{String: "echo"}); err != nil {
		return fmt.Errorf("the client is an Echoer, and a plain message does not come back: %w", err)
	}
	for _, c := range hostile.Flexes() {
		got, err := client.Echo(context.Background(), c.Flex)
		came := err == nil && c.Flex.Equal(got)
		if err := f.deviates(c.Name, came, fmt.Sprintf("%+v came back as %+v: %v", c.Flex, got, err)); err != nil {
			return err
		}
	}
	asked := []*message.Flex{{}, {String: "hello, flex"}}
	if !slices.Contains(f.Stack.Traits.Lossy, "complex") {
		asked = append(asked, message.Complex())
	}
	var calls []rpcbench.Call
	for _, m := range asked {
		call, err := client.PrepareEcho(m)
		if err != nil {
			return fmt.Errorf("prepare echo: %w", err)
		}
		calls = append(calls, call)
	}
	if err := goRound(calls, 1)(); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	if !f.s.readable() {
		return nil
	}
	upper := change{held: "another string", filter: func([]byte) netwrap.Filter {
		return netwrap.Replace([]byte("hello, flex"), []byte("HELLO, FLEX"))
	}}
	return f.refuses(upper, calls[1], form{"an echo's Call", calls[1]})
}

// changedUser is the first sample with a change.
func changedUser(change func(*rpcbench.User)) rpcbench.User {
	u := users.Sample(0, 0)
	change(&u)
	return u
}

// tooLarge has a payload that no server takes. It is twice what makes a body too large, so that it is refused while it is still
// being sent; but gzip sends it whole in either case, and takes seconds for it under the race detector.
func (s Subject) tooLarge() rpcbench.User {
	size := 2 * rpcbench.MaxBody
	if s.Stack.Traits.Compression == "gzip" {
		size = rpcbench.MaxBody
	}
	return changedUser(func(u *rpcbench.User) { u.Avatar = bytes.Repeat([]byte{7}, size) })
}

func outcomes(f *session) error {
	type broken = []rpcbench.Violation
	for _, c := range []struct {
		reason string
		user   rpcbench.User
		code   rpcbench.Code // "" for success
		broken broken
	}{
		{"nothing is wrong", users.Sample(3, 0), "", nil},
		{"no email", changedUser(func(u *rpcbench.User) { u.Email = "" }), rpcbench.Invalid, broken{{Field: "email", Rule: "required"}}},
		{"an email that is none", changedUser(func(u *rpcbench.User) { u.Email = "nobody" }), rpcbench.Invalid, broken{{Field: "email", Rule: "email"}}},
		{"a name too short", changedUser(func(u *rpcbench.User) { u.Name = "Ann" }), rpcbench.Invalid, broken{{Field: "name", Rule: "min=4"}}},
		{"a name of four characters in sixteen bytes", changedUser(func(u *rpcbench.User) { u.Name = strings.Repeat("\U0001F600", 4) }), "", nil},
		{"a name too long", changedUser(func(u *rpcbench.User) { u.Name = strings.Repeat("n", 101) }), rpcbench.Invalid, broken{{Field: "name", Rule: "max=100"}}},
		{"a password too short", changedUser(func(u *rpcbench.User) { u.Password = "abc" }), rpcbench.Invalid, broken{{Field: "password", Rule: "min=4"}}},
		{"a password too long", changedUser(func(u *rpcbench.User) { u.Password = strings.Repeat("p", 73) }), rpcbench.Invalid,
			broken{{Field: "password", Rule: "max=72"}}},
		{"everything is missing", rpcbench.User{}, rpcbench.Invalid,
			broken{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}, {Field: "password", Rule: "min=4"}}},
		{"a payload of one byte more than the largest, which is among the hostile values",
			changedUser(func(u *rpcbench.User) { u.Avatar = bytes.Repeat([]byte{7}, rpcbench.MaxAvatar+1) }), rpcbench.Invalid,
			broken{{Field: "avatar", Rule: "max=1048576"}}},
		{"a body too large", f.s.tooLarge(), rpcbench.TooLarge, nil},
	} {
		forms, err := f.forms(c.user)
		if err != nil {
			return err
		}
		for _, form := range forms {
			if err := f.endsAs(form.call, c.code, c.broken); err != nil {
				return fmt.Errorf("%s, %s: %w", c.reason, form.name, err)
			}
		}
	}
	return nil
}

// endsAs makes a call, which must end with the code, and another one, which must succeed.
func (f *session) endsAs(call rpcbench.Call, code rpcbench.Code, broken []rpcbench.Violation) error {
	accepted := f.Accepted()
	sent, _, err := f.record(context.Background(), call)
	if code == "" {
		return err
	}
	if err := wantError("the call", err, code, broken...); err != nil {
		return f.withStatus(err)
	}
	if len(sent) == 0 {
		return errors.New("the client refused it and sent nothing: the server must")
	}
	if _, err := f.both(users.Sample(1, 0)); err != nil {
		return fmt.Errorf("the call after it: %w", err)
	}
	if more := f.Accepted() - accepted; code == rpcbench.Invalid && more != 0 {
		return fmt.Errorf("the call after it took %d new connections: an error reply must leave the connection open%w", more, errRedialled)
	}
	return nil
}

// withStatus adds to the error about a call what HTTP said of it, where that can be read and was success.
func (f *session) withStatus(err error) error {
	_, replies, readErr := f.messages()
	if readErr != nil || len(replies) == 0 {
		return err
	}
	h := replies[len(replies)-1].Header
	if status := h.Get(":status"); strings.HasPrefix(status, "2") && !strings.HasPrefix(h.Get("Content-Type"), "application/grpc") {
		return fmt.Errorf("%w; the server answered with HTTP status %s, as if the call had succeeded", err, status)
	}
	return err
}

func neighbours(s Subject) error {
	a, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := s.start(rpcbench.Config{})
	if err != nil {
		return fmt.Errorf("a second fixture beside the first: %w", err)
	}
	defer b.Close()
	for i := range users.Round {
		for _, f := range []*session{a, b} {
			if _, err := f.both(users.Sample(i, 0)); err != nil {
				return fmt.Errorf("with a second fixture beside it: %w", err)
			}
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if _, err := b.both(users.Sample(1, 0)); err != nil {
		return fmt.Errorf("closing one fixture broke the other: %w", err)
	}
	return errors.Join(a.connected(0), b.connected(0))
}

func limits(s Subject) error {
	const short = 250 * time.Millisecond
	patience := s.patience()
	ended := make(chan struct{}, 1)
	idle, err := s.start(rpcbench.Config{IdleTimeout: short, WrapServer: func(c net.Conn) net.Conn { return closing{c, ended} }})
	if err != nil {
		return err
	}
	defer idle.Close()
	silent, err := s.start(rpcbench.Config{HeaderTimeout: short})
	if err != nil {
		return err
	}
	defer silent.Close()
	conn, err := net.DialTimeout("tcp", silent.Addr, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("with a HeaderTimeout of %v the server has kept a connection without a request for %v", short, patience)
	}
	select {
	case <-ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("with an IdleTimeout of %v the server has kept an idle connection for %v", short, patience)
	}
}

// closing is a server's connection that says when the server closes it.
type closing struct {
	net.Conn
	ended chan<- struct{}
}

func (c closing) Close() error {
	select {
	case c.ended <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}

func closed(s Subject) error {
	before := goleak.IgnoreCurrent()
	f, err := s.start(rpcbench.Config{Conns: 2})
	if err != nil {
		return err
	}
	call, err := fixture.Call(f.Fixture, users.Sample(0, 0))
	if err == nil {
		err = call(context.Background())
	}
	if closeErr := f.Close(); err != nil || closeErr != nil {
		return errors.Join(err, closeErr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit()/2)
	defer cancel()
	if err := call(ctx); err == nil {
		return errors.New("a call succeeds after the fixture was closed")
	}
	return f.leavesNothing("Close", before)
}

// leavesNothing says which goroutines are left that were not there before.
func (f *session) leavesNothing(after string, before goleak.Option) error {
	if err := fixture.LeftBehind(append(fixture.Background(f.Stack), before)...); err != nil {
		return fmt.Errorf("goroutines left after %s, which Traits.Background does not name: %w", after, err)
	}
	return nil
}
