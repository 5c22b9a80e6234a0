package environ

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Procs is the GOMAXPROCS of a process that sets none. Go makes it of the CPUs that a process may run on and of its
// quota, which is rounded up, to two at least.
func Procs() int {
	now := runtime.GOMAXPROCS(0)
	runtime.SetDefaultGOMAXPROCS()
	n := runtime.GOMAXPROCS(0)
	if n != now { // this process has another one, by its environment or by a call
		runtime.GOMAXPROCS(now)
	}
	return n
}

// Cores is how many CPUs this process may keep busy: those that it may run on, or its quota if that is less.
func Cores() float64 { return cores(runtime.NumCPU(), Quota()) }

func cores(n int, quota float64) float64 {
	if quota > 0 {
		return min(float64(n), quota)
	}
	return float64(n)
}

// Quota is how many CPUs the control group of this process may use, on average. It is 0 if there is no limit, or none
// that can be read.
func Quota() float64 { return quota(os.DirFS("/")) }

// quota is the least quota of the process's group and those above it, of cgroups version 1 or 2. root has the files of
// a machine.
func quota(root fs.FS) (least float64) {
	read := func(elements ...string) string {
		text, _ := fs.ReadFile(root, strings.TrimPrefix(path.Join(elements...), "/"))
		return strings.TrimSpace(string(text))
	}
	group, version1 := "", false
	// Such a line is 1:cpu,cpuacct:/group, or 0::/group of version 2.
	for line := range strings.Lines(read("proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, name, _ := strings.Cut(rest, ":")
		switch {
		case slices.Contains(strings.Split(controllers, ","), "cpu"):
			group, version1 = name, true
		case controllers == "" && !version1:
			group = name
		}
	}
	// Such a line is 32 31 0:29 /top /place rw - cgroup name rw,cpu.
	for line := range strings.Lines(read("proc/self/mountinfo")) {
		before, after, _ := strings.Cut(line, " - ")
		mounted, kind := strings.Fields(before), strings.Fields(after)
		if len(mounted) < 5 || len(kind) < 3 {
			continue
		}
		top, place := mounted[3], mounted[4]
		controls := kind[0] == "cgroup2"
		if version1 {
			controls = kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "cpu")
		}
		below, within := strings.CutPrefix(group, strings.TrimSuffix(top, "/"))
		for dir := path.Join(place, below); controls && within; dir = path.Dir(dir) {
			limit := read(dir, "cpu.max")
			if version1 {
				limit = read(dir, "cpu.cfs_quota_us") + " " + read(dir, "cpu.cfs_period_us")
			}
			var used, period float64 // in microseconds
			_, err := fmt.Sscan(limit, &used, &period)
			if q := used / period; err == nil && q > 0 && (least == 0 || q < least) {
				least = q
			}
			if dir == place || dir == "/" {
				break
			}
		}
	}
	return least
}
