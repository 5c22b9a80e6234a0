package environ

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Costs returns what the system takes on one core, as name=value pairs: for an empty call, for a byte to and fro over
// loopback in one thread, and to wake a parked thread. These figures tell why two hours differ. A figure that the
// system does not have is absent. Costs takes less than 0.2 s.
func Costs() string {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // an idle P would poll the network, and wake for each byte
	var all []string
	add := func(name string, took time.Duration) {
		if took > time.Microsecond {
			took = took.Round(100 * time.Nanosecond)
		}
		if took > 0 {
			all = append(all, fmt.Sprintf("%s=%v", name, took))
		}
	}
	if runtime.GOOS != "windows" { // which looks through all processes
		add("syscall", median(1000, func() error { os.Getppid(); return nil }))
	}
	add("ping-pong", pingPong())
	add("wake", wake())
	return strings.Join(all, " ")
}

// median returns how long an operation takes: the median of up to 21 batches of n, within 50 ms. It returns 0 if one
// fails.
func median(n int, operation func() error) time.Duration {
	var took []time.Duration
	for began := time.Now(); len(took) == 0 || len(took) < 21 && time.Since(began) < 50*time.Millisecond; {
		batch := time.Now()
		for range n {
			if operation() != nil {
				return 0
			}
		}
		took = append(took, time.Since(batch)/time.Duration(n))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// pingPong is the time of a byte to the other end of a connection and back, both ends in this goroutine.
func pingPong() time.Duration {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	near, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		return 0
	}
	defer near.Close()
	far, err := listener.Accept()
	if err != nil {
		return 0
	}
	defer far.Close()
	buf, limit := make([]byte, 1), time.Now().Add(100*time.Millisecond)
	if cmp.Or(near.SetDeadline(limit), far.SetDeadline(limit)) != nil {
		return 0
	}
	over := func(from, to net.Conn) error {
		_, err := from.Write(buf)
		if err == nil {
			_, err = to.Read(buf)
		}
		return err
	}
	return median(20, func() error { return cmp.Or(over(near, far), over(far, near)) })
}

// wake is the time until a parked thread runs: half of a token's way to another goroutine and back, each of which has a
// thread of its own.
func wake() time.Duration {
	to, fro := make(chan bool), make(chan bool)
	defer close(to)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for token := range to {
			fro <- token
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return median(20, func() error { to <- true; <-fro; return nil }) / 2
}
