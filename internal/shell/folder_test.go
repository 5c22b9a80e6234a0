package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Runs that begin in one minute, and name no folder, have one each. A folder that is named is not another one's.
func TestFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		const all = 12
		made := make(chan string, all)
		for range all {
			go func() {
				out, err := Folder("run", "")
				require.NoError(t, err)
				made <- out
			}()
		}
		first := time.Now().Format("rpcbench-2006-01-02-1504")
		want, got := []string{first}, []string{<-made}
		for n := 2; n <= all; n++ {
			want, got = append(want, fmt.Sprint(first, "-", n)), append(got, <-made)
		}
		require.ElementsMatch(t, want, got)
		out, err := Folder("run", first)
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, first, out)
	})
}

// A folder that is shared does not tell where it lay.
func TestResultsNameNoFolders(t *testing.T) {
	typed := os.Args
	defer func() { os.Args = typed }()
	out := filepath.Join(t.TempDir(), "mine")
	os.Args = []string{out + "/rpcbench", "run", "-out", out, "-base=" + out, "-time=1s", "rawtcp"}
	require.Equal(t, []string{"rpcbench", "run", "-out", "mine", "-base=mine", "-time=1s", "rawtcp"}, AsTyped())
	t.Setenv(typedEnv, "rpcbench\nrun\n-proto\n"+out)
	require.Equal(t, []string{"rpcbench", "run", "-proto", "mine"}, AsTyped(), "for which this program was started")
}
