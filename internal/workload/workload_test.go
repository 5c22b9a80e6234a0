package workload_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

const logEnv = "RPCBENCH_TEST_LOG" // file to which servers write what they see

// TestMain is also the server of two-processes.
func TestMain(m *testing.M) {
	if done, err := versus.ServeChild(os.Stdin, os.Stdout, new(witness).stacks()); done {
		if err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// Operations that a server sees.
const (
	users  = "create user"
	echo   = "echo"
	stream = "stream"
)

// A workload's row says what the server, the wire and the clock see.
type row struct {
	name           string
	operation      string
	json, protobuf int  // bytes of a message
	callers, conns int  // 0 is 1
	each           bool // a connection for each call
	tls, headers   bool
	apart          bool // the server is another process
	procs          int
	leastTime      time.Duration // of an op
}

// Each workload is what its name says, with JSON over HTTP and with gRPC.
func TestWorkloads(t *testing.T) {
	const small, smallJSON, twoRoundTrips = 36, 66, 2 * 170 * time.Millisecond
	var listed, names []string
	for _, w := range workload.All() {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9A-Z-]*[a-zA-Z]$`), w.Name, "benchstat reads -50 as a GOMAXPROCS")
		require.NotEmpty(t, w.Title)
		listed = append(listed, w.Name)
	}
	for _, row := range []row{
		{name: "small", operation: users, json: smallJSON, protobuf: small, procs: 1},
		{name: "mixed-50-callers", operation: echo, json: 418, protobuf: 133, callers: 50, conns: 20},
		{name: "bytes-10kB", operation: users, json: 13_414, protobuf: 10_039, procs: 1},
		{name: "structured-1kB", operation: echo, json: 2018, protobuf: 1007, procs: 1},
		{name: "cold-tls", operation: users, json: smallJSON, protobuf: small, each: true, tls: true, procs: 1},
		{name: "small-1-caller", operation: users, json: smallJSON, protobuf: small},
		{name: "small-50-callers", operation: users, json: smallJSON, protobuf: small, callers: 50, conns: 20},
		{name: "mixed", operation: echo, json: 418, protobuf: 133, procs: 1},
		{name: "structured-10kB", operation: echo, json: 18_503, protobuf: 9942, procs: 1},
		{name: "bytes-1kB", operation: users, json: 1414, protobuf: 1039, procs: 1},
		{name: "bytes-100kB", operation: users, json: 133_414, protobuf: 100_040, procs: 1},
		{name: "stream", operation: stream, json: smallJSON, protobuf: small, procs: 1},
		{name: "cold", operation: users, json: smallJSON, protobuf: small, each: true, procs: 1},
		{name: "cold-4g", operation: users, json: smallJSON, protobuf: small, each: true, leastTime: twoRoundTrips},
		{name: "headers", operation: users, json: smallJSON, protobuf: small, headers: true, procs: 1},
		{name: "two-processes", operation: users, json: smallJSON, protobuf: small, apart: true},
	} {
		names = append(names, row.name)
		for i, stack := range new(witness).stacks() {
			t.Run(row.name+"/"+stack.Name, func(t *testing.T) {
				if row.leastTime > 0 && testing.Short() {
					t.Skip("seconds")
				}
				w := new(witness)
				row.check(t, w, w.stacks()[i])
			})
		}
	}
	require.Equal(t, listed, names, "every workload has a row")
}

type set[T comparable] map[T]bool

func (c row) check(t *testing.T, by *witness, stack rpcbench.Stack) {
	file := filepath.Join(t.TempDir(), "log")
	t.Setenv(logEnv, file)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each child takes a second to end under the race detector
	w, err := workload.Find(c.name)
	require.NoError(t, err)
	require.Equal(t, c.procs, w.Procs, "GOMAXPROCS that the question needs")
	o, err := w.Open(t.Context(), stack, rpcbench.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	isJSON, callers, conns, ops := stack.Name == "httpjson", max(1, c.callers), max(1, c.conns), corpus.Round+1
	size, atOnce, different := c.protobuf, callers, corpus.Round
	if isJSON {
		size, atOnce = c.json, min(callers, conns) // one request at a time on a connection
	}
	if callers > 1 || c.leastTime > 0 {
		ops, different = 2, max(2, o.Calls)
	}
	if c.operation == users {
		different = min(different, 100) // of which corpus has so many
	}
	if !c.apart {
		by.gather(atOnce)
	}

	connecting, sent, received := len(read(t, file)), by.wire.Sent.Load(), by.wire.Received.Load()
	for range ops {
		began := time.Now()
		require.NoError(t, o.Op())
		require.GreaterOrEqual(t, time.Since(began), c.leastTime, "time of an op over the link")
	}
	sent, received = by.wire.Sent.Load()-sent, by.wire.Received.Load()-received
	got, calls := read(t, file)[connecting:], ops*o.Calls

	require.Equal(t, calls, len(got), "messages that the server got in %d ops of %d", ops, o.Calls)
	paths := map[string]string{users: "/CreateUser", echo: "/Echo", stream: "/CreateUsers"}
	if isJSON {
		paths = map[string]string{users: "/users", echo: "/echo", stream: "/users"}
	}
	most, seenConns, requests, bodies, traces := 0, set[int64]{}, set[int64]{}, set[string]{}, set[string]{}
	for i, m := range got {
		require.Equal(t, paths[c.operation], m.Path[strings.LastIndex(m.Path, "/"):], "what the server is asked")
		require.InDelta(t, size, m.Size, float64(size)/50, "bytes of a message")
		require.Equal(t, c.tls, m.TLS, "TLS")
		require.Equal(t, c.headers, len(m.Authorization) > 700, "a long token, of %q", m.Authorization)
		require.Equal(t, c.headers, strings.HasPrefix(m.UserAgent, "orders-api/"), "a user agent, of %q", m.UserAgent)
		isNew := m.Traceparent != "" && !traces[m.Traceparent]
		require.Equal(t, c.headers, isNew, "a new traceparent, of %q", m.Traceparent)
		require.Equal(t, c.apart, m.PID != os.Getpid(), "the server is another process")
		require.Equal(t, got[0].PID, m.PID, "one process")
		next := callers > 1 || i == 0 || m.Sum != got[i-1].Sum
		require.True(t, next, "call %d sends the message of the call before", i)
		most = max(most, m.AtOnce)
		seenConns[m.Conn], requests[m.Request], bodies[m.Sum], traces[m.Traceparent] = true, true, true, true
	}
	require.Equal(t, atOnce, most, "callers at once in the server")
	require.Zero(t, o.Calls%callers, "the %d calls of an op, of %d callers", o.Calls, callers)
	require.GreaterOrEqual(t, len(bodies), different, "different messages in %d calls", calls)
	if c.operation == stream && !isJSON {
		require.Equal(t, 1, len(requests), "streams")
	} else {
		require.Equal(t, calls, len(requests), "requests")
	}
	if c.each {
		require.Equal(t, calls, len(seenConns), "connections, one for each call")
	} else { // net/http may give one up on a busy machine
		require.Contains(t, []int{conns, conns + 1}, len(seenConns), "connections of all calls")
	}
	beyond := o.Beyond()
	require.Contains(t, []int64{0, 1}, beyond, "connections beyond those that the workload declares")
	for side, n := range map[string]int64{"sent": sent, "received": received} {
		around := 400 + size/100 // bytes that surround a message
		switch {
		case c.tls:
			around = 4000
		case c.headers && isJSON && side == "sent":
			around = 1400
		}
		perCall := int(n) / calls
		require.GreaterOrEqual(t, perCall, size, "bytes %s, per call", side)
		require.LessOrEqual(t, perCall, size+around, "bytes %s, per call", side)
	}
}

func TestFind(t *testing.T) {
	_, err := workload.In(workload.Own(), "cal")
	const there = "call, call-1-caller, call-50-callers, call-tls, call-cold-tls"
	require.EqualError(t, err, `rpcbench: unknown workload "cal": there are `+there)
}

func TestStacksThatCannotEcho(t *testing.T) {
	w, err := workload.Find("mixed")
	require.NoError(t, err)
	s := odd.WithClient(httpjson.New(), func(c rpcbench.Users) rpcbench.Client { return struct{ rpcbench.Users }{c} })
	_, err = w.Open(t.Context(), s, rpcbench.Config{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// What no stack can do is refused in one line, before anything starts.
func TestWorkloadsThatCannotBe(t *testing.T) {
	const stream = "Stream has one caller of valid users"
	for reason, c := range map[string]struct {
		workload.Workload
		want string
	}{
		"fewer callers than none": {workload.Workload{Callers: -1}, "Callers lies between 0 and 1000: -1 does not"},
		"a payload below zero": {workload.Workload{Payload: -1},
			"Payload lies between 0 and 1048576: -1 does not"},
		"a payload that no user may carry":  {workload.Workload{Payload: 1 << 21}, "Payload lies between"},
		"connections below zero":            {workload.Workload{Conns: -2}, "Conns lies between"},
		"cores below zero":                  {workload.Workload{Procs: -2}, "Procs lies between"},
		"a message that is none":            {workload.Workload{Message: "flexible"}, `"flexible" is none`},
		"a message with a payload":          {workload.Workload{Message: "flex.1kB", Payload: 1}, "Message is no user"},
		"a message that breaks a rule":      {workload.Workload{Message: "flex.1kB", Invalid: true}, "Message is no user"},
		"a stream on new connections":       {workload.Workload{Stream: true, NewConn: true}, stream},
		"a stream of several callers":       {workload.Workload{Stream: true, Callers: 2}, stream},
		"a stream of users who are refused": {workload.Workload{Stream: true, Invalid: true}, stream},
		"a stream of echoes":                {workload.Workload{Stream: true, Message: "flex.1kB"}, stream},
		"a stream at a rate":                {workload.Workload{Stream: true, Rate: 10}, stream},
		"new connections, and so many": {workload.Workload{NewConn: true, Conns: 3},
			"NewConn leaves no choice of Conns"},
		"a rate below zero":          {workload.Workload{Rate: -1}, "a rate of -1 calls per second has to"},
		"a link that does not exist": {workload.Workload{Link: "5g"}, `"5g" is no link`},
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := c.Open(t.Context(), rpcbench.Stack{Name: "none"}, rpcbench.Config{})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "rpcbench: none: ")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for _, w := range workload.All() {
		require.NoError(t, w.Check(), w.Name)
	}
}

// TestOpenOverAUnixSocket: calls that keep their connection, that open one each, and several at a time.
func TestOpenOverAUnixSocket(t *testing.T) {
	for _, w := range []workload.Workload{{Unix: true}, {Unix: true, NewConn: true, TLS: true}, {Unix: true, Callers: 3}} {
		var conns atomic.Int64
		o, err := w.Open(t.Context(), rawtcp.New(), rpcbench.Config{WrapClient: func(c net.Conn) net.Conn {
			if _, ok := c.(*net.UnixConn); ok {
				conns.Add(1)
			}
			return c
		}})
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, o.Op())
		}
		require.NoError(t, o.Close())
		require.Equal(t, conns.Load(), o.Fixture.Accepted(), "all are of the socket")
	}
}
