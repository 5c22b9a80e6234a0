// Package servers_test has a server of every library that rpcbench bound calls an RPC library. Their handlers burn
// most of the CPU, so that a profile tells whether bound knows where the library calls them.
package servers_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net"
	"regexp"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/explain/bound"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// library is one whose server runs here.
type library struct {
	name string

	// serve starts a server and returns a call of it. The server's handler works, and a middleware if the library has
	// any.
	serve func(t *testing.T, work func()) (call func() error)

	ofHTTP bool // a handler encodes its reply itself, so what it encodes is the RPCs'
}

// burning is the function by which samples of a handler are known, and large is what it works on.
var (
	burning = regexp.MustCompile(`servers_test\.burn$`)
	large   = map[string][]byte{"rpcbench": bytes.Repeat([]byte("rpcbench"), 512)}
)

//go:noinline
func burn(rounds int, encodes bool) {
	for i := range rounds {
		_ = sha256.Sum256(large["rpcbench"])
		if encodes && i%4 == 0 {
			_, _ = json.Marshal(large)
		}
	}
}

// took is how long a hundred calls take.
func took(call func()) time.Duration {
	began := time.Now()
	for range 100 {
		call()
	}
	return time.Since(began)
}

// TestHandlersAreNoRPCs profiles a server of each library. No sample of a handler is an RPC's, and most others are.
func TestHandlersAreNoRPCs(t *testing.T) {
	testkit.Alone(t)
	if testing.Short() {
		t.Skip("takes a second or two for each library")
	}
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			rounds := 0
			reply := l.serve(t, func() { burn(rounds, !l.ofHTTP) })
			call := func() { require.NoError(t, reply()) }
			took(call) // connects
			idle, ten := took(call), took(func() { burn(10, !l.ofHTTP) })
			rounds = 1 + int(50*idle/ten) // five times as long as a call in a handler, and in a middleware
			calls := 1 + int(700*time.Millisecond/took(call))
			p := record(t, 100*calls, call)
			for recordings := 1; total(p) < 120; recordings++ {
				require.Less(t, recordings, 100, "of %d samples", total(p))
				var err error
				p, err = profile.Merge([]*profile.Profile{p, record(t, 100*calls, call)})
				require.NoError(t, err)
			}
			handlers, rest := halves(t, p)
			n, rpcs := float64(samples(rest, layers.All)), float64(samples(rest, bound.InRPCs))
			nobodys := float64(samples(rest, func(p layers.Part) bool { return p.Layer == bound.Nobodys }))
			require.Zero(t, samples(handlers, bound.InRPCs), "of handlers: %v", handlers.Parts)
			require.Greater(t, float64(samples(handlers, layers.All)), n/2, "handlers burn: %v", rest.Parts)
			require.Greater(t, rpcs, (n-nobodys)/2, "of no handler: %v", rest.Parts)
		})
	}
}

// record profiles calls.
func record(t *testing.T, calls int, call func()) *profile.Profile {
	t.Helper()
	var data bytes.Buffer
	require.NoError(t, pprof.StartCPUProfile(&data))
	for range calls {
		call()
	}
	pprof.StopCPUProfile()
	p, err := profile.ParseData(data.Bytes())
	require.NoError(t, err)
	return p
}

func total(p *profile.Profile) (n int64) {
	for _, s := range p.Sample {
		n += s.Value[0]
	}
	return n
}

func samples(s bound.Service, of func(layers.Part) bool) int64 {
	n, _ := s.Parts.Sum(of)
	return n
}

// halves splits the samples that have a handler in their stack, and those that have none.
func halves(t *testing.T, p *profile.Profile) (handlers, rest bound.Service) {
	t.Helper()
	with, without := p.Copy(), p
	with.FilterSamplesByName(burning, nil, nil, nil)
	without.FilterSamplesByName(nil, burning, nil, nil)
	handlers, err := bound.Of("with", with)
	require.NoError(t, err)
	rest, err = bound.Of("without", without)
	require.NoError(t, err)
	return handlers, rest
}

// listen is at a free port, until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() }) // servers close theirs
	return ln
}

func dial(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
