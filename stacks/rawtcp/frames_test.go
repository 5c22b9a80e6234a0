package rawtcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/message"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// script is the server's side of a connection whose client sends what r holds and then closes.
type script struct {
	net.Conn
	r       io.Reader
	replies bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)      { return s.r.Read(p) }
func (s *script) Write(p []byte) (int, error)     { return s.replies.Write(p) }
func (s *script) SetReadDeadline(time.Time) error { return nil }

func sample() *userv1.User {
	u := rpcbench.SampleUser(0, 0)
	return binding.Convert[userv1.User](&u)
}

func framed(t testing.TB, kind byte, m proto.Message) []byte {
	t.Helper()
	b, err := frame(kind, m)
	require.NoError(t, err)
	return b
}

// header begins a frame of any kind and length.
func header(kind byte, size uint32) []byte {
	return []byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), kind}
}

// outcomes reads a server's replies: "done", or the code of the error and its broken rules.
func outcomes(t testing.TB, replies []byte) (all []string) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(replies))
	for {
		kind, payload, err := readReply(r)
		if errors.Is(err, io.EOF) && r.Buffered() == 0 {
			return all
		}
		require.NoError(t, err, "the server answers in frames")
		if kind == done {
			all = append(all, "done")
			continue
		}
		e := new(userv1.Error)
		require.NoError(t, proto.Unmarshal(payload, e))
		said := e.GetCode()
		for _, v := range e.GetViolations() {
			said += " " + v.GetField() + " " + v.GetRule()
		}
		all = append(all, said)
	}
}

func TestServerFrames(t *testing.T) {
	user, flex := framed(t, createUser, sample()), framed(t, echo, binding.Convert[messagepb.Flex](message.Complex()))
	badUTF8 := bytes.Replace(user, []byte("Anna00"), []byte("Anna\xff0"), 1)
	const invalid = "invalid email required name min=4 password min=4"
	for _, c := range []struct {
		why  string
		sent [][]byte
		want []string // replies; after the last the server closes the connection
	}{
		{"nothing at all", nil, nil},
		{"one of each", [][]byte{user, flex}, []string{"done", "done"}},
		{"an empty user", [][]byte{header(createUser, 0), user}, []string{invalid, "done"}},
		{"a field cut off", [][]byte{header(createUser, 2), {0x12, 0x7f}, user}, []string{"malformed", "done"}},
		{"invalid UTF-8", [][]byte{badUTF8, user}, []string{"malformed", "done"}},
		{"a field that nobody knows", [][]byte{header(echo, 3), {0xf8, 0x7f, 1}, user}, []string{"done", "done"}},
		{"the longest request", [][]byte{header(createUser, rpcbench.MaxBody), make([]byte, rpcbench.MaxBody), user},
			[]string{"malformed", "done"}},
		{"one byte more", [][]byte{header(createUser, rpcbench.MaxBody+1), make([]byte, rpcbench.MaxBody+1), user},
			[]string{"too_large", "done"}},
		{"a length that is not kept", [][]byte{user, header(createUser, 1<<32-1), user}, []string{"done"}},
		{"an unknown kind", [][]byte{user, header(0, 0), user}, []string{"done", "malformed"}},
		{"a reply", [][]byte{framed(t, done, sample()), user}, []string{"malformed"}},
		{"an HTTP request", [][]byte{[]byte("POST /users HTTP/1.1\r\nHost: example.com\r\n\r\n")}, []string{"malformed"}},
		{"half a header", [][]byte{user, user[:3]}, []string{"done"}},
		{"half a payload", [][]byte{user, user[:len(user)/2]}, []string{"done"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			all := bytes.Join(c.sent, nil)
			readers := map[string]io.Reader{"at once": bytes.NewReader(all)}
			if len(all) < 1<<20 {
				readers["byte by byte"] = iotest.OneByteReader(bytes.NewReader(all))
				readers["with the last bytes' error"] = iotest.DataErrReader(bytes.NewReader(all))
			}
			for how, r := range readers {
				s := &script{r: r}
				serve(rpcbench.ServerConfig{})(s)
				require.Equal(t, c.want, outcomes(t, s.replies.Bytes()), how)
			}
		})
	}
}

// A payload that is too large is skipped. FuzzServerFrames bounds what a length costs whose bytes don't come.
func TestMemoryIsBounded(t *testing.T) {
	sent := io.MultiReader(bytes.NewReader(header(createUser, 1<<30)), io.LimitReader(zeros{}, 1<<30))
	require.Less(t, testkit.Allocated(func() { serve(rpcbench.ServerConfig{})(&script{r: sent}) }), uint64(2<<20))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func FuzzServerFrames(f *testing.F) {
	user, flex := framed(f, createUser, sample()), framed(f, echo, binding.Convert[messagepb.Flex](message.Complex()))
	for _, seed := range [][]byte{
		nil, user, flex, append(user[:len(user):len(user)], flex...), user[:3], user[:20],
		header(createUser, 0), header(echo, 0), header(createUser, 1<<32-1), header(echo, rpcbench.MaxBody), header(9, 1),
		framed(f, createUser, new(userv1.User)), append(header(createUser, 2), 0x12, 0x7f),
		bytes.Replace(user, []byte("Anna00"), []byte("Anna\xff0"), 1),
		[]byte("GET / HTTP/1.1\r\n\r\n"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	} {
		f.Add(seed)
	}
	server := serve(rpcbench.ServerConfig{})
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn := &script{r: bytes.NewReader(sent)}
		used := testkit.Allocated(func() { server(conn) })
		replies := outcomes(t, conn.replies.Bytes())
		require.LessOrEqual(t, len(replies), len(sent)/headerSize, "no more replies than requests")
		// Each header may cost a reply with the rules that an empty user breaks; a payload costs what protobuf makes of
		// it.
		require.Less(t, used, uint64(3<<19+2000*len(sent)), "memory is bounded by what was sent")
	})
}

// In the bubble time passes as soon as nothing else can happen. The suite's check "limits" has what sends nothing.
func TestServerDeadlines(t *testing.T) {
	for _, c := range []struct {
		why   string
		sends func(t *testing.T, conn net.Conn)
		want  time.Duration // from the last byte to the end of the connection
	}{
		{"a first header comes in pieces, which have one deadline", func(t *testing.T, conn net.Conn) {
			for i := range 3 {
				<-time.After(rpcbench.HeaderTimeout / 4)
				send(t, conn, header(createUser, 0)[i:i+1])
			}
		}, rpcbench.HeaderTimeout / 4},
		{"half a second header comes", func(t *testing.T, conn net.Conn) {
			send(t, conn, framed(t, createUser, sample()))
			receive(t, conn)
			<-time.After(rpcbench.IdleTimeout / 2)
			send(t, conn, header(createUser, 0)[:3])
		}, rpcbench.HeaderTimeout},
		{"half a second header comes with the first request", func(t *testing.T, conn net.Conn) {
			send(t, conn, append(framed(t, createUser, sample()), header(createUser, 0)[:3]...))
			receive(t, conn)
		}, rpcbench.HeaderTimeout},
		{"a payload takes its time", func(t *testing.T, conn net.Conn) {
			f := framed(t, createUser, sample())
			send(t, conn, f[:headerSize+7])
			<-time.After(2 * rpcbench.IdleTimeout)
			send(t, conn, f[headerSize+7:])
			receive(t, conn)
		}, rpcbench.IdleTimeout},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go func() {
					serve(rpcbench.ServerConfig{})(far)
					_ = far.Close()
				}()
				c.sends(t, near)
				last := time.Now()
				_, err := near.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, c.want, time.Since(last))
			})
		})
	}
}

func send(t *testing.T, conn net.Conn, b []byte) {
	t.Helper()
	_, err := conn.Write(b)
	require.NoError(t, err)
}

func receive(t *testing.T, conn net.Conn) {
	t.Helper()
	kind, _, err := readReply(bufio.NewReader(conn))
	require.NoError(t, err)
	require.Equal(t, done, kind)
}

// What a server should not answer is an error of the call, and a connection whose bytes can't be told apart is not used
// again.
func TestBadReplies(t *testing.T) {
	right := framed(t, done, &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage,
		User: sample()})
	for _, c := range []struct {
		why  string
		sent []byte
		want rpcbench.Code
		kept bool // the connection
	}{
		{"the right one", right, "", true},
		{"none", nil, rpcbench.CodeUnavailable, false},
		{"half a payload", right[:20], rpcbench.CodeUnavailable, false},
		{"a request", framed(t, createUser, sample()), rpcbench.CodeUnavailable, false},
		{"a length beyond the limit", header(done, rpcbench.MaxBody+1), rpcbench.CodeUnavailable, false},
		{"a payload that can't be decoded", append(header(done, 2), 0x12, 0x7f), rpcbench.CodeMalformed, true},
		{"the right one twice", append(right[:len(right):len(right)], right...), "", false},
		{"an error that can't be decoded", append(header(failed, 1), 0xff), rpcbench.CodeMalformed, true},
		{"an error without a code", header(failed, 0), rpcbench.CodeInternal, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			dials := 0
			client, err := dial(rpcbench.ClientConfig{Conns: 1,
				DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					sends := [][]byte{c.sent, right}
					if dials++; !c.kept {
						sends = sends[dials-1 : dials]
					}
					go func() {
						defer far.Close()
						r := bufio.NewReader(far)
						for _, reply := range sends {
							_, size, _ := readHeader(r, createUser)
							_, _ = readPayload(r, size)
							_, _ = far.Write(reply)
						}
					}()
					return near, nil
				}})
			require.NoError(t, err)
			defer client.Close()
			_, err = client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
			require.Equal(t, c.want, rpcbench.CodeOf(err), err)
			_, err = client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
			require.NoError(t, err, "the call after it")
			require.Equal(t, c.kept, dials == 1)
		})
	}
}

func TestFrame(t *testing.T) {
	u := sample()
	payload, err := proto.Marshal(u)
	require.NoError(t, err)
	require.Equal(t, append([]byte{0, 0, 0, byte(len(payload)), '\n'}, payload...), framed(t, createUser, u))
	u.Name = strings.Repeat("n", 1<<16)
	require.Equal(t, []byte{0, 1, 0, 32, '\n'}, framed(t, createUser, u)[:headerSize])
}
