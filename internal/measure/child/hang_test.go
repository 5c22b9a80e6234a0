package child

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A child that gives no answer tells what its goroutines do before it's ended, if it can within a second.
func TestALateChildTellsItsGoroutines(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signal for that")
	}
	deaf := filepath.Join(t.TempDir(), "deaf")
	require.NoError(t, os.WriteFile(deaf, []byte("#!/bin/sh\ntrap '' QUIT\necho 8\nexec sleep 600\n"), 0o700))
	for _, c := range []struct{ why, path, goroutines string }{
		{"a stack that never starts", "", "internal/measure/child/child_test.go:"},
		{"one that hears no signal", deaf, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			told(t)
			p, err := Command{Path: c.path, Does: Serves, Asked: service{Stack: "hangs"},
				Limit: 300 * time.Millisecond}.Start(t.Context())
			require.NoError(t, err)
			hang, hangs := errors.AsType[*Hang](p.Ask("", new(Report)))
			require.True(t, hangs)
			require.EqualError(t, hang, "a stack hangs: its process gave no answer in 300ms")
			gone(t, p.cmd.Process.Pid)
			if c.goroutines == "" {
				require.Empty(t, hang.Goroutines)
				return
			}
			require.Contains(t, hang.Goroutines, "github.com/rpcbench/rpcbench/"+c.goroutines)
			require.NotContains(t, hang.Goroutines, "\t/", "a folder")
			require.NotContains(t, hang.Goroutines, "rip ", "a register")
		})
	}
}

// A server whose Close never returns is left, and its process tells why.
func TestAServerThatNeverCloses(t *testing.T) {
	defer func(was time.Duration) { Patience = was }(Patience)
	Patience = time.Millisecond
	until := make(chan struct{})
	defer close(until)
	err := closes("shop", func() error { <-until; return nil })
	require.EqualError(t, err, "shop hangs: Close of its server had not returned after 1.5ms")
	hang := failureOf(err).Hang
	require.Contains(t, hang.Goroutines, "internal/measure/child/hang_test.go:")
	require.EqualError(t, closes("shop", func() error { return errors.New("odd") }), "close: odd")
	require.NoError(t, closes("shop", func() error { return nil }))
}

func TestPathsAreThoseOfPackages(t *testing.T) {
	const trace = `SIGQUIT: quit
PC=0x47f601 m=0 sigcode=0

goroutine 1 [select (no cases), 2 minutes]:
google.golang.org/grpc/internal/transport.(*http2Client).reader(0xc000, {0x1, 0x2})
	/root/go/pkg/mod/google.golang.org/grpc@v1.85.0/internal/transport/http2_client.go:12 +0x1d
gopkg.in/yaml%2ev3.Map[...](0x1)
	C:/Users/anna/go/pkg/mod/gopkg.in/yaml.v3@v3.0.1/map.go:7
main.main()
	C:\Users\anna\shop\main.go:3 +0x2
created by net/http.(*Server).Serve in goroutine 7
	/usr/local/go/src/net/http/server.go:3454 +0x485

goroutine 2 [running]:
	goroutine running on other thread; stack unavailable

rax    0xca
rip    0x47f601
`
	require.Equal(t, `goroutine 1 [select (no cases), 2 minutes]:
google.golang.org/grpc/internal/transport.(*http2Client).reader(0xc000, {0x1, 0x2})
	google.golang.org/grpc/internal/transport/http2_client.go:12 +0x1d
gopkg.in/yaml%2ev3.Map[...](0x1)
	gopkg.in/yaml.v3/map.go:7
main.main()
	main/main.go:3 +0x2
created by net/http.(*Server).Serve in goroutine 7
	net/http/server.go:3454 +0x485

goroutine 2 [running]:
	goroutine running on other thread; stack unavailable`, ofPackages(trace))
	require.Empty(t, ofPackages("httpjson: listening\n"))
}
