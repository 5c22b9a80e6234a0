package stacktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/message"
)

type hostileFlex struct {
	name string
	flex *message.Flex
}

// hostileFlexes is what formats are known to lose or to change.
func hostileFlexes() []hostileFlex {
	var f32 float32 = math.MaxFloat32
	return []hostileFlex{
		{"empty", &message.Flex{}},
		{"complex", message.Complex()},
		{"17 digits", &message.Flex{Double: 0.30000000000000004, Float: 5592405.5, Message: &message.Pair{}}},
		{"smallest and largest floats", &message.Flex{Double: math.SmallestNonzeroFloat64, Float: f32, Message: &message.Pair{}}},
		{"negative zero", &message.Flex{Double: math.Copysign(0, -1), Float: float32(math.Copysign(0, -1))}},
		{"NaN", &message.Flex{Double: math.NaN(), Float: float32(math.NaN())}},
		{"infinities", &message.Flex{Double: math.Inf(1), Float: float32(math.Inf(-1))}},
		{"largest and smallest integers", &message.Flex{
			Int32: math.MinInt32, Int64: math.MinInt64, Uint32: math.MaxUint32, Uint64: math.MaxUint64,
			Sint32: math.MinInt32, Sint64: math.MaxInt64, Fixed32: math.MaxUint32, Fixed64: math.MaxUint64,
			Sfixed32: math.MinInt32, Sfixed64: math.MinInt64,
		}},
		{"integers beyond a float's 53 bits", &message.Flex{Int64: 1<<53 + 1, Uint64: 1<<63 + 1, Message: &message.Pair{Value: -(1<<53 + 1)}}},
		{"HTML and line separators in a string", &message.Flex{String: "<b>&'\"</b>\u2028\u2029"}},
		{"control characters in a string", &message.Flex{String: "\x00\x01\t\r\n\x1f\x7f"}},
		{"empty messages against none", &message.Flex{Message: &message.Pair{}, First: []*message.Pair{{}, {}}, Optional: &message.Pair{}}},
		{"every byte", &message.Flex{Bytes: everyByte()}},
	}
}

func everyByte() []byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return every
}

// echo: a flex message comes back bit-equal, or the deviation is declared; the echo Call compares what came.
func echo(s subject) error {
	f, tap, err := s.tapped()
	if err != nil {
		return err
	}
	defer f.Close()
	client, ok := f.Client.(rpcbench.Echoer)
	if !ok {
		return nil // an ability that a stack may lack
	}
	for _, c := range hostileFlexes() {
		got, err := client.Echo(context.Background(), c.flex)
		came := err == nil && c.flex.Equal(got)
		if err := deviation(s, c.name, came, fmt.Sprintf("%+v came back as %+v: %v", c.flex, got, err)); err != nil {
			return err
		}
	}
	calls := []*message.Flex{{}, {String: "echo"}}
	if !slices.Contains(s.stack.Traits.Lossy, "complex") {
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
