//go:build !linux

package workload

import "net"

// carried returns how many bytes connections have sent and received, which none tells on this system.
func carried([]net.Conn) (open []net.Conn, bytes uint64) { return nil, 0 }
