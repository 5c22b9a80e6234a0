package lib

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"
)

type codec struct{ client *http.Client }

func (codec) Close() error { return nil }

// A method is not the init that runs by itself.
func (codec) init() {}

var (
	ErrX    = errors.New("x")
	ErrY    = fmt.Errorf("y: %w", ErrX)
	pattern = regexp.MustCompile("x")
	table   = map[string][]int{"x": {1}}
	structs = [...]struct{ f func() }{{func() {}}}
	one     = codec{client: nil}

	_, _ io.Closer = codec{}, (*codec)(nil)
)

//go:embed clean.go
var source string

func clean(h http.Handler, rt http.RoundTripper, w io.Writer) {
	var mu sync.Mutex
	mu.Lock()
	s := &http.Server{Addr: "127.0.0.1:0", Handler: h}
	_ = []*http.Server{{Handler: h}, s, new(http.Server{Handler: h})}
	_ = http.Client{rt, nil, nil, 0}
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

func loop(b *testing.B, work struct{ N int }) {
	for b.Loop() {
		_ = work.N
	}
	func(b *struct{ N int }) { _ = b.N }(nil)
	func(loop func(int)) { loop(b.N) }(nil)
}
