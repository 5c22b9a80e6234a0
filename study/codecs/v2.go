//go:build go1.27 && goexperiment.jsonv2

package codecs

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonv2"
)

func jsonV2() []Row {
	return []Row{{"json.v2", kept(jsonv2.Codec{}), in(), "nothing", reflection, rpcbench.UTF8Rejected}}
}
