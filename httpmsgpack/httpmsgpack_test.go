package httpmsgpack_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, httpmsgpack.New()) }

// The reply to what does not decode says so in the stack's own format.
func TestMalformedBodies(t *testing.T) {
	c := msgp.Codec{}
	f := stacktest.Start(t, httpmsgpack.New(), rpcbench.Config{})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for why, body := range map[string]string{
		"nothing":                  "",
		"JSON":                     "{}",
		"truncated":                "\x81\xa5email\xa9a@",
		"a number for a string":    "\x81\xa5email\x07",
		"garbage after it":         "\x80x",
		"a string said to be huge": "\x81\xa5email\xdb\xff\xff\xff\xff",
	} {
		r, err := client.Post("http://"+f.Addr+"/users", c.ContentType(), strings.NewReader(body))
		require.NoError(t, err, why)
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err, why)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusBadRequest, r.StatusCode, why)
		require.Equal(t, c.ContentType(), r.Header.Get("Content-Type"), why)
		e := new(msgp.Error)
		require.NoError(t, c.Unmarshal(data, e), why)
		require.EqualValues(t, rpcbench.Malformed, e.Code, why)
	}
}
