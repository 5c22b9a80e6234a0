package xmlstd_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
)

func TestAPI(t *testing.T) { codectest.API(t, "xml", xmlstd.API()) }
