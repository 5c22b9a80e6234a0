package rawtcp

import (
	"bufio"
	"bytes"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// A reply that is read is what the bytes begin with, and what follows it stays where it is.
func FuzzReply(f *testing.F) {
	right := framed(f, done, &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage,
		User: sample()})
	for _, seed := range [][]byte{
		nil, right, right[:3], right[:20], append(right[:len(right):len(right)], right...), framed(f, createUser, sample()),
		framed(f, failed, &userv1.Error{Code: "too_large"}), header(done, 0), header(failed, 0), header(done, 1<<32-1),
		header(done, rpcbench.MaxBody), header(done, rpcbench.MaxBody+1), append(header(done, 2), 0x12, 0x7f),
		[]byte("HTTP/1.1 400 Bad Request\r\n"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bufio.NewReader(bytes.NewReader(sent))
		var kind byte
		var payload []byte
		var err error
		used := testkit.Allocated(func() { kind, payload, err = readReply(r) })
		require.Less(t, used, uint64(2<<20+8*len(sent)), "memory is bounded by what was sent")
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(payload), rpcbench.MaxBody)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		again := append(header(kind, uint32(len(payload))), payload...)
		require.Equal(t, sent, append(again, rest...))
	})
}

// What one side frames, the other reads.
func FuzzFrame(f *testing.F) {
	f.Add("a@example.com", "Anna", []byte{0, 255}, true)
	f.Add("", "", []byte(nil), false)
	f.Add("in\xffvalid", "\x00\r\n", make([]byte, 5000), true)
	f.Fuzz(func(t *testing.T, email, name string, avatar []byte, create bool) {
		kind, sent, got := createUser, proto.Message(&userv1.User{Email: email, Name: name, Avatar: avatar}),
			proto.Message(new(userv1.User))
		if !create {
			kind, sent, got = echo, &messagepb.Flex{String_: email, Bytes: avatar, Message: &messagepb.Pair{Key: name}},
				new(messagepb.Flex)
		}
		b, err := frame(kind, sent)
		if !utf8.ValidString(email) || !utf8.ValidString(name) {
			require.Equal(t, rpcbench.CodeMalformed, rpcbench.CodeOf(err))
			return
		}
		require.NoError(t, err)
		r := bufio.NewReader(bytes.NewReader(b))
		is, size, err := readHeader(r, createUser, echo)
		require.NoError(t, err)
		require.Equal(t, kind, is)
		payload, err := readPayload(r, size)
		require.NoError(t, err)
		require.NoError(t, decode(payload, got))
		require.True(t, proto.Equal(sent, got))
		_, err = r.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	})
}
