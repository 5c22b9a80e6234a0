package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

const contentType = "application/json"

func directHTTPJSON(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", createUser(rules(&rpcbench.User{}, "ID")))
	url := serveHTTP(tb, mux, protocols) + "/users"
	client := httpClient(tb, dial, protocols)
	return func(ctx context.Context, i int) error {
		got, err := post(ctx, client, url, &asked[i])
		if err != nil {
			return err
		}
		return rpcbench.CheckUser(&asked[i], got)
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
	return "http://" + testkit.Serve(tb, server)
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

func createUser(validate *validator.Validate) http.HandlerFunc {
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
		u := new(rpcbench.User)
		if err := json.Unmarshal(data, u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := validate.Struct(u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u.ID = rpcbench.UserID
		body, err := json.Marshal(&rpcbench.Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // fails only when the client has gone
	}
}

func post(ctx context.Context, client *http.Client, url string, u *rpcbench.User) (*rpcbench.Response, error) {
	data, err := json.Marshal(u)
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
	r := new(rpcbench.Response)
	return r, json.Unmarshal(body, r)
}
