package workload_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/message"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// What a call of the known stack costs.
const (
	knownSent       = 300
	knownReceived   = 700
	knownAllocs     = 100
	knownAllocBytes = knownAllocs * 1024
)

// known is a stack whose calls cost what is known, and note the GOMAXPROCS that they see.
type known struct {
	mu    sync.Mutex
	procs map[int]bool
}

func (k *known) stack() rpcbench.Stack {
	return rpcbench.Stack{
		Name: "known",
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return rpcbench.ServeConns(config, func(c net.Conn) {
				request, reply := make([]byte, knownSent), make([]byte, knownReceived)
				for {
					if _, err := io.ReadFull(c, request); err != nil {
						return
					}
					if _, err := c.Write(reply); err != nil {
						return
					}
				}
			}), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			c := &knownClient{known: k}
			for range config.Conns {
				c.conns = append(c.conns, &knownConn{config: config})
			}
			return c, nil
		},
	}
}

type knownClient struct {
	rpcbench.Users
	*known
	conns []*knownConn
	next  int
}

func (c *knownClient) PrepareUser(rpcbench.User) (rpcbench.Call, error) { return c.Prepare(0, 0) }

func (c *knownClient) Prepare(int, int) (rpcbench.Call, error) {
	conn := c.conns[c.next%len(c.conns)]
	c.next++
	return func(ctx context.Context) error {
		c.mu.Lock()
		c.procs[runtime.GOMAXPROCS(0)] = true
		c.mu.Unlock()
		return conn.call(ctx)
	}, nil
}

func (c *knownClient) PrepareEcho(*message.Flex) (rpcbench.Call, error) {
	return c.Prepare(0, 0)
}

func (c *knownClient) Echo(context.Context, *message.Flex) (*message.Flex, error) { return nil, nil }

func (c *knownClient) Close() error {
	for _, conn := range c.conns {
		conn.mu.Lock()
		if conn.net != nil {
			_ = conn.net.Close()
		}
		conn.mu.Unlock()
	}
	return nil
}

type knownConn struct {
	config  rpcbench.ClientConfig
	mu      sync.Mutex
	net     net.Conn
	request [knownSent]byte
	reply   [knownReceived]byte
	kept    [knownAllocs][]byte
}

func (c *knownConn) call(ctx context.Context) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.net == nil {
		if c.net, err = c.config.DialContext(ctx, "tcp", c.config.Addr); err != nil {
			return err
		}
	}
	for i := range c.kept {
		c.kept[i] = make([]byte, knownAllocBytes/knownAllocs)
	}
	if _, err = c.net.Write(c.request[:]); err == nil {
		_, err = io.ReadFull(c.net, c.reply[:])
	}
	return err
}

// What Look counts of calls is what they cost. It counts at the GOMAXPROCS that the question needs, whatever was set.
func TestLookCounts(t *testing.T) {
	const procs = 3
	before := runtime.NumCPU() + 1
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(before))
	for _, c := range []struct {
		workload    string
		procs       int   // that the workload asks for; 0 is as many as there are cores
		connections int64 // 0: one for each call
	}{
		{workload: "small", procs: procs, connections: 1},
		{workload: "stream", connections: 1},
		{workload: "mixed-50x20", connections: 20},
		{workload: "cold", procs: procs},
	} {
		t.Run(c.workload, func(t *testing.T) {
			w, err := workload.In(workload.Rows(false), c.workload)
			require.NoError(t, err)
			w.Procs = c.procs
			k := &known{procs: map[int]bool{}}
			f, err := w.Look(t.Context(), k.stack(), 1000)
			require.NoError(t, err)
			require.GreaterOrEqual(t, f.Calls, int64(20), "calls")
			require.EqualValues(t, knownSent, f.Sent, "bytes sent by a call")
			require.EqualValues(t, knownReceived, f.Received, "bytes received by a call")
			require.EqualValues(t, 1, f.Writes, "writes of a call")
			require.GreaterOrEqual(t, f.Reads, 1.0, "reads of a call")
			if c.connections > 0 {
				require.Equal(t, c.connections, f.Connections, "connections")
				require.InDelta(t, knownAllocs, f.Allocs, knownAllocs/50, "allocations of a call")
				require.InDelta(t, knownAllocBytes, f.AllocBytes, knownAllocBytes/50, "bytes allocated by a call")
			} else {
				require.Equal(t, f.Calls, f.Connections, "connections, one for each call")
			}
			want := c.procs
			if want == 0 {
				want = runtime.NumCPU()
			}
			require.Equal(t, map[int]bool{want: true}, k.procs, "GOMAXPROCS during the calls")
			require.Equal(t, before, runtime.GOMAXPROCS(0), "GOMAXPROCS afterwards")
		})
	}
}
