// Package ladder_test measures what each layer of a call adds: ladders of stacks, each a layer more than the one
// before, and stacks whose codec replays.
package ladder_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m, append(rungs(), stacks.All()...)...) }

// ladder is stacks that each add something to the one before, or exchange a part of it.
type ladder struct {
	name  string
	rungs []rung
}

// rung is a stack, and what it "adds" or "exchanges".
type rung struct {
	rpcbench.Stack
	change string // "" for the lowest
}

func ladders() []ladder {
	overHTTP := httpBytes("ladder.http.bytes", false)
	return []ladder{
		{"grpc", []rung{
			{tcpRung("ladder.tcp", protobufForm()), ""},
			{framesRung(), "adds rawtcp's frames"},
			{http2Rung(), "exchanges rawtcp's frames for HTTP/2's and HPACK"},
			{grpcBytes(), "exchanges the bare loop for grpc-go"},
			{grpcCodec(), "adds protobuf"},
			{grpcprotobuf.New(), "adds validation"},
		}},
		{"http", []rung{
			{tcpRung("ladder.tcp.json", jsonForm()), ""},
			{httpServerRung(), "exchanges the server for net/http's"},
			{overHTTP, "exchanges the client for net/http's"},
			{httpCodec(), "adds encoding/json"},
			{httpjson.New(), "exchanges the short handler for the stack's, which validates"},
		}},
		{"http2", []rung{
			{overHTTP, ""},
			{httpBytes("ladder.h2.bytes", true), "exchanges HTTP/1.1 for HTTP/2"},
		}},
		{"servehttp", []rung{
			{grpcBytes(), ""},
			{grpcNetHTTP(), "exchanges the server for a short handler of net/http"},
			{grpcServeHTTP(), "exchanges the short handler for ServeHTTP"},
			{grpcservehttp.New(), "adds protobuf and validation"},
		}},
	}
}

// step is two stacks, of which the upper one is nearer to a real stack.
type step struct {
	name         string
	lower, upper rpcbench.Stack
	change       string // of the upper rung
}

const whole = "whole"

// steps are named after their upper rungs. If there are several, the last one is the whole ladder.
func (l ladder) steps() (all []step) {
	for i, upper := range l.rungs[1:] {
		all = append(all, step{upper.Name, l.rungs[i].Stack, upper.Stack, upper.change})
	}
	if len(all) > 1 {
		all = append(all, step{whole, l.rungs[0].Stack, l.rungs[len(l.rungs)-1].Stack, ""})
	}
	return all
}

// bounds are real stacks, the upper ones, and the same stacks with a codec that takes no time, the lower ones.
func bounds() []step {
	return []step{
		{"httpjson.codec", boundJSON("bound.httpjson.codec", true), httpjson.New(), ""},
		{"httpjson.codec.validation", boundJSON("bound.httpjson.codec.validation", false), httpjson.New(), ""},
		{"grpcprotobuf.codec", boundProtobuf("bound.grpcprotobuf.codec", true), grpcprotobuf.New(), ""},
		{"grpcprotobuf.codec.validation", boundProtobuf("bound.grpcprotobuf.codec.validation", false),
			grpcprotobuf.New(), ""},
	}
}

// rungs returns the stacks of ladders and bounds that package stacks does not have, each once.
func rungs() []rpcbench.Stack {
	steps := bounds()
	for _, l := range ladders() {
		steps = append(steps, l.steps()...)
	}
	known := stacks.All()
	for _, s := range steps {
		for _, stack := range []rpcbench.Stack{s.lower, s.upper} {
			if !slices.ContainsFunc(known, func(k rpcbench.Stack) bool { return k.Name == stack.Name }) {
				known = append(known, stack)
			}
		}
	}
	return known[len(stacks.All()):]
}

// BenchmarkLadder says where the time of a call goes. Each rung of a ladder adds something to the rung below, or
// exchanges a part of it. A step's base-ratio is how many times as long a call takes on the upper rung. The row
// step=whole measures the top against the bottom. The steps multiply to it whatever the rungs between are, so it tests
// that pairs are measured without bias.
//
// With -processes each process measures 40 blocks or more, four times as many as BenchmarkVersus asks for: steps are
// small. A slice ends with a garbage collection, and a bare rung allocates so little that its slices last eight times
// as long. So rows with ladder.tcp take longer than -benchtime says.
func BenchmarkLadder(b *testing.B) {
	for _, l := range ladders() {
		for _, s := range l.steps() {
			b.Run("ladder="+l.name+"/step="+s.name, func(b *testing.B) { patiently(b, s.lower, s.upper) })
		}
	}
}

// BenchmarkBound says what the fastest codec could win at most, with validation or without. It compares the real stack,
// which is the base, with the same stack and a codec that replays. With a base-ratio of 0.8 no codec saves more than
// 20 % of the time. It measures as many blocks as BenchmarkLadder.
func BenchmarkBound(b *testing.B) {
	for _, s := range bounds() {
		b.Run("bound="+s.name, func(b *testing.B) { patiently(b, s.upper, s.lower) })
	}
}

// patiently is stacktest.BenchmarkVersus with a -benchtime that is long enough.
func patiently(b *testing.B, base, contestant rpcbench.Stack) {
	b.Helper()
	benchtime, processes := flag.Lookup("test.benchtime"), flag.Lookup("processes").Value.(flag.Getter).Get()
	asked := benchtime.Value.String()
	require.NoError(b, flag.Set(benchtime.Name, patience(asked, processes.(int))))
	defer func() { require.NoError(b, flag.Set(benchtime.Name, asked)) }()
	stacktest.BenchmarkVersus(b, rpcbench.Workload{}, base, contestant)
}

// patience is the -benchtime by which each of the processes, 8 unless given, measures 40 blocks of a base, its copy and
// a contestant, if the given one is shorter. A number of ops is left as it is.
func patience(benchtime string, processes int) string {
	const blocks, arms = 40, 3
	asked, err := time.ParseDuration(benchtime)
	if enough := time.Duration(cmp.Or(processes, 8)*blocks*arms) * versus.Turn; err == nil && asked < enough {
		return enough.String()
	}
	return benchtime
}

// TestRungs: every rung answers different users over two connections, and a reply with one wrong byte fails the call.
func TestRungs(t *testing.T) {
	for _, s := range rungs() {
		t.Run(s.Name, func(t *testing.T) {
			var wrong atomic.Bool
			garble := func(c net.Conn) net.Conn { return &garbled{c, &wrong} }
			f := stacktest.Start(t, s, rpcbench.Config{Conns: 2, WrapClient: garble})
			var call rpcbench.Call
			longer := rpcbench.Sample(7, 0)
			longer.Name += " the Longer"
			for _, u := range []rpcbench.User{rpcbench.Sample(7, 200), longer, rpcbench.Sample(0, 0), rpcbench.Sample(99, 0)} {
				var err error
				call, err = f.Users.PrepareUser(u)
				require.NoError(t, err)
				require.NoError(t, call(t.Context()))
				require.NoError(t, call(t.Context()))
			}
			wrong.Store(true)
			err := call(t.Context())
			require.Error(t, err, "a wrong byte in the reply")
			require.ErrorContains(t, err, "differs from what was asked")
			if strings.HasPrefix(s.Protocol, "ladder.") { // the rung's own client
				require.ErrorContains(t, err, s.Name)
			}
		})
	}
}

// garbled changes a letter of an e-mail that is read while wrong is set.
type garbled struct {
	net.Conn
	wrong *atomic.Bool
}

func (c *garbled) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if i := bytes.Index(p[:n], []byte("@example")); i >= 0 && c.wrong.Load() {
		p[i+1]++
	}
	return n, err
}

// TestRungsSendWhatTheStacksSend: a rung with a stack's protocol sends as many bytes, and those below send the messages
// of 36 and 54 bytes. grpcprotobuf.Tuned has the fixed windows that save grpc-go's pings, as ladder.http2 does.
func TestRungsSendWhatTheStacksSend(t *testing.T) {
	bytesOf := func(s rpcbench.Stack) (sent, received int64) {
		var count relay.Counter
		f := stacktest.Start(t, s, rpcbench.Config{WrapClient: count.Wrap})
		call, err := f.Users.PrepareUser(rpcbench.Sample(3, 0))
		require.NoError(t, err)
		for range 3 { // so that hpack's tables know all header fields, and SETTINGS are acknowledged
			require.NoError(t, call(t.Context()))
		}
		sent, received = count.Sent.Load(), count.Received.Load()
		require.NoError(t, call(t.Context()))
		return count.Sent.Load() - sent, count.Received.Load() - received
	}
	tuned, _ := bytesOf(grpcprotobuf.Tuned())
	httpSent, httpReceived := bytesOf(httpjson.New())
	for _, s := range rungs() {
		sent, received := bytesOf(s)
		switch s.Name {
		case "ladder.tcp":
			require.Equal(t, []int64{36, 54}, []int64{sent, received}, s.Name)
		case "ladder.frames":
			require.Equal(t, []int64{36 + 5, 54 + 5}, []int64{sent, received}, s.Name)
		case "ladder.http2":
			require.Equal(t, tuned, sent, s.Name)
		case "ladder.http.server", "ladder.http.bytes", "ladder.http.codec",
			"bound.httpjson.codec", "bound.httpjson.codec.validation":
			require.Equal(t, []int64{httpSent, httpReceived}, []int64{sent, received}, s.Name)
		}
	}
}

// TestHTTP2RungIsGRPC: it understands grpc-go on either side, for longer than a window of flow control lasts.
func TestHTTP2RungIsGRPC(t *testing.T) {
	for _, pair := range [][2]rpcbench.Stack{{http2Rung(), grpcBytes()}, {grpcBytes(), http2Rung()}} {
		s, err := rpcbench.Cross(pair[0], pair[1])
		require.NoError(t, err)
		f := stacktest.Start(t, s, rpcbench.Config{})
		call, err := f.Users.PrepareUser(rpcbench.Sample(0, 0))
		require.NoError(t, err)
		defer time.AfterFunc(20*time.Second, func() { _ = f.Close() }).Stop()
		for range 1<<16/36 + 100 {
			require.NoError(t, call(t.Context()), "%s: does each side return the other's window?", s.Name)
		}
	}
}

// TestLadders: each begins and ends where its comment says, and its rows are well named.
func TestLadders(t *testing.T) {
	ends := map[string][2]string{
		"grpc": {"ladder.tcp", "grpcprotobuf"}, "http": {"ladder.tcp.json", "httpjson"},
		"http2": {"ladder.http.bytes", "ladder.h2.bytes"}, "servehttp": {"ladder.grpc.bytes", "grpcservehttp"},
	}
	good := regexp.MustCompile(`^[a-z0-9.]+$`)
	for _, l := range ladders() {
		require.Equal(t, ends[l.name], [2]string{l.rungs[0].Name, l.rungs[len(l.rungs)-1].Name}, l.name)
		delete(ends, l.name)
		seen := map[string]bool{}
		for i, r := range l.rungs {
			require.False(t, seen[r.Name], "ladder %s has %s twice", l.name, r.Name)
			seen[r.Name] = true
			require.Regexp(t, map[bool]string{true: `^$`, false: `^(adds|exchanges) \w`}[i == 0], r.change, r.Name)
		}
		for _, s := range append(l.steps(), bounds()...) {
			require.NotEqual(t, s.lower.Name, s.upper.Name, s.name)
			require.Regexp(t, good, s.name)
			require.Regexp(t, good, s.lower.Name)
		}
	}
	require.Empty(t, ends, "ladders that are missing")
}

// TestPatience: the rows of ladders and bounds have 40 blocks per process, however short -benchtime is.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		reason, benchtime string
		processes         int
		want              string
	}{
		{"the default is too short", "1s", 8, "43.2s"},
		{"twice the processes take twice the time", "1s", 16, "1m26.4s"},
		{"a longer time stays", "2m", 8, "2m"},
		{"no number of processes is eight", "1s", 0, "43.2s"},
		{"a number of ops is left as it is", "1x", 8, "1x"},
	} {
		require.Equal(t, c.want, patience(c.benchtime, c.processes), c.reason)
	}
}

// TestBounds: only the bound with validation validates, and samples don't reach the real codec.
func TestBounds(t *testing.T) {
	invalid := rpcbench.Sample(5, 0)
	invalid.Email = "nobody"
	for _, s := range bounds() {
		f := stacktest.Start(t, s.lower, rpcbench.Config{})
		_, err := f.Users.CreateUser(t.Context(), invalid)
		want := rpcbench.Invalid
		if strings.HasSuffix(s.name, ".validation") {
			want = ""
		}
		require.Equal(t, want, rpcbench.CodeOf(err), s.name)
	}
	p := newReplay(jsonForm())
	for i := range 100 {
		u, got := rpcbench.Sample(i, 0), new(rpcbench.User)
		request := p.encode(&u)
		require.True(t, p.decode(request, got), "user %d", i)
		require.Equal(t, u, *got)
		r := new(rpcbench.Response)
		require.True(t, p.decode(p.encode(rpcbench.Answer(got)), r), "user %d", i)
		require.NoError(t, rpcbench.Check(&u, r))
		u.Name += "!"
		require.Nil(t, p.encode(&u), "another user with the same e-mail")
		require.False(t, p.decode(append(slices.Clip(request), ' '), got), "other bytes")
	}
}

// TestChildrenKnowTheRungs: a child process of -processes finds every one of them.
func TestChildrenKnowTheRungs(t *testing.T) {
	spec := versus.Spec{Slice: time.Millisecond, Seed: 1, Blocks: 1}
	for _, s := range rungs() {
		spec.Arms = append(spec.Arms, s.Name)
	}
	often := []string{"GOGC=5"} // a slice ends with a collection
	record, err := versus.Run(context.Background(), spec, versus.Program{Path: os.Args[0], Env: often})
	require.NoError(t, err)
	require.Equal(t, spec.Arms, record.Arms)
}
