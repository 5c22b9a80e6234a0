//go:build go1.26 && !go1.27

package codecs

import (
	"github.com/goccy/go-json"

	"github.com/rpcbench/rpcbench/codec/goccy"
)

func goJSON() []Row {
	return []Row{{"goccy", goccy.Codec{}, plainForm(&calls[any]{marshal: json.Marshal, unmarshal: json.Unmarshal})}}
}
