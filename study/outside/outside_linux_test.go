package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// TestMain is also the program that tests start, its servers, and a call that fails.
func TestMain(m *testing.M) {
	switch os.Getenv(serves) {
	case "":
		goleak.VerifyTestMain(m)
	case "nobody":
		listener := must(net.Listen("tcp", "127.0.0.1:0"))
		check(listener.Close())
		call, _ := dial("JSON", listener.Addr().String())
		call(0)
	default:
		main()
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		message, rate, load string
		asJSON, asProtobuf  int
	}{
		{"small", "2000", "small, 2000/s:", 66, 36},
		{"small", "0", "small, saturated:", 66, 36},
		{"structured", "2000", "structured, 2000/s:", 2018, 1007},
		{"structured", "0", "structured, saturated:", 2018, 1007},
	} {
		t.Run(c.load, func(t *testing.T) {
			for name, value := range map[string]string{
				"message": c.message, "rate": c.rate, "pairs": "2", "processes": "1", "window": "200ms",
			} {
				require.NoError(t, flag.Set(name, value))
			}
			plain, generated := requests()
			for i, p := range plain {
				require.Equal(t, c.asJSON, len(must(json.Marshal(p))))
				require.Equal(t, c.asProtobuf, proto.Size(generated[i].(proto.Message)))
			}
			var out bytes.Buffer
			all, ratio := run(&out)
			require.Len(t, all, 2)
			want := 1.0
			for _, pair := range all {
				for _, f := range pair {
					require.Positive(t, min(f.calls, f.client, f.server, f.p50), "%+v", f)
				}
				want *= math.Sqrt((pair[1].client + pair[1].server) / (pair[0].client + pair[0].server))
			}
			require.InEpsilon(t, want, ratio, 1e-9)
			require.Regexp(t, "^pair 1: .*\npair 2: .*\n"+c.load+" .*\n$", out.String())
			_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			require.Equal(t, unix.ECHILD, err, "a server is left")
		})
	}
}

func TestBadInput(t *testing.T) {
	for _, args := range []string{
		"-message flat", "-rate -1", "-rate 0.5", "-rate NaN", "-rate 1e7", "-callers 0", "-callers 10001", "-pairs 1",
		"-processes 0", "-pairs 3 -processes 4", "-window 0s", "-window 1h", "-pairs 100000 -window 1us", "-pairs x",
		"more",
	} {
		t.Run(args, func(t *testing.T) {
			endsWith(t, 2, `outside: want -message small or structured[^\n]*`, "program", strings.Fields(args)...)
		})
	}
}

func TestFailedCall(t *testing.T) {
	endsWith(t, 1, `[^\n]*connection refused`, "nobody")
}

// endsWith starts this binary as what TestMain knows. It ends with a status and one line.
func endsWith(t *testing.T, status int, line, as string, args ...string) {
	t.Helper()
	testkit.Alone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	program := exec.CommandContext(ctx, "/proc/self/exe", args...)
	program.Env = append(os.Environ(), serves+"="+as)
	said, err := program.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, status, program.ProcessState.ExitCode(), "%s", said)
	require.Regexp(t, "^"+line+"\n$", string(said))
}
