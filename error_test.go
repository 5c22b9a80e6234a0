package rpcbench_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

func TestErrorText(t *testing.T) {
	two := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	for _, c := range []struct {
		why, want string
		err       rpcbench.Error
	}{
		{"a code alone", "rpcbench: internal", rpcbench.Error{Code: rpcbench.Internal}},
		{"a message", "rpcbench: internal: wrong reply", rpcbench.Error{Code: rpcbench.Internal, Message: "wrong reply"}},
		{"the library's error", "rpcbench: malformed: EOF", rpcbench.Error{Code: rpcbench.Malformed, Err: io.EOF}},
		{"one violation", "rpcbench: invalid: email required", rpcbench.Error{Code: rpcbench.Invalid, Violations: two[:1]}},
		{"all there can be, in this order", "rpcbench: invalid: email required, name min=4: twice: EOF",
			rpcbench.Error{Code: rpcbench.Invalid, Violations: two, Message: "twice", Err: io.EOF}},
	} {
		t.Run(c.why, func(t *testing.T) { require.EqualError(t, &c.err, c.want) })
	}
}

func TestCodeOf(t *testing.T) {
	unavailable := &rpcbench.Error{Code: rpcbench.Unavailable}
	for _, c := range []struct {
		why  string
		err  error
		want rpcbench.Code
	}{
		{"no error has no code", nil, ""},
		{"an Error", unavailable, rpcbench.Unavailable},
		{"an Error within another", fmt.Errorf("call 3: %w", unavailable), rpcbench.Unavailable},
		{"an Error beside another", errors.Join(io.EOF, unavailable), rpcbench.Unavailable},
		{"the outermost counts", &rpcbench.Error{Code: rpcbench.Malformed, Err: unavailable}, rpcbench.Malformed},
		{"somebody else's error", io.EOF, rpcbench.Internal},
		{"the context's own error, as a service may return it", context.Canceled, rpcbench.Canceled},
		{"the context's other error, wrapped", fmt.Errorf("query: %w", context.DeadlineExceeded), rpcbench.DeadlineExceeded},
		{"an Error's code, not what it wraps", &rpcbench.Error{Code: rpcbench.Unavailable, Err: context.Canceled}, rpcbench.Unavailable},
	} {
		t.Run(c.why, func(t *testing.T) { require.Equal(t, c.want, rpcbench.CodeOf(c.err)) })
	}
}

func TestErrorIsTheContextsForTwoCodes(t *testing.T) {
	for _, code := range []rpcbench.Code{rpcbench.Invalid, rpcbench.Malformed, rpcbench.TooLarge, rpcbench.Canceled,
		rpcbench.DeadlineExceeded, rpcbench.Unavailable, rpcbench.Internal} {
		err := fmt.Errorf("call: %w", &rpcbench.Error{Code: code})
		require.Equal(t, code == rpcbench.Canceled, errors.Is(err, context.Canceled), code)
		require.Equal(t, code == rpcbench.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded), code)
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
		{"the connection broke", background, io.EOF, rpcbench.Unavailable},
		{"the connection broke because the caller cancelled", cancelled, io.EOF, rpcbench.Canceled},
		{"the connection broke because the deadline passed", expired, io.EOF, rpcbench.DeadlineExceeded},
		{"the library calls a broken connection cancelled", background, cancels, rpcbench.Unavailable},
		{"the same, and the caller has a deadline", bounded, cancels, rpcbench.Unavailable},
		{"the same, and the deadline passed", expired, cancels, rpcbench.DeadlineExceeded},
		{"the library knows of the deadline before the context is asked", bounded, early, rpcbench.DeadlineExceeded},
		{"a timeout of the library's own", background, early, rpcbench.Unavailable},
		{"a timeout of the library's own, and the caller cancelled", cancelled, early, rpcbench.Canceled},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := rpcbench.CallError(c.ctx, c.err)
			require.Equal(t, c.want, got.Code)
			require.Same(t, c.err, got.Unwrap(), "what the library said stays")
			if c.want != rpcbench.Unavailable {
				require.ErrorIs(t, got, map[rpcbench.Code]error{
					rpcbench.Canceled: context.Canceled, rpcbench.DeadlineExceeded: context.DeadlineExceeded,
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
		return rpcbench.Answer(&u)
	}
	require.NoError(t, rpcbench.Check(&asked, answer()))
	none := rpcbench.User{Email: asked.Email, Name: asked.Name, Password: asked.Password, Avatar: []byte{}}
	require.NoError(t, rpcbench.Check(&none, rpcbench.Answer(&rpcbench.User{Email: asked.Email, Name: asked.Name, Password: asked.Password})),
		"no payload and an empty one are the same")

	differs := func(field string, r *rpcbench.Response) {
		t.Helper()
		require.Equal(t, rpcbench.Internal, rpcbench.CodeOf(rpcbench.Check(&asked, r)), field)
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
