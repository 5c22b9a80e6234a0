//go:build !go1.26 || go1.27

package direct

import "github.com/rpcbench/rpcbench/message"

func goccyForm(*message.Small) []codecForm { return nil }
