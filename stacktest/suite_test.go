package stacktest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConformanceDocumentsItsChecks: the comment of Conformance says of each check what it proves.
func TestConformanceDocumentsItsChecks(t *testing.T) {
	source, err := os.ReadFile("conformance.go")
	require.NoError(t, err)
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^//   - ([a-z0-9, ]+): `).FindAllSubmatch(source, -1) {
		documented = append(documented, strings.Split(string(m[1]), ", ")...)
	}
	names := []string{"patience"} // which Conformance adds, since it takes as long as all others
	for _, c := range checks() {
		names = append(names, c.name)
	}
	require.ElementsMatch(t, names, documented)
}
