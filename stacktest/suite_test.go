package stacktest

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest/internal/conform"
)

// TestSuiteIsDocumented: docs/suite.md has a row for each check, in the order of the suite.
func TestSuiteIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/suite.md")
	require.NoError(t, err)
	var want, documented []string
	yes := map[bool]string{true: "yes", false: ""}
	for _, c := range conform.Checks() {
		want = append(want, c.Name+" | "+yes[!c.ClearOnly])
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z ]+ \| (?:yes)?) \| .+ \|$`)
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	require.Equal(t, want, documented)
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
		{"nothing but the API", fake{}.stack(), []string{"echo", "streams", "ended streams", "changed stream replies"}},
	} {
		for _, check := range c.checks {
			err := run(check, conform.Subject{Stack: c.stack})
			require.ErrorAs(t, err, new(conform.Skip), "%s: %s", c.why, check)
			require.NotEmpty(t, err.Error())
		}
	}
}
