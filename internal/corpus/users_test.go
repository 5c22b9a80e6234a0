package corpus_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/corpus"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

func TestUsersDifferInEveryField(t *testing.T) {
	seen := map[string]int{}
	validate := rpcbench.NewValidator[rpcbench.User]()
	for i := range 100 {
		u := rpcbench.Sample(i, 16)
		require.NoError(t, validate(&u))
		require.Empty(t, u.ID, "the service sets it")
		for field, value := range map[string]string{"email": u.Email, "name": u.Name, "password": u.Password,
			"avatar": string(u.Avatar)} {
			before, ok := seen[field+value]
			require.False(t, ok, "users %d and %d have the same %s", before, i, field)
			seen[field+value] = i
		}
	}
	require.Less(t, corpus.Round, 100)
}

// So that ops differ in nothing but the content, and a row's bytes on the wire do not depend on how many ops it has.
func TestUsersEncodeToOneLength(t *testing.T) {
	lengths := func(i, avatar int) (asJSON, asProtobuf int) {
		u := rpcbench.Sample(i, avatar)
		j, err := json.Marshal(u)
		require.NoError(t, err)
		p, err := proto.Marshal(binding.Convert[userv1.User](&u))
		require.NoError(t, err)
		return len(j), len(p)
	}
	for _, avatar := range []int{0, 1, 1000} {
		wantJSON, wantProtobuf := lengths(0, avatar)
		for i := range 100 {
			asJSON, asProtobuf := lengths(i, avatar)
			require.Equal(t, wantJSON, asJSON, "JSON of user %d", i)
			require.Equal(t, wantProtobuf, asProtobuf, "protobuf of user %d", i)
		}
		require.True(t, avatar > 0 || wantProtobuf == 36, "%d bytes of protobuf", wantProtobuf)
	}
}

func TestUsersComeFromASeed(t *testing.T) {
	require.Equal(t, rpcbench.Sample(7, 1000), rpcbench.Sample(7, 1000))
	require.Equal(t, "0e42d4cae8864908", hex.EncodeToString(rpcbench.Sample(7, 8).Avatar),
		"bytes of user 7 in every process and version")
	require.Nil(t, rpcbench.Sample(7, 0).Avatar)
}

// As Sample declares. A payload that gzip shrinks would flatter whoever compresses.
func TestPayloadIsIncompressible(t *testing.T) {
	for _, n := range []int{100, 1000, 100_000, rpcbench.MaxAvatar} {
		u := rpcbench.Sample(3, n)
		require.Len(t, u.Avatar, n)
		var buf bytes.Buffer
		z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
		require.NoError(t, err)
		_, err = z.Write(u.Avatar)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.GreaterOrEqual(t, buf.Len(), n, "%d bytes", n)
	}
}
