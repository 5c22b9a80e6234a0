package latency

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Sleeper waits more exactly than time.Sleep: an idle process rounds its timers up to the milliseconds of epoll_wait. A
// timerfd ends that wait within tens of microseconds. A thread in nanosleep would keep its P for a while, and calls would
// wait for that P; yielding until it is time would burn a core. One goroutine at a time may use a Sleeper.
type Sleeper struct {
	fd    int
	timer *os.File
	count [8]byte // expirations, which nobody asks for
}

// NewSleeper makes a Sleeper. The caller closes it.
func NewSleeper() (*Sleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &Sleeper{fd: fd, timer: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// Sleep returns when d has passed, at once if d isn't positive.
func (s *Sleeper) Sleep(d time.Duration) {
	if d <= 0 { // would disarm the timer
		return
	}
	err := unix.TimerfdSettime(s.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	if err == nil {
		_, err = s.timer.Read(s.count[:])
	}
	if err != nil {
		panic(err) // the Sleeper is closed
	}
}

// Close gives the timer back.
func (s *Sleeper) Close() error { return s.timer.Close() }
