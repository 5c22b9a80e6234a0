// Package conform_test runs the suite on methods of one's own. The tests of stacktest run the suite on users.
package conform_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // of checks, no time is said
	stacktest.Main(m)
}

// long tells of the flag that stacktest.Main adds.
func long() bool { return flag.Lookup("long").Value.String() == "true" }

// raced tells of the race detector, beside which a profile takes seconds and tells little.
func raced() bool { return strings.Contains(environ.Build(), "-race") }

// unprofiled are the checks that don't spend their time on profiles.
func unprofiled() (names []string) {
	for _, c := range conform.Checks() {
		if !slices.Contains([]string{"codec", "late"}, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

var seed = maphash.MakeSeed()

// plain is a method of plain structs, with as many samples as a round has.
func plain() rpcbench.Method[rpcbench.User, rpcbench.Response] {
	m := rpcbench.Method[rpcbench.User, rpcbench.Response]{
		Name: "test.v1.Users/Create", MadeOf: "16 samples",
		Key:   func(u *rpcbench.User) uint64 { return maphash.String(seed, u.Email) },
		Equal: func(want, got *rpcbench.Response) bool { return rpcbench.CheckUser(want.User, got) == nil },
	}
	for i := range corpus.Round {
		asked := rpcbench.SampleUser(i, 100)
		answered := asked
		m.Requests, m.Replies = append(m.Requests, &asked), append(m.Replies, rpcbench.AnswerUser(&answered))
	}
	return m
}

// generated is the same method of generated types.
func generated() rpcbench.Method[userv1.User, userv1.CreateUserResponse] {
	m := rpcbench.Method[userv1.User, userv1.CreateUserResponse]{
		Name: plain().Name, MadeOf: plain().MadeOf,
		Key:   func(u *userv1.User) uint64 { return maphash.String(seed, u.Email) },
		Equal: func(want, got *userv1.CreateUserResponse) bool { return proto.Equal(want, got) },
	}
	for i, q := range plain().Requests {
		m.Requests = append(m.Requests, binding.Convert[userv1.User](q))
		m.Replies = append(m.Replies, binding.Convert[userv1.CreateUserResponse](plain().Replies[i]))
	}
	return m
}

func methodStacks() []rpcbench.Stack {
	return []rpcbench.Stack{httpjson.Of(plain()), httpjsoniter.Of(plain()),
		httpprotobuf.Of(generated()), grpcprotobuf.Of(generated()), connectrpc.Of(generated()), connectrpc2.Of(generated())}
}

// The suite runs on a method of one's own: on plain structs and on generated types. Any other stack has connections, a
// version of HTTP or libraries of its own. For the rest it is checked with -long. Profiles are not taken under the race
// detector.
func TestMethodConformance(t *testing.T) {
	all := methodStacks()
	whole := families(all)[:2]
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			isWhole := long() || slices.ContainsFunc(whole, func(w rpcbench.Stack) bool { return w.Name == s.Name })
			checks := []string{"declared", "connections", "traffic", "changed replies", "one request", "protocol"}
			switch {
			case isWhole && raced():
				checks = unprofiled()
			case isWhole:
				stacktest.Conformance(t, s)
				return
			case !raced() && !slices.ContainsFunc(whole, func(w rpcbench.Stack) bool { return codecs(w) == codecs(s) }):
				checks = append(checks, "codec")
			}
			checked(t, s, checks...)
		})
	}
}

// codecs are the libraries whose objects a profile of the stack has.
func codecs(s rpcbench.Stack) string {
	return fmt.Sprint(s.Traits.Codec, s.Traits.ClientLibraries, s.Traits.ServerLibraries)
}

// checked makes some checks of a stack, first without TLS and then with TLS. None may be skipped, unless the race
// detector forbids it.
func checked(t *testing.T, s rpcbench.Stack, checks ...string) {
	t.Helper()
	for _, c := range conform.Checks() {
		for _, tls := range []bool{false, true} {
			if slices.Contains(checks, c.Name) && !(tls && c.ClearOnly) {
				t.Run(fmt.Sprintf("%s/tls=%t", c.Name, tls), func(t *testing.T) {
					err := c.Run(conform.Subject{Stack: s, TLS: tls})
					if errors.As(err, new(conform.Skip)) && raced() {
						t.Skip(err)
					}
					require.NoError(t, err, "The check proves: %s", c.Proves)
				})
			}
		}
	}
}

// A server of a method has the limit that every server has.
func TestMethodsHaveABodyLimit(t *testing.T) {
	asked, large := plain(), generated()
	asked.Requests[3].Avatar = make([]byte, rpcbench.MaxBody)
	large.Requests[3] = binding.Convert[userv1.User](asked.Requests[3])
	for _, s := range []rpcbench.Stack{httpjson.Of(asked), httpjsoniter.Of(asked),
		httpprotobuf.Of(large), grpcprotobuf.Of(large), connectrpc.Of(large), connectrpc2.Of(large)} {
		f := stacktest.Start(t, s, rpcbench.Config{})
		call, err := f.Client.Prepare(3)
		require.NoError(t, err, s.Name)
		refused, ok := errors.AsType[*rpcbench.Error](call(t.Context()))
		require.True(t, ok, s.Name)
		require.Equal(t, rpcbench.CodeTooLarge, refused.Code, s.Name)
	}
}

func TestBrokenMethods(t *testing.T) {
	type method = rpcbench.Method[rpcbench.User, rpcbench.Response]
	for why, change := range map[string]func(m *method){
		"has no requests":           func(m *method) { m.Requests, m.Replies = nil, nil },
		"there are 16 requests":     func(m *method) { m.Replies = m.Replies[1:] },
		"has the key of an earlier": func(m *method) { m.Requests[3] = m.Requests[2] },
		"has a Name, and Equal":     func(m *method) { m.Equal = nil },
	} {
		m := plain()
		change(&m)
		_, err := rpcbench.Start(t.Context(), httpjson.Of(m), rpcbench.Config{})
		require.ErrorContains(t, err, why)
	}
}

// mixed is a method that answers each request with the reply of request i ^ odd.
func mixed[Q, R any](m rpcbench.Method[Q, R], odd int) rpcbench.Method[Q, R] {
	replies := slices.Clone(m.Replies)
	for i := range replies {
		m.Replies[i] = replies[i^odd]
	}
	return m
}

// A request that no sample has is refused, and a reply of another sample is wrong.
func TestMethodCalls(t *testing.T) {
	for name, of := range map[string]func(odd int) rpcbench.Stack{
		"plain":     func(odd int) rpcbench.Stack { return httpjson.Of(mixed(plain(), odd)) },
		"generated": func(odd int) rpcbench.Stack { return grpcprotobuf.Of(mixed(generated(), odd)) },
	} {
		joined, err := crossed.Of(of(0), of(0))
		require.NoError(t, err)
		f := stacktest.Start(t, joined, rpcbench.Config{})
		require.Implements(t, (*rpcbench.MethodClient)(nil), f.Client, name)

		joined, err = crossed.Of(of(0), of(1))
		require.NoError(t, err)
		_, err = rpcbench.Start(t.Context(), joined, rpcbench.Config{})
		require.ErrorContains(t, err, "wrong reply", name)
	}
	foreign, foreignPB := plain(), generated()
	for i := range foreign.Requests {
		foreign.Requests[i].Email, foreignPB.Requests[i].Email = "no@example.com", "no@example.com"
	}
	for _, pair := range [][2]rpcbench.Stack{{httpjson.Of(foreign), httpjson.Of(plain())},
		{grpcprotobuf.Of(foreignPB), grpcprotobuf.Of(generated())}} {
		joined, err := crossed.Of(pair[0], pair[1])
		require.NoError(t, err)
		_, err = rpcbench.Start(t.Context(), joined, rpcbench.Config{})
		require.Equal(t, rpcbench.CodeInvalid, rpcbench.CodeOf(err), err)
	}
	one := plain()
	one.Name = "test.v1.Users/Other"
	_, err := crossed.Of(httpjson.Of(plain()), httpjson.Of(one))
	require.ErrorContains(t, err, fmt.Sprintf("which speaks http/json %s", one.Name))
}

// keeping is encoding/json that decodes no request twice.
type keeping struct {
	jsonstd.Codec
	kept *sync.Map
}

func (c keeping) Unmarshal(data []byte, v any) error {
	u, isUser := v.(*rpcbench.User)
	if !isUser {
		return c.Codec.Unmarshal(data, v)
	}
	if kept, ok := c.kept.Load(string(data)); ok {
		*u = kept.(rpcbench.User)
		return nil
	}
	err := c.Codec.Unmarshal(data, v)
	c.kept.Store(string(data), *u)
	return err
}

// sending is encoding/json that keeps requests once it has encoded so many.
type sending struct {
	jsonstd.Codec
	sent  *sync.Map
	after *atomic.Int64
}

func (c sending) Marshal(v any) ([]byte, error) {
	u, isUser := v.(*rpcbench.User)
	if !isUser {
		return c.Codec.Marshal(v)
	}
	if sent, ok := c.sent.Load(u); ok {
		return sent.([]byte), nil
	}
	data, err := c.Codec.Marshal(v)
	if c.after.Add(-1) < 0 {
		c.sent.Store(u, data)
	}
	return data, err
}

// changed is a client whose Prepare is changed.
type changed struct {
	rpcbench.MethodClient
	prepare func(c rpcbench.MethodClient, i int) (rpcbench.Call, error)
}

func (c changed) Prepare(i int) (rpcbench.Call, error) { return c.prepare(c.MethodClient, i) }

func withPrepare(s rpcbench.Stack,
	prepare func(c rpcbench.MethodClient, i int) (rpcbench.Call, error)) rpcbench.Stack {
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return changed{c.(rpcbench.MethodClient), prepare}, err
	}
	return s
}

// answeredAtLength is plain with replies that take much more to decode than requests take to encode.
func answeredAtLength() rpcbench.Method[rpcbench.User, rpcbench.Response] {
	m := plain()
	for i, reply := range m.Replies {
		asked := rpcbench.SampleUser(i, 2000)
		m.Replies[i] = rpcbench.AnswerUser(&asked)
		m.Replies[i].Message = reply.Message
	}
	m.Equal = func(want, got *rpcbench.Response) bool { return reflect.DeepEqual(want, got) }
	return m
}

// one is a method of one sample, which nothing tells apart.
func one[Q, A any](m rpcbench.Method[Q, A], request *Q, reply *A) rpcbench.Method[Q, A] {
	m.Requests, m.Replies, m.Key, m.MadeOf = []*Q{request}, []*A{reply}, nil, "1 sample"
	return m
}

// run makes one check of the suite.
func run(check string, stack rpcbench.Stack) error {
	all := conform.Checks()
	i := slices.IndexFunc(all, func(c conform.Check) bool { return c.Name == check })
	return all[i].Run(conform.Subject{Stack: stack, Wait: 500 * time.Millisecond})
}

// TestOwnSamples: what one sample or a small one can't tell is skipped, with the reason, and is no fault.
func TestOwnSamples(t *testing.T) {
	type choice struct {
		Yes bool `json:"yes,omitempty"`
	}
	letters := map[string]any{}
	for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxy", "") {
		letters[letter] = letter
	}
	entries, err := structpb.NewStruct(letters)
	require.NoError(t, err)
	flags := httpjsoniter.Of(rpcbench.Method[choice, choice]{
		Name: "test.v1.Flags/Get", MadeOf: "1 sample", Requests: []*choice{{}}, Replies: []*choice{{Yes: true}},
		Equal: func(want, got *choice) bool { return *want == *got },
	})
	empty := one(generated(), new(userv1.User), new(userv1.CreateUserResponse))
	short := one(generated(), &userv1.User{Name: "2026-01-01"}, &userv1.CreateUserResponse{Message: "short"})
	maps := rpcbench.Method[structpb.Struct, userv1.CreateUserResponse]{
		Name: "test.v1.Maps/Get", MadeOf: "1 sample", Replies: empty.Replies, Equal: empty.Equal,
		Requests: []*structpb.Struct{entries},
	}
	long, asked := plain(), rpcbench.SampleUser(1, 10_000)
	long.Replies[1] = rpcbench.AnswerUser(&asked)
	for _, c := range []struct {
		why, check string
		stack      rpcbench.Stack
		says       string
	}{
		{"the reply before is the right one", "changed replies",
			httpjson.Of(one(plain(), plain().Requests[0], plain().Replies[0])), "of equal replies the one before is the right"},
		{"a reply of less than half the length of the one before", "changed replies", httpjson.Of(long), ""},
		{"decoders need no objects", "codec", flags, "neither message has an object of 16 bytes"},
		{"decoders need no objects, so none is missed", "repeats", flags, "allocates nothing"},
		{"decoders need small objects, which share blocks", "repeats", httpprotobuf.Of(short), "so few bytes"},
		{"entries of a map, which come in any order", "patience", httpprotobuf.Of(maps), ""},
		{"a request smaller than frames of HTTP/2", "shared", grpcprotobuf.Of(short), ""},
		{"a request of no bytes, which waits or does not", "shared", grpcprotobuf.Of(empty), "from frames of HTTP/2"},
		{"a request of no bytes, to be held", "unavailable", grpcprotobuf.Of(empty), "from frames of HTTP/2"},
	} {
		t.Run(c.why, func(t *testing.T) {
			pools := c.check == "repeats" || c.check == "codec"
			if pools && raced() {
				t.Skip("the race detector drops objects from pools at random")
			}
			err := run(c.check, c.stack)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(conform.Skip))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Each fault of a stack of a method turns a check of the suite red.
func TestMethodFaults(t *testing.T) {
	unsorted := testkit.WithMessages(httpjson.Of(plain()), func(_, replies *rpcbench.Messages) { replies.Sorted = nil })
	blind := plain()
	blind.Equal = func(_, _ *rpcbench.Response) bool { return true }
	labelled := httpjsoniter.Of(plain())
	labelled.Traits.Codec = "encoding/json"
	unmoved := httpjsoniter.Of(one(plain(), new(rpcbench.User), new(rpcbench.Response)))
	unmoved.Traits.ClientLibraries = nil
	otherwise := testkit.WithMessages(httpjson.Of(plain()), func(requests, replies *rpcbench.Messages) {
		*replies = *requests
	})
	api := binding.Plain()
	sendsKept := httpjson.Of(answeredAtLength())
	sendsKept.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) { // each client counts for itself
		after := new(atomic.Int64)
		after.Store(100)
		format := binding.Format{Codec: sending{sent: new(sync.Map), after: after}, Sorted: json.Marshal}
		return httpapi.Of("httpjson", "http/json", format, answeredAtLength(), api.FromError, api.ToError,
			httpapi.Options{}).Dial(config)
	}
	sendsKept = testkit.WithMessages(sendsKept, func(requests, _ *rpcbench.Messages) { // which keep none
		requests.Encode = func(i int) ([]byte, error) { return json.Marshal(answeredAtLength().Requests[i%corpus.Round]) }
	})
	atOnce := httpjson.Of(plain())
	server := atOnce.Server
	atOnce.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		config.Wait = 0
		return server(config)
	}
	for fault, c := range map[string]struct {
		stack rpcbench.Stack
		check string
	}{
		"a handler that does not wait": {atOnce, "wait"},
		"a reply from memory": {withPrepare(httpjson.Of(plain()),
			func(c rpcbench.MethodClient, i int) (rpcbench.Call, error) {
				if i >= 1000 { // of the start
					return c.Prepare(i)
				}
				return func(context.Context) error { return nil }, nil
			}), "traffic"},
		"a reply from memory after a while": {withPrepare(httpjson.Of(plain()),
			func(c rpcbench.MethodClient, i int) (rpcbench.Call, error) {
				call, err := c.Prepare(i)
				made := 0
				return func(ctx context.Context) error {
					if made++; made > 60 {
						return nil
					}
					return call(ctx)
				}, err
			}), "traffic"},
		"bytes that are not the sample's": {otherwise, "traffic"},
		"messages that can't be sorted":   {unsorted, "declared"},
		"a reply that is not compared":    {httpjson.Of(blind), "changed replies"},
		"a reply that is not compared, of one sample": {
			httpjson.Of(one(blind, plain().Requests[0], plain().Replies[0])), "changed replies"},
		"a codec that is not the label's":                                      {labelled, "codec"},
		"a library that is not the label's, of a sample that needs no objects": {unmoved, "codec"},
		"a request that Prepare encodes": {withPrepare(httpjson.Of(plain()),
			func(c rpcbench.MethodClient, i int) (rpcbench.Call, error) {
				_, err := json.Marshal(plain().Requests[i%corpus.Round])
				require.NoError(t, err)
				return c.Prepare(i)
			}), "repeats"},
		"a request that the server has kept": {httpapi.Of("httpjson", "http/json",
			binding.Format{Codec: keeping{kept: new(sync.Map)}, Sorted: json.Marshal}, plain(), api.FromError, api.ToError,
			httpapi.Options{}), "repeats"},
		"a request that the client has kept, of a longer reply": {sendsKept, "repeats"},
		"two requests for a call": {withPrepare(httpjson.Of(plain()),
			func(c rpcbench.MethodClient, i int) (rpcbench.Call, error) {
				call, err := c.Prepare(i)
				return func(ctx context.Context) error { return errors.Join(call(ctx), call(ctx)) }, err
			}), "one request"},
		"a client that gives up after a moment": {withPrepare(httpjson.Of(plain()),
			func(c rpcbench.MethodClient, i int) (rpcbench.Call, error) {
				call, err := c.Prepare(i)
				return func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					return call(ctx)
				}, err
			}), "patience"},
	} {
		t.Run(fault, func(t *testing.T) {
			pools := c.check == "repeats" || c.check == "codec"
			if pools && raced() {
				t.Skip("the race detector drops objects from pools at random")
			}
			err := run(c.check, c.stack)
			require.Error(t, err)
			require.NotErrorAs(t, err, new(conform.Skip))
		})
	}
}
