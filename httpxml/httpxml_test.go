package httpxml_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/httpxml"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, httpxml.New()) }

// The reply to what does not decode says so in the stack's own format.
func TestMalformedBodies(t *testing.T) {
	c := xmlstd.Codec{}
	f := stacktest.Start(t, httpxml.New(), rpcbench.Config{})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for why, body := range map[string]string{
		"nothing":          "",
		"JSON":             "{}",
		"truncated":        "<User><email>",
		"no base64":        "<User><avatar>%</avatar></User>",
		"garbage after it": "<User></User>x",
	} {
		r, err := client.Post("http://"+f.Addr+"/users", c.ContentType(), strings.NewReader(body))
		require.NoError(t, err, why)
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err, why)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusBadRequest, r.StatusCode, why)
		require.Equal(t, c.ContentType(), r.Header.Get("Content-Type"), why)
		e := new(xmlstd.Error)
		require.NoError(t, c.Unmarshal(data, e), why)
		require.EqualValues(t, rpcbench.Malformed, e.Code, why)
	}
}
