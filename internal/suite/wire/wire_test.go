package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// recorder records the one connection that its dial opens.
type recorder struct{ tap.Tap }

func (r *recorder) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return r.Wrap(c), nil
}

func (r *recorder) bytes(t *testing.T) (sent, received []byte) {
	t.Helper()
	require.Len(t, r.Conns(), 1)
	return r.Conns()[0].Bytes()
}

// start serves handler and returns a client of one recorded connection, and the server's address.
func start(t *testing.T, version string, handler http.HandlerFunc) (*http.Client, string, *recorder) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "1.1")
	protocols.SetUnencryptedHTTP2(version == "2")
	table := &http.HTTP2Config{MaxDecoderHeaderTableSize: 1 << 16, MaxEncoderHeaderTableSize: 1 << 16}
	server := &http.Server{Handler: handler, Protocols: protocols, HTTP2: table, ReadHeaderTimeout: time.Minute}
	addr, r := testkit.Serve(t, server), new(recorder)
	transport := &http.Transport{DialContext: r.dial, Protocols: protocols, HTTP2: table, DisableCompression: true,
		MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}, addr, r
}

// answer replies as the path says.
func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	write := func(p []byte) { _, _ = w.Write(p) }
	w.Header().Set("X-Path", r.URL.Path)
	switch r.URL.Path {
	case "/pieces":
		for i := range body {
			write(body[i : i+1])
			_ = http.NewResponseController(w).Flush()
		}
	case "/empty":
		w.WriteHeader(http.StatusNoContent)
	case "/error":
		http.Error(w, "no", http.StatusBadRequest)
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		write(body)
	case "/trailer":
		w.Header().Set("Trailer", "X-Sum")
		write(body)
		w.Header().Set("X-Sum", "42")
	case "/hints":
		w.WriteHeader(http.StatusEarlyHints)
		write(body)
	default:
		write(body)
	}
}

type exchange struct {
	why, method, path string
	body              []byte
	chunked           bool // its length isn't announced
	header            http.Header
	trailer           http.Header
	wantStatus        string
	wantBody          []byte
	wantHeader        http.Header // among others
	wantTrailer       http.Header
}

func exchanges() []exchange {
	text := []byte(`{"name":"a name to be found"}`)
	packed := []byte("\x1f\x8b, which nobody unpacks")
	header := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Add(kv[i], kv[i+1])
		}
		return h
	}
	return []exchange{
		{why: "both bodies of known length", method: "POST", path: "/users", body: text,
			header: header("Content-Type", "application/json"), wantStatus: "200", wantBody: text},
		{why: "the same again, from the table", method: "POST", path: "/users", body: text,
			header: header("Content-Type", "application/json"), wantStatus: "200", wantBody: text},
		{why: "no body either way", method: "GET", path: "/empty", wantStatus: "204"},
		{why: "a query", method: "GET", path: "/users?a=b&c", wantStatus: "200"},
		{why: "several values", method: "POST", path: "/users", wantStatus: "200",
			header: header("X-Many", "1", "X-Many", "2")},
		{why: "an error", method: "POST", path: "/error", body: text, wantStatus: "400", wantBody: []byte("no\n")},
		{why: "a request in chunks", method: "POST", path: "/users", body: text, chunked: true,
			wantStatus: "200", wantBody: text},
		{why: "a reply in chunks", method: "POST", path: "/pieces", body: text, wantStatus: "200", wantBody: text},
		{why: "gzip", method: "POST", path: "/gzip", body: packed, header: header("Content-Encoding", "gzip"),
			wantStatus: "200", wantBody: packed, wantHeader: header("Content-Encoding", "gzip")},
		{why: "trailers", method: "POST", path: "/trailer", body: text, chunked: true, trailer: header("X-Check", "43"),
			wantStatus: "200", wantBody: text, wantTrailer: header("X-Sum", "42")},
		{why: "an interim response", method: "POST", path: "/hints", body: text, wantStatus: "200", wantBody: text},
	}
}

func do(t *testing.T, c *http.Client, addr string, e exchange) {
	t.Helper()
	var body io.Reader = bytes.NewReader(e.body)
	if e.chunked {
		body = io.MultiReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), e.method, "http://"+addr+e.path, body)
	require.NoError(t, err)
	for key, values := range e.header {
		req.Header[key] = values
	}
	req.Trailer = e.trailer
	resp, err := c.Do(req)
	require.NoError(t, err, e.why)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err, e.why)
	require.Equal(t, string(e.wantBody), string(got), e.why)
}

func (r *recorder) read(t *testing.T) (requests, responses []Message) {
	t.Helper()
	requests, responses, err := Read(r.bytes(t))
	require.NoError(t, err)
	return requests, responses
}

func TestExchanges(t *testing.T) {
	for _, version := range []string{"1.1", "2"} {
		t.Run(version, func(t *testing.T) {
			c, addr, r := start(t, version, answer)
			all := exchanges()
			for _, e := range all {
				do(t, c, addr, e)
			}
			checkCutOff(t, r, len(all))
			big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			for _, e := range []exchange{
				{why: "frames beyond the default size", method: "POST", path: "/users", body: big,
					wantStatus: "200", wantBody: big},
				{why: "a header of several frames", method: "POST", path: "/users", wantStatus: "200",
					header: http.Header{"X-Long": {strings.Repeat("~{}|", 10000)}}},
			} {
				do(t, c, addr, e)
				all = append(all, e)
			}
			requests, responses := r.read(t)
			require.Len(t, requests, len(all))
			require.Len(t, responses, len(all))
			for i, e := range all {
				checkRequest(t, version, addr, e, requests[i])
				checkResponse(t, version, e, responses[i])
			}
		})
	}
}

// checkCutOff reads every beginning of a recording.
func checkCutOff(t *testing.T, r *recorder, exchanges int) {
	t.Helper()
	sent, received := r.bytes(t)
	requests, responses := r.read(t)
	seen := map[int]bool{}
	check := func(whole, got []Message, err error) {
		if err != nil { // a first line must be whole, and so must trailers
			require.Regexp(t, "wire: not HTTP|message .* begins|trailer", err.Error())
			return
		}
		require.Equal(t, whole[:len(got)], append([]Message{}, got...))
		seen[len(got)] = true
	}
	for end := range sent {
		got, _, err := Read(sent[:end], received)
		check(requests, got, err)
	}
	clear(seen)
	for end := range received {
		_, got, err := Read(sent, received[:end])
		check(responses, got, err)
	}
	assert.GreaterOrEqual(t, len(seen), exchanges, "each message counts once it is whole")
}

func checkRequest(t *testing.T, version, addr string, e exchange, got Message) {
	t.Helper()
	assert.Equal(t, version, got.Version, e.why)
	assert.Equal(t, e.method, got.Header.Get(":method"), e.why)
	assert.Equal(t, e.path, got.Header.Get(":path"), e.why)
	assert.Equal(t, addr, got.Header.Get(":authority"), e.why)
	agent := "Go-http-client/" + map[string]string{"1.1": "1.1", "2": "2.0"}[version]
	assert.Equal(t, agent, got.Header.Get("User-Agent"), e.why)
	assert.True(t, bytes.Equal(e.body, got.Body), e.why)
	assert.Equal(t, version == "1.1" && e.chunked, got.Header.Get("Transfer-Encoding") == "chunked", e.why)
	for key, values := range e.header {
		assert.Equal(t, values, got.Header[key], e.why)
	}
	for key, values := range e.trailer {
		assert.Equal(t, values, got.Trailer[key], e.why)
	}
	assert.Len(t, got.Trailer, len(e.trailer), e.why)
}

func checkResponse(t *testing.T, version string, e exchange, got Message) {
	t.Helper()
	assert.Equal(t, version, got.Version, e.why)
	assert.Equal(t, e.wantStatus, got.Header.Get(":status"), e.why)
	path, _, _ := strings.Cut(e.path, "?")
	assert.Equal(t, path, got.Header.Get("X-Path"), e.why)
	assert.True(t, bytes.Equal(e.wantBody, got.Body), e.why)
	for key, values := range e.wantHeader {
		assert.Equal(t, values, got.Header[key], e.why)
	}
	for key, values := range e.wantTrailer {
		assert.Equal(t, values, got.Trailer[key], e.why)
	}
	assert.Len(t, got.Trailer, len(e.wantTrailer), e.why)
}

func TestGarbage(t *testing.T) {
	const (
		ask       = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		reply     = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		notHTTP   = "wire: not HTTP"
		settings  = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		ask2      = http2.ClientPreface + settings
		nonsense  = "\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff"
		chunked   = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		twoOfFour = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}{}"
	)
	for _, c := range []struct{ why, sent, received, want string }{
		{"nothing", "", "", notHTTP},
		{"binary", "\x00\x00\x00\x05hello", "", notHTTP},
		{"a line that ends too early", "HELLO world\n", "", notHTTP},
		{"neither preface nor version", "PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n", "", notHTTP},
		{"after a request", ask + "\x00\x01", reply, `wire: sent: message 2 begins "\x00\x01"`},
		{"bytes beyond the length", twoOfFour, "", `wire: sent: message 2 begins "{}"`},
		{"a header line", "GET / HTTP/1.1\r\nno header\r\n\r\n", "", "wire: sent: message 1: malformed MIME header"},
		{"a chunk's length", chunked + "xyz\r\n0\r\n\r\n" + ask, "", "wire: sent: message 1: invalid byte in chunk length"},
		{"after a reply", ask, reply + "ok", `wire: received: message 2 begins "ok"`},
		{"HTTP/2's reply", ask, settings, `wire: received: message 1 begins "\x00\x00\x00\x04`},
		{"HTTP/1.1's reply", ask2, reply, "wire: received: http2: failed reading the frame payload: http2: frame too large"},
		{"data without stream", http2.ClientPreface + strings.Repeat("\x00", 9), "", "connection error: PROTOCOL_ERROR"},
		{"headers without meaning", ask2 + nonsense, "", "wire: sent: connection error: COMPRESSION_ERROR"},
	} {
		requests, responses, err := Read([]byte(c.sent), []byte(c.received))
		if assert.ErrorContains(t, err, c.want, c.why) {
			assert.Equal(t, c.want == notHTTP, errors.Is(err, ErrNotHTTP), c.why)
		}
		assert.Empty(t, requests, c.why)
		assert.Empty(t, responses, c.why)
	}
}

func TestUnusual(t *testing.T) {
	const ask = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	tests := []struct {
		why            string
		sent, received string
		want           []string // bodies of the responses
	}{
		{"a body to the connection's end", ask, "HTTP/1.1 200 OK\r\n\r\nto the end", []string{"to the end"}},
		{"an older version", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nold", []string{"old"}},
		{"requests ahead of replies", ask + ask + ask, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", []string{"a"}},
		{"a reply nobody asked for", ask, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na" +
			"HTTP/1.1 408 Request Timeout\r\nContent-Length: 1\r\n\r\nb", []string{"a", "b"}},
		{"no reason in the status line", ask, "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na", []string{"a"}},
	}
	for _, test := range tests {
		_, responses, err := Read([]byte(test.sent), []byte(test.received))
		require.NoError(t, err, test.why)
		var got []string
		for _, m := range responses {
			got = append(got, string(m.Body))
			assert.Equal(t, test.received[len("HTTP/"):][:3], m.Version, test.why)
		}
		assert.Equal(t, test.want, got, test.why)
	}
}

func TestCompressed(t *testing.T) {
	const plain, flagged = "\x00\x00\x00\x00\x01a", "\x01\x00\x00\x00\x02ab"
	for _, c := range []struct {
		why, body string
		want      bool
		wantErr   string
	}{
		{"nothing", "", false, ""},
		{"an empty message", "\x00\x00\x00\x00\x00", false, ""},
		{"a compressed one", flagged, true, ""},
		{"one of several", plain + flagged + plain, true, ""},
		{"gRPC-Web's trailers", plain + "\x80\x00\x00\x00\x02b:", false, ""},
		{"another flag", "\x02\x00\x00\x00\x00", false, "5 bytes from [02 00 00 00 00]"},
		{"half a prefix", plain + "\x00\x00\x00\x00", false, "4 bytes from [00 00 00 00]"},
		{"half a message", "\x00\x00\x00\x00\x02a", false, "6 bytes from [00 00 00 00 02]"},
		{"the largest length", "\x00\xff\xff\xff\xff", false, "5 bytes from [00 ff ff ff ff]"},
		{"JSON", `{"name":"a"}`, false, "12 bytes from [7b 22 6e 61 6d]"},
	} {
		got, err := Compressed([]byte(c.body))
		assert.Equal(t, c.want, got, c.why)
		if c.wantErr == "" {
			assert.NoError(t, err, c.why)
		} else {
			assert.EqualError(t, err, "wire: no gRPC message in "+c.wantErr, c.why)
		}
	}
}

// TestOpenStreams: a stream that the client keeps open has its request, and no longer has it after a reset.
func TestOpenStreams(t *testing.T) {
	client, addr, recorder := start(t, "2", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, more := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/stream", body)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = more.Write([]byte("first"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		sent, received := recorder.bytes(t)
		open, err := Open(sent)
		require.NoError(t, err)
		ended, _, err := Read(sent, received)
		require.NoError(t, err)
		require.Empty(t, ended)
		return len(open) == 1 && open[0].Header.Get(":path") == "/stream" && string(open[0].Body) == "first"
	}, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, more.CloseWithError(context.Canceled)) // net/http resets a stream when its body has ended
	require.Eventually(t, func() bool {
		sent, _ := recorder.bytes(t)
		open, err := Open(sent)
		require.NoError(t, err)
		return len(open) == 0
	}, time.Minute, time.Millisecond)
	open, err := Open([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.Empty(t, open, "another protocol")
}
