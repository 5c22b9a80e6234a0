package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/hostile"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/message"
)

// echo: a flex message comes back bit-equal, or the deviation is declared; the echo Call compares what came.
func echo(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	client, ok := f.Client.(rpcbench.Echoer)
	if !ok {
		for _, c := range hostile.Flexes() {
			if slices.Contains(s.stack.Traits.Lossy, c.Name) && !slices.ContainsFunc(hostile.Users(), func(u hostile.User) bool { return u.Name == c.Name }) {
				return fmt.Errorf("Traits.Lossy declares %q, which only a stack that echoes can lose: the client is no Echoer", c.Name)
			}
		}
		return skipped("the client is no Echoer")
	}
	if _, err := client.Echo(context.Background(), &message.Flex{String: "echo"}); err != nil {
		return fmt.Errorf("the client is an Echoer, and a plain message does not come back: %w", err)
	}
	for _, c := range hostile.Flexes() {
		got, err := client.Echo(context.Background(), c.Flex)
		came := err == nil && c.Flex.Equal(got)
		if err := deviation(s, c.Name, came, fmt.Sprintf("%+v came back as %+v: %v", c.Flex, got, err)); err != nil {
			return err
		}
	}
	calls := []*message.Flex{{}, {String: "echo"}}
	if !slices.Contains(s.stack.Traits.Lossy, rpcbench.FloatDigits) {
		calls = append(calls, message.Complex())
	}
	for _, m := range calls {
		call, err := client.PrepareEcho(m)
		if err != nil {
			return fmt.Errorf("prepare echo: %w", err)
		}
		if err := call(context.Background()); err != nil {
			return fmt.Errorf("echo: %w", err)
		}
	}
	if !s.readable() {
		return nil
	}
	asked := &message.Flex{String: "hello, flex"}
	call, err := client.PrepareEcho(asked)
	if err != nil {
		return fmt.Errorf("prepare echo: %w", err)
	}
	var hits atomic.Int64
	tap.SetFilter(counted(netwrap.Replace([]byte(asked.String), bytes.ToUpper([]byte(asked.String))), &hits))
	err = call(context.Background())
	switch {
	case hits.Load() == 0:
		return errors.New("the echo's string is not in the reply's bytes")
	case err == nil:
		return errors.New("the echo Call succeeded although its reply was changed: it is not compared")
	}
	return nil
}
