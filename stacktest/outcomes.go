package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/allocproof"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/hostile"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
)

// rivals are the libraries that encode and decode somewhere in the line-up. While a stack runs, only its own may be seen.
func rivals() []string {
	return []string{
		"encoding/json", "encoding/json/v2", "encoding/xml", "encoding/gob",
		"github.com/json-iterator/go", "github.com/goccy/go-json",
		"google.golang.org/protobuf", "github.com/planetscale/vtprotobuf",
		"github.com/vmihailenco/msgpack", "github.com/tinylib/msgp",
	}
}

// codecRan proves whose code encodes and decodes: functions of the declared library allocate at least once per call on
// goroutines of two kinds, the client's and the server's, and functions of no rival do. It proves decoding on both
// sides, and encoding where the encoder allocates. For encoding/json it also proves the engine of this build.
func codecRan(s subject) error {
	f, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	calls, err := prepare(f, 1000)
	if err != nil {
		return err
	}
	round := func() error {
		for _, call := range calls {
			if err := call(context.Background()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := round(); err != nil { // what a library builds once, it builds now
		return err
	}
	const rounds = 4
	var callErr error
	profile, err := allocproof.Run(func() {
		for range rounds {
			callErr = errors.Join(callErr, round())
		}
	})
	if err = errors.Join(callErr, err); err != nil {
		return err
	}
	own := []string{s.stack.Traits.Codec}
	if own[0] == "encoding/json" {
		own = append(own, environ.JSONEngine())
	}
	ops := int64(rounds * len(calls))
	for _, library := range own {
		sides := 0
		for _, objects := range profile.Objects(library) {
			if objects >= ops {
				sides++
			}
		}
		if sides < 2 {
			return fmt.Errorf("in %d calls functions of %s, the declared codec, allocated these objects by goroutine: %v; at least one per call is expected in the client's and in the server's; seen: %s",
				ops, library, profile.Objects(library), strings.Join(profile.Packages(), " "))
		}
	}
	if err := transportsRan(s.stack.Traits, profile, ops); err != nil {
		return err
	}
	for _, rival := range rivals() {
		if slices.ContainsFunc(own, func(o string) bool { return allocproof.Within(o, rival) || allocproof.Within(rival, o) }) {
			continue
		}
		// grpc-go's ServeHTTP clones its status, a protobuf message, at the end of each call: that is no codec at work.
		if roots := profile.Objects(rival, "google.golang.org/grpc/internal/status"); len(roots) > 0 {
			return fmt.Errorf("functions of %s allocated these objects by goroutine: %v; the declared codec is %s", rival, roots, own[0])
		}
	}
	return nil
}

// transportsRan proves who moves the bytes. Functions of each library that is declared for the client allocate at least once
// per call on the caller's goroutine, those of each one declared for the server on other goroutines, and those of the rest
// nowhere. Where client and server are declared to be of one library, its own background goroutines may stand in for the server.
func transportsRan(traits rpcbench.Traits, profile allocproof.Profile, ops int64) error {
	for _, library := range []string{"net/http", "google.golang.org/grpc", "connectrpc.com/connect"} {
		var client, elsewhere int64
		for root, objects := range profile.Objects(library) {
			if root == allocproof.Client {
				client += objects
			} else {
				elsewhere += objects
			}
		}
		switch inClient, inServer := slices.Contains(traits.Client, library), slices.Contains(traits.Server, library); {
		case inClient && client < ops:
			return fmt.Errorf("in %d calls functions of %s, which Traits.Client declares, allocated %d objects on the caller's goroutine", ops, library, client)
		case !inClient && client > 0:
			return fmt.Errorf("functions of %s allocated %d objects on the caller's goroutine; Traits.Client is %q", library, client, traits.Client)
		case inServer && elsewhere < ops:
			return fmt.Errorf("in %d calls functions of %s, which Traits.Server declares, allocated %d objects beside the caller's goroutine", ops, library, elsewhere)
		case !inServer && !inClient && elsewhere > 0:
			return fmt.Errorf("functions of %s allocated %d objects beside the caller's goroutine; Traits.Server is %q", library, elsewhere, traits.Server)
		}
	}
	return nil
}

// hostileValues: what makes encoders differ comes back as it was sent, and invalid UTF-8 as declared.
func hostileValues(s subject) error {
	f, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := freshValues(f); err != nil {
		return err
	}
	for _, c := range hostile.Users() {
		reply, err, callErr := both(context.Background(), f, c.User)
		came := err == nil && callErr == nil && sameReply(c.User, reply)
		if err := deviation(s, c.Name, came, fmt.Sprintf("%.200q came back as %.200q: %v", c.User, reply.User, errors.Join(err, callErr))); err != nil {
			return err
		}
	}
	u := users.Sample(0, 0)
	u.Name = hostile.InvalidUTF8
	return invalidUTF8(s, f, u)
}

// freshValues: a reply is decoded into a value that nothing was decoded into before. A user without a payload shows it, after one with.
func freshValues(f *rpcbench.Fixture) error {
	first, second := users.Sample(0, 1000), users.Sample(1, 0)
	reply, err, callErr := both(context.Background(), f, first)
	if err = errors.Join(err, callErr); err != nil {
		return err
	}
	_, err, callErr = both(context.Background(), f, second)
	if err = errors.Join(err, callErr); err != nil {
		return fmt.Errorf("a user without a payload, after one with: is a value decoded into again? %w", err)
	}
	if !sameReply(first, reply) {
		return errors.New("the reply that CreateUser returned was changed by the next call: a value is decoded into again")
	}
	return nil
}

// deviation compares what became of a hostile value with what the stack declares.
func deviation(s subject, name string, came bool, detail string) error {
	switch declared := slices.Contains(s.stack.Traits.Lossy, name); {
	case !came && !declared:
		return fmt.Errorf("%s: %s; Traits.Lossy does not declare it", name, detail)
	case came && declared:
		return fmt.Errorf("%s: comes back as it was sent, Traits.Lossy declares that it does not", name)
	}
	return nil
}

// tooLarge is a payload that no server takes. It is twice what makes a body too large, so that it is refused while it is still
// being sent; but gzip sends it whole in either case, and takes seconds for it under the race detector.
func (s subject) tooLarge() []byte {
	size := 2 * rpcbench.MaxBody
	if s.stack.Traits.Compression == "gzip" {
		size = rpcbench.MaxBody
	}
	return bytes.Repeat([]byte{7}, size)
}

func invalidUTF8(s subject, f *rpcbench.Fixture, u rpcbench.User) error {
	reply, err := f.Client.CreateUser(context.Background(), u)
	declared := s.stack.Traits.InvalidUTF8
	if declared == rpcbench.Rejected {
		return wantCode("invalid UTF-8, declared to be rejected", err, rpcbench.Malformed)
	}
	if err != nil || reply.User == nil {
		return fmt.Errorf("invalid UTF-8, declared to be %s: %w", declared, err)
	}
	want := u.Name
	if declared == rpcbench.Replaced {
		want = strings.ToValidUTF8(u.Name, "\ufffd")
	}
	if reply.User.Name != want {
		return fmt.Errorf("invalid UTF-8, declared to be %s, came back as %q", declared, reply.User.Name)
	}
	return nil
}

// outcomes: valid, invalid and oversized requests end the same way on every stack, and leave the next call unharmed.
func outcomes(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	change := func(fn func(*rpcbench.User)) rpcbench.User {
		u := users.Sample(0, 0)
		fn(&u)
		return u
	}
	broken := func(pairs ...string) []rpcbench.Violation {
		var v []rpcbench.Violation
		for i := 0; i < len(pairs); i += 2 {
			v = append(v, rpcbench.Violation{Field: pairs[i], Rule: pairs[i+1]})
		}
		return v
	}
	for _, c := range []struct {
		reason string
		user   rpcbench.User
		code   rpcbench.Code // "" for success
		broken []rpcbench.Violation
	}{
		{"nothing is wrong", users.Sample(3, 0), "", nil},
		{"no email", change(func(u *rpcbench.User) { u.Email = "" }), rpcbench.Invalid, broken("email", "required")},
		{"an email that is none", change(func(u *rpcbench.User) { u.Email = "nobody" }), rpcbench.Invalid, broken("email", "email")},
		{"a name too short", change(func(u *rpcbench.User) { u.Name = "Ann" }), rpcbench.Invalid, broken("name", "min=4")},
		{"a name of four characters in sixteen bytes", change(func(u *rpcbench.User) { u.Name = strings.Repeat("\U0001F600", 4) }), "", nil},
		{"a name too long", change(func(u *rpcbench.User) { u.Name = strings.Repeat("n", 101) }), rpcbench.Invalid, broken("name", "max=100")},
		{"a password too short", change(func(u *rpcbench.User) { u.Password = "abc" }), rpcbench.Invalid, broken("password", "min=4")},
		{"a password too long", change(func(u *rpcbench.User) { u.Password = strings.Repeat("p", 73) }), rpcbench.Invalid, broken("password", "max=72")},
		{"everything is missing", rpcbench.User{}, rpcbench.Invalid, broken("email", "required", "name", "min=4", "password", "min=4")},
		{"a payload of one byte more than the largest, which is among the hostile values",
			change(func(u *rpcbench.User) { u.Avatar = bytes.Repeat([]byte{7}, rpcbench.MaxAvatar+1) }), rpcbench.Invalid, broken("avatar", "max=1048576")},
		{"a body too large", change(func(u *rpcbench.User) { u.Avatar = s.tooLarge() }), rpcbench.TooLarge, nil},
	} {
		for _, form := range []string{"CreateUser", "Call"} {
			accepted := f.Accepted()
			before, _ := recorded(tap)
			var err error
			if form == "CreateUser" {
				_, err = f.Client.CreateUser(context.Background(), c.user)
			} else if call, prepareErr := prepareOne(f, c.user); prepareErr == nil {
				err = call(context.Background())
			} else {
				return prepareErr
			}
			what := c.reason + ", " + form
			if c.code == "" {
				if err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				continue
			}
			if err := wantCode(what, err, c.code); err != nil {
				return s.withStatus(err, tap)
			}
			if sent, _ := recorded(tap); len(sent) == len(before) {
				return fmt.Errorf("%s: the client refused it and sent nothing: the server must", what)
			}
			if e, _ := errors.AsType[*rpcbench.Error](err); !reflect.DeepEqual(e.Violations, c.broken) {
				return fmt.Errorf("%s: the violations are %v, they must be %v", what, e.Violations, c.broken)
			}
			if _, err, callErr := both(context.Background(), f, users.Sample(1, 0)); err != nil || callErr != nil {
				return fmt.Errorf("%s: the call after it: %w", what, errors.Join(err, callErr))
			}
			if more := f.Accepted() - accepted; c.code == rpcbench.Invalid && more != 0 {
				return fmt.Errorf("%s: the call after it took %d new connections: an error reply must leave the connection open%w", what, more, errRedialled)
			}
		}
	}
	return nil
}

// withStatus adds to the error about a call what HTTP said of it, where that can be read and was success.
func (s subject) withStatus(err error, tap *netwrap.Tap) error {
	_, replies, readErr := s.messages(tap)
	if readErr != nil || len(replies) == 0 {
		return err
	}
	h := replies[len(replies)-1].Header
	if status := named(h, ":status"); strings.HasPrefix(status, "2") && !strings.HasPrefix(named(h, "Content-Type"), "application/grpc") {
		return fmt.Errorf("%w; the server answered with HTTP status %s, as if the call had succeeded", err, status)
	}
	return err
}
