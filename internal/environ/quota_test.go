package environ

import (
	"io/fs"
	"math"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A quota is read of a machine's files.
func TestQuota(t *testing.T) {
	const (
		of2     = "36 25 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		of1     = "33 25 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
		both    = "9:memory:/m\n3:cpu,cpuacct:/a\n0::/a\n"
		cpu1    = "sys/fs/cgroup/cpu,cpuacct/"
		cgroup2 = "sys/fs/cgroup/"
	)
	for why, c := range map[string]struct {
		group, mounts string
		files         map[string]string // a name that ends in / is a folder, which can't be read as a file
		want          float64
	}{
		"nothing can be read":     {},
		"no cgroup is mounted":    {"0::/\n", "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n", nil, 0},
		"half a CPU":              {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max": "50000 100000\n"}, 0.5},
		"max":                     {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max": "max 100000\n"}, 0},
		"the root has no file":    {"0::/\n", of2, nil, 0},
		"a file without a number": {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max": "\n"}, 0},
		"an unreadable file":      {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max/x": ""}, 0},
		"no time at all":          {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max": "0 100000\n"}, 0},
		"a period of nothing":     {"0::/\n", of2, map[string]string{cgroup2 + "cpu.max": "0 0\n"}, 0},
		"a group": {"0::/a/b\n", of2, map[string]string{cgroup2 + "cpu.max": "max 100000",
			cgroup2 + "a/b/cpu.max": "250000 100000"}, 2.5},
		"a group above it has less": {"0::/a/b\n", of2, map[string]string{cgroup2 + "a/cpu.max": "150000 100000",
			cgroup2 + "a/b/cpu.max": "max 100000"}, 1.5},
		"a group above it has more": {"0::/a/b\n", of2, map[string]string{cgroup2 + "a/cpu.max": "400000 100000",
			cgroup2 + "a/b/cpu.max": "300000 100000"}, 3},
		"a container's own mount": {"0::/docker/7\n", "36 25 0:29 /docker/7 /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			map[string]string{cgroup2 + "cpu.max": "50000 100000"}, 0.5},
		"another group's mount": {"0::/docker/7\n", "36 25 0:29 /docker/8 /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			map[string]string{cgroup2 + "cpu.max": "50000 100000"}, 0},
		"a mount outside of the namespace": {"0::/../x\n", of2, map[string]string{"sys/fs/x/cpu.max": "50000 100000"}, 0.5},
		"version 1": {both, of2 + of1, map[string]string{cpu1 + "a/cpu.cfs_quota_us": "50000\n",
			cpu1 + "a/cpu.cfs_period_us": "100000\n"}, 0.5},
		"version 1 without a limit": {both, of1, map[string]string{cpu1 + "a/cpu.cfs_quota_us": "-1\n",
			cpu1 + "a/cpu.cfs_period_us": "100000\n"}, 0},
		"version 1, whose period is missing": {both, of1, map[string]string{cpu1 + "a/cpu.cfs_quota_us": "50000\n"}, 0},
		"version 2 has it, and version 1 decides": {both, of2 + of1, map[string]string{cgroup2 + "a/cpu.max": "50000 100000"},
			0},
		"memory alone is of version 1": {"9:memory:/m\n0::/a\n", of2,
			map[string]string{cgroup2 + "a/cpu.max": "50000 100000"}, 0.5},
		"half a line": {"0::/\n", "36 25 - cgroup2\n" + of2, map[string]string{cgroup2 + "cpu.max": "50000 100000"}, 0.5},
	} {
		machine := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.group)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
		if c.group == "" {
			machine = fstest.MapFS{}
		}
		for name, text := range c.files {
			machine[name] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModePerm}
		}
		require.InDelta(t, c.want, quota(machine), 1e-9, why)
	}
}

func TestCores(t *testing.T) {
	for why, c := range map[string]struct {
		n           int
		quota, want float64
	}{
		"no quota":                 {4, 0, 4},
		"half a CPU":               {4, 0.5, 0.5},
		"a quota of some":          {4, 2.5, 2.5},
		"a quota of more than all": {4, 8, 4},
	} {
		require.InDelta(t, c.want, cores(c.n, c.quota), 0, why)
	}
	require.Positive(t, Cores())
}

// TestProcs: it is what Go makes of the CPUs and the quota, whatever this process was told.
func TestProcs(t *testing.T) {
	want := runtime.NumCPU()
	if q := Quota(); q > 0 {
		want = min(want, max(2, int(math.Ceil(q))))
	}
	for _, mine := range []int{1, want, runtime.NumCPU() + 3} {
		before := runtime.GOMAXPROCS(mine)
		got := Procs()
		require.Equal(t, mine, runtime.GOMAXPROCS(before), "this process keeps its own")
		require.Equal(t, want, got)
	}
}
