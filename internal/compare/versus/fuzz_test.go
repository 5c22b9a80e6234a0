package versus

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// A process that finds no stack measures nothing, whatever it was sent: it ends with an error, and tells its protocol
// and that error alone.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}\n", "null\n", "x\n", `{"arms":["a"]}` + "\n",
		`{"arms":["a","a"],"procs":-1,"slice":-1,"blocks":-1,"seed":18446744073709551615}` + "\n",
		`{"step":true}` + "\n\n\n", `{"blocks":9223372036854775807,"slice":9223372036854775807}`,
	} {
		f.Add([]byte(seed))
	}
	none := errors.New("no stack")
	f.Fuzz(func(t *testing.T, sent []byte) {
		var out bytes.Buffer
		t.Setenv(child.Variable, child.Measures)
		_, err := child.Serve(bytes.NewReader(sent), &out, func(string) (rpcbench.Stack, error) {
			return rpcbench.Stack{}, none
		}, jobs())
		require.Error(t, err)
		require.True(t, strings.HasPrefix(out.String(), fmt.Sprintf("%d\n{\"failed\":", child.Protocol)), "%s", &out)
		require.Equal(t, 2, strings.Count(out.String(), "\n"), "%s", &out)
	})
}
