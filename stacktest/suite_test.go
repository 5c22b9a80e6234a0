package stacktest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/rawtcp"
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

// TestWhatDoesNotApplyIsSkipped: a check that has nothing to prove of a stack says why, and does not pass.
func TestWhatDoesNotApplyIsSkipped(t *testing.T) {
	for _, c := range []struct {
		why    string
		stack  rpcbench.Stack
		checks []string
	}{
		{"no HTTP", rawtcp.New(), []string{"one request", "headers", "header limit"}},
		{"compression", httpjson.Gzip(), []string{"traffic", "changed replies"}},
		{"compression of streams", grpcprotobuf.Gzip(), []string{"changed stream replies"}},
		{"no abilities but the API's", fake{}.stack(), []string{"echo", "streams", "ended streams", "changed stream replies"}},
	} {
		for _, check := range c.checks {
			err := run(check, conform.Subject{Stack: c.stack})
			require.ErrorAs(t, err, new(conform.Skip), "%s: %s", c.why, check)
			require.NotEmpty(t, err.Error())
		}
	}
}
