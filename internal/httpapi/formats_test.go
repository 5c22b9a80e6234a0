package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/codec/xmlstd"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacktest"
)

// The reply to what does not decode says so in the stack's own format.
func TestMalformedBodies(t *testing.T) {
	for _, c := range []struct {
		stack  rpcbench.Stack
		codec  codec.Codec
		named  string // its content type
		fresh  func() any
		bodies map[string]string
	}{
		{httpmsgpack.New(), msgp.Codec{}, "application/vnd.msgpack", func() any { return new(msgp.Error) }, map[string]string{
			"nothing":                  "",
			"truncated":                "\x81\xa5email\xa9a@",
			"garbage after it":         "\x80x",
			"a string said to be huge": "\x81\xa5email\xdb\xff\xff\xff\xff",
		}},
		{httpprotobuf.New(), protobuf.Codec{}, "application/protobuf",
			func() any { return new(userv1.Error) }, map[string]string{
				"truncated":        "\x12\x09a@",
				"invalid UTF-8":    "\x12\x01\xff",
				"garbage after it": "\x12\x01ax",
			}},
		{httpxml.New(), xmlstd.Codec{}, "application/xml; charset=utf-8",
			func() any { return new(xmlstd.Error) }, map[string]string{
				"nothing":          "",
				"truncated":        "<User><email>",
				"garbage after it": "<User></User>x",
			}},
	} {
		f := stacktest.Start(t, c.stack, rpcbench.Config{})
		client := &http.Client{Transport: new(http.Transport)}
		defer client.CloseIdleConnections()
		for why, body := range c.bodies {
			why = c.stack.Name + ": " + why
			r, err := client.Post("http://"+f.Addr+"/users", c.named, strings.NewReader(body))
			require.NoError(t, err, why)
			data, err := io.ReadAll(r.Body)
			require.NoError(t, err, why)
			require.NoError(t, r.Body.Close())
			require.Equal(t, http.StatusBadRequest, r.StatusCode, why)
			require.Equal(t, c.named, r.Header.Get("Content-Type"), why)
			e := c.fresh()
			require.NoError(t, c.codec.Unmarshal(data, e), why)
			require.Equal(t, rpcbench.Malformed, binding.Convert[rpcbench.Error](e).Code, why)
		}
	}
}
