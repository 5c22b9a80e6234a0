package workload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

const (
	logEnv = "RPCBENCH_TEST_LOG" // file to which servers write what they see
	ownEnv = "RPCBENCH_TEST_OWN" // set where servers are of a method of one's own
)

// TestMain is also the server of workloads that are apart.
func TestMain(m *testing.M) {
	stacks := slices.Concat(new(witness).stacks(os.Getenv(ownEnv) != ""), allocating(), handling(func(int) {}))
	jobs := map[string]child.Job{child.Serves: child.Serving()}
	switch done, err := child.Serve(os.Stdin, os.Stdout, child.List(stacks), jobs); {
	case err != nil:
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

// Operations that a server sees.
const (
	users  = "create user"
	echo   = "echo"
	stream = "stream"
	call   = "call"
)

// A workload's row says what the server, the wire and the clock see.
type row struct {
	name           string
	flags          *workload.Workload // nil: the workload is listed
	operation      string
	json, protobuf int  // bytes of a message
	callers, conns int  // 0 is 1
	each           bool // a connection for each call
	tls, headers   bool
	unix           bool
	deadline       bool // of each call
	invalid        bool // users break a rule, which makes them shorter
	alike          bool // messages
	drawn          bool // their sizes
	apart          bool // the server is another process
	rate           bool // starts are planned
	procs          int
	leastTime      time.Duration // of an op
}

// at are planned workloads at some rate.
func at(planned []workload.Planned) (all []workload.Workload) {
	for _, p := range planned {
		all = append(all, p.Workload)
	}
	return all
}

func named(all []workload.Workload, name string) (workload.Workload, bool) {
	i := slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == name })
	if i < 0 {
		return workload.Workload{}, false
	}
	return all[i], true
}

// Each workload is what its name says, with JSON over HTTP and with gRPC.
func TestWorkloads(t *testing.T) {
	const small, smallJSON, twoRoundTrips = 36, 66, 2 * 170 * time.Millisecond
	var listed, names []string
	for _, w := range append(workload.All(), workload.Own()...) {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9A-Z-]*[a-zA-Z]$`), w.Name, "benchstat reads -50 as a GOMAXPROCS")
		require.NotEmpty(t, w.Title)
		listed = append(listed, w.Name)
	}
	for _, w := range workload.Rows(true) {
		if !slices.Contains(listed, w.Name) {
			listed = append(listed, w.Name)
		}
	}
	for _, row := range []row{
		{name: "small", operation: users, json: smallJSON, protobuf: small, procs: 1},
		{name: "small-load", operation: users, json: smallJSON, protobuf: small, apart: true, callers: 100, rate: true},
		{name: "structured-load-tls", operation: echo, json: 2018, protobuf: 1007,
			apart: true, callers: 100, rate: true, tls: true},
		{name: "small-saturated", operation: users, json: smallJSON, protobuf: small, apart: true, callers: 100},
		{name: "structured-saturated-tls", operation: echo, json: 2018, protobuf: 1007, apart: true, callers: 30, tls: true},
		{name: "small-apart", operation: users, json: smallJSON, protobuf: small, apart: true},
		{name: "small-1000-per-second", operation: users, json: smallJSON, protobuf: small,
			apart: true, callers: 100, rate: true},
		{name: "small-load-one-core", operation: users, json: smallJSON, protobuf: small,
			apart: true, callers: 100, rate: true, procs: 1},
		{name: "small-load-wait", operation: users, json: smallJSON, protobuf: small,
			apart: true, callers: 100, rate: true, leastTime: time.Millisecond},
		{name: "small-saturated-wait", operation: users, json: smallJSON, protobuf: small,
			apart: true, callers: 100, leastTime: time.Millisecond},
		{name: "drawn-load", operation: echo, drawn: true, apart: true, callers: 100, rate: true},
		{name: "bytes-10kB", operation: users, json: 13_414, protobuf: 10_039, procs: 1},
		{name: "structured-2kB", operation: echo, json: 2018, protobuf: 1007, procs: 1},
		{name: "cold-tls", operation: users, json: smallJSON, protobuf: small, each: true, tls: true, procs: 1},
		{name: "mixed", operation: echo, json: 418, protobuf: 133, procs: 1},
		{name: "structured-18kB", operation: echo, json: 18_503, protobuf: 9942, procs: 1},
		{name: "bytes-800B", operation: users, json: 1146, protobuf: 839, procs: 1},
		{name: "bytes-1kB", operation: users, json: 1414, protobuf: 1039, procs: 1},
		{name: "bytes-100kB", operation: users, json: 133_414, protobuf: 100_040, procs: 1},
		{name: "stream", operation: stream, json: smallJSON, protobuf: small, procs: 1},
		{name: "cold", operation: users, json: smallJSON, protobuf: small, each: true, procs: 1},
		{name: "cold-4g", operation: users, json: smallJSON, protobuf: small, each: true, leastTime: twoRoundTrips},
		{name: "headers", operation: users, json: smallJSON, protobuf: small, headers: true, procs: 1},

		{name: "call", operation: call, json: smallJSON, protobuf: small, procs: 1},
		{name: "call-load", operation: call, json: smallJSON, protobuf: small, apart: true, callers: 100, rate: true},
		{name: "call-load-tls", operation: call, json: smallJSON, protobuf: small,
			apart: true, callers: 100, rate: true, tls: true},
		{name: "call-saturated", operation: call, json: smallJSON, protobuf: small, apart: true, callers: 100},
		{name: "call-saturated-tls", operation: call, json: smallJSON, protobuf: small, apart: true, callers: 30, tls: true},
		{name: "call-apart", operation: call, json: smallJSON, protobuf: small, apart: true},
		{name: "call-tls", operation: call, json: smallJSON, protobuf: small, tls: true, procs: 1},
		{name: "call-cold-tls", operation: call, json: smallJSON, protobuf: small, each: true, tls: true, procs: 1},

		{flags: &workload.Workload{NewConn: true, Headers: true}, name: "new connections with headers", operation: users,
			json: smallJSON, protobuf: small, each: true, headers: true},
		{flags: &workload.Workload{NewConn: true, Payload: "1kB"}, name: "new connections with a payload", operation: users,
			json: 1414, protobuf: 1039, each: true},
		{flags: &workload.Workload{Stream: true, Payload: "1kB"}, name: "a stream with a payload", operation: stream,
			json: 1414, protobuf: 1039},
		{flags: &workload.Workload{Apart: true, TLS: true}, name: "two processes over TLS", operation: users,
			json: smallJSON, protobuf: small, apart: true, tls: true},
		{flags: &workload.Workload{Callers: 7}, name: "callers of one connection, or of one each", operation: call,
			json: smallJSON, protobuf: small, callers: 7},
		{flags: &workload.Workload{Callers: 7, Conns: 2}, name: "an odd number of callers of two", operation: users,
			json: smallJSON, protobuf: small, callers: 7, conns: 2},

		{name: "small-100-callers", operation: users, json: smallJSON, protobuf: small, callers: 100},
		{name: "small-50x20", operation: users, json: smallJSON, protobuf: small, callers: 50, conns: 20},
		{name: "mixed-50x20", operation: echo, json: 418, protobuf: 133, callers: 50, conns: 20},
		{name: "invalid", operation: users, json: smallJSON, protobuf: small, invalid: true},
		{name: "deadline", operation: users, json: smallJSON, protobuf: small, deadline: true},
		{name: "tls", operation: users, json: smallJSON, protobuf: small, tls: true},
		{name: "small-8x8", operation: users, json: smallJSON, protobuf: small, callers: 8, conns: 8},
		{name: "small-64x20", operation: users, json: smallJSON, protobuf: small, callers: 64, conns: 20},
		{name: "empty", operation: echo, json: 2, alike: true},
		{name: "empty-50x20", operation: echo, json: 2, callers: 50, conns: 20, alike: true},
		{name: "bytes-100B", operation: users, json: 214, protobuf: 137},
		{name: "link-4g", operation: users, json: smallJSON, protobuf: small, leastTime: twoRoundTrips / 2},
	} {
		if row.flags == nil {
			names = append(names, row.name)
		}
		for i, stack := range new(witness).stacks(row.operation == call) {
			t.Run(row.name+"/"+stack.Name, func(t *testing.T) {
				if row.leastTime > time.Millisecond && testing.Short() {
					t.Skip("seconds")
				}
				row.check(t, i)
			})
		}
	}
	require.ElementsMatch(t, listed, names, "every workload has a row")
}

type set[T comparable] map[T]bool

// check opens the workload for a stack of a witness, and compares what its calls do with the row. net/http gives
// connections up on a machine whose threads don't run for 50 ms. Then all is done again.
func (c row) check(t *testing.T, stack int) {
	for range 4 {
		by := new(witness)
		if s := by.stacks(c.operation == call)[stack]; c.checked(t, by, s, s.Name == "httpjson") {
			return
		}
	}
	by := new(witness)
	c.checked(t, by, by.stacks(c.operation == call)[stack], false)
}

// checked returns false, if it may, where the stack opened more connections than the machine's doing allows.
func (c row) checked(t *testing.T, by *witness, stack rpcbench.Stack, mayFail bool) bool {
	file := filepath.Join(t.TempDir(), "log")
	t.Setenv(logEnv, file)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each child takes a second to end under the race detector
	if c.operation == call {
		t.Setenv(ownEnv, "1")
	}
	w := c.flags
	if w == nil {
		listed, ok := named(slices.Concat(at(workload.All()), at(workload.Own()), workload.Rows(true)), c.name)
		require.True(t, ok)
		w = &listed
	}
	require.Equal(t, c.procs, w.Procs, "GOMAXPROCS that the question needs")
	require.Equal(t, c.rate, w.Rate != 0, "a rate")
	o, err := w.Open(t.Context(), stack, workload.Setup{})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	isJSON, callers, conns, calls := stack.Name == "httpjson", max(1, c.callers), max(1, c.conns), corpus.Round+1
	if c.conns == 0 && isJSON {
		conns = callers // as the libraries are wired
	}
	size, atOnce, different := c.protobuf, callers, corpus.Round
	if isJSON {
		size, atOnce = c.json, min(callers, conns) // one request at a time on a connection
	}
	switch {
	case callers > 1: // who share the calls: one that is slow may make a single one
		calls, different = max(2*callers, 40), max(4, atOnce+1)
	case c.leastTime > 0:
		calls, different = 2, 2
	}
	switch { // callers begin with a fourth of them, and some go on
	case c.alike:
		different = 1
	case callers > 1 && c.operation == users:
		different = min(different, 100/4+1) // of which corpus has so many
	case callers > 1 && c.operation == call:
		different = min(different, corpus.Round/4+1) // samples
	}
	require.NoError(t, os.WriteFile(file+gathers, []byte(fmt.Sprint(atOnce)), 0o600))
	for i := 0; i < 1000 && (c.operation != stream || isJSON) && len(answers(t, file)) < len(read(t, file)); i++ {
		<-time.After(10 * time.Millisecond) // a server may still be writing what it answered before
	}
	connecting, sent, received := len(read(t, file)), by.wire.Sent.Load(), by.wire.Received.Load()
	answered, deadlines := len(answers(t, file)), by.asked.len()
	began := time.Now()
	require.NoError(t, o.Loop.Start(0))
	require.NoError(t, o.Loop.Run(t.Context(), int64(calls)))
	linked := time.Duration(calls/callers) * c.leastTime
	require.GreaterOrEqual(t, time.Since(began), linked, "time of the calls over the link, or whose handlers wait")
	sent, received = by.wire.Sent.Load()-sent, by.wire.Received.Load()-received
	if mayFail && o.Beyond() > 1 {
		return false
	}
	got := read(t, file)[connecting:]

	require.Equal(t, calls, len(got), "messages that the server got")
	paths := map[string]string{users: "/CreateUser", echo: "/Echo", stream: "/CreateUsers", call: "/Create"}
	if isJSON {
		paths = map[string]string{users: "/users", echo: "/echo", stream: "/users", call: "/Create"}
	}
	most, seenConns, requests, bodies, traces := 0, set[string]{}, set[int64]{}, set[string]{}, set[string]{}
	for i, m := range got {
		require.Equal(t, paths[c.operation], m.Path[strings.LastIndex(m.Path, "/"):], "what the server is asked")
		switch {
		case c.invalid:
			require.Less(t, m.Size, size, "bytes of a message, whose users are valid")
		case c.drawn && isJSON:
			require.Greater(t, m.Size, 2, "bytes of a message")
		case c.drawn:
			sizes, _ := workload.DrawnSizes()
			require.True(t, slices.ContainsFunc(sizes, func(size int) bool {
				return size <= m.Size && m.Size < size+25 // the last of a list is whole
			}), "%d bytes of a message are none that were drawn", m.Size)
		default:
			require.InDelta(t, size, m.Size, float64(size)/50, "bytes of a message")
		}
		require.Equal(t, c.deadline && !isJSON, m.Timeout != "", "a deadline, which gRPC sends, of %q", m.Timeout)
		require.Equal(t, c.tls, m.TLS, "TLS")
		require.False(t, m.Resumed, "a handshake that resumes a session, in place of a full one")
		require.Equal(t, c.unix, m.Unix, "a Unix socket")
		require.Equal(t, c.headers, len(m.Authorization) > 700, "a long token, of %q", m.Authorization)
		require.Equal(t, c.headers, strings.HasPrefix(m.UserAgent, "orders-api/"), "a user agent, of %q", m.UserAgent)
		isNew := m.Traceparent != "" && !traces[m.Traceparent]
		require.Equal(t, c.headers, isNew, "a new traceparent, of %q", m.Traceparent)
		require.Equal(t, c.apart, m.PID != os.Getpid(), "the server is another process")
		require.Equal(t, got[0].PID, m.PID, "one process")
		next := callers > 1 || c.alike || i == 0 || m.Sum != got[i-1].Sum
		require.True(t, next, "call %d sends the message of the call before", i)
		most = max(most, m.AtOnce)
		seenConns[m.Conn], requests[m.Request], bodies[m.Sum], traces[m.Traceparent] = true, true, true, true
	}
	if c.operation != stream || isJSON {
		c.answered(t, answers(t, file)[answered:], calls, w.Wait)
		c.bounded(t, &by.asked, deadlines, calls, callers)
	}
	if !isJSON && !c.each && c.operation != call && callers <= 100/goesRound { // there are a hundred users
		oneConnection(t, got, callers)
	}
	require.Equal(t, atOnce, most, "callers at once in the server")
	require.GreaterOrEqual(t, len(bodies), different, "different messages in %d calls", calls)
	if c.operation == stream && !isJSON {
		require.Equal(t, 1, len(requests), "streams")
	} else {
		require.Equal(t, calls, len(requests), "requests")
	}
	if c.each {
		require.Equal(t, calls, len(seenConns), "connections, one for each call")
	} else { // net/http may give a few up on a busy machine
		inUse := min(callers, conns)
		require.GreaterOrEqual(t, len(seenConns), inUse, "connections of all calls")
		require.LessOrEqual(t, len(seenConns), inUse+1+inUse/10, "connections of all calls")
		require.Contains(t, []int64{int64(conns), int64(conns) + 1}, o.Fixture.Accepted(), "connections of the client")
	}
	beyond := o.Beyond()
	require.Contains(t, []int64{0, 1}, beyond, "connections beyond those that the workload declares")
	for side, n := range map[string]int64{"sent": sent, "received": received} {
		least, around := size, 400+size/100 // bytes that surround a message
		switch {
		case c.tls:
			around = 4000
		case c.headers && (isJSON || c.each) && side == "sent":
			around = 1400
		}
		perCall := int(n) / calls
		if c.drawn {
			require.Greater(t, perCall, 2000, "bytes %s, per call", side)
			continue
		}
		if c.invalid {
			least = 0
		}
		require.GreaterOrEqual(t, perCall, least, "bytes %s, per call", side)
		require.LessOrEqual(t, perCall, size+around, "bytes %s, per call", side)
	}
	return true
}

// What a call sends is known of streams and of large messages.
func TestData(t *testing.T) {
	u := rpcbench.SampleUser(10, 0)
	user := len(u.Email) + len(u.Name) + len(u.Password)
	for _, c := range []struct {
		why  string
		w    workload.Workload
		want int
	}{
		{"a small user", workload.Workload{}, 0},
		{"less than 100 kB", workload.Workload{Payload: "99kB"}, 0},
		{"100 kB", workload.Workload{Payload: "100kB"}, 100_000},
		{"a small user on a stream", workload.Workload{Stream: true}, user},
		{"100 kB on a stream", workload.Workload{Stream: true, Payload: "100kB"}, user + 100_000},
		{"drawn sizes", workload.Workload{Payload: workload.Drawn}, 0},
	} {
		require.Equal(t, c.want, c.w.Data(), c.why)
	}
}

// Connections are as the stack's library is wired, unless the workload says how many.
func TestConnections(t *testing.T) {
	one, shared := rpcbench.Traits{}, rpcbench.Traits{Multiplexed: true}
	turns := rpcbench.Traits{Multiplexed: true, Turns: true}
	for reason, c := range map[string]struct {
		workload.Workload
		traits rpcbench.Traits
		want   int
	}{
		"one caller":                               {workload.Workload{}, one, 1},
		"a pool":                                   {workload.Workload{Callers: 100}, one, 100},
		"a connection that all share":              {workload.Workload{Callers: 100}, shared, 1},
		"connections whose callers take turns":     {workload.Workload{Callers: 100}, turns, 100},
		"planned starts of 100 callers":            {workload.Workload{Rate: 10}, one, 100},
		"fewer than a pool has":                    {workload.Workload{Callers: 100, Conns: 20}, one, 20},
		"more than sharing takes":                  {workload.Workload{Callers: 100, Conns: 20}, shared, 20},
		"new ones for each call, beside the first": {workload.Workload{Callers: 100, NewConn: true}, one, 1},
	} {
		require.Equal(t, c.want, c.Connections(c.traits), reason)
	}
}

// More callers than a connection carries are refused, where the library says how many those are. Who asks for so few
// connections measures how the others wait. A client may then open more, which are not those of a stack that dials
// anew.
func TestTooManyCallersForAConnection(t *testing.T) {
	for _, c := range []struct {
		stack          rpcbench.Stack
		callers, conns int
		want           string
		opens          int64
	}{
		{connectrpc.H2C(), 251, 0, "connectrpc.h2c: net/http's HTTP/2 server takes 250 calls on a connection, " +
			"and here are 251 callers on each: give 2 connections", 0},
		{httpjson.H2C(), 501, 0, "give 3 connections", 0},
		{httpjson.H2C(), 500, 2, "", 2},
		{httpjson.New(), 500, 0, "", 500},
		{grpcprotobuf.New(), 500, 1, "", 1},
		{grpcservehttp.New(), 500, 1, "", 1},
		{httpjson.H2C(), 600, 1, "", 6},
	} {
		w := workload.Workload{Callers: c.callers, Conns: c.conns, Wait: 20 * time.Millisecond}
		o, err := w.Open(t.Context(), c.stack, workload.Setup{})
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, o.Loop.Start(1), "each of %d callers makes a call", c.callers)
		require.NoError(t, o.Loop.Finish())
		require.LessOrEqual(t, o.Fixture.Accepted(), c.opens, "%s, %d callers", c.stack.Name, c.callers)
		require.Zero(t, o.Beyond(), "%s, %d callers", c.stack.Name, c.callers)
		require.NoError(t, o.Close())
	}
}

// What a server says of the calls that it takes on a connection at a time is read off the wire.
func TestReadStreams(t *testing.T) {
	served := grpcprotobuf.New()
	served.Server = grpcservehttp.New().Server
	for _, c := range []struct {
		reason string
		stack  rpcbench.Stack
		want   int
	}{
		{"net/http's", httpjson.H2C(), 250},
		{"net/http's, which serves gRPC", served, 250},
		{"grpc-go's sets none", grpcprotobuf.New(), 0},
	} {
		most, err := workload.ReadStreams(t.Context(), c.stack, "")
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, most, c.reason)
	}
	f, err := child.ServerOnly(t.Context(), httpjson.H2C(), rpcbench.Config{})
	require.NoError(t, err)
	defer f.Close()
	most, err := workload.ReadStreams(t.Context(), httpjson.H2C(), f.Addr)
	require.NoError(t, err)
	require.Equal(t, 250, most, "of a server elsewhere")
}

// TestStreamLimit: of frames of a server, cut anywhere.
func TestStreamLimit(t *testing.T) {
	const settings, ack, ping = "\x00\x00\x06\x04\x00\x00\x00\x00\x00", "\x00\x00\x00\x04\x01\x00\x00\x00\x00",
		"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
	of := func(n byte) string { return settings + "\x00\x03\x00\x00\x00" + string(rune(n)) }
	for reason, c := range map[string]struct {
		frames string
		want   int
	}{
		"its first frame":             {of(100), 100},
		"behind an acknowledgement":   {ack + of(37), 37},
		"the last one counts":         {of(100) + ping + of(10), 10},
		"another setting":             {settings + "\x00\x04\x00\x00\x00\x0a", 0},
		"cut off amid a setting":      {of(100)[:12], 0},
		"cut off amid a header":       {of(100)[:5], 0},
		"a frame longer than is sent": {"\xff\xff\xff\x04\x00\x00\x00\x00\x00", 0},
		"nothing":                     {"", 0},
	} {
		require.Equal(t, c.want, workload.StreamLimit([]byte(c.frames)), reason)
	}
}

// Callers take turns on a connection that carries a call at a time, and share a link whatever their connections.
func TestTurns(t *testing.T) {
	const ms = time.Millisecond
	pooled, shared := rpcbench.Traits{}, rpcbench.Traits{Multiplexed: true}
	turns := rpcbench.Traits{Multiplexed: true, Turns: true}
	nethttp := rpcbench.Traits{Multiplexed: true, HTTP: "2", ServerLibraries: []string{"net/http"}}
	waiting := func(callers, conns int) workload.Workload {
		return workload.Workload{Callers: callers, Conns: conns, Wait: 100 * ms}
	}
	busy := workload.Workload{Callers: 20, Payload: "5kB", Link: "10ms/800kbps"}
	for reason, c := range map[string]struct {
		workload.Workload
		stacks []rpcbench.Traits
		waits  time.Duration
	}{
		"a connection for each":         {waiting(30, 0), []rpcbench.Traits{pooled}, 100 * ms},
		"one that all share":            {waiting(30, 1), []rpcbench.Traits{shared}, 100 * ms},
		"one, a call at a time":         {waiting(30, 1), []rpcbench.Traits{pooled}, 3000 * ms},
		"calls on it wait":              {waiting(30, 1), []rpcbench.Traits{turns}, 3000 * ms},
		"the slowest of two":            {waiting(30, 4), []rpcbench.Traits{shared, pooled}, 800 * ms},
		"250 at a time":                 {waiting(1000, 1), []rpcbench.Traits{nethttp}, 400 * ms},
		"a link that 20 messages share": {busy, []rpcbench.Traits{pooled}, 1000 * ms},
		"the same on one connection":    {busy, []rpcbench.Traits{shared}, 1000 * ms},
	} {
		likely := c.Likely(c.stacks...)
		require.GreaterOrEqual(t, likely, c.waits, reason)
		require.Less(t, likely, c.waits+c.waits/2, reason)
	}
	full := workload.Planned{Workload: workload.Workload{Rate: 1000, Payload: "5kB", Link: "10ms/8Mbps"}}
	require.ErrorContains(t, full.Check(), "Link 10ms/8Mbps carries 160 such calls a second: give a quicker one")
}

// TestRows: every listed workload of one process, without a rate, has a row of all, and no two rows measure the same.
// Few are the rows of those who ask for no more.
func TestRows(t *testing.T) {
	full, few := workload.Rows(true), workload.Rows(false)
	require.Equal(t, full[:5], few)
	asked := func(w workload.Workload) workload.Workload {
		w.Name, w.Title, w.Procs = "", "", 0
		return w
	}
	for _, w := range at(workload.All()) {
		row, ok := named(full, w.Name)
		if w.Rate != 0 || w.Apart {
			require.False(t, ok, w.Name)
			continue
		}
		require.True(t, ok, "a workload of rpcbench list has no row: %s", w.Name)
		require.Equal(t, asked(w), asked(row), "the row of %s measures another workload", w.Name)
	}
	for i, w := range full {
		require.Zero(t, w.Procs, "%s: -cpu sets the GOMAXPROCS of a row", w.Name)
		for _, earlier := range full[:i] {
			require.NotEqual(t, asked(earlier), asked(w), "%s and %s measure the same", earlier.Name, w.Name)
		}
	}
}

func TestFind(t *testing.T) {
	_, err := workload.In(workload.Own(), "cal")
	const there = "call-load, call-saturated, call, call-load-tls, call-saturated-tls, call-tls, call-cold-tls, call-apart"
	require.EqualError(t, err, `unknown workload "cal": there are `+there)
}

func TestStacksThatCannotEcho(t *testing.T) {
	w, err := workload.Find("mixed")
	require.NoError(t, err)
	s := testkit.WithClient(httpjson.New(), func(c rpcbench.Users) rpcbench.Client { return struct{ rpcbench.Users }{c} })
	_, err = w.Open(t.Context(), s, workload.Setup{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// A method of one's own has its samples, and sends nothing else.
func TestMethodsHaveTheirSamplesAlone(t *testing.T) {
	for want, w := range map[string]workload.Workload{
		"a payload in test.v1.Users/Create, whose messages are samples": {Payload: "10B"},
		"an invalid user": {Invalid: true},
		"echo":            {Payload: "flex.2kB"},
	} {
		for _, stack := range unwrapped(true) {
			_, err := w.Open(t.Context(), stack, workload.Setup{})
			require.ErrorContains(t, err, stack.Name+": "+want)
			require.ErrorIs(t, err, errors.ErrUnsupported)
		}
	}
}

// What no stack can do is refused in one line, before anything starts.
func TestWorkloadsThatCannotBe(t *testing.T) {
	const stream = "Stream has one caller of valid users"
	for reason, c := range map[string]struct {
		workload.Workload
		want string
	}{
		"fewer callers than none":          {workload.Workload{Callers: -1}, "Callers lies between 0 and 1000: -1 does not"},
		"a payload below zero":             {workload.Workload{Payload: "-1B"}, `Payload: "-1B" is no size`},
		"no payload, spelled":              {workload.Workload{Payload: "0B"}, `Payload: "0B" is no size`},
		"a payload that no user may carry": {workload.Workload{Payload: "2MB"}, "Payload: 2MB is too much"},
		"connections below zero":           {workload.Workload{Conns: -2}, "Conns lies between"},
		"cores below zero":                 {workload.Workload{Procs: -2}, "Procs lies between"},
		"a message that is none": {workload.Workload{Payload: "flexible"},
			`Payload: "flexible" is no size: write a whole number, such as 100B, 1kB or 1MB, or name a structured message: flex.empty, `},
		"a message that breaks a rule": {workload.Workload{Payload: "flex.2kB", Invalid: true},
			"structured Payload is no user"},
		"a stream on new connections":       {workload.Workload{Stream: true, NewConn: true}, stream},
		"a stream of several callers":       {workload.Workload{Stream: true, Callers: 2}, stream},
		"a stream of users who are refused": {workload.Workload{Stream: true, Invalid: true}, stream},
		"a stream of echoes":                {workload.Workload{Stream: true, Payload: "flex.2kB"}, stream},
		"a stream at a rate":                {workload.Workload{Stream: true, Rate: 10}, stream},
		"new connections, and so many": {workload.Workload{NewConn: true, Conns: 3},
			"NewConn leaves no choice of Conns"},
		"a wait below zero":                  {workload.Workload{Wait: -1}, "Wait lies between 0 and 1s: -1ns does not"},
		"a wait that no start would outlast": {workload.Workload{Wait: time.Minute}, "Wait lies between 0 and 1s"},
		"a rate below zero":                  {workload.Workload{Rate: -1}, "Rate lies between 1 and 1000000 calls"},
		"a rate that is no number":           {workload.Workload{Rate: math.NaN()}, "Rate lies between 1 and 1000000 calls"},
		"a link that does not exist":         {workload.Workload{Link: "5g"}, `"5g" is no link`},
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := c.Open(t.Context(), rpcbench.Stack{Name: "none"}, workload.Setup{})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "none: ")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for _, w := range workload.All() {
		require.NoError(t, w.Check(), w.Name)
	}
}

// A build from before Wait, and before Payload had words, reads small workloads, and refuses what it would not do.
func TestOlderBuildsReadWhatTheyCanDo(t *testing.T) {
	type older struct {
		Name, Title                        string
		Payload                            int
		Message                            string
		Invalid, Deadline, Headers, Stream bool
		Callers                            int
		Rate                               float64
		Conns                              int
		NewConn, TLS, Unix                 bool
		Link                               string
		Procs                              int
		Apart                              bool
	}
	for why, c := range map[string]struct {
		workload.Workload
		refused string
	}{
		"a small call":         {workload.Workload{Name: "small", Callers: 3, Procs: 1}, ""},
		"bytes":                {workload.Workload{Payload: "1kB"}, "json: cannot unmarshal string into "},
		"a structured message": {workload.Workload{Payload: "flex.2kB"}, "json: cannot unmarshal string into "},
		"a wait":               {workload.Workload{Wait: time.Millisecond}, `json: unknown field "Wait"`},
	} {
		sent, err := json.Marshal(c.Workload)
		require.NoError(t, err)
		given := json.NewDecoder(bytes.NewReader(sent))
		given.DisallowUnknownFields() // as a child does
		var got older
		if err = given.Decode(&got); c.refused != "" {
			require.ErrorContains(t, err, c.refused, why)
			continue
		}
		require.NoError(t, err, why)
		require.Equal(t, older{Name: "small", Callers: 3, Procs: 1}, got, why)
	}
}

// TestOpenOverAUnixSocket: calls that keep their connection, that open one each, and several at a time.
func TestOpenOverAUnixSocket(t *testing.T) {
	for _, w := range []workload.Workload{{Unix: true}, {Unix: true, NewConn: true, TLS: true}, {Unix: true, Callers: 3}} {
		var conns atomic.Int64
		counted := rpcbench.Config{WrapClient: func(c net.Conn) net.Conn {
			if _, ok := c.(*net.UnixConn); ok {
				conns.Add(1)
			}
			return c
		}}
		o, err := w.Open(t.Context(), rawtcp.New(), workload.Setup{Config: counted})
		require.NoError(t, err)
		require.NoError(t, o.Loop.Start(0))
		require.NoError(t, o.Loop.Run(t.Context(), 12))
		require.NoError(t, o.Close())
		require.Equal(t, conns.Load(), o.Fixture.Accepted(), "all are of the socket")
	}
}

// TestCallsThatRemember: a Call that answers from memory after some calls, or each second time, is an error, in users,
// echoes and methods of one's own, by the server's count. The true ones are none.
func TestCallsThatRemember(t *testing.T) {
	after := func(n int64) bool { return n > 110 }
	second := func(n int64) bool { return n%2 == 0 }
	for _, w := range []workload.Workload{{Name: "a caller"}, {Name: "callers", Callers: 4},
		{Name: "a rate", Rate: 1000, Callers: 4}, {Name: "apart", Apart: true}, {Name: "TLS", TLS: true},
		{Name: "new connections", NewConn: true}, {Name: "echoes", Payload: "flex.2kB"}, {Name: "bytes", Payload: "1kB"},
		{Name: "a link", Link: "1ms/10Gbps", Callers: 2}, {Name: "a socket", Unix: true, Apart: true},
		{Name: "invalid", Invalid: true}, {Name: "a stream", Stream: true}} {
		for _, own := range []bool{false, true} {
			for i, stack := range new(witness).stacks(own) {
				if own && (w.Payload != "" || w.Invalid || w.Stream) {
					continue
				}
				for why, remembers := range map[string]func(int64) bool{"calls": nil, "remembers": after,
					"calls each second time": second} {
					t.Run(fmt.Sprintf("%s/own=%v/%s/%s", w.Name, own, stack.Name, why), func(t *testing.T) {
						t.Setenv(logEnv, filepath.Join(t.TempDir(), "log"))
						t.Setenv(ownEnv, map[bool]string{true: "1"}[own])
						if w.Invalid && remembers != nil {
							t.Skip("a refusal that is left out is a wrong reply")
						}
						of := func() rpcbench.Stack {
							if remembers == nil {
								return unwrapped(own)[i]
							}
							return remembering(unwrapped(own)[i], remembers)
						}
						o, err := w.Open(t.Context(), of(), workload.Setup{})
						require.NoError(t, err)
						require.NoError(t, o.Start(o.Warm))
						require.NoError(t, o.Loop.Run(t.Context(), 250))
						said(t, o.Close(), remembers != nil)
						_, err = w.CountCalls(t.Context(), of(), 250)
						said(t, err, remembers != nil)
					})
				}
			}
		}
	}
}

// said compares an error with whether calls were left out.
func said(t *testing.T, err error, leftOut bool) {
	t.Helper()
	if leftOut {
		require.ErrorContains(t, err, "its Call does not call each time")
	} else {
		require.NoError(t, err)
	}
}

// unwrapped are the stacks of a witness without it.
func unwrapped(own bool) []rpcbench.Stack {
	if !own {
		return []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()}
	}
	return []rpcbench.Stack{httpjson.Of(method(func(q *rpcbench.User) string { return q.Email },
		func(a *rpcbench.Response) string { return a.User.Email })), grpcprotobuf.Of(method((*userv1.User).GetEmail,
		func(a *userv1.CreateUserResponse) string { return a.User.GetEmail() }))}
}

// remembering is a stack whose calls, also those on streams, are none where left is true of their number, from 1 on.
func remembering(s rpcbench.Stack, left func(int64) bool) rpcbench.Stack {
	dial := s.Dial
	var made atomic.Int64
	remember := func(call rpcbench.Call) rpcbench.Call {
		return func(ctx context.Context) error {
			if left(made.Add(1)) {
				return nil
			}
			return call(ctx)
		}
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		if err != nil {
			return nil, err
		}
		streams, ok := c.(rpcbench.Streamer)
		if c = around(c, remember); ok {
			c = struct {
				rpcbench.Users
				rpcbench.Echoer
				rpcbench.Streamer
			}{c.(rpcbench.Users), c.(rpcbench.Echoer), wrappedStreams{streams, remember}}
		}
		return c, nil
	}
	return s
}

// wrappedStreams has something around each call on a stream.
type wrappedStreams struct {
	rpcbench.Streamer
	wrap func(rpcbench.Call) rpcbench.Call
}

func (w wrappedStreams) OpenStream(ctx context.Context) (rpcbench.Stream, error) {
	s, err := w.Streamer.OpenStream(ctx)
	return wrappedStream{s, w.wrap}, err
}

type wrappedStream struct {
	rpcbench.Stream
	wrap func(rpcbench.Call) rpcbench.Call
}

func (w wrappedStream) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	call, err := w.Stream.Prepare(u)
	return w.wrap(call), err
}

// TestOneLink: callers share an emulated link, each way, whatever their connections. Less time than the link takes for
// the bytes is seen on no machine.
func TestOneLink(t *testing.T) {
	const callers, size, rate = 20, 5000, 8e6 // bit/s
	w := workload.Workload{Callers: callers, Payload: "5kB", Link: "1ms/8Mbps"}
	for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()} {
		o, err := w.Open(t.Context(), stack, workload.Setup{})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, o.Loop.Start(1))
		require.NoError(t, o.Loop.Finish())
		require.GreaterOrEqual(t, time.Since(began).Seconds(), callers*size*8/rate, stack.Name)
		require.NoError(t, o.Close())
	}
}

// capped starts a proxy in front of a server of httpjson.h2c. A connection of the proxy carries ten calls at a time.
func capped(t *testing.T, wait time.Duration) (addr string) {
	t.Helper()
	f, err := child.ServerOnly(t.Context(), httpjson.H2C(), rpcbench.Config{Wait: wait})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	onward := &http.Transport{Protocols: &protocols}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: f.Addr})
	proxy.Transport = onward
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: proxy, Protocols: &protocols, ReadHeaderTimeout: time.Minute,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		onward.CloseIdleConnections()
	})
	return ln.Addr().String()
}

// A proxy's cap of calls on a connection is read. Connections that a client opens for it are not those of a stack that
// dials anew.
func TestCapOfAProxy(t *testing.T) {
	addr := capped(t, 20*time.Millisecond)
	most, err := workload.ReadStreams(t.Context(), httpjson.H2C(), addr)
	require.NoError(t, err)
	require.Equal(t, 10, most)
	o, err := workload.Workload{Callers: 30}.Open(t.Context(), httpjson.H2C(),
		workload.Setup{Config: rpcbench.Config{Remote: addr}})
	require.NoError(t, err)
	require.NoError(t, o.Loop.Start(4))
	require.NoError(t, o.Loop.Finish())
	require.Greater(t, o.Fixture.Accepted(), int64(1))
	require.Zero(t, o.Beyond())
	require.NoError(t, o.Close())
}

// Each field of a workload reaches another process, by itself and beside all others.
func TestFieldsCrossProcesses(t *testing.T) {
	var all workload.Workload
	whole := reflect.ValueOf(&all).Elem()
	crosses := func(w workload.Workload, why string) {
		data, err := json.Marshal(w)
		require.NoError(t, err)
		var there workload.Workload
		require.NoError(t, json.Unmarshal(data, &there))
		require.Equal(t, w, there, "%s: %s", why, data)
	}
	for i := range whole.NumField() {
		var alone workload.Workload
		for _, f := range []reflect.Value{reflect.ValueOf(&alone).Elem().Field(i), whole.Field(i)} {
			switch f.Kind() {
			case reflect.Bool:
				f.SetBool(true)
			case reflect.String:
				f.SetString(fmt.Sprint("value ", i))
			case reflect.Float64:
				f.SetFloat(1.5 + float64(i))
			default:
				f.SetInt(int64(3 + i))
			}
		}
		crosses(alone, whole.Type().Field(i).Name)
	}
	crosses(all, "all fields")
}
