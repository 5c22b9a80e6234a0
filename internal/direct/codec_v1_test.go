//go:build !go1.27 || !goexperiment.jsonv2

package direct

import "github.com/rpcbench/rpcbench/message"

func v2Form(*message.Small) []codecForm { return nil }
