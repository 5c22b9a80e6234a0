//go:build unix

package cpu

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
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
	if runtime.GOOS != "linux" {
		return 0, 0
	}
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
	if runtime.GOOS != "linux" {
		return 0, 0, 0
	}
	text, _ := os.ReadFile(stat)
	busy, _, cpus = parse(text)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return busy, own, cpus
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
