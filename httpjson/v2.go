//go:build go1.27 && goexperiment.jsonv2

package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonv2"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// V2 uses Marshal and Unmarshal of encoding/json/v2. They refuse invalid UTF-8 and duplicate names, write numbers that
// are zero despite omitempty, nil lists as [], and maps in an order that changes. V2 is missing from builds with Go
// 1.26 or GOEXPERIMENT=nojsonv2.
func V2() rpcbench.Stack {
	return stack("httpjson.v2", jsonv2.Codec{}, httpapi.Options{})
}
