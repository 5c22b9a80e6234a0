package versus

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// A process that finds no stack measures nothing, whatever it was sent: it ends with an error, and writes nothing but
// its protocol.
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
		err := Serve(t.Context(), bytes.NewReader(sent), &out, func(string) (rpcbench.Stack, error) {
			return rpcbench.Stack{}, none
		})
		require.Error(t, err)
		require.Equal(t, fmt.Sprintln(child.Protocol), out.String())
	})
}
