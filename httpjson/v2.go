//go:build go1.27 && goexperiment.jsonv2

package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonv2"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// V2 uses encoding/json/v2, which refuses invalid UTF-8 and keeps numbers that are zero despite omitempty. Builds with
// Go 1.26 or GOEXPERIMENT=nojsonv2 lack V2.
func V2() rpcbench.Stack {
	return stack("httpjson.v2", jsonv2.Codec{}, httpapi.Options{})
}
