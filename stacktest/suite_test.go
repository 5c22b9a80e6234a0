package stacktest

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// failed keeps the message of a test's failure.
type failed struct {
	testing.TB
	message string
}

func (f *failed) Helper()                           {}
func (f *failed) Errorf(format string, args ...any) { f.message = fmt.Sprintf(format, args...) }

// TestChecksExplainThemselves: a check that fails prints what is wrong and what it proves.
func TestChecksExplainThemselves(t *testing.T) {
	names := map[string]bool{}
	for _, c := range conform.Checks() {
		require.Regexp(t, `^[A-Z\d].{20,}\.$`, c.Proves, c.Name)
		require.False(t, names[c.Name], "two checks are called %s", c.Name)
		names[c.Name] = true
		f := &failed{TB: t}
		report(f, c, errors.New("what is wrong"))
		require.Equal(t, fmt.Sprintf("what is wrong\nThe check %q proves: %s", c.Name, c.Proves), f.message)
		f.message = ""
		report(f, c, nil)
		require.Empty(t, f.message)
	}
}

// TestWaitingChecks: made beside others and once, each has the result of its own mode. Any other check is made when it
// is asked for, and none is left out.
func TestWaitingChecks(t *testing.T) {
	var servers atomic.Int64
	stack := fake{server: func(s *http.Server) {
		servers.Add(1)
		if s.TLSConfig != nil {
			s.IdleTimeout = time.Hour
		}
	}}.stack()
	inClear := conform.Subject{Stack: stack, Limit: 6 * time.Second, Wait: 10 * time.Millisecond}
	overTLS := inClear
	overTLS.TLS = true
	run := conform.Together(inClear, overTLS)
	require.NoError(t, run(check("patience"), inClear))
	all := servers.Load()
	require.NoError(t, run(check("limits"), inClear))
	require.ErrorContains(t, run(check("limits"), overTLS), "the server keeps an idle connection")
	require.NoError(t, run(check("deadline"), overTLS))
	require.NoError(t, run(check("cancel"), overTLS))
	require.NoError(t, run(check("changed replies"), inClear))
	require.Equal(t, all, servers.Load(), "none is made when it is asked for")
	for reason, checks := range map[string][]string{
		"it reads allocations": {"codec", "repeats", "validation", "replies in another order", "late"},
		"it counts goroutines": {"close"},
		"it counts connections, bytes or headers, and a busy machine dials anew": {"connections", "shared", "traffic",
			"one request", "compression", "headers", "body limit", "outcomes", "neighbours"},
		"another server may get the port where nobody is to listen": {"unavailable"},
	} {
		for _, name := range checks {
			before := servers.Load()
			_ = run(check(name), inClear)
			require.Greater(t, servers.Load(), before, "%s is made alone: %s", name, reason)
		}
	}

	inClear.Stack, overTLS.Stack = rpcbench.Stack{}, rpcbench.Stack{} // of which each check says what it lacks
	run = conform.Together(inClear, overTLS)
	for _, c := range conform.Checks() {
		for _, s := range []conform.Subject{inClear, overTLS} {
			if !(c.ClearOnly && s.TLS) {
				require.EqualError(t, run(c, s), c.Run(s).Error(), "%s, over TLS: %t: the check is not made", c.Name, s.TLS)
			}
		}
	}
}

// TestWhatDoesNotApplyIsSkipped: a check that has nothing to prove of a stack says why, and does not pass.
func TestWhatDoesNotApplyIsSkipped(t *testing.T) {
	for _, c := range []struct {
		why    string
		stack  rpcbench.Stack
		checks []string
	}{
		{"no HTTP", rawtcp.New(), []string{"one request", "headers", "header limit"}},
		{"compression", httpjson.Gzip(), []string{"traffic", "changed replies"}},
		{"compression of streams", grpcprotobuf.Gzip(), []string{"changed stream replies"}},
		{"nothing but the API", fake{}.stack(), []string{"echo", "streams", "ended streams", "changed stream replies"}},
	} {
		for _, check := range c.checks {
			err := run(check, conform.Subject{Stack: c.stack})
			require.ErrorAs(t, err, new(conform.Skip), "%s: %s", c.why, check)
			require.NotEmpty(t, err.Error())
		}
	}
}

// TestUnfinishedStacks: each check of a stack that lacks something says so, and none panics.
func TestUnfinishedStacks(t *testing.T) {
	for want, change := range map[string]func(*rpcbench.Stack){
		"a stack needs a Protocol, a Server and a Dial": func(s *rpcbench.Stack) { *s = rpcbench.Stack{} },
		"needs a Protocol, a Server":                    func(s *rpcbench.Stack) { s.Dial = nil },
		"a Server and a Dial":                           func(s *rpcbench.Stack) { s.Server = nil },
		"Dial returned no Client and no error": func(s *rpcbench.Stack) {
			s.Dial = func(rpcbench.ClientConfig) (rpcbench.Client, error) { return nil, nil }
		},
		"Server returned no Server and no error": func(s *rpcbench.Stack) {
			s.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, nil }
		},
	} {
		unfinished := fake{}.stack()
		change(&unfinished)
		for _, c := range conform.Checks() {
			for _, tls := range []bool{false, true} {
				err := c.Run(conform.Subject{Stack: unfinished, TLS: tls})
				if err != nil || c.Name == "connections" { // some start neither a server nor a client
					require.ErrorContains(t, err, want, c.Name)
				}
			}
		}
	}
}
