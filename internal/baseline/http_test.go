package baseline

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codec/xmlstd"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

func directHTTPJSON(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	return directHTTP(tb, dial, asked, "application/json", nativeJSON(),
		anyCodec[rpcbench.User](json.Marshal, json.Unmarshal), anyCodec[rpcbench.Response](json.Marshal, json.Unmarshal))
}

func directHTTPJSONIter(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	api := jsoniter.ConfigCompatibleWithStandardLibrary
	return directHTTP(tb, dial, asked, "application/json", nativeJSON(),
		anyCodec[rpcbench.User](api.Marshal, api.Unmarshal), anyCodec[rpcbench.Response](api.Marshal, api.Unmarshal))
}

func directHTTPXML(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	return directHTTP(tb, dial, asked, "application/xml; charset=utf-8", nativeXML(),
		anyCodec[xmlstd.User](xml.Marshal, unmarshalXML), anyCodec[xmlstd.Response](xml.Marshal, unmarshalXML))
}

func directHTTPMsgpack(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	return directHTTP(tb, dial, asked, "application/vnd.msgpack", nativeMsgpack(),
		msgpCodec[msgp.User](), msgpCodec[msgp.Response]())
}

func directHTTPProtobuf(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	return directHTTP(tb, dial, asked, "application/protobuf", nativeProtobuf(),
		protoCodec[userv1.User](), protoCodec[userv1.CreateUserResponse]())
}

// codec is what a library does with one type.
type codec[M any] struct {
	marshal   func(*M) ([]byte, error)
	unmarshal func([]byte, *M) error
}

// anyCodec is one of a library that takes all types.
func anyCodec[M any](marshal func(any) ([]byte, error), unmarshal func([]byte, any) error) codec[M] {
	return codec[M]{
		func(m *M) ([]byte, error) { return marshal(m) },
		func(data []byte, m *M) error { return unmarshal(data, m) },
	}
}

// unmarshalXML is xml.Unmarshal, but for what that does not look at.
func unmarshalXML(data []byte, v any) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more data after the root element")
	}
	return nil
}

func msgpCodec[M any, P interface {
	*M
	MarshalMsg([]byte) ([]byte, error)
	UnmarshalMsg([]byte) ([]byte, error)
}]() codec[M] {
	return codec[M]{
		func(m *M) ([]byte, error) { return P(m).MarshalMsg(nil) },
		func(data []byte, m *M) error {
			rest, err := P(m).UnmarshalMsg(data)
			if err == nil && len(rest) > 0 {
				err = errors.New("more data after the value")
			}
			return err
		},
	}
}

func protoCodec[M any, P interface {
	*M
	proto.Message
}]() codec[M] {
	return codec[M]{
		func(m *M) ([]byte, error) { return proto.Marshal(P(m)) },
		func(data []byte, m *M) error { return proto.Unmarshal(data, P(m)) },
	}
}

// directHTTP is the form of every library that only encodes and decodes: net/http does the rest.
func directHTTP[U, R any](tb testing.TB, dial dialFunc, asked []rpcbench.User,
	contentType string, n native[U, R], user codec[U], reply codec[R],
) create {
	tb.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", handler(contentType, n, user, reply))
	url := serveHTTP(tb, mux, protocols) + "/users"
	client := httpClient(tb, dial, protocols)
	requests := n.requests(asked)
	return func(ctx context.Context, i int) error {
		got, err := post(ctx, client, url, contentType, requests[i], user, reply)
		if err != nil {
			return err
		}
		return n.check(requests[i], got)
	}
}

// serveHTTP serves until the end of the test or benchmark.
func serveHTTP(tb testing.TB, h http.Handler, protocols *http.Protocols) (url string) {
	tb.Helper()
	server := &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: rpcbench.HeaderTimeout,
		IdleTimeout:       rpcbench.IdleTimeout,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}
	ln := listen(tb)
	serveUntilEnd(tb, func() error { return server.Serve(ln) }, server.Close)
	return "http://" + ln.Addr().String()
}

func httpClient(tb testing.TB, dial dialFunc, protocols *http.Protocols) *http.Client {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{
		DialContext:         dial,
		Protocols:           protocols,
		DisableCompression:  true,
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
	}}
	tb.Cleanup(client.CloseIdleConnections)
	return client
}

func handler[U, R any](contentType string, n native[U, R], user codec[U], reply codec[R]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u := new(U)
		if err := user.unmarshal(data, u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := n.validate.Struct(u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, err := reply.marshal(n.answer(u))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // fails only when the client has gone
	}
}

func post[U, R any](ctx context.Context, client *http.Client, url, contentType string, u *U, user codec[U],
	reply codec[R]) (*R, error) {
	data, err := user.marshal(u)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	r := new(R)
	return r, reply.unmarshal(body, r)
}
