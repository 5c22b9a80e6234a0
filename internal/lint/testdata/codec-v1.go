package lib

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

func oldCodecs(c encoding.Codec, v2 encoding.CodecV2) {
	grpc.ForceCodec(c)       // want
	grpc.ForceServerCodec(c) // want
	grpc.ForceCodecV2(v2)
	grpc.ForceServerCodecV2(v2)
}
