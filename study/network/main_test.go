package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is also the processes that the tests start.
func TestMain(m *testing.M) {
	switch done, err := served(); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		reason string
		args   []string
	}{
		{"nothing is asked for", nil},
		{"there is no such measurement", []string{"http4"}},
		{"no rounds", []string{"rto", "0"}},
		{"seconds that are no number", []string{"rto", "1", "long"}},
		{"more than that", []string{"rto", "1", "1", "1"}},
	} {
		t.Run(c.reason, func(t *testing.T) { require.ErrorContains(t, run(t.Context(), c.args, io.Discard), "want http3") })
	}
}

// Each measurement has a row or a line of each of its clients.
func TestMeasurements(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if err := run(t.Context(), []string{"can"}, io.Discard); err != nil {
		t.Skip(err)
	}
	for name, has := range map[string][]string{
		"http3":  {"protocol=http1/link=20ms", "protocol=http2/link=20ms", "protocol=http3/link=20ms"},
		"rto":    {"protocol=http1/link=1ms/least=200000us", "protocol=http2/link=1ms/least=5000us"},
		"vanish": {"gRPC:", "gRPC with keepalive", "HTTP/1.1:", "HTTP/2:", "HTTP/2 with pings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			require.NoError(t, run(t.Context(), []string{name, "1", "1"}, &out))
			for _, row := range has {
				require.Contains(t, out.String(), row)
			}
		})
	}
}
