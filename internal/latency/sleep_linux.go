package latency

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// NewSleeper returns a function that sleeps for a duration, and a function that frees its timer. One goroutine at a
// time may sleep.
//
// The sleeper is more exact than time.Sleep, which in an idle process rounds up to the milliseconds of epoll_wait. Its
// timerfd ends that wait within tens of microseconds. A thread in nanosleep would keep its P for a while, and calls
// would wait for that P. Spinning would burn a core.
func NewSleeper() (sleep func(time.Duration), stop func() error, err error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("timerfd_create", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	expirations := make([]byte, 8) // a read returns them; nobody needs them
	return func(d time.Duration) {
		if d <= 0 { // Settime would disarm the timer
			return
		}
		err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
		if err == nil {
			_, err = timer.Read(expirations)
		}
		if err != nil {
			panic(err) // the sleeper is stopped
		}
	}, timer.Close, nil
}
