// Package message makes messages for echoes.
package message

import "github.com/rpcbench/rpcbench"

// Complex returns the Flex of the echo benchmarks, which has every field set and 133 bytes as protobuf.
func Complex() *rpcbench.Flex {
	return &rpcbench.Flex{
		Double: 3.141592653589793, Float: 2.7182817, Int32: -42, Int64: 1 << 40, Uint32: 7, Uint64: 1 << 50,
		Sint32: -7, Sint64: -1 << 33, Fixed32: 1 << 20, Fixed64: 1 << 45, Sfixed32: -99, Sfixed64: -1 << 41,
		Bool: true, String: "hello, flex", Bytes: []byte{0, 1, 2, 0xfe, 0xff},
		Message:  &rpcbench.Pair{Key: "a", Value: 1},
		First:    []*rpcbench.Pair{{Key: "b", Value: 2}},
		Second:   []*rpcbench.Pair{{Key: "c", Value: 3}},
		Optional: &rpcbench.Pair{Key: "d", Value: 4},
	}
}
