package httpxml

import (
	"testing"

	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
)

func TestAPI(t *testing.T) { codectest.API(t, "xml", api()) }
