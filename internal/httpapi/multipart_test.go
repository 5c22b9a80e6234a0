package httpapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/stacktest"
)

const anna = `{"email":"ann@example.com","name":"Anna","password":"secret"}`

// TestAvatarTravelsAsItsBytes: both directions have the avatar's own bytes, and no base64 of them, between boundaries
// that are random: whoever has seen one reply could otherwise close the part of the next.
func TestAvatarTravelsAsItsBytes(t *testing.T) {
	tap := new(relay.Tap)
	f := stacktest.Start(t, httpjson.Multipart(), rpcbench.Config{WrapClient: tap.Wrap})
	asked := rpcbench.Sample(0, 10_000)
	before, earlier := tap.Conns()[0].Bytes()
	for range 3 {
		_, err := f.Users.CreateUser(t.Context(), asked)
		require.NoError(t, err)
	}
	sent, received := tap.Conns()[0].Bytes()
	for way, on := range map[string][]byte{"request": sent[len(before):], "reply": received[len(earlier):]} {
		require.Equal(t, 3, bytes.Count(on, asked.Avatar), way)
		require.Less(t, len(on), 3*(len(asked.Avatar)+2000), way)
	}
	seen := map[string]bool{}
	for _, line := range strings.Split(string(sent)+string(received), "\r\n") {
		_, params, err := mime.ParseMediaType(strings.TrimPrefix(line, "Content-Type: "))
		if boundary := params["boundary"]; err == nil && boundary != "" {
			require.False(t, seen[boundary], "a boundary comes again")
			seen[boundary] = true
		}
	}
	require.GreaterOrEqual(t, len(seen), 6)
}

// parted posts a body with a boundary "b".
func parted(t *testing.T, f *rpcbench.Fixture, kind, body string) (status int, e rpcbench.Error) {
	t.Helper()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	r, err := client.Post("http://"+f.Addr+"/users", kind, strings.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	if r.StatusCode != http.StatusOK {
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.NoError(t, json.Unmarshal(data, &e))
	}
	return r.StatusCode, e
}

func TestPartsOfAUser(t *testing.T) {
	f := stacktest.Start(t, httpjson.Multipart(), rpcbench.Config{})
	const form = "multipart/form-data; boundary=b"
	field := func(name, text string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + text + "\r\n"
	}
	for _, c := range []struct {
		reason, kind, body, says string // says "" for success
	}{
		{"a user alone", form, field("user", anna) + "--b--\r\n", ""},
		{"a user and an avatar", form, field("user", anna) + field("avatar", "\x00\xff") + "--b--\r\n", ""},
		{"JSON without parts", "application/json", anna, "multipart/form-data with a boundary"},
		{"no boundary", "multipart/form-data", field("user", anna) + "--b--\r\n", "boundary"},
		{"no parts", form, "--b--\r\n", `"user" is missing`},
		{"an avatar alone", form, field("avatar", "x") + "--b--\r\n", `"avatar" is not expected`},
		{"two users", form, field("user", anna) + field("user", anna) + "--b--\r\n", `"user" is not expected`},
		{"two avatars", form, field("user", anna) + strings.Repeat(field("avatar", "x"), 2) + "--b--\r\n", `"avatar" is not expected`},
		{"cut off within a part", form,
			field("user", anna) + "--b\r\nContent-Disposition: form-data; name=\"avatar\"\r\n\r\nx", "EOF"},
		{"a user that is no JSON", form, field("user", "{") + "--b--\r\n", "JSON"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			status, e := parted(t, f, c.kind, c.body)
			if c.says == "" {
				require.Equal(t, http.StatusOK, status, e)
				return
			}
			require.Equal(t, http.StatusBadRequest, status)
			require.Equal(t, rpcbench.Malformed, e.Code)
			require.Contains(t, e.Message, c.says)
		})
	}
}

// TestReplyIsAForm: any client of mime/multipart reads the reply.
func TestReplyIsAForm(t *testing.T) {
	f := stacktest.Start(t, httpjson.Multipart(), rpcbench.Config{})
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	require.NoError(t, w.WriteField("user", anna))
	file, err := w.CreateFormFile("avatar", "anna.png")
	require.NoError(t, err)
	_, err = file.Write([]byte("picture"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	r, err := client.Post("http://"+f.Addr+"/users", w.FormDataContentType(), &body)
	require.NoError(t, err)
	defer r.Body.Close()
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	require.NoError(t, err)
	got, err := multipart.NewReader(r.Body, params["boundary"]).ReadForm(1 << 20)
	require.NoError(t, err)
	require.JSONEq(t, `{"code":200,"message":"OK","user":{"id":"1000000",`+anna[1:]+`}`, got.Value["user"][0])
	require.EqualValues(t, 7, got.File["avatar"][0].Size)
}
