package codecs_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/stacktest"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// TestMoreConform serves each codec that no stack has over net/http, so that the suite says what the codec loses.
func TestMoreConform(t *testing.T) {
	for _, row := range codecs.More() {
		t.Run(row.Name, func(t *testing.T) {
			s := httpapi.Stack("http"+row.Name, "http/"+row.Name, row.New(), binding.Plain(), httpapi.Options{})
			if s.Traits.InvalidUTF8 == rpcbench.UTF8Kept { // by the encoder: the other side decides
				s.Traits.InvalidUTF8 = row.Decodes
			}
			stacktest.Conformance(t, s)
		})
	}
}
