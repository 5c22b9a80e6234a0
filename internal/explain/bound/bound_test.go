package bound

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
)

// typed runs bound as main does, without a terminal.
func typed(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	err = command(&out).Run(t.Context(), args, &out)
	return out.String(), err
}

func command(out io.Writer) shell.Command {
	return Command(shell.Program{Stacks: stacks.All()}, out)
}

const aService = "testdata/services/etcd.pprof"

// A server gives its profile, or there is one line that says why it did not.
func TestFetch(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(aService)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for path, body := range map[string][]byte{"/good": good, "/page": []byte("<html><title>a page</title></html>")} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	}
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stalls", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(good[:len(good)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	want, err := typed(t, aService)
	require.NoError(t, err)
	out, err := typed(t, server.URL+"/good")
	require.NoError(t, err)
	require.Equal(t, want, strings.Replace(out, "good: ", "etcd.pprof: ", 1), "of the server and of a file")

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for url, want := range map[string]string{
		server.URL + "/page":                     "/page is no whole profile, as /debug/pprof/profile writes it: ",
		server.URL + "/missing":                  "/missing answers 404 Not Found: is it /debug/pprof/profile?",
		server.URL + "/silent":                   "no whole profile came within 300ms: ask for fewer seconds",
		server.URL + "/stalls":                   "no whole profile came within 300ms: ",
		"http://" + closed.Addr().String() + "/": "connection refused",
		"http://[::1":                            "bound: parse ",
	} {
		var out strings.Builder
		bound := "300ms"
		if !strings.Contains(want, bound) {
			bound = "1m"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of a bound that does not hold
		err := command(&out).Run(ctx, []string{"-timeout", bound, url}, &out)
		cancel()
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, out.String())
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	require.Equal(t, shell.ErrInterrupted, command(io.Discard).Run(ctx, []string{server.URL + "/silent"}, io.Discard))
}

// A profile without RPCs bounds nothing, and says which one does, however many samples it has.
func TestNoRPCs(t *testing.T) {
	const test, job = " shop.tax<shop.BenchmarkTax<testing.(*B).runN<testing.(*B).launch", " runtime.memmove<shop.nightly"
	const rpc = " net/http.(*conn).readRequest<net/http.(*conn).serve"
	for _, c := range []struct {
		why         string
		samples     []string
		none, bound bool
	}{
		{"of go test", slices.Repeat([]string{test, " runtime.mcall"}, 300), true, false},
		{"of a job", slices.Repeat([]string{job, " runtime.mcall"}, 300), true, false},
		{"of a few samples", []string{test, job, " runtime.mcall"}, true, false},
		{"of a database's client", slices.Repeat([]string{" database/sql.(*DB).query<runtime.main"}, 600), true, false},
		{"of one sample of an RPC", append(slices.Repeat([]string{job, " runtime.mcall"}, 300), rpc), false, true},
		{"of a few samples, one of an RPC", []string{job, rpc, " runtime.mcall"}, false, false},
	} {
		path := filepath.Join(t.TempDir(), "cpu.pprof")
		file, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, testkit.Profile(nil, c.samples...).Write(file))
		require.NoError(t, file.Close())
		out, err := typed(t, path)
		require.NoError(t, err)
		for said, want := range map[string]bool{"No sample is of an RPC library that rpcbench knows": c.none,
			"Next: profile the service while it serves calls: /debug/pprof/profile?": c.none,
			"Serving and calling RPCs takes ":                                        c.bound, "Don't switch for CPU": c.bound} {
			require.Equal(t, want, strings.Contains(strings.ReplaceAll(out, "\n  ", " "), said), "%s: %s", c.why, out)
		}
	}
}

// A profile that never comes through a pipe is waited for until a signal.
func TestAPipeIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	from, to := io.Pipe()
	_, err := piped(ctx, from)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, to.Close())
}

// TestServicesPage: docs/service.md and testdata/services.md have the sentences of the profiles, and the second how to
// check them by hand.
func TestServicesPage(t *testing.T) {
	const dir = "testdata/services/"
	text, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	hand, err := os.ReadFile("testdata/services.md")
	require.NoError(t, err)
	page := string(text) + string(hand)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".pprof")
		out, err := typed(t, dir+file.Name())
		require.NoError(t, err)
		_, said, _ := strings.Cut(out, "\n\n")
		said, _, _ = strings.Cut(said, "\n\n")
		_, rest, found := strings.Cut(page, "<!-- "+name+" -->\n")
		require.True(t, found, "the page has no place for %s", name)
		shown, _, _ := strings.Cut(rest, "\n<!-- /"+name+" -->")
		require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(said, "\n  ", " "), ". ", ".\n"), shown, "the "+
			"sentences of %s", name)

		zipped, err := os.ReadFile(dir + file.Name())
		require.NoError(t, err)
		p, err := profile.ParseData(zipped)
		require.NoError(t, err)
		cumulative, all := map[string]int64{}, int64(0)
		for _, sample := range p.Sample {
			all += sample.Value[1]
			in := map[string]int64{}
			for _, l := range sample.Location {
				for _, line := range l.Line {
					in[line.Function.Name] = sample.Value[1]
				}
			}
			for name, cpu := range in {
				cumulative[name] += cpu
			}
		}
		byHand, rows := 0.0, regexp.MustCompile("(?m)^\\| "+name+" \\| ([+−]) \\| `(.*)` \\| (.*) s \\|$")
		for _, m := range rows.FindAllStringSubmatch(string(hand), -1) {
			cpu := float64(cumulative[m[2]]) / 1e9
			require.Equal(t, fmt.Sprintf("%.2f", cpu), m[3], "%s of %s", m[2], name)
			byHand += map[string]float64{"+": cpu, "−": -cpu}[m[1]]
		}
		m := regexp.MustCompile(`RPCs takes ([\d.]+)% of`).FindStringSubmatch(said)
		require.NotNil(t, m, said)
		share, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		require.InEpsilon(t, share, 100e9*byHand/float64(all), 0.02, "RPCs of %s, by hand", name)
	}
}
