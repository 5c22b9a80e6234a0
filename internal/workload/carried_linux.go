package workload

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// carried returns how many bytes TCP connections have sent and received, as the kernel counts them. They are not known
// of other connections, and of those that are closed.
func carried(conns []net.Conn) (bytes uint64, known bool) {
	for _, c := range conns {
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return 0, false
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			return 0, false
		}
		var info *unix.TCPInfo
		if failed := raw.Control(func(fd uintptr) {
			info, err = unix.GetsockoptTCPInfo(int(fd), syscall.IPPROTO_TCP, unix.TCP_INFO)
		}); failed != nil || err != nil {
			return 0, false
		}
		bytes += info.Bytes_sent + info.Bytes_received
	}
	return bytes, bytes > 0 // older kernels don't count them
}
