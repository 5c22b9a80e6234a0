package workload

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// carried returns how many bytes TCP connections have sent and received, as the kernel counts them, and which of the
// connections tell: no other ones, and none that is closed.
func carried(conns []net.Conn) (open []net.Conn, bytes uint64) {
	for _, c := range conns {
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			continue
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			continue
		}
		var info *unix.TCPInfo
		if failed := raw.Control(func(fd uintptr) {
			info, err = unix.GetsockoptTCPInfo(int(fd), syscall.IPPROTO_TCP, unix.TCP_INFO)
		}); failed == nil && err == nil {
			open, bytes = append(open, c), bytes+info.Bytes_sent+info.Bytes_received
		}
	}
	return open, bytes
}
