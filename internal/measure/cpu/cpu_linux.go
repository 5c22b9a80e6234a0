package cpu

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stat is where Linux tells what its CPUs did since the start, in ticks of 10 ms.
const stat, tick = "/proc/stat", 10 * time.Millisecond

// Others measures what other programs use of the machine. The function that it returns gives their share of all CPUs
// since then: all time that no CPU was idle, without that of this process and of its children that have ended. Time
// that a hypervisor gave to other machines counts. Less than half a tick counts as half a tick, so that a share of 0
// means that the system does not tell.
func Others() (since func() float64) {
	busy, own, cpus := usage()
	began := time.Now()
	return func() float64 {
		busyNow, ownNow, _ := usage()
		if cpus == 0 {
			return 0
		}
		used := (busyNow - busy) - (ownNow - own)
		return min(1, max(tick/2, used).Seconds()/time.Since(began).Seconds()/float64(cpus))
	}
}

// Machine returns how long the machine's CPUs, all together, were busy and idle so far, in ticks of 10 ms. It returns 0
// twice if the system does not tell. In a container this is of the host.
func Machine() (busy, idle time.Duration) {
	text, _ := os.ReadFile(stat)
	busy, idle, _ = parse(text)
	return busy, idle
}

// Count returns how many CPUs Others and Machine are of. It returns 0 if the system does not tell.
func Count() int {
	_, _, cpus := usage()
	return cpus
}

// usage returns the time that CPUs were not idle, and this process tree's own part, for so many CPUs.
func usage() (busy, own time.Duration, cpus int) {
	text, _ := os.ReadFile(stat)
	busy, _, cpus = parse(text)
	self, _ := used(unix.RUSAGE_SELF)
	children, _ := used(unix.RUSAGE_CHILDREN)
	return busy, self + children, cpus
}

// parse reads /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal. What follows is part of user and
// nice.
func parse(text []byte) (busy, idle time.Duration, cpus int) {
	var user, nice, system, free, waiting, irq, softirq, steal int64
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	_, err := fmt.Sscanf(string(line), "cpu %d %d %d %d %d %d %d %d",
		&user, &nice, &system, &free, &waiting, &irq, &softirq, &steal)
	if err != nil {
		return 0, 0, 0
	}
	return time.Duration(user+nice+system+irq+softirq+steal) * tick, time.Duration(free+waiting) * tick,
		bytes.Count(append([]byte("\n"), rest...), []byte("\ncpu"))
}

// Of returns the user and system time of another process since its start, and false if nobody may know. The clock of a
// thread that runs is up to a tick of the scheduler late, which is 1 to 10 ms.
func Of(pid int) (time.Duration, bool) {
	var t unix.Timespec
	clock := int32(^pid<<3 | 2) // CPUCLOCK_SCHED of a process, as clock_getcpuclockid(3) makes it
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// Switches returns how often threads of a process have stopped running to wait: voluntary context switches so far, of
// threads that live. It returns 0 if nobody may know. It reads a file for each thread, which takes some 0.1 ms.
func Switches(pid int) (n int64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, name := range files {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var own int64
		_, _ = fmt.Sscan(rest, &own)
		n += own
	}
	return n
}
