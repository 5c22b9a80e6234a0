package workload

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/message"
)

// Prepare prepares call i of a fixture. Its error wraps errors.ErrUnsupported where the stack can't do it.
type Prepare func(f *rpcbench.Fixture, i int) (rpcbench.Call, error)

// User prepares calls that create users, with a payload of avatar bytes. The requests of users below 100 are of one
// length.
func User(avatar int) Prepare {
	return func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		return f.Client.Prepare(corpus.Sample(i%100, avatar))
	}
}

// Echo prepares calls that send m there and back, without validation.
func Echo(m *message.Flex) Prepare {
	return func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		client, ok := f.Client.(rpcbench.Echoer)
		if !ok {
			return nil, fmt.Errorf("echo: %w", errors.ErrUnsupported)
		}
		m := *m
		if m.Fixed32 != 0 {
			m.Fixed32 += uint32(i) // as many bytes, and another reply
		}
		return client.PrepareEcho(&m)
	}
}

// Stream prepares calls on one stream, which ends with its fixture.
func Stream() Prepare {
	var stream rpcbench.Stream
	return func(f *rpcbench.Fixture, i int) (call rpcbench.Call, err error) {
		client, ok := f.Client.(rpcbench.Streamer)
		if !ok {
			return nil, fmt.Errorf("streams: %w", errors.ErrUnsupported)
		}
		if i == 0 { // of a new fixture
			if stream, err = client.OpenStream(context.Background()); err != nil {
				return nil, fmt.Errorf("open a stream: %w", err)
			}
		}
		return stream.Prepare(corpus.Sample(i, 0))
	}
}

// streamOrCall prepares calls as Stream does, or as User does where the stack has no streams.
func streamOrCall() Prepare {
	onStream := Stream()
	return func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		call, err := onStream(f, i)
		if errors.Is(err, errors.ErrUnsupported) {
			return User(0)(f, i)
		}
		return call, err
	}
}

// Cold prepares calls that each dial a client, prepare a call, make it and close the client.
func Cold() Prepare {
	return func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		u := corpus.Sample(i, 0)
		return func(ctx context.Context) error {
			client, err := f.Dial()
			if err != nil {
				return err
			}
			call, err := client.Prepare(u)
			if err == nil {
				err = call(ctx)
			}
			return errors.Join(err, client.Close())
		}, nil
	}
}

// ResetOnClose wraps the connections of cold calls: none waits for minutes on its port.
func ResetOnClose(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c
}
