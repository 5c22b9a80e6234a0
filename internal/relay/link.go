package relay

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Link emulates a network beneath a client's connections. It delays and paces what crosses them, and adds no byte.
//
// Each packet leaves when those before it have left, at the rate of its direction, and arrives half an RTT later. Left
// out are loss, jitter, slow start, flow control, Nagle's algorithm, delayed acknowledgement and headers: this is a
// best case, the same for every stack. Go's timers may be up to 1 ms late in an idle process: a call meets that twice.
type Link struct {
	Name     string        // in a row's name: link=3g
	RTT      time.Duration // there and back, besides what the rates cost
	Up, Down float64       // bit/s, of the client; 0 is unlimited
}

// FindLink returns the link of that name.
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

// Wrap puts the link beneath a connection, which counts as dialled at that moment. A client may write when its SYN has
// been answered: nothing leaves before one RTT. A server accepts when the client's ACK has come: what it says leaves
// after 1.5 RTT and is heard after 2. Wrap itself doesn't wait.
//
// Close is TCP's: it returns at once, what was written arrives at its time, and then the connection ends, after a
// minute at the latest.
func (l Link) Wrap(beneath net.Conn) net.Conn {
	c := wrap(beneath)
	c.out = c.near
	c.end = func() error {
		_ = beneath.SetWriteDeadline(time.Now().Add(time.Minute)) // it may have failed
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

// queue is one direction: packets come out when they have arrived. They are reused: what allocates is the stack.
type queue struct {
	rate    float64 // bit/s; 0 is unlimited
	delay   time.Duration
	free    time.Time // when the link has sent what it has
	packets chan *packet
	spare   sync.Pool // of *packet
}

// packet is what one Read returned.
type packet struct {
	at   time.Time // of arrival
	n    int
	err  error
	data [packetSize]byte
}

// fill puts in what src says, and its error last.
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

// Read waits for the next packet, which must fit.
func (q *queue) Read(b []byte) (int, error) {
	p, more := <-q.packets
	if !more {
		return 0, io.EOF
	}
	time.Sleep(time.Until(p.at))
	defer q.spare.Put(p)
	return copy(b, p.data[:p.n]), p.err
}
