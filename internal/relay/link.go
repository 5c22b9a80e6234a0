package relay

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Link emulates a network beneath a client's connections. It delays bytes and limits their rate, and adds none.
//
// Each packet leaves after the earlier ones, at the rate of its direction, and arrives half an RTT later. There is no
// loss, jitter, slow start, flow control, Nagle's algorithm, delayed acknowledgement or header: a best case, the same
// for every stack. Go's timers may be up to 1 ms late in an idle process, twice per call.
type Link struct {
	Name     string        // in a row's name: link=3g
	RTT      time.Duration // round trip of a packet, without the time that the rates take
	Up, Down float64       // bit/s, from and to the client; 0 is unlimited
}

// FindLink returns the link with that name.
func FindLink(name string) (Link, error) {
	links := []Link{
		// 2 ms one way and 100 * 1024 kbit/s: https://github.com/grpc/grpc-go/blob/v1.85.0/benchmark/latency/latency.go
		{"lan", 4 * time.Millisecond, 100 << 20, 100 << 20},
		// WebPageTest's www/settings/connectivity.ini.sample at 4e157836cdfb: https://github.com/catchpoint/WebPageTest
		{"4g", 170 * time.Millisecond, 9e6, 9e6},
		{"3g", 300 * time.Millisecond, 768e3, 1.6e6},
	}
	if i := slices.IndexFunc(links, func(l Link) bool { return l.Name == name }); i >= 0 {
		return links[i], nil
	}
	return Link{}, fmt.Errorf("rpcbench: unknown link %q, the links are lan, 4g, 3g", name)
}

// Wrap puts the link beneath a connection, which counts as dialled at that moment. A client writes after the reply to
// its SYN, so nothing leaves before one RTT. A server accepts after the client's ACK, so its first bytes leave after
// 1.5 RTT and arrive after 2. Wrap itself does not wait.
//
// Close returns at once, as TCP's does. What was written arrives in time, and then the connection ends, after a minute
// at most.
func (l Link) Wrap(beneath net.Conn) net.Conn {
	c := wrap(beneath)
	c.out = c.near
	c.end = func() error {
		_ = beneath.SetWriteDeadline(time.Now().Add(time.Minute)) // an error means that it is closed already
		return nil
	}
	now, there := time.Now(), l.RTT/2
	up := queue{rate: l.Up, delay: there, free: now.Add(l.RTT), packets: make(chan *packet, most)}
	down := queue{rate: l.Down, delay: l.RTT - there, free: now.Add(l.RTT + there), packets: make(chan *packet, most)}
	go up.fill(c.far)
	go func() {
		_, _ = io.Copy(beneath, &up) // until the owner closes, or either end fails
		for range up.packets {
		}
		<-c.closed.Done()
		_ = beneath.Close()
	}()
	go down.fill(beneath)
	go func() {
		c.pump(&down, func(p []byte) ([]byte, error) { return p, nil })
		for range down.packets { // until beneath is closed
		}
	}()
	return c
}

const (
	packetSize = 1500                 // bytes; Ethernet's MTU
	most       = 4 << 20 / packetSize // packets; Linux buffers 4 MB for a connection by default (tcp_wmem)
)

// queue is one direction of a link: a packet comes out when it has arrived. Packets are reused, so that only the stack
// allocates.
type queue struct {
	rate    float64 // bit/s; 0 is unlimited
	delay   time.Duration
	free    time.Time // when the link will have sent all packets so far
	packets chan *packet
	spare   sync.Pool // of *packet
}

// packet is what one Read returned.
type packet struct {
	at   time.Time // time of arrival
	n    int
	err  error
	data [packetSize]byte
}

// fill queues what src sends, and at last its error.
func (q *queue) fill(src io.Reader) {
	defer close(q.packets)
	for {
		p, _ := q.spare.Get().(*packet)
		if p == nil {
			p = new(packet)
		}
		p.n, p.err = src.Read(p.data[:])
		if now := time.Now(); q.free.Before(now) {
			q.free = now
		}
		if q.rate > 0 {
			q.free = q.free.Add(time.Duration(float64(p.n) * 8e9 / q.rate))
		}
		p.at = q.free.Add(q.delay)
		q.packets <- p
		if p.err != nil {
			return
		}
	}
}

// Read waits for the next packet, which must fit into p.
func (q *queue) Read(b []byte) (int, error) {
	p, more := <-q.packets
	if !more {
		return 0, io.EOF
	}
	time.Sleep(time.Until(p.at))
	defer q.spare.Put(p)
	return copy(b, p.data[:p.n]), p.err
}
