package fasthttpjson_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacks/more/fasthttpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m, fasthttpjson.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, fasthttpjson.New()) }

// TestProtocolIsThatOfHTTPJSON: either client calls the server of the other.
//
// fasthttp's client reads a reply after it has sent the whole request. net/http's server refuses a body that is too
// large before it has read all of it, and resets the connection half a second later. Which of the two comes first
// depends on how much the kernel's buffers hold, so the client's connections here hold all that it sends.
func TestProtocolIsThatOfHTTPJSON(t *testing.T) {
	own, other := fasthttpjson.New(), httpjson.New()
	holding := own
	holding.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return hold(conn), nil
		}
		return own.Dial(config)
	}
	for _, pair := range [][2]rpcbench.Stack{{holding, other}, {other, own}} {
		stack, err := rpcbench.Cross(pair[0], pair[1])
		require.NoError(t, err)
		stacktest.Conformance(t, stack)
	}
}

// held is a connection whose Write returns at once. An error of the writes is that of a later one.
type held struct {
	net.Conn
	mu     sync.Mutex
	more   sync.Cond
	data   []byte // not yet sent
	closed bool
	err    error
}

func hold(beneath net.Conn) net.Conn {
	c := &held{Conn: beneath}
	c.more.L = &c.mu
	go c.send()
	return c
}

func (c *held) send() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil {
		for len(c.data) == 0 && !c.closed {
			c.more.Wait()
		}
		if c.closed {
			return
		}
		data := c.data
		c.data = nil
		c.mu.Unlock()
		_, err := c.Conn.Write(data)
		c.mu.Lock()
		c.err = err
	}
}

func (c *held) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.err != nil:
		return 0, c.err
	}
	c.data = append(c.data, p...)
	c.more.Signal()
	return len(p), nil
}

func (c *held) Close() error {
	c.mu.Lock()
	c.closed = true
	c.more.Signal()
	c.mu.Unlock()
	return c.Conn.Close()
}
