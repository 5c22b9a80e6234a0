//go:build unix

package environ

import (
	"math"

	"golang.org/x/sys/unix"
)

// Files is how many files a process may have open. Go raises the soft limit to the hard one.
func Files() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Max), math.MaxInt))
}
