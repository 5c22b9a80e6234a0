package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

// Whoever sends what is no request, or asks for a stack that is not here, is answered with one error on one line.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}\n", "null\n", "GET / HTTP/1.1\r\n\r\n", `{"stack":"httpjson"}` + "\nstats\n", `{"stack":"a.to.b","tls":true}`, `{"stack":"\n","versions":{"go":"go1.1"}}`,
		`{"versions":{"go":"go1.26"}}`, `{"stack":7}`, strings.Repeat("x", 70_000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, versions := range []map[string]string{nil, {"go": "go1.26"}} {
			var out bytes.Buffer
			refuse := func(name string) (rpcbench.Stack, error) {
				return rpcbench.Stack{}, errors.New("rpcbench: no stack is called " + name)
			}
			begun := 0
			err := serve(t.Context(), bytes.NewReader(sent), &out, "127.0.0.1", versions, refuse, func(request) { begun++ })
			require.Error(t, err)
			line, rest, ok := bytes.Cut(out.Bytes(), []byte("\n"))
			require.True(t, ok)
			require.Empty(t, rest, "one answer")
			var a answer
			require.NoError(t, json.Unmarshal(line, &a))
			require.NotEmpty(t, a.Error)
			require.Equal(t, answer{Error: a.Error}, a)
			first, _, _ := bytes.Cut(sent, []byte("\n"))
			require.Equal(t, len(first) < 64<<10 && json.Unmarshal(bytes.TrimSuffix(first, []byte("\r")), new(request)) == nil && len(sent) > 0, begun == 1)
		}
	})
}

// An answer that is read is an error or what was written.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"error":"odd"}`, `{"port":"80","certificate":"AQID"}`, `{"stats":{"pid":1,"accepted":2,"cpu_ns":3,"bytes":4,"allocs":5}}`, `{"stats":null}`,
		`{"certificate":"%"}`, `{"stats":{"pid":1e400}}`, "HTTP/1.1 400 Bad Request",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := read(line)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		written, err := json.Marshal(a)
		require.NoError(t, err)
		again, err := read(written)
		require.NoError(t, err)
		if len(a.Certificate) == 0 {
			a.Certificate = nil
		}
		require.Equal(t, a, again)
	})
}
