package tap

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Link is a network between a client and a server. Without a loss it is emulated beneath the client's connections: it
// delays bytes and limits their rate, and adds none.
//
// Each packet leaves after the earlier ones of all connections, at the rate of the link, and arrives half an RTT later.
// There is no loss, jitter, slow start, flow control, Nagle's algorithm, delayed acknowledgement or header: a best
// case, the same for every stack. Go's timers may be up to 1 ms late in an idle process, twice per call.
type Link struct {
	RTT  time.Duration // round trip of a packet, without the time that the rate takes
	Rate float64       // bit/s, each way; 0 is unlimited

	// Routed is whether it is not emulated, but made of network namespaces with a router between them, by package network.
	// Loss is then the share of packets that are lost each way, which may be 0.
	Routed bool
	Loss   float64
}

// FindLink reads a link: a round trip and a rate, as in "40ms/10Mbps", or "4g". The round trip has the unit ms or s,
// and the rate kbps, Mbps or Gbps. Below 1 ms Go's timers would be most of the delay; beyond 1 s or below 10 kbps no
// connection is ready in time. A third part is the loss of a link that is routed, whose round trip may be 0 and is 300
// ms at most, as in "20ms/100Mbps/1%".
func FindLink(text string) (Link, error) {
	value, loss, routed := text, 0.0, false
	if share, is := strings.CutSuffix(text, "%"); is {
		slash := strings.LastIndex(share, "/") + 1
		percent, err := strconv.ParseFloat(share[slash:], 64)
		if slash == 0 || err != nil || !(0 <= percent && percent <= 5) {
			return Link{}, fmt.Errorf("%q has no loss of packets that is measured: write 0%% to 5%%, "+
				"as in 20ms/100Mbps/1%%", text)
		}
		value, loss, routed = share[:slash-1], percent/100, true
	}
	if text == "4g" {
		// WebPageTest's www/settings/connectivity.ini.sample at 4e157836cdfb: https://github.com/catchpoint/WebPageTest
		value = "170ms/9Mbps"
	}
	units := map[string]float64{"ms": 1e6, "s": 1e9, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}
	parts := regexp.MustCompile(`^([0-9.]+)(ms|s)/([0-9.]+)(kbps|Mbps|Gbps)$`).FindStringSubmatch(value)
	if parts != nil {
		rtt, err := strconv.ParseFloat(parts[1], 64)
		rate, err2 := strconv.ParseFloat(parts[3], 64)
		rtt, rate = rtt*units[parts[2]], rate*units[parts[4]]
		least, most := 1e6, 1e9
		if routed {
			least, most = 0, 3e8
		}
		if err == nil && err2 == nil && least <= rtt && rtt <= most && 1e4 <= rate && rate <= 1e10 {
			return Link{time.Duration(rtt), rate, routed, loss}, nil
		}
	}
	if routed {
		return Link{}, fmt.Errorf("%q is no link with a loss of packets: "+
			"write a round trip, a rate and the loss such as 20ms/100Mbps/1%%, from 0ms/10kbps/0%% to 300ms/10Gbps/5%%", text)
	}
	return Link{}, fmt.Errorf("%q is no link: write 4g, or a round trip and a rate such as 40ms/10Mbps, "+
		"from 1ms/10kbps to 1s/10Gbps; a third part is the loss of packets, as in 20ms/100Mbps/1%%", text)
}

// Shared returns a function that puts the link beneath a connection. All connections of one such function share the
// rate, each way. Each has queues of its own, so that one that isn't read holds up no other.
//
// A connection counts as dialled when it is wrapped, which doesn't wait. A client writes after the reply to its SYN, so
// nothing leaves before one RTT. A server accepts after the client's ACK, so its first bytes leave after 1.5 RTT and
// arrive after 2.
//
// Close returns at once, as TCP's does. What was written arrives in time, and then the connection ends, after a minute
// at most.
func (l Link) Shared() (wrap func(net.Conn) net.Conn) {
	up, down := &sender{rate: l.Rate}, &sender{rate: l.Rate}
	return func(beneath net.Conn) net.Conn {
		now, there := time.Now(), l.RTT/2
		return over(beneath,
			&queue{link: up, delay: there, opens: now.Add(l.RTT), packets: make(chan *packet, most)},
			&queue{link: down, delay: l.RTT - there, opens: now.Add(l.RTT + there), packets: make(chan *packet, most)})
	}
}

// over puts the two directions of a link beneath a connection.
func over(beneath net.Conn, up, down *queue) net.Conn {
	c := wrap(beneath)
	c.out = c.near
	c.end = func() error {
		_ = beneath.SetWriteDeadline(time.Now().Add(time.Minute)) // an error means that it is closed already
		return nil
	}
	go up.fill(c.far)
	go func() {
		_, _ = io.Copy(beneath, up) // until the owner closes, or either end fails
		for range up.packets {
		}
		<-c.closed.Done()
		_ = beneath.Close()
	}()
	go down.fill(beneath)
	go func() {
		c.pump(down, func(p []byte) ([]byte, error) { return p, nil })
		for range down.packets { // until beneath is closed
		}
	}()
	return c
}

const (
	packetSize = 1500                 // bytes; Ethernet's MTU
	most       = 4 << 20 / packetSize // packets; Linux buffers 4 MB for a connection by default (tcp_wmem)
)

// sender is what sends packets into one direction of a link, one after the other.
type sender struct {
	rate float64 // bit/s; 0 is unlimited
	mu   sync.Mutex
	free time.Time // when it will have sent all packets so far
}

// queue is one direction of a connection: a packet comes out when it has arrived. Packets are reused, so that only the
// stack allocates.
type queue struct {
	link    *sender
	delay   time.Duration
	opens   time.Time // before which nothing is sent
	packets chan *packet
	spare   sync.Pool // of *packet

	early []*packet // read before the connection opens; the sender's mutex guards them
	open  bool      // Read has waited until then
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
		failed := p.err // the packet is its reader's once it's queued
		q.send(p)
		q.packets <- p
		if failed != nil {
			return
		}
	}
}

// send gives a packet its turn. One that comes before the connection opens has its turn then: those of other
// connections leave meanwhile.
func (q *queue) send(p *packet) {
	q.link.mu.Lock()
	defer q.link.mu.Unlock()
	now := time.Now()
	if now.Before(q.opens) {
		q.early = append(q.early, p)
		return
	}
	q.sendEarly()
	q.turn(p, now)
}

// sendEarly gives those packets their turns that came before the connection opened. The caller has the sender's mutex.
func (q *queue) sendEarly() {
	for _, p := range q.early {
		q.turn(p, q.opens)
	}
	q.early = nil
}

// turn says when a packet arrives that may leave from a time on.
func (q *queue) turn(p *packet, from time.Time) {
	if q.link.free.Before(from) {
		q.link.free = from
	}
	if q.link.rate > 0 {
		q.link.free = q.link.free.Add(time.Duration(float64(p.n) * 8e9 / q.link.rate))
	}
	p.at = q.link.free.Add(q.delay)
}

// Read waits for the next packet, which must fit into p. It takes the first one at once, so it is there when the
// connection opens.
func (q *queue) Read(b []byte) (int, error) {
	p, more := <-q.packets
	if !more {
		return 0, io.EOF
	}
	if !q.open {
		time.Sleep(time.Until(q.opens))
		q.link.mu.Lock()
		q.sendEarly()
		q.link.mu.Unlock()
		q.open = true
	}
	time.Sleep(time.Until(p.at))
	defer q.spare.Put(p)
	return copy(b, p.data[:p.n]), p.err
}
