package workload_test

import (
	"bufio"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// duplex sends and receives JSON values on a connection, in a coding whose state outlasts a call.
type duplex struct {
	send    func(any) error
	receive func(any) error
}

// deflated compresses with what was sent before, as WebSockets do with context takeover.
func deflated(c net.Conn) duplex {
	w, err := flate.NewWriter(c, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	out, in := json.NewEncoder(w), json.NewDecoder(flate.NewReader(c))
	return duplex{func(v any) error {
		if err := out.Encode(v); err != nil {
			return err
		}
		return w.Flush()
	}, in.Decode}
}

// numberedOnce sends a message once, and then its number.
func numberedOnce(c net.Conn) duplex {
	known, texts, in := map[string]int{}, []string(nil), bufio.NewReader(c)
	return duplex{func(v any) error {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		n, again := known[string(text)]
		if again {
			_, err = fmt.Fprintf(c, "%d\n", n)
			return err
		}
		known[string(text)] = len(known)
		_, err = c.Write(append(text, '\n'))
		return err
	}, func(v any) error {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		var n int
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "{") {
			if _, err := fmt.Sscan(line, &n); err != nil {
				return err
			}
			line = texts[n]
		} else {
			texts = append(texts, line)
		}
		return json.Unmarshal([]byte(line), v)
	}}
}

// shrinking is a stack of one connection and one caller, in a coding of one's own.
func shrinking(name string, over func(net.Conn) duplex) rpcbench.Stack {
	return rpcbench.Stack{Name: name, Protocol: name, Traits: rpcbench.Traits{Codec: "encoding/json",
		InvalidUTF8: rpcbench.UTF8Replaced}, Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		validate := rpcbench.NewUserValidator[rpcbench.User](config)
		return rpcbench.ServeConns(config, func(conn net.Conn) {
			for d := over(conn); ; {
				var u rpcbench.User
				if d.receive(&u) != nil || validate(&u) != nil || d.send(rpcbench.AnswerUser(&u)) != nil {
					return
				}
			}
		}), nil
	}, Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		conn, err := config.DialContext(context.Background(), "tcp", config.Addr)
		if err != nil {
			return nil, err
		}
		return shrinkingClient{conn, over(conn)}, nil
	}}
}

type shrinkingClient struct {
	io.Closer
	duplex
}

func (c shrinkingClient) CreateUser(_ context.Context, u rpcbench.User) (r rpcbench.Response, err error) {
	if err = c.send(u); err == nil {
		err = c.receive(&r)
	}
	return r, err
}

func (c shrinkingClient) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c shrinkingClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	return func(ctx context.Context) error {
		r, err := c.CreateUser(ctx, u)
		if err == nil {
			err = rpcbench.CheckUser(&u, &r)
		}
		return err
	}, nil
}

// TestShrinkingCallsPass: calls may carry a small part of what those of the warm-up did, by compression and by codecs
// of one's own. The server counts them, and bytes tell only calls that carry none.
func TestShrinkingCallsPass(t *testing.T) {
	for name, over := range map[string]func(net.Conn) duplex{"deflated": deflated, "numbered": numberedOnce} {
		s := shrinking(name, over)
		w := workload.Workload{Payload: "1kB"}
		o, err := w.Open(t.Context(), s, workload.Setup{})
		require.NoError(t, err, name)
		require.NoError(t, o.Start(o.Warm), name)
		require.NoError(t, o.Loop.Run(t.Context(), 500), name)
		require.NoError(t, o.Close(), name)
		f, err := w.CountCalls(t.Context(), s, 500)
		require.NoError(t, err, name)
		require.Less(t, f.Sent, 250.0, "%s: a user has 1.4 kB when it is sent first", name)
		require.EqualValues(t, 1, f.Handled, name)
	}
}

// TestCallsOfAServerThatDoesNotCount: what is known of them is that they carry bytes each way. A client that sends a
// greeting with each connection, as TLS does, has not called.
func TestCallsOfAServerThatDoesNotCount(t *testing.T) {
	silent := func(calls bool) rpcbench.Stack {
		s := shrinking("silent", deflated)
		serve, dial := s.Server, s.Dial
		s.Server = func(rpcbench.ServerConfig) (rpcbench.Server, error) { return serve(rpcbench.ServerConfig{}) }
		s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			c, err := dial(config)
			if err != nil || calls {
				return c, err
			}
			return testkit.Around(c.(rpcbench.Users), func(u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
				return func(context.Context) error { return c.(shrinkingClient).send(u) }
			}), nil
		}
		return s
	}
	for _, w := range []workload.Workload{{}, {NewConn: true}} {
		f, err := w.CountCalls(t.Context(), silent(true), 100)
		require.NoError(t, err)
		require.Zero(t, f.Handled)
		_, err = w.CountCalls(t.Context(), silent(false), 100)
		require.ErrorContains(t, err, " bytes: its Call does not call each time")
	}
}
