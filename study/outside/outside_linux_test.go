package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// TestMain is also the program that tests start, and its servers.
func TestMain(m *testing.M) {
	if os.Getenv(serves) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func set(t *testing.T, flags ...string) {
	t.Helper()
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		require.NoError(t, flag.Set(name, value))
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
			set(t, "message="+c.message, "rate="+c.rate, "pairs=2", "processes=1", "window=50ms")
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
			var out, errs bytes.Buffer
			program := exec.Command("/proc/self/exe", strings.Fields(args)...)
			program.Env, program.Stdout, program.Stderr = append(os.Environ(), serves+"=none"), &out, &errs
			err := program.Run()
			require.Error(t, err)
			require.Equal(t, 2, program.ProcessState.ExitCode(), errs.String())
			require.Empty(t, out.String())
			require.Regexp(t, `^outside: want -message small or structured[^\n]*\n$`, errs.String())
		})
	}
}
