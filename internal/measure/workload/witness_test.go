package workload_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/internal/transport/message"
	flexv1 "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
)

// sight is what a server sees of one message: the body of a request, or one of several on a stream.
type sight struct {
	PID           int
	AtOnce        int    // requests in the server, this one among them
	Conn          string // that it came with
	Request       int64  // of the server's, from 1 on
	TLS           bool
	Unix          bool
	Path          string
	Authorization string
	Traceparent   string
	UserAgent     string
	Timeout       string
	Size          int
	Sum           string // tells messages apart
	Of            int    // which of the round's messages it is, of users and echoes of gRPC
	Resumed       bool   // the TLS session of an earlier connection

	Answer string        // refused or done: the sight is of a reply, but for those of streams
	Took   time.Duration // the handler, until it answered
}

// witness has a stack of each protocol, whose server writes the messages to the file that logEnv names. Its client
// counts bytes.
type witness struct {
	wire            tap.Counter
	asked           asked
	conns, requests atomic.Int64

	mu     sync.Mutex
	inside int
	want   int
	all    chan struct{} // closed when so many requests are inside; nil: nobody waits
}

// gathers ends the name of a file beside the log. It says how many requests to keep in the server until all of them are
// there, once.
const gathers = ".gathers"

// enter returns how many requests are in the server now.
func (w *witness) enter() int {
	w.mu.Lock()
	w.inside++
	if w.want == 0 {
		if said, err := os.ReadFile(os.Getenv(logEnv) + gathers); err == nil {
			if w.want, err = strconv.Atoi(string(said)); err == nil {
				w.all = make(chan struct{})
			}
		}
	}
	n, all := w.inside, w.all
	if all != nil && n == w.want {
		w.open()
	}
	w.mu.Unlock()
	if all != nil {
		select {
		case <-all:
		case <-time.After(10 * time.Second): // the callers don't call at once
			w.mu.Lock()
			w.open()
			w.mu.Unlock()
		}
	}
	return n
}

func (w *witness) open() {
	if w.all != nil {
		close(w.all)
		w.all = nil
	}
}

func (w *witness) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
}

// stacks are those of create-user, or of a method of one's own.
func (w *witness) stacks(own bool) []rpcbench.Stack {
	if own {
		plain := httpjson.Of(method(func(q *rpcbench.User) string { return q.Email },
			func(a *rpcbench.Response) string { return a.User.Email }))
		generated := method((*userv1.User).GetEmail,
			func(a *userv1.CreateUserResponse) string { return a.User.GetEmail() })
		// of which connect-go's handler serves gRPC too
		return []rpcbench.Stack{w.stack(plain, plain), w.stack(grpcprotobuf.Of(generated), connectrpc.Of(generated))}
	}
	return []rpcbench.Stack{w.stack(httpjson.New(), httpjson.New()), w.stack(grpcprotobuf.New(), grpcservehttp.New())}
}

// method has as many samples as a round, each of another user.
func method[Q, A any](asked func(*Q) string, answered func(*A) string) rpcbench.Method[Q, A] {
	m := rpcbench.Method[Q, A]{
		Name:  "test.v1.Users/Create",
		Key:   func(q *Q) uint64 { return maphash.String(seed, asked(q)) },
		Equal: func(want, got *A) bool { return answered(want) == answered(got) },
	}
	for i := range corpus.Round {
		u := rpcbench.SampleUser(i, 0)
		m.Requests = append(m.Requests, binding.Convert[Q](&u))
		m.Replies = append(m.Replies, binding.Convert[A](rpcbench.AnswerUser(&u)))
	}
	return m
}

var seed = maphash.MakeSeed()

func (w *witness) stack(client, server rpcbench.Stack) rpcbench.Stack {
	s := client
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		bare, err := server.Server(config)
		if err != nil {
			return nil, err
		}
		handler := bare.(interface{ HTTPHandler() http.Handler }).HTTPHandler()
		own := httpapi.NewServer(config, w.watch(handler), client.Traits.HTTP == "2")
		return testkit.Server{Server: own, OnServe: func(ln net.Listener) error {
			return own.Serve(testkit.Listener{Listener: ln, Wrap: func(c net.Conn) net.Conn {
				return numbered{c, fmt.Sprint(w.conns.Add(1))}
			}})
		}}, nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return w.wire.Wrap(c), nil
		}
		c, err := client.Dial(config)
		if err != nil {
			return nil, err
		}
		return around(c, w.asked.note), nil
	}
	return s
}

// asked are the deadlines of a client's calls.
type asked struct {
	mu  sync.Mutex
	all []time.Time // zero: none
}

func (a *asked) note(call rpcbench.Call) rpcbench.Call {
	return func(ctx context.Context) error {
		a.mu.Lock()
		by, _ := ctx.Deadline()
		a.all = append(a.all, by)
		a.mu.Unlock()
		return call(ctx)
	}
}

func (a *asked) len() int { return len(a.since(0)) }

func (a *asked) since(n int) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[n:len(a.all):len(a.all)]
}

// around is a client with something around each call that it prepares, but for those of streams, and those that connect
// the fixture.
func around(c rpcbench.Client, wrap func(rpcbench.Call) rpcbench.Call) rpcbench.Client {
	users, ok := c.(rpcbench.Users)
	if !ok {
		return wrappedCalls{c.(rpcbench.MethodClient), wrap}
	}
	wrapped := wrappedUsers{users, users.(rpcbench.Echoer), wrap}
	if streamer, ok := c.(rpcbench.Streamer); ok {
		return struct {
			wrappedUsers
			rpcbench.Streamer
		}{wrapped, streamer}
	}
	return wrapped
}

type wrappedCalls struct {
	rpcbench.MethodClient
	wrap func(rpcbench.Call) rpcbench.Call
}

func (w wrappedCalls) Prepare(i int) (rpcbench.Call, error) {
	call, err := w.MethodClient.Prepare(i)
	if connects := i >= 1000; connects {
		return call, err
	}
	return w.wrap(call), err
}

type wrappedUsers struct {
	rpcbench.Users
	rpcbench.Echoer
	wrap func(rpcbench.Call) rpcbench.Call
}

func (c wrappedUsers) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (w wrappedUsers) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	call, err := w.Users.PrepareUser(u)
	if testkit.Connects(u) {
		return call, err
	}
	return w.wrap(call), err
}

func (w wrappedUsers) PrepareEcho(m *rpcbench.Flex) (rpcbench.Call, error) {
	call, err := w.Echoer.PrepareEcho(m)
	return w.wrap(call), err
}

// numbered is a connection whose number stands for its client's address.
type numbered struct {
	net.Conn
	number string
}

func (c numbered) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.number} }

// watch puts the witness in front of a handler.
func (w *witness) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(reply http.ResponseWriter, r *http.Request) {
		seen := sight{
			PID: os.Getpid(), AtOnce: w.enter(), Conn: r.RemoteAddr, Request: w.requests.Add(1),
			TLS: r.TLS != nil, Resumed: r.TLS != nil && r.TLS.DidResume,
			Unix: r.Context().Value(http.LocalAddrContextKey).(net.Addr).Network() == "unix",
			Path: r.URL.Path, Authorization: r.Header.Get("Authorization"),
			Traceparent: r.Header.Get("Traceparent"), UserAgent: r.UserAgent(),
			Timeout: r.Header.Get("Grpc-Timeout"),
		}
		defer w.leave()
		tell := func(body []byte) {
			sum := sha256.Sum256(body)
			seen.Size, seen.Sum, seen.Of = len(body), hex.EncodeToString(sum[:]), which(r.URL.Path, body)
			w.write(seen)
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			r.Body = &frames{ReadCloser: r.Body, tell: tell}
			began := time.Now()
			h.ServeHTTP(reply, r)
			status := reply.Header().Get("Grpc-Status") + reply.Header().Get(http.TrailerPrefix+"Grpc-Status")
			w.answered(status == "0", began)
		} else {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			tell(body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			began := time.Now()
			h.ServeHTTP(&headed{reply, func(status int) { w.answered(status == http.StatusOK, began) }}, r)
		}
	})
}

// headed tells of a reply's status before the client may have all of it.
type headed struct {
	http.ResponseWriter
	tell func(status int)
}

func (h *headed) WriteHeader(status int) {
	if h.tell != nil {
		h.tell(status)
		h.tell = nil
	}
	h.ResponseWriter.WriteHeader(status)
}

func (h *headed) Write(p []byte) (int, error) {
	if h.tell != nil {
		h.WriteHeader(http.StatusOK)
	}
	return h.ResponseWriter.Write(p)
}

// answered writes that a call was answered.
func (w *witness) answered(done bool, began time.Time) {
	w.write(sight{Answer: map[bool]string{true: "done", false: "refused"}[done], Took: time.Since(began)})
}

var numberOf = regexp.MustCompile(`anna\.(\d\d)@|Anna(\d\d)|pw-(\d\d)`)

// which returns which of the round's messages a body is, or -1.
func which(path string, body []byte) int {
	if strings.HasSuffix(path, "/Echo") {
		m := new(flexv1.Flex)
		if proto.Unmarshal(body, m) == nil && m.GetFixed32() != 0 {
			return int(m.GetFixed32() - message.Complex().Fixed32)
		}
		return -1
	}
	if found := numberOf.FindSubmatch(body[:min(len(body), 100)]); found != nil {
		if n, err := strconv.Atoi(string(slices.Concat(found[1:]...))); err == nil {
			return n
		}
	}
	return -1
}

// frames tells of each message of a gRPC body that is read.
type frames struct {
	io.ReadCloser
	tell func(body []byte)
	rest []byte
}

func (f *frames) Read(p []byte) (int, error) {
	const prefix = 5
	n, err := f.ReadCloser.Read(p)
	f.rest = append(f.rest, p[:n]...)
	for len(f.rest) >= prefix {
		end := prefix + int(binary.BigEndian.Uint32(f.rest[1:]))
		if len(f.rest) < end {
			break
		}
		f.tell(f.rest[prefix:end])
		f.rest = f.rest[end:]
	}
	return n, err
}

// write adds a line to the file.
func (w *witness) write(m sight) {
	line, err := json.Marshal(m)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		var file *os.File
		if file, err = os.OpenFile(os.Getenv(logEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = file.Write(append(line, '\n'))
			_ = file.Close()
		}
	}
}

// read returns all messages that servers have written.
func read(t *testing.T, file string) []sight {
	t.Helper()
	return slices.DeleteFunc(lines(t, file), func(s sight) bool { return s.Answer != "" })
}

// answers returns all replies that servers have written.
func answers(t *testing.T, file string) []sight {
	t.Helper()
	return slices.DeleteFunc(lines(t, file), func(s sight) bool { return s.Answer == "" })
}

func lines(t *testing.T, file string) (all []sight) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := json.NewDecoder(bytes.NewReader(data))
	for lines.More() {
		var m sight
		require.NoError(t, lines.Decode(&m))
		all = append(all, m)
	}
	return all
}
