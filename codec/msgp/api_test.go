package msgp_test

import (
	"testing"

	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
)

func TestAPI(t *testing.T) { codectest.API(t, "msg", msgp.API()) }
