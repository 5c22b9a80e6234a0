//go:build (amd64 && !go1.28) || (arm64 && !go1.28)

package codecs

import "github.com/rpcbench/rpcbench"

// ofSonic returns the rows of sonic, which by sonic's own build constraints has code of its own in this build.
func ofSonic() []Row {
	return []Row{
		{"sonic", sonicJSON, in(), "nothing", reflection, rpcbench.UTF8Kept},
		{"sonic.std", sonicStd, in(), "nothing", reflection, rpcbench.UTF8Replaced},
	}
}
