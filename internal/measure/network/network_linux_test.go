package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

const crosses = "cross" // the job of a child that uses a network

// TestMain is also the processes that the tests start.
func TestMain(m *testing.M) {
	jobs := map[string]child.Job{child.Routes: Routing(), child.Networks: Trying(), crosses: child.NewJob(cross)}
	switch done, err := child.Serve(os.Stdin, os.Stdout, nil, jobs); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case done:
	default:
		goleak.VerifyTestMain(m)
	}
}

// crossing is what a child is to do over a network.
type crossing struct {
	Link  tap.Link
	Pings int // one after the other
	Bytes int // then, at a time
}

// crossed is what it has seen.
type crossed struct {
	Ping     time.Duration // the quickest
	Took     time.Duration // by all bytes
	TCP      tcp.Counters
	Router   tcp.Router
	Settings tcp.Settings
	Devices  []string
	Proxies  []string // that its environment names
	PID      int      // the router's
}

// cross answers a line with what it has seen, and then waits for the next one.
func cross(ctx context.Context, _ child.Stacks, asked crossing, lines <-chan []byte,
	reply func(any) error) (err error) {
	n, err := Make(ctx, Spec{Link: asked.Link, Seed: 1, Settings: tcp.Settings{"tcp_slow_start_after_idle": "0"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	var server net.Listener
	if err := n.There(func() (err error) {
		server, err = net.Listen("tcp", Server+":0")
		return err
	}); err != nil {
		return err
	}
	defer server.Close()
	go func() {
		if conn, err := server.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
		}
	}()
	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	c := crossed{Ping: time.Hour, PID: n.pid, Settings: n.Settings()}
	for range asked.Pings {
		began := time.Now()
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return err
		}
		c.Ping = min(c.Ping, time.Since(began))
	}
	sent, came, began := strings.Repeat("0123456789", asked.Bytes/10), make([]byte, asked.Bytes), time.Now()
	go func() { _, _ = io.WriteString(conn, sent) }()
	if _, err := io.ReadFull(conn, came); err != nil || string(came) != sent {
		return fmt.Errorf("other bytes came: %w", err)
	}
	c.Took = time.Since(began)
	if c.TCP, err = n.Counters(); err != nil {
		return err
	}
	if c.Router, err = n.Router(); err != nil {
		return err
	}
	devices, _ := net.Interfaces()
	for _, d := range devices {
		c.Devices = append(c.Devices, d.Name)
	}
	for _, v := range os.Environ() {
		if strings.Contains(strings.ToUpper(v), "PROXY") {
			c.Proxies = append(c.Proxies, v)
		}
	}
	for range lines {
		if err := reply(c); err != nil {
			return err
		}
	}
	return nil
}

// over starts a child that crosses a network. Without namespaces there is nothing to test.
func over(t *testing.T, asked crossing) (*child.Process, crossed) {
	t.Helper()
	if _, err := Check(t.Context(), asked.Link, nil); err != nil {
		t.Skip(err)
	}
	p, err := child.Command{Does: crosses, Alone: true, Asked: asked, Limit: time.Minute}.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.End() })
	var c crossed
	require.NoError(t, p.Ask("", &c))
	return p, c
}

func TestNetwork(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		reason string
		crossing
		ping, took time.Duration // at least
		loses      bool
	}{
		{"a round trip", crossing{Link: tap.Link{RTT: 20 * ms}, Pings: 3}, 20 * ms, 0, false},
		{"a rate, of both ways at a time", crossing{Link: tap.Link{Rate: 8e6}, Pings: 1, Bytes: 200_000}, 0, 200 * ms, false},
		{"losses, which TCP mends", crossing{Link: tap.Link{Loss: 0.05}, Bytes: 2_000_000}, 0, 0, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			p, seen := over(t, c.crossing)
			require.GreaterOrEqual(t, seen.Ping, c.ping)
			require.GreaterOrEqual(t, seen.Took, c.took)
			require.Equal(t, c.loses, seen.Router.Lost > 0, "lost: %+v", seen.Router)
			require.True(t, !c.loses || seen.TCP.Again > 0, "sent again: %+v", seen.TCP)
			require.Positive(t, seen.Router.Packets)
			require.GreaterOrEqual(t, seen.TCP.Sent+seen.TCP.Again, seen.Router.Packets-4, "but for those of its end")
			require.Equal(t, "0", seen.Settings["tcp_slow_start_after_idle"])
			slices.Sort(seen.Devices)
			require.Equal(t, []string{"lo", name}, seen.Devices, "nothing of the machine's own network is there")
			require.NoError(t, p.End())
		})
	}
}

// A proxy of the machine can't be reached from there.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "https_proxy", "NO_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "proxy.test")
	}
	_, seen := over(t, crossing{Pings: 1})
	require.Empty(t, seen.Proxies)
}

// A child that is killed takes its router with it, and so both namespaces.
func TestEndsWithItsParent(t *testing.T) {
	p, seen := over(t, crossing{Pings: 1})
	require.NoError(t, syscall.Kill(seen.PID, 0), "the router is there")
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
	require.Error(t, p.End())
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(seen.PID, 0), syscall.ESRCH) }, 20*time.Second,
		10*time.Millisecond)
}

func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
		says   string
	}{
		{"no namespaces at all", &os.PathError{Op: "fork/exec", Err: syscall.EPERM}, "allows it"},
		{"none left of those that users may have", &os.PathError{Op: "fork/exec", Err: syscall.ENOSPC}, "allows it"},
		{"another error is told as it is", &os.PathError{Op: "fork/exec", Path: "rpcbench", Err: syscall.ENOENT}, "rpcbench"},
	} {
		t.Run(c.reason, func(t *testing.T) { require.ErrorContains(t, lacking(c.err), c.says) })
	}
	require.ErrorContains(t, noRights(fmt.Errorf("the device: %w", syscall.EPERM)), "as root")
	require.Equal(t, syscall.ENOENT, noRights(syscall.ENOENT))
}
