package lib

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"
)

type codec struct{ client *http.Client }

func clean(h http.Handler, rt http.RoundTripper, w io.Writer) {
	var mu sync.Mutex
	mu.Lock()
	s := &http.Server{Addr: "127.0.0.1:0", Handler: h}
	_ = []*http.Server{{Handler: h}, s, new(http.Server{Handler: h})}
	_ = map[string]*http.Client{"x": {Transport: rt}}
	var c *http.Client
	_, _ = (*http.Client)(nil), c
	c.Get("x")
	s.Serve(nil)
	http.NewServeMux().Handle("/", h)
	httptest.NewServer(h).Close()
	net.Listen("tcp", "[::1]:0")
	_ = []string{":0", "localhost:0", "12:30", "2026-01-02T15:04", "fe80::1", "::1", "user.go:12", "example.com:443",
		"127.0.0.1:%d"}
	time.AfterFunc(time.Second, mu.Unlock)
	fmt.Fprintln(w, fmt.Sprint(os.Getenv("X")))
}
