package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

// prepared prepares the calls of a fixture. The first call on a stream opens the stream, which ends with the fixture.
type prepared struct {
	Workload
	fixture *rpcbench.Fixture
	stream  rpcbench.Stream
}

// call prepares call i. Its error wraps errors.ErrUnsupported where the stack can't do it.
func (p *prepared) call(i int) (call rpcbench.Call, err error) {
	on := p.request(i)
	switch streamer, streams := p.fixture.Client.(rpcbench.Streamer); {
	case p.NewConn:
		_, err := on(p.fixture.Client)
		return func(ctx context.Context) error {
			client, err := p.fixture.Dial()
			if err != nil {
				return err
			}
			call, err := on(client)
			if err == nil {
				err = call(ctx)
			}
			return errors.Join(err, client.Close())
		}, err
	case p.Stream && streams:
		if p.stream == nil {
			if p.stream, err = streamer.OpenStream(context.Background()); err != nil {
				return nil, fmt.Errorf("open a stream: %w", err)
			}
		}
		return p.stream.Prepare(rpcbench.SampleUser(i%100, p.Bytes()))
	}
	return on(p.fixture.Client)
}

// request returns what prepares call i on a client. The requests of users below 100 are of one length.
func (p *prepared) request(i int) func(rpcbench.Client) (rpcbench.Call, error) {
	m, u, broken := flex(p.Payload, i), rpcbench.SampleUser(i%100, p.Bytes()), rpcbench.Violation{}
	if p.Invalid {
		broken = breakRule(&u, i%3)
	}
	if m != nil && m.Fixed32 != 0 && p.Payload != Drawn {
		m.Fixed32 += uint32(i) // as many bytes, and another reply
	}
	return func(client rpcbench.Client) (call rpcbench.Call, err error) {
		switch method := p.fixture.Stack.Serves; {
		case m != nil:
			call, err = p.echo(client, m)
		case method == "": // the user of a call that opens a connection is made before the clock runs
			call, err = client.(rpcbench.Users).PrepareUser(u)
		case p.Invalid:
			err = fmt.Errorf("an invalid user: %w", errors.ErrUnsupported)
		case p.Payload != "":
			err = fmt.Errorf("a payload in %s, whose messages are samples: %w", method, errors.ErrUnsupported)
		default:
			call, err = client.Prepare(i % 100)
		}
		if p.Invalid {
			inner := call
			call = func(ctx context.Context) error { return refused(inner(ctx), broken) }
		}
		if p.Deadline {
			inner := call
			call = func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return inner(ctx)
			}
		}
		return call, err
	}
}

// echo prepares a call that sends m.
func (p *prepared) echo(client rpcbench.Client, m *rpcbench.Flex) (rpcbench.Call, error) {
	echoer, ok := client.(rpcbench.Echoer)
	switch {
	case !ok:
		return nil, fmt.Errorf("echo: %w", errors.ErrUnsupported)
	case m.Double != 0 && slices.Contains(p.fixture.Stack.Traits.Lossy, rpcbench.LossFloatDigits):
		return nil, fmt.Errorf("the digits of the message's floats: %w", errors.ErrUnsupported)
	}
	return echoer.PrepareEcho(m)
}

// breakRule makes a user invalid, and returns the rule that the user then breaks.
func breakRule(u *rpcbench.User, i int) rpcbench.Violation {
	rule := []struct {
		of     *string
		value  string
		broken rpcbench.Violation
	}{
		{&u.Email, "nobody", rpcbench.Violation{Field: "email", Rule: "email"}},
		{&u.Name, "Ann", rpcbench.Violation{Field: "name", Rule: "min=4"}},
		{&u.Password, "abc", rpcbench.Violation{Field: "password", Rule: "min=4"}},
	}[i]
	*rule.of = rule.value
	return rule.broken
}

// refused returns nil if err says that the call was refused for broken alone.
func refused(err error, broken rpcbench.Violation) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	if !ok || e.Code != rpcbench.CodeInvalid || len(e.Violations) != 1 || e.Violations[0] != broken {
		return fmt.Errorf("an invalid user must be refused for %v, got: %v", broken, err)
	}
	return nil
}

// flex returns a new message of the name for call i, or nil.
func flex(name rpcbench.Payload, i int) *rpcbench.Flex {
	if name == Drawn {
		return drawnMessage(i)
	}
	pairs, known := map[rpcbench.Payload]int{rpcbench.FlexEmpty: 0, rpcbench.FlexComplex: 0,
		rpcbench.Flex2kB: 44, rpcbench.Flex18kB: 480}[name]
	switch {
	case !known:
		return nil
	case name == "flex.empty":
		return new(rpcbench.Flex)
	}
	m := message.Complex()
	for i := range pairs { // of about 18 bytes of protobuf each
		m.First = append(m.First, &rpcbench.Pair{Key: fmt.Sprintf("field-%05d", i), Value: int64(i) * 7919})
	}
	return m
}

// resetOnClose wraps the connections of calls that open one: none waits for minutes on its port.
func resetOnClose(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c
}

// wrapped returns a function that applies inner, then outer. Either may be nil.
func wrapped(inner, outer func(net.Conn) net.Conn) func(net.Conn) net.Conn {
	switch {
	case inner == nil:
		return outer
	case outer == nil:
		return inner
	}
	return func(c net.Conn) net.Conn { return outer(inner(c)) }
}
