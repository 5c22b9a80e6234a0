package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
)

func TestMain(m *testing.M) {
	// After a request that is too large net/http waits for half a second before it closes the connection, whatever
	// Close says.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// codecs are those that the package's stacks are made of.
func codecs() map[string]codec.Codec {
	return map[string]codec.Codec{"jsonstd": jsonstd.Codec{}, "jsonstd.stream": jsonstd.Streaming{},
		"jsoniter": jsoniter.Compatible()}
}

// start starts the stack of a codec, with a service that is another than ours if err is not nil: it returns what err
// gives for all but the users that start a fixture.
func start(t *testing.T, c codec.Codec, err func() error) *rpcbench.Fixture {
	t.Helper()
	stack := Stack("test", "http/test", c, binding.Plain(), Options{})
	if err != nil {
		stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, c, binding.Plain(),
				func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
					if e := err(); e != nil && !testkit.Connects(*u) {
						return nil, e
					}
					return rpcbench.AnswerUser(u), nil
				}, Options{}), nil
		}
	}
	fixture, failed := rpcbench.Start(t.Context(), stack, rpcbench.Config{})
	require.NoError(t, failed)
	t.Cleanup(func() { require.NoError(t, fixture.Close()) })
	return fixture
}

// response is what came back, as it was sent.
type response struct {
	status int
	header http.Header
	body   string
}

// send makes one request by hand, with its body as it is.
func send(t *testing.T, method, url string, body []byte, encoding ...string) response {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "gzip")
	for _, e := range encoding {
		req.Header.Set("Content-Encoding", e)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return response{resp.StatusCode, resp.Header, string(data)}
}

// tagged is a JSON codec that nobody takes for another.
type tagged struct{ jsonstd.Codec }

func (tagged) ContentType() string { return "application/tagged" }
func (tagged) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return append([]byte("tag:"), data...), err
}
func (tagged) Unmarshal(data []byte, v any) error {
	rest, ok := bytes.CutPrefix(data, []byte("tag:"))
	if !ok {
		return errors.New("no tag")
	}
	return json.Unmarshal(rest, v)
}

func failed(c rpcbench.Code) error { return &rpcbench.Error{Code: c} }

func TestFailuresHaveOneStatusEach(t *testing.T) {
	broken := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	invalid := &rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: broken}
	var current error // of the service; set between calls
	all := codecs()
	all["tagged"] = tagged{}
	for name, k := range all {
		t.Run(name, func(t *testing.T) {
			fixture := start(t, k, func() error { return current })
			call, err := testkit.As[rpcbench.Users](t, fixture).PrepareUser(rpcbench.SampleUser(0, 0))
			require.NoError(t, err)
			for _, c := range []struct {
				why    string
				err    error
				status int
				code   rpcbench.Code
				broken []rpcbench.Violation
			}{
				{"the user breaks rules", invalid, 400, rpcbench.CodeInvalid, broken},
				{"the request can't be read", failed(rpcbench.CodeMalformed), 400, rpcbench.CodeMalformed, nil},
				{"the request is too large", failed(rpcbench.CodeTooLarge), 413, rpcbench.CodeTooLarge, nil},
				{"the service was too slow", failed(rpcbench.CodeDeadlineExceeded), 504, rpcbench.CodeDeadlineExceeded, nil},
				{"the service can't be reached", failed(rpcbench.CodeUnavailable), 503, rpcbench.CodeUnavailable, nil},
				{"the service is broken", failed(rpcbench.CodeInternal), 500, rpcbench.CodeInternal, nil},
				{"the service's own call was cancelled", failed(rpcbench.CodeCanceled), 500, rpcbench.CodeCanceled, nil},
				{"an Error within another", fmt.Errorf("create: %w", failed(rpcbench.CodeUnavailable)), 503,
					rpcbench.CodeUnavailable, nil},
				{"a bare context error: deadline", context.DeadlineExceeded, 504, rpcbench.CodeDeadlineExceeded, nil},
				{"a bare context error: cancelled", context.Canceled, 500, rpcbench.CodeCanceled, nil},
				{"somebody's error", io.ErrClosedPipe, 500, rpcbench.CodeInternal, nil},
				{"an Error without a code", new(rpcbench.Error), 500, rpcbench.CodeInternal, nil},
			} {
				current = c.err
				body, err := k.Marshal(rpcbench.SampleUser(0, 0))
				require.NoError(t, err)
				got := send(t, http.MethodPost, "http://"+fixture.Addr+usersPath, body)
				require.Equal(t, c.status, got.status, c.why)
				require.Equal(t, k.ContentType(), got.header.Get("Content-Type"), c.why)
				sent := new(rpcbench.Error)
				require.NoError(t, k.Unmarshal([]byte(got.body), sent), "%s: the body is in the stack's wire format: %s",
					c.why, got.body)

				_, err = testkit.As[rpcbench.Users](t, fixture).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
				for form, err := range map[string]error{"CreateUser": err, "Call": call(t.Context())} {
					e, ok := errors.AsType[*rpcbench.Error](err)
					require.True(t, ok, "%s, %s: %v", c.why, form, err)
					require.Equal(t, c.code, e.Code, "%s, %s", c.why, form)
					require.Equal(t, c.broken, e.Violations, "%s, %s", c.why, form)
					require.Equal(t, c.code == rpcbench.CodeCanceled, errors.Is(err, context.Canceled), "%s, %s", c.why, form)
					require.Equal(t, c.code == rpcbench.CodeDeadlineExceeded, errors.Is(err, context.DeadlineExceeded), "%s, %s",
						c.why,
						form)
					if want, ok := c.err.(*rpcbench.Error); ok && want.Code != "" {
						require.Equal(t, want.Message, e.Message, "%s: %s", c.why, form)
					}
				}
				current = nil
				require.NoError(t, call(t.Context()), "%s: the call after it", c.why)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	const (
		user  = `{"email":"anna@example.com","name":"Anna","password":"password"`
		whole = user + `}`
	)
	padded := func(n int) string { return strings.Repeat(" ", n-len(whole)) + whole }
	for _, c := range []struct {
		why, body string
		want      rpcbench.Code // "" for success
		stream    rpcbench.Code // of the codec that reads a stream
	}{
		{"nothing is wrong", whole, "", ""},
		{"white space around it", " \n" + whole + "\n ", "", ""},
		{"nothing", "", rpcbench.CodeMalformed, rpcbench.CodeMalformed},
		{"truncated before the end", user, rpcbench.CodeMalformed, rpcbench.CodeMalformed},
		{"a number for a string", `{"email":7}`, rpcbench.CodeMalformed, rpcbench.CodeMalformed},
		{"garbage after it", whole + "x", rpcbench.CodeMalformed, ""},
		{"another after it", whole + whole, rpcbench.CodeMalformed, ""},
		{"null, which decodes to a user with nothing", "null", rpcbench.CodeInvalid, rpcbench.CodeInvalid},
		{"as large as may be", padded(rpcbench.MaxBody), "", ""},
		{"a byte larger", padded(rpcbench.MaxBody + 1), rpcbench.CodeTooLarge, rpcbench.CodeTooLarge},
	} {
		for name, k := range codecs() {
			t.Run(c.why+"/"+name, func(t *testing.T) {
				got := send(t, http.MethodPost, "http://"+start(t, k, nil).Addr+usersPath, []byte(c.body))
				require.NotContains(t, got.header, "Content-Encoding", "which the request would have taken")
				want := c.want
				if _, ok := k.(codec.Streaming); ok {
					want = c.stream
				}
				if want == "" {
					require.Equal(t, http.StatusOK, got.status, got.body)
					return
				}
				e := new(rpcbench.Error)
				require.NoError(t, k.Unmarshal([]byte(got.body), e), got.body)
				require.Equal(t, want, e.Code)
				require.Equal(t, Status(want), got.status)
			})
		}
	}
}

// The limit is on what a body becomes: a few kilobytes may become gigabytes.
func TestGzippedBodies(t *testing.T) {
	stack := Stack("test", "http/test", jsonstd.Codec{}, binding.Plain(), Options{Gzip: true})
	fixture, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{})
	require.NoError(t, err)
	defer fixture.Close()
	user, err := json.Marshal(rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	compressed := func(spaces int) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(append(bytes.Repeat([]byte(" "), spaces), user...))
		require.NoError(t, errors.Join(err, w.Close()))
		return out.Bytes()
	}
	good := compressed(0)
	for _, c := range []struct {
		why  string
		body []byte
		want rpcbench.Code // "" for success
	}{
		{"not compressed", user, rpcbench.CodeMalformed},
		{"cut off", good[:len(good)-1], rpcbench.CodeMalformed},
		{"as large as may be", compressed(rpcbench.MaxBody - len(user)), ""},
		{"a byte larger", compressed(rpcbench.MaxBody - len(user) + 1), rpcbench.CodeTooLarge},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := send(t, http.MethodPost, "http://"+fixture.Addr+usersPath, c.body, "gzip")
			require.Equal(t, "gzip", got.header.Get("Content-Encoding"))
			r, err := gzip.NewReader(strings.NewReader(got.body))
			require.NoError(t, err)
			body, err := io.ReadAll(r)
			require.NoError(t, err)
			if c.want == "" {
				require.Equal(t, http.StatusOK, got.status, string(body))
				return
			}
			e := new(rpcbench.Error)
			require.NoError(t, json.Unmarshal(body, e), string(body))
			require.Equal(t, c.want, e.Code)
			require.Equal(t, Status(c.want), got.status)
		})
	}
}

func TestOtherRequests(t *testing.T) {
	url := "http://" + start(t, jsonstd.Codec{}, nil).Addr
	for _, c := range []struct {
		why, method, path string
		status            int
	}{
		{"another method", http.MethodPut, usersPath, http.StatusMethodNotAllowed},
		{"another path", http.MethodPost, "/", http.StatusNotFound},
	} {
		t.Run(c.why, func(t *testing.T) { require.Equal(t, c.status, send(t, c.method, url+c.path, []byte("{}")).status) })
	}
}

// Limits of the connection are on the server; a timer of a whole request would end streams, and other libraries have
// none.
func TestServerLimits(t *testing.T) {
	var config rpcbench.ServerConfig
	create := binding.Plain().NewService(config)
	got := newServer(config, jsonstd.Codec{}, binding.Plain(), create, Options{}).(server).Server
	require.Equal(t, rpcbench.HeaderTimeout, got.ReadHeaderTimeout)
	require.Equal(t, rpcbench.IdleTimeout, got.IdleTimeout)
	require.Equal(t, rpcbench.MaxHeader, got.MaxHeaderBytes)
	require.Zero(t, got.ReadTimeout)
	require.Zero(t, got.WriteTimeout)
	require.Equal(t, "{HTTP1}", got.Protocols.String())
}

// unwritable is a codec that can't encode values of some type.
type unwritable struct {
	jsonstd.Codec
	refuses func(v any) bool
}

func (c unwritable) Marshal(v any) ([]byte, error) {
	if c.refuses(v) {
		return nil, errors.New("unwritable")
	}
	return c.Codec.Marshal(v)
}

// unwritableStream is likewise for a stream.
type unwritableStream struct{ jsonstd.Streaming }

func (unwritableStream) Encode(io.Writer, any) error { return errors.New("unwritable") }

func TestWhatCannotBeEncoded(t *testing.T) {
	create := func(addr string, c codec.Codec) error {
		client := newClient(rpcbench.ClientConfig{Addr: addr, DialContext: new(net.Dialer).DialContext, Conns: 1}, c,
			binding.Plain(), Options{})
		defer client.Close()
		_, err := client.(rpcbench.Users).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		return err
	}
	serve := func(c codec.Codec) string {
		var config rpcbench.ServerConfig
		create := binding.Plain().NewService(config)
		return serveHandler(t, newServer(config, c, binding.Plain(), create, Options{}).(server).Handler)
	}
	good := serve(jsonstd.Codec{})
	require.NoError(t, create(good, jsonstd.Codec{}))
	for _, c := range []struct {
		why  string
		err  error
		code rpcbench.Code
	}{
		{"a request", create(good, unwritable{refuses: func(any) bool { return true }}), rpcbench.CodeMalformed},
		{"a request in a stream", create(good, unwritableStream{}), rpcbench.CodeMalformed},
		{"a reply", create(serve(unwritable{refuses: func(v any) bool {
			_, ok := v.(*rpcbench.Response)
			return ok
		}}), jsonstd.Codec{}), rpcbench.CodeInternal},
		{"a reply and the error about it", create(serve(unwritable{refuses: func(any) bool { return true }}),
			jsonstd.Codec{}), rpcbench.CodeInternal},
	} {
		require.Equal(t, c.code, rpcbench.CodeOf(c.err), "%s: %v", c.why, c.err)
	}
}

// serveHandler serves h on an address that it returns, until the test ends.
func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestReplies(t *testing.T) {
	u := rpcbench.SampleUser(0, 0)
	good, err := json.Marshal(rpcbench.AnswerUser(&u))
	require.NoError(t, err)
	const invalid = `{"code":"invalid","violations":[{"field":"name","rule":"min=4"}]}`
	for _, c := range []struct {
		why    string
		status int
		body   string
		cut    bool          // the connection breaks after the body, of which more was announced
		want   rpcbench.Code // of the Call; "" for success
	}{
		{"the right one", 200, string(good), false, ""},
		{"nothing", 200, "", false, rpcbench.CodeMalformed},
		{"no JSON", 200, "<html>", false, rpcbench.CodeMalformed},
		{"half of it, then the connection breaks", 200, string(good[:len(good)/2]), true, rpcbench.CodeUnavailable},
		{"no JSON, and much of it", 200, strings.Repeat("x", 1<<20), false, rpcbench.CodeMalformed},
		{"an error with the status of a success", 200, invalid, false, rpcbench.CodeMalformed},
		{"an empty object with the status of a success", 200, "{}", false, rpcbench.CodeInternal},
		{"a failure", 400, invalid, false, rpcbench.CodeInvalid},
		{"a failure, then the connection breaks", 400, invalid, true, rpcbench.CodeUnavailable},
		{"a failure with the body of a success", 400, string(good), false, rpcbench.CodeInternal},
		{"a failure whose body is text", 500, "oops", false, rpcbench.CodeInternal},
		{"a failure whose body has no code", 500, "{}", false, rpcbench.CodeInternal},
		{"a failure whose body is longer than any", 400, strings.Repeat(" ", rpcbench.MaxBody) + invalid, true,
			rpcbench.CodeInternal},
		{"a failure whose body has the code of another status", 503, invalid, false, rpcbench.CodeInternal},
	} {
		for name, k := range codecs() {
			t.Run(c.why+"/"+name, func(t *testing.T) {
				addr := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if c.cut {
						w.Header().Set("Content-Length", fmt.Sprint(len(c.body)+1000))
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
					if c.cut {
						_ = http.NewResponseController(w).Flush()
						panic(http.ErrAbortHandler)
					}
				}))
				dials := 0
				client := newClient(rpcbench.ClientConfig{Addr: addr, Conns: 1,
					DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
						dials++
						return new(net.Dialer).DialContext(ctx, network, addr)
					}}, k, binding.Plain(), Options{})
				defer client.Close()
				call, err := client.(rpcbench.Users).PrepareUser(rpcbench.SampleUser(0, 0))
				require.NoError(t, err)
				for range 2 {
					err = call(t.Context())
					require.Equal(t, c.want, rpcbench.CodeOf(err), err)
					_, ok := errors.AsType[*rpcbench.Error](err)
					require.Equal(t, c.want != "", ok, err)
				}
				if !c.cut {
					require.Equal(t, 1, dials, "the body is drained, so that the connection can be used again")
				}
			})
		}
	}
}

// transport is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server may close an idle connection while a request is on its way: net/http then sends it again.
func TestTunedRequestsCanBeSentAgain(t *testing.T) {
	var sent []string
	r := &requests{http: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		for body := r.Body; len(sent) < 2; {
			data, err := io.ReadAll(body)
			require.NoError(t, err)
			sent = append(sent, string(data))
			body, err = r.GetBody()
			require.NoError(t, err)
		}
		return nil, io.EOF
	})}}
	_, err := r.tuned()(t.Context(), bytes.NewReader([]byte("body")))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"body", "body"}, sent)
}

// TestDefaultsAreKept: the Transport of Defaults is http.DefaultTransport, but for what a fixture has to set.
func TestDefaultsAreKept(t *testing.T) {
	made := open(rpcbench.ClientConfig{}, jsonstd.Codec{}, Options{Defaults: true})
	require.Len(t, made, 1)
	got := reflect.ValueOf(made[0].Client.Transport).Elem()
	want := reflect.ValueOf(http.DefaultTransport.(*http.Transport).Clone()).Elem()
	for _, field := range reflect.VisibleFields(got.Type()) {
		a, b := got.FieldByIndex(field.Index), want.FieldByIndex(field.Index)
		switch {
		case !field.IsExported() || field.Name == "DialContext" || field.Name == "TLSClientConfig":
		case field.Type.Kind() == reflect.Func:
			require.Equal(t, b.Pointer(), a.Pointer(), field.Name)
		default:
			require.Equal(t, b.Interface(), a.Interface(), field.Name)
		}
	}
	require.NotEqual(t, want.FieldByName("DialContext").Pointer(), got.FieldByName("DialContext").Pointer())
}

// Close of a client of HTTP/2 ends its connections, also while a call is under way.
// The Transport's own way leaves those.
func TestCloseOfHTTP2(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	server.Config.Protocols = protocols(true)
	server.Start()
	defer server.Close()
	defer close(leave)
	client := HTTPClients(rpcbench.ClientConfig{Addr: server.Listener.Addr().String(), Conns: 1,
		DialContext: new(net.Dialer).DialContext}, true)[0]
	ended := make(chan error, 1)
	go func() {
		resp, err := client.Get(server.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	<-entered
	client.Close()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the connection is left open")
	}
}

// A rare large body does not make all buffers of the pool large.
func TestLargeBuffersAreNotKept(t *testing.T) {
	b := newBodies(jsonstd.Codec{}, Options{Tuned: true}, false).(*pooled)
	for _, size := range []int{100, 2 * maxKept, 100} {
		body := `{"name":"` + strings.Repeat("n", size) + `"}`
		require.NoError(t, b.decode(nil, strings.NewReader(body), new(rpcbench.User)))
		kept := b.buffers.Get().(*bytes.Buffer)
		require.LessOrEqual(t, kept.Cap(), maxKept)
		require.Zero(t, kept.Len(), "nothing of the body before is in it")
		b.buffers.Put(kept)
	}
}
