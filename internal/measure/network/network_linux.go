package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
)

const (
	name = "rpcbench0" // of a device
	most = 10_000      // packets that a device holds until the router reads them
)

// Network is a network that has been made. One goroutine at a time.
type Network struct {
	here, there *os.File    // namespaces: of this process, and of the servers
	files       []tcp.Files // of both
	settings    tcp.Settings
	router      *child.Process
	pid         int
}

// Make makes a network. The calling process must have a network namespace of its own, and rights in it.
func Make(ctx context.Context, spec Spec) (n *Network, err error) {
	n = &Network{}
	var tuns [2]*os.File
	defer func() {
		for _, tun := range tuns {
			if tun != nil {
				_ = tun.Close() // the router has it
			}
		}
		if err != nil {
			_ = n.Close()
			n, err = nil, fmt.Errorf("network: %w", noRights(err))
		}
	}()
	err = onThread(func() (err error) {
		if n.here, err = namespace(); err != nil {
			return err
		}
		if tuns[0], err = n.side(Client, spec.Settings); err != nil {
			return err
		}
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a second namespace: %w", err)
		}
		if n.there, err = namespace(); err != nil {
			return err
		}
		tuns[1], err = n.side(Server, spec.Settings)
		return cmp.Or(err, n.back())
	})
	if err != nil {
		return n, err
	}
	n.router, err = child.Command{Does: child.Routes, Procs: 1, Asked: routing{spec.Link, spec.Seed}, Gets: tuns[:],
		Limit: 10 * time.Second}.Start(context.WithoutCancel(ctx)) // it ends with its input
	if err == nil {
		n.pid = n.router.Pid()
	}
	return n, err
}

// onThread runs do on a thread of its own, which ends with it: another goroutine would find another namespace there.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		done <- do()
	}()
	return <-done
}

// namespace is the one of the calling thread.
func namespace() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") }

// side sets up the namespace of the calling thread: its settings, loopback, and a device with the address.
func (n *Network) side(addr string, settings tcp.Settings) (packets *os.File, err error) {
	if err := settings.Set(); err != nil {
		return nil, err
	}
	n.settings = tcp.Present()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	if err := up(s, "lo"); err != nil {
		return nil, fmt.Errorf("loopback: %w", err)
	}
	fd, err := unix.Open(tun, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tun, err)
	}
	packets = os.NewFile(uintptr(fd), tun)
	if err := attach(s, fd, net.ParseIP(addr)); err != nil {
		return packets, fmt.Errorf("the device: %w", err)
	}
	files, err := tcp.Open()
	n.files = append(n.files, files)
	return packets, err
}

// attach makes the device of a TUN file, and gives it the address, in a network of four.
func attach(s, fd int, addr net.IP) error {
	request := func(set func(r *unix.Ifreq) error, call uint, on int) error {
		r, err := unix.NewIfreq(name)
		if err == nil && set != nil {
			err = set(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(on, call, r)
		}
		return err
	}
	address := func(ip net.IP) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(ip.To4()) }
	}
	for _, step := range []struct {
		set  func(*unix.Ifreq) error
		call uint
		on   int
	}{
		{func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI); return nil }, unix.TUNSETIFF, fd},
		{func(r *unix.Ifreq) error { r.SetUint32(most); return nil }, unix.SIOCSIFTXQLEN, s},
		{address(addr), unix.SIOCSIFADDR, s},
		{address(net.IPv4(255, 255, 255, 252)), unix.SIOCSIFNETMASK, s},
	} {
		err := request(step.set, step.call, step.on)
		if step.call == unix.SIOCSIFTXQLEN && errors.Is(err, unix.EPERM) {
			continue // a user's device holds 500: if that is too few, Router says so
		}
		if err != nil {
			return err
		}
	}
	return up(s, name)
}

// up takes a device into service.
func up(s int, device string) error {
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// back takes the calling thread back to the namespace of this process.
func (n *Network) back() error {
	if err := unix.Setns(int(n.here.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("back from the servers' namespace: %w", err)
	}
	return nil
}

// There runs do on a thread in the servers' namespace: a process that it starts is there, too. The thread ends with do,
// so that no other goroutine is ever there.
func (n *Network) There(do func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(n.there.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network: the servers' namespace: %w", err)
		}
		return do()
	})
}

// Settings are those of both namespaces.
func (n *Network) Settings() tcp.Settings { return n.settings }

// Counters are what the TCP of both sides did so far.
func (n *Network) Counters() (sum tcp.Counters, err error) {
	for _, files := range n.files {
		c, err := files.Counters()
		if err != nil {
			return sum, fmt.Errorf("network: %w", err)
		}
		sum.Add(c)
	}
	return sum, nil
}

// Used is the CPU time of the router so far.
func (n *Network) Used() (time.Duration, bool) { return cpu.Of(n.pid) }

// Router tells what the router did so far. It is an error if packets were lost beside it: what is measured then is no
// link of the specification.
func (n *Network) Router() (r tcp.Router, err error) {
	if err := n.router.Ask("", &r); err != nil {
		return r, fmt.Errorf("network: %w", err)
	}
	r.CPU, _ = n.Used()
	for _, files := range n.files {
		if dropped := files.Dropped(name); dropped > 0 {
			return r, fmt.Errorf("network: %d packets were lost before the router read them: quiet the machine, or give a "+
				"lower rate", dropped)
		}
	}
	return r, nil
}

// Lose changes the share of packets that are lost from now on: of all, with 1.
func (n *Network) Lose(share float64) error {
	if err := n.router.Ask(strconv.FormatFloat(share, 'g', -1, 64), new(tcp.Router)); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

// Close ends the router. The namespaces end with the last process that is in them.
func (n *Network) Close() (err error) {
	if n.router != nil {
		if err = n.router.End(); err != nil {
			err = fmt.Errorf("network: the router: %w", err)
		}
	}
	for _, files := range n.files {
		files.Close()
	}
	for _, file := range []*os.File{n.here, n.there} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}
