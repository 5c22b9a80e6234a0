package httpmsgpack

import (
	"testing"

	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
)

func TestAPI(t *testing.T) { codectest.API(t, "msg", api()) }
