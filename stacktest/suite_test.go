package stacktest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/stacktest/internal/conform"
)

// TestSuiteIsDocumented: docs/suite.md has the table of the checks, and what each proves, as it stands in the code.
func TestSuiteIsDocumented(t *testing.T) {
	var table strings.Builder
	table.WriteString("| check | over TLS too | what a stack that passes does |\n|---|---|---|\n")
	yes := map[bool]string{true: "yes", false: ""}
	for _, c := range conform.Checks() {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", c.Name, yes[!c.ClearOnly], c.Proves)
	}
	fmt.Fprintf(&table, "| patience | | %s |\n", conform.Patient)
	page, err := os.ReadFile("../docs/suite.md")
	require.NoError(t, err)
	require.Contains(t, string(page), table.String(), "copy the table above into docs/suite.md")
}
