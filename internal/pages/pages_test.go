package pages

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/stacks"
)

var update = flag.Bool("update", false, "write the tables and pictures of README.md and docs")

const root = "../.."

// TestPages compares the tables, the pictures, the figures of sentences and the lines that are shown with their files.
// Tables have rows of encoding/json/v2. A Go without that package compares the other rows, and writes none.
func TestPages(t *testing.T) {
	_, err := stacks.Find("httpjson.v2")
	if *update {
		require.NoError(t, err, "the tables have rows of encoding/json/v2: write them with Go 1.27 or later")
	}
	shared := func(text string) string { return text }
	if err != nil {
		onlyV2 := regexp.MustCompile("(?m)^\\| `(httpjson|json)\\.v2` .*\n")
		shared = func(text string) string { return onlyV2.ReplaceAllString(text, "") }
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	require.NoError(t, err)
	for _, path := range append(pages, root+"/README.md", root+"/.github/CONTRIBUTING.md", root+"/results/README.md") {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			filled, err := Fill(root, filepath.ToSlash(name), string(data))
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(filled), 0o644))
			} else {
				require.Equal(t, filled, shared(string(data)), "go test ./internal/pages -run TestPages -update writes its tables")
			}
			drawn, err := Pictures(root, filepath.ToSlash(name), string(data))
			require.NoError(t, err)
			for file, svg := range drawn {
				if *update {
					require.NoError(t, os.WriteFile(filepath.Join(root, file), svg, 0o644))
				}
				there, err := os.ReadFile(filepath.Join(root, file))
				require.NoError(t, err)
				require.Equal(t, string(svg), string(there), "go test ./internal/pages -run TestPages -update draws %s", file)
			}
			require.NoError(t, Check(root, name, filled))
		})
	}
}
