package conform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacktest"
)

type handle = func(context.Context, *rpcbench.User) (*rpcbench.Response, error)

// handled is a method with a handler, on plain structs and on generated types. Of a reply's Message, equal says.
func handled(h handle, equal func(want, got string) bool) (
	rpcbench.Method[rpcbench.User, rpcbench.Response], rpcbench.Method[userv1.User, userv1.CreateUserResponse]) {
	m := plain()
	m.Replies, m.Handle, m.Key = nil, h, nil
	m.Equal = func(want, got *rpcbench.Response) bool {
		message := got.Message
		defer func() { got.Message = message }()
		got.Message = rpcbench.OKMessage
		return equal(want.Message, message) && rpcbench.CheckUser(want.User, got) == nil
	}
	return m, rpcbench.Converted(m,
		func(u *rpcbench.User) *userv1.User { return binding.Convert[userv1.User](u) },
		func(u *userv1.User) *rpcbench.User {
			return &rpcbench.User{ID: u.Id, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		func(r *rpcbench.Response) *userv1.CreateUserResponse {
			u := r.User
			return &userv1.CreateUserResponse{Code: r.Code, Message: r.Message,
				User: &userv1.User{Id: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}}
		},
		func(want, got *userv1.CreateUserResponse) bool {
			return equal(want.Message, got.Message) && proto.Equal(want.User, got.User)
		})
}

// handledStacks are all that serve a method of one's own.
func handledStacks(h handle, equal func(want, got string) bool) []rpcbench.Stack {
	m, pb := handled(h, equal)
	return []rpcbench.Stack{httpjson.Of(m), httpjsoniter.Of(m), httpprotobuf.Of(pb),
		grpcprotobuf.Of(pb), connectrpc.Of(pb), connectrpc2.Of(pb)}
}

func same(want, got string) bool { return want == got }

// busy is a handler that uses what the suite looks for in stacks: codecs, net/http, a validator, and a goroutine that
// lives on.
func busy(t *testing.T) handle {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	server.Client().Transport.(*http.Transport).MaxConnsPerHost = 1 // opened below, and kept
	type work struct {
		u    *rpcbench.User
		done chan error
	}
	ask, validate := make(chan work), rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	t.Cleanup(func() { close(ask) })
	encode := func(u *rpcbench.User) error {
		again := new(rpcbench.User)
		data, err := json.Marshal(u)
		if err == nil {
			err = json.Unmarshal(data, again)
		}
		if err == nil {
			err = jsoniter.Unmarshal(data, again)
		}
		if err == nil {
			_, err = protojson.Marshal(binding.Convert[userv1.User](again))
		}
		return err
	}
	go func() {
		for w := range ask {
			w.done <- encode(w.u)
		}
	}()
	h := func(ctx context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		w := work{u, make(chan error)}
		ask <- w
		err := <-w.done
		if err == nil {
			err = encode(u)
		}
		if err == nil {
			err = validate(u)
		}
		var request *http.Request
		if err == nil {
			request, err = http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(u.Name))
		}
		if err != nil {
			return nil, err
		}
		response, err := server.Client().Do(request)
		if err != nil {
			return nil, err
		}
		name, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		u.Name = string(name)
		return rpcbench.AnswerUser(u), err
	}
	u := rpcbench.SampleUser(0, 0)
	_, err := h(t.Context(), &u)
	require.NoError(t, err)
	return h
}

// TestHandleConformance: a stack is judged by what it does itself, and not by what its handler does. Checks that read
// allocations, connections and goroutines could take one for the other. The others are made of one family, and of all
// with -long. Profiles are not taken under the race detector.
func TestHandleConformance(t *testing.T) {
	for _, s := range families(handledStacks(busy(t), same)) {
		t.Run(s.Name, func(t *testing.T) {
			switch isWhole := long() || s.Name == "httpjson"; {
			case isWhole && raced():
				checked(t, s, unprofiled()...)
			case isWhole:
				stacktest.Conformance(t, s)
			case raced():
				checked(t, s, "connections", "traffic", "neighbours", "close")
			default:
				checked(t, s, "connections", "traffic", "codec", "replies in another order", "neighbours", "close")
			}
		})
	}
}

// families are one stack of each family.
func families(all []rpcbench.Stack) (some []rpcbench.Stack) {
	for _, s := range all {
		name := strings.TrimSuffix(s.Name, ".converted")
		if slices.Contains([]string{"httpjson", "grpcprotobuf", "connectrpc2"}, name) {
			some = append(some, s)
		}
	}
	return some
}

// TestFaultsBesideAHandler: a handler excuses nothing that the stack does.
func TestFaultsBesideAHandler(t *testing.T) {
	h := func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		return rpcbench.AnswerUser(u), nil
	}
	m, _ := handled(h, same)
	labelled := httpjsoniter.Of(m)
	labelled.Traits.Codec = "encoding/json"
	blind, api := m, binding.Plain()
	blind.Equal = func(_, _ *rpcbench.Response) bool { return true }
	for check, s := range map[string]rpcbench.Stack{
		"codec":           labelled,
		"changed replies": httpjson.Of(blind),
		"repeats": httpapi.Of("httpjson", "http/json", binding.Format{Codec: keeping{kept: new(sync.Map)},
			Sorted: json.Marshal, Clone: binding.Clone}, m, api.FromError, api.ToError, httpapi.Options{}),
	} {
		if check != "changed replies" && raced() {
			continue // the race detector drops objects from pools at random
		}
		err := run(check, s)
		require.Error(t, err, check)
		require.NotErrorAs(t, err, new(conform.Skip), check)
	}
}

// TestAnswersThatVary: what can't be told of them is skipped by name, and is no fault. Without -long each family has
// one check of allocations.
func TestAnswersThatVary(t *testing.T) {
	var n atomic.Int64
	counted := func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		r := rpcbench.AnswerUser(u)
		r.Message = fmt.Sprintf("answer %07d", n.Add(1))
		return r, nil
	}
	allocations := map[string]string{
		"httpjson": "repeats", "grpcprotobuf.converted": "codec", "connectrpc2.converted": "codec",
	}
	for _, s := range families(handledStacks(counted, func(want, got string) bool { return len(want) == len(got) })) {
		for check, says := range map[string]string{
			"traffic":                  "the answers of Handle vary",
			"changed replies":          "the answers of Handle vary",
			"replies in another order": "no two replies have the same bytes",
			"repeats":                  "",
			"codec":                    "",
		} {
			t.Run(s.Name+"/"+check, func(t *testing.T) {
				pools := check != "traffic" && check != "changed replies"
				if pools && raced() {
					t.Skip("the race detector drops objects from pools at random")
				}
				if says == "" && check != allocations[s.Name] && !long() {
					t.Skip("takes seconds for each family, and is made with -long")
				}
				err := run(check, s)
				if says == "" && err == nil {
					return
				}
				require.ErrorAs(t, err, new(conform.Skip))
				require.ErrorContains(t, err, says)
			})
		}
	}
}

// TestAnswersThatChangeInTime: answers are alike until a changed one is taken, as if a second ended just then.
func TestAnswersThatChangeInTime(t *testing.T) {
	var second atomic.Int64
	timed := func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
		r := rpcbench.AnswerUser(u)
		for i := range 100 { // so that the message has the middle of the reply
			r.Message += fmt.Sprintf("at%03d", second.Load()+int64(i))
		}
		return r, nil
	}
	ends := func(want, got string) bool {
		if want != got {
			second.Add(1)
		}
		return true
	}
	for _, s := range handledStacks(timed, ends) {
		err := run("changed replies", s)
		require.ErrorAs(t, err, new(conform.Skip), s.Name)
		require.ErrorContains(t, err, "the answers of Handle vary", s.Name)
	}
	for _, s := range handledStacks(timed, func(_, _ string) bool { return true }) {
		require.ErrorContains(t, run("changed replies", s), "the reply is not compared", "%s: nothing varies", s.Name)
	}
}
