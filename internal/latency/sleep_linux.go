package latency

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// NewSleeper returns a function that returns when a duration has passed, at once if that isn't positive, and one that
// gives its timer back. One goroutine at a time may sleep.
//
// It is more exact than time.Sleep: an idle process rounds its timers up to the milliseconds of epoll_wait. A timerfd
// ends that wait within tens of microseconds. A thread in nanosleep would keep its P for a while, and calls would wait
// for that P; yielding until it is time would burn a core.
func NewSleeper() (sleep func(time.Duration), stop func() error, err error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("timerfd_create", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	expirations := make([]byte, 8) // nobody asks for them
	return func(d time.Duration) {
		if d <= 0 { // would disarm the timer
			return
		}
		err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
		if err == nil {
			_, err = timer.Read(expirations)
		}
		if err != nil {
			panic(err) // it is stopped
		}
	}, timer.Close, nil
}
