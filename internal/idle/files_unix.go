//go:build unix

package idle

import (
	"math"

	"golang.org/x/sys/unix"
)

// files is how many a process may have open. Go raises the soft limit to the hard one.
func files() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Max), math.MaxInt))
}
