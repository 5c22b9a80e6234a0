package httpprotobuf_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/httpprotobuf"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, httpprotobuf.New()) }

// The reply to what does not decode says so in the stack's own format.
func TestMalformedBodies(t *testing.T) {
	c := protobuf.Codec{}
	f := stacktest.Start(t, httpprotobuf.New(), rpcbench.Config{})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for why, body := range map[string]string{
		"JSON":             `{"email":"a@example.com"}`,
		"truncated":        "\x12\x09a@",
		"invalid UTF-8":    "\x12\x01\xff",
		"garbage after it": "\x12\x01ax",
	} {
		r, err := client.Post("http://"+f.Addr+"/users", c.ContentType(), strings.NewReader(body))
		require.NoError(t, err, why)
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err, why)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusBadRequest, r.StatusCode, why)
		require.Equal(t, c.ContentType(), r.Header.Get("Content-Type"), why)
		e := new(userv1.Error)
		require.NoError(t, c.Unmarshal(data, e), why)
		require.EqualValues(t, rpcbench.Malformed, e.Code, why)
	}
}
