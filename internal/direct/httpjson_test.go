package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
)

type jsonUser struct {
	ID       string `json:"id,omitempty" validate:"-"`
	Email    string `json:"email" validate:"required,email,max=254"`
	Name     string `json:"name" validate:"min=4,max=100"`
	Password string `json:"password" validate:"min=4,max=72"`
	Avatar   []byte `json:"avatar,omitempty" validate:"max=1048576"`
}

type jsonReply struct {
	Code    int32     `json:"code"`
	Message string    `json:"message"`
	User    *jsonUser `json:"user"`
}

func directHTTPJSON(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /users", jsonHandler())
	server := &http.Server{
		Handler:           mux,
		Protocols:         protocols,
		ReadHeaderTimeout: rpcbench.HeaderTimeout,
		IdleTimeout:       rpcbench.IdleTimeout,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}
	ln := listen(tb)
	serveUntilEnd(tb, func() error { return server.Serve(ln) }, server.Close)

	client := &http.Client{Transport: &http.Transport{
		DialContext:         dial,
		Protocols:           protocols,
		DisableCompression:  true,
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
	}}
	tb.Cleanup(client.CloseIdleConnections)
	url := "http://" + ln.Addr().String() + "/users"

	requests := make([]*jsonUser, len(asked))
	for i, u := range asked {
		requests[i] = &jsonUser{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
	}
	return func(ctx context.Context, i int) error { return postUser(ctx, client, url, requests[i]) }
}

func jsonHandler() http.HandlerFunc {
	validate := validator.New(validator.WithRequiredStructEnabled())
	validate.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
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
		u := new(jsonUser)
		if err := json.Unmarshal(data, u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := validate.Struct(u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u.ID = rpcbench.UserID
		body, err := json.Marshal(&jsonReply{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // fails only when the client has gone
	}
}

func postUser(ctx context.Context, client *http.Client, url string, u *jsonUser) error {
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	reply := new(jsonReply)
	if err := json.Unmarshal(body, reply); err != nil {
		return err
	}
	if reply.Code != rpcbench.OKCode || reply.Message != rpcbench.OKMessage || reply.User == nil {
		return fmt.Errorf("wrong reply: %+v", reply)
	}
	if got := reply.User; got.ID != rpcbench.UserID || got.Email != u.Email || got.Name != u.Name ||
		got.Password != u.Password || !bytes.Equal(got.Avatar, u.Avatar) {
		return fmt.Errorf("asked for %+v, got %+v", u, got)
	}
	return nil
}
