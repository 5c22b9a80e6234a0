package own

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/shell"
)

// The stacks that flags are checked by are those of a module.
func TestModuleStacks(t *testing.T) {
	method, err := os.ReadFile(filepath.Join("..", "scaffold", "module", "method.go.tmpl"))
	require.NoError(t, err)
	var all []string
	for _, of := range regexp.MustCompile(`(\w+)\.Of\(`).FindAllStringSubmatch(string(method), -1) {
		all = append(all, of[1])
	}
	require.Equal(t, all, shell.Program{Stacks: Stacks()}.Names())
}
