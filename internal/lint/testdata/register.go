package lib

import (
	"google.golang.org/grpc/encoding"
)

func register(c encoding.Codec, v2 encoding.CodecV2, z encoding.Compressor) {
	encoding.RegisterCodec(c)       // want
	encoding.RegisterCodecV2(v2)    // want
	encoding.RegisterCompressor(z)  // want
	later := encoding.RegisterCodec // want
	later(c)
}
