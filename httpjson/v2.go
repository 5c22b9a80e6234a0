//go:build go1.27 && goexperiment.jsonv2

package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonv2"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// V2 uses encoding/json/v2, which refuses invalid UTF-8 and writes numbers that are zero despite omitempty. V2 is
// missing from builds with Go 1.26 or GOEXPERIMENT=nojsonv2.
func V2() rpcbench.Stack {
	return stack("httpjson.v2", jsonv2.Codec{}, httpapi.Options{})
}
