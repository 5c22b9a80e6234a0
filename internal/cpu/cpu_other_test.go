//go:build !unix

package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rpcbench/rpcbench/internal/cpu"
)

func TestTimeIsAbsent(t *testing.T) {
	_, ok := cpu.Time()
	assert.False(t, ok)
}
