package latency

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Sleeper waits more exactly than time.Sleep: an idle process rounds its timers up to milliseconds, those of epoll_wait. A
// timerfd ends the wait of epoll as a reply on a socket does, within tens of microseconds, and blocks a goroutine and no more. A
// thread in nanosleep keeps its P until the runtime takes it back, and calls wait for that; yielding
// until it is time burns a core, which cpu-ns/op would show. One goroutine at a time may use it.
type Sleeper struct {
	fd    uintptr
	timer *os.File
	count [8]byte // expirations, which nobody asks for
}

const clockMonotonic = 1 // CLOCK_MONOTONIC of linux/time.h; TFD_NONBLOCK and TFD_CLOEXEC are O_NONBLOCK and O_CLOEXEC

// NewSleeper makes a Sleeper, which is to be closed.
func NewSleeper() (*Sleeper, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	return &Sleeper{fd: fd, timer: os.NewFile(fd, "timerfd")}, nil
}

// Sleep returns when d has passed, at once if d isn't positive.
func (s *Sleeper) Sleep(d time.Duration) {
	if d <= 0 { // would disarm the timer
		return
	}
	setting := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(d))}
	_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, s.fd, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
	if errno != 0 {
		panic(os.NewSyscallError("timerfd_settime", errno)) // it is closed
	}
	if _, err := s.timer.Read(s.count[:]); err != nil {
		panic(err)
	}
}

// Close gives the timer back.
func (s *Sleeper) Close() error { return s.timer.Close() }
