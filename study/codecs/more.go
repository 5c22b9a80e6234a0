package codecs

import (
	"github.com/bytedance/sonic"
	"github.com/fxamacker/cbor/v2"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// sonicJSON is sonic.Marshal and sonic.Unmarshal, which neither sort maps nor escape HTML. Unmarshal copies the whole
// body once, and the strings of a value share that copy.
func sonicJSON() codec.Codec { return sonicOf(sonic.ConfigDefault, rpcbench.UTF8Kept) }

// sonicStd is sonic.ConfigStd, which does what encoding/json does.
func sonicStd() codec.Codec { return sonicOf(sonic.ConfigStd, rpcbench.UTF8Replaced) }

// sonicOf declares that JSON lacks NaN and infinities, and that omitempty leaves out a negative zero.
func sonicOf(api sonic.API, utf8 rpcbench.UTF8) codec.Codec {
	return library{"application/json", api.Marshal, api.Unmarshal, codec.Traits{
		Library:     "github.com/bytedance/sonic",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero, rpcbench.LossNaN, rpcbench.LossInfinities},
		InvalidUTF8: utf8,
	}}
}

// fxCBOR is CBOR (RFC 8949) by cbor.Marshal and cbor.Unmarshal, with the names of the fields' json tags. It declares
// that omitempty leaves out a negative zero, and that a NaN comes back as another NaN. The decoder refuses invalid
// UTF-8, which the encoder writes.
func fxCBOR() codec.Codec {
	return library{"application/cbor", cbor.Marshal, cbor.Unmarshal, codec.Traits{
		Library:     "github.com/fxamacker/cbor/v2",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero, rpcbench.LossNaN},
		InvalidUTF8: rpcbench.UTF8Kept,
	}}
}
