package calibrate

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is in a file of records, reading it is an error that names the file, or gives a record for each line that is
// finished; what was read can be written and read again; and a record that is appended is one more.
func FuzzRead(f *testing.F) {
	var all bytes.Buffer
	for _, e := range synthetic(f)[:4] {
		line, err := json.Marshal(e)
		require.NoError(f, err)
		f.Add(append(line, '\n'))
		all.Write(append(line, '\n'))
	}
	f.Add(all.Bytes())
	f.Add(all.Bytes()[:all.Len()-1])
	for _, seed := range []string{
		"", "\n", "{}", "{}\n", "{}\n{\n", "null\n", "[]\n", "{}{}\n", "{\"task\":\"same/1\"}\n", "{\"began\":\"2026-11-21T19:00:00Z\"}\n{\"tas",
		"{\"task\":\"same/0\",\"record\":{\"arms\":[\"a\",\"b\"],\"blocks\":[[[0,1,1,1,0]]]}}\n",
		"{\"task\":\"same/0\",\"record\":{\"arms\":[\"a\"],\"blocks\":[[[0,0,0,0,0]]]}}\n",
		"{\"task\":\"same/0\",\"record\":{}}\n{\"task\":\"same/1\",\"record\":{}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), RecordsFile)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		entries, kept, err := read(path)
		if err != nil {
			require.ErrorContains(t, err, path+":")
			return
		}
		require.Len(t, entries, bytes.Count(data, []byte("\n")))
		if err := figures(io.Discard, entries); err != nil {
			require.ErrorContains(t, err, "rpcbench: calibrate: the record of ")
		}

		written, err := json.Marshal(entries)
		require.NoError(t, err)
		var again []Entry
		require.NoError(t, json.Unmarshal(written, &again))
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))

		require.NoError(t, os.WriteFile(path, append(data[:kept:kept], "{\"task\":\"same/99\"}\n"...), 0o600))
		more, _, err := read(path)
		require.NoError(t, err)
		require.Len(t, more, len(entries)+1)
		require.Equal(t, "same/99", more[len(entries)].Task)
	})
}
