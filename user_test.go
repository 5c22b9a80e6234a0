package rpcbench_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// here is a server that does not wait.
var here rpcbench.ServerConfig

// emailOf returns a valid address of n characters.
func emailOf(n int) string {
	const local, end = 64, "@example.com"
	labels := strings.Repeat(strings.Repeat("d", 50)+".", 10)
	return strings.Repeat("a", local) + "@" + labels[len(labels)-(n-local-len(end)):] + end[1:]
}

func TestRulesAtTheirEdges(t *testing.T) {
	var (
		set = func(change func(*rpcbench.User)) rpcbench.User {
			u := rpcbench.SampleUser(0, 0)
			change(&u)
			return u
		}
		email    = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Email = s }) }
		name     = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Name = s }) }
		password = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Password = s }) }
		avatar   = func(n int) rpcbench.User { return set(func(u *rpcbench.User) { u.Avatar = make([]byte, n) }) }
		id       = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.ID = s }) }
	)
	const smile = "\U0001F600" // 4 bytes, 1 character
	plain, generated := rpcbench.NewUserValidator[rpcbench.User](here), rpcbench.NewUserValidator[userv1.User](here)
	for _, c := range []struct {
		why    string
		user   rpcbench.User
		broken string // "" for a valid user
	}{
		{"nothing is wrong", rpcbench.SampleUser(0, 0), ""},

		{"name of 4", name("Anna"), ""},
		{"name of 3 characters in 12 bytes", name(strings.Repeat(smile, 3)), "name min=4"},
		{"name of 101", name(strings.Repeat("n", 101)), "name max=100"},
		{"name of 100 characters in 400 bytes", name(strings.Repeat(smile, 100)), ""},

		{"password of 3", password("pwd"), "password min=4"},
		{"password of 4", password("pass"), ""},
		{"password of 73", password(strings.Repeat("p", 73)), "password max=72"},
		{"password of 72 characters in 288 bytes", password(strings.Repeat(smile, 72)), ""},

		{"no email", email(""), "email required"},
		{"email without @", email("anna.example.com"), "email email"},
		{"email at a domain without a dot", email("anna@example"), "email email"},
		{"email with a name before it", email("Anna <anna@example.com>"), "email email"},
		{"email outside of ASCII", email("änne@exämple.com"), ""},
		{"email of 254", email(emailOf(254)), ""},
		{"email of 255", email(emailOf(255)), "email max=254"},
		{"of two rules of one field the first is told", email(strings.Repeat("a", 255)), "email email"},

		{"avatar of 1 MiB", avatar(rpcbench.MaxAvatar), ""},
		{"avatar of a byte more", avatar(rpcbench.MaxAvatar + 1), "avatar max=1048576"},

		{"an id longer than any limit", id(strings.Repeat("7", 2<<20)), ""},
		{"an id that is no text", id("\xff"), ""},

		{"every field is told, in order", rpcbench.User{Avatar: make([]byte, rpcbench.MaxAvatar+1)},
			"email required, name min=4, password min=4, avatar max=1048576"},
	} {
		t.Run(c.why, func(t *testing.T) {
			err := plain(&c.user)
			converted := binding.Convert[userv1.User](&c.user)
			require.Equal(t, err, generated(converted), "the same for the same content, whichever type holds it")
			if c.broken == "" {
				require.NoError(t, err)
				return
			}
			e, ok := errors.AsType[*rpcbench.Error](err)
			require.True(t, ok, "got %v", err)
			require.Equal(t, rpcbench.CodeInvalid, e.Code)
			require.EqualError(t, e, "invalid: "+c.broken)
		})
	}
	require.Len(t, emailOf(254), 254)
}

// Rules that name no field would be ignored in silence, so the mistake is told when the validator is made.
func TestValidatorRefusesOtherFields(t *testing.T) {
	type missing struct {
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	type additional struct {
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
		Avatar   []byte `json:"avatar"`
		More     string
	}
	type untagged struct{ ID, Email, Name, Password, Avatar string }
	for _, c := range []struct {
		why, typ string
		make     func()
	}{
		{"a field is missing", "missing", func() { rpcbench.NewUserValidator[missing](here) }},
		{"a field that User lacks", "additional", func() { rpcbench.NewUserValidator[additional](here) }},
		{"no json names", "untagged", func() { rpcbench.NewUserValidator[untagged](here) }},
	} {
		want := "the fields of rpcbench_test." + c.typ + " are not those of User, by their json names"
		t.Run(c.why, func(t *testing.T) { require.PanicsWithValue(t, want, c.make) })
	}
	type unexported struct {
		state    int
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
		Avatar   []byte `json:"avatar"`
	}
	require.NotPanics(t, func() {
		rpcbench.NewUserValidator[unexported](here)
	}, "generated types have fields of their own: %v", unexported{}.state)
}

// An exported field without a rule would cost each stack of that type an allocation per call.
func TestValidatorsAllocateTheSame(t *testing.T) {
	u := rpcbench.SampleUser(0, 1000)
	g := binding.Convert[userv1.User](&u)
	plain, generated := rpcbench.NewUserValidator[rpcbench.User](here), rpcbench.NewUserValidator[userv1.User](here)
	// The least of many single runs: under -race a sync.Pool forgets a part of what it is given.
	least := func(validate func()) float64 {
		n := testing.AllocsPerRun(1, validate)
		for range 100 {
			n = min(n, testing.AllocsPerRun(1, validate))
		}
		return n
	}
	p, q := least(func() { _ = plain(&u) }), least(func() { _ = generated(g) })
	require.LessOrEqual(t, p, 9.0, "net/mail's parser of addresses takes 5")
	require.Equal(t, p, q, "plain and generated type")
}

// A handler waits for a valid user alone.
func TestValidatorsWait(t *testing.T) {
	validate := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{Wait: time.Hour})
	require.Error(t, validate(new(rpcbench.User)), "at once, or the test would take an hour")
	const wait = 10 * time.Millisecond
	validate = rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{Wait: wait})
	u, began := rpcbench.SampleUser(0, 0), time.Now()
	require.NoError(t, validate(&u))
	require.GreaterOrEqual(t, time.Since(began), wait)
}

func TestErrorText(t *testing.T) {
	two := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	for _, c := range []struct {
		why, want string
		err       rpcbench.Error
	}{
		{"a code alone", "internal", rpcbench.Error{Code: rpcbench.CodeInternal}},
		{"a message", "internal: wrong reply", rpcbench.Error{Code: rpcbench.CodeInternal, Message: "wrong reply"}},
		{"the library's error", "malformed: EOF", rpcbench.Error{Code: rpcbench.CodeMalformed, Err: io.EOF}},
		{"one violation", "invalid: email required", rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: two[:1]}},
		{"all there can be, in this order", "invalid: email required, name min=4: twice: EOF",
			rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: two, Message: "twice", Err: io.EOF}},
	} {
		t.Run(c.why, func(t *testing.T) { require.EqualError(t, &c.err, c.want) })
	}
}

func TestCodeOf(t *testing.T) {
	unavailable := &rpcbench.Error{Code: rpcbench.CodeUnavailable}
	for _, c := range []struct {
		why  string
		err  error
		want rpcbench.Code
	}{
		{"no error has no code", nil, ""},
		{"an Error", unavailable, rpcbench.CodeUnavailable},
		{"an Error within another", fmt.Errorf("call 3: %w", unavailable), rpcbench.CodeUnavailable},
		{"an Error beside another", errors.Join(io.EOF, unavailable), rpcbench.CodeUnavailable},
		{"the outermost counts", &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: unavailable}, rpcbench.CodeMalformed},
		{"somebody else's error", io.EOF, rpcbench.CodeInternal},
		{"the context's own error, as a service may return it", context.Canceled, rpcbench.CodeCanceled},
		{"the context's other error, wrapped", fmt.Errorf("query: %w", context.DeadlineExceeded),
			rpcbench.CodeDeadlineExceeded},
		{"an Error's code, not what it wraps", &rpcbench.Error{Code: rpcbench.CodeUnavailable, Err: context.Canceled},
			rpcbench.CodeUnavailable},
	} {
		t.Run(c.why, func(t *testing.T) { require.Equal(t, c.want, rpcbench.CodeOf(c.err)) })
	}
}

func TestErrorIsTheContextsForTwoCodes(t *testing.T) {
	for _, code := range []rpcbench.Code{rpcbench.CodeInvalid, rpcbench.CodeMalformed, rpcbench.CodeTooLarge,
		rpcbench.CodeCanceled,
		rpcbench.CodeDeadlineExceeded, rpcbench.CodeUnavailable, rpcbench.CodeInternal} {
		err := fmt.Errorf("call: %w", &rpcbench.Error{Code: code})
		require.Equal(t, code == rpcbench.CodeCanceled, errors.Is(err, context.Canceled), code)
		require.Equal(t, code == rpcbench.CodeDeadlineExceeded, errors.Is(err, context.DeadlineExceeded), code)
		require.NotErrorIs(t, err, io.EOF, code)
		require.ErrorIs(t, &rpcbench.Error{Code: code, Err: io.EOF}, io.EOF, "the library's own error can be found")
	}
}

func TestCallError(t *testing.T) {
	background := context.Background()
	cancelled, cancel := context.WithCancel(background)
	cancel()
	expired, cancel := context.WithDeadline(background, time.Unix(0, 0))
	defer cancel()
	bounded, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	cancels, early := fmt.Errorf("post: %w", context.Canceled), fmt.Errorf("post: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		why  string
		ctx  context.Context
		err  error
		want rpcbench.Code
	}{
		{"the connection broke", background, io.EOF, rpcbench.CodeUnavailable},
		{"the connection broke because the caller cancelled", cancelled, io.EOF, rpcbench.CodeCanceled},
		{"the connection broke because the deadline passed", expired, io.EOF, rpcbench.CodeDeadlineExceeded},
		{"the library calls a broken connection cancelled", background, cancels, rpcbench.CodeUnavailable},
		{"the same, and the caller has a deadline", bounded, cancels, rpcbench.CodeUnavailable},
		{"the same, and the deadline passed", expired, cancels, rpcbench.CodeDeadlineExceeded},
		{"the library knows of the deadline before the context is asked", bounded, early, rpcbench.CodeDeadlineExceeded},
		{"a timeout of the library's own", background, early, rpcbench.CodeUnavailable},
		{"a timeout of the library's own, and the caller cancelled", cancelled, early, rpcbench.CodeCanceled},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := rpcbench.CallError(c.ctx, c.err)
			require.Equal(t, c.want, got.Code)
			require.Same(t, c.err, got.Unwrap(), "what the library said stays")
			if c.want != rpcbench.CodeUnavailable {
				require.ErrorIs(t, got, map[rpcbench.Code]error{
					rpcbench.CodeCanceled: context.Canceled, rpcbench.CodeDeadlineExceeded: context.DeadlineExceeded,
				}[c.want])
			}
		})
	}
}

// A field that is added to User or Response is tested too.
func TestCheckComparesEveryField(t *testing.T) {
	asked := rpcbench.User{Email: "anna@example.com", Name: "Anna", Password: "password", Avatar: []byte{1, 2}}
	answer := func() *rpcbench.Response {
		u := asked
		u.Avatar = []byte{1, 2}
		return rpcbench.AnswerUser(&u)
	}
	require.NoError(t, rpcbench.CheckUser(&asked, answer()))
	none := rpcbench.User{Email: asked.Email, Name: asked.Name, Password: asked.Password, Avatar: []byte{}}
	require.NoError(t, rpcbench.CheckUser(&none, rpcbench.AnswerUser(&rpcbench.User{Email: asked.Email, Name: asked.Name,
		Password: asked.Password})),
		"no payload and an empty one are the same")

	differs := func(field string, r *rpcbench.Response) {
		t.Helper()
		require.Equal(t, rpcbench.CodeInternal, rpcbench.CodeOf(rpcbench.CheckUser(&asked, r)), field)
	}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[rpcbench.User]()) {
		r := answer()
		switch v := reflect.ValueOf(r.User).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		default:
			v.Bytes()[1]++
		}
		differs(f.Name, r)
	}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[rpcbench.Response]()) {
		r := answer()
		reflect.ValueOf(r).Elem().Field(i).SetZero()
		differs(f.Name, r)
	}
	differs("all of it", new(rpcbench.Response))
}

// A size is what a user may carry, and is written in one way only, since rows are named after it.
func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"", "B", "1B", "0B", "100B", "1kB", "1MB", "2MB", "01kB", "+1B", "1e3B", "1.5kB", "1 kB",
		"1KB", "4294967296B", "99999999999999999999kB", "-1B", "1BB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		size, err := workload.Size(s)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.Positive(t, size)
		require.LessOrEqual(t, size, rpcbench.MaxAvatar)
		digits := strings.TrimRight(s, "kMB")
		unit, known := map[string]int{"B": 1, "kB": 1000, "MB": 1_000_000}[s[len(digits):]]
		require.True(t, known)
		require.Equal(t, s, strconv.Itoa(size/unit)+s[len(digits):])
		require.Zero(t, size%unit)
	})
}
