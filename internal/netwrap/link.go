package netwrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Link is an emulated network between a client and its server. It delays and paces what crosses a connection, from the
// client's end alone, and adds no byte to it.
//
// Every byte takes its turn: it leaves when those before it have left, at the rate of its direction, and arrives half an
// RTT later, in steps of a packet, so that a long reply comes in little by little. The directions don't hinder each
// other. Until they have left, bytes wait in a bounded buffer; when it is full, Write blocks.
//
// Left out are loss, jitter, slow start and flow control (save that no more than 4 MB are under way), Nagle's algorithm,
// delayed acknowledgement, and headers, so that rates are of payload. All of these make a real link slower: this one is
// a best case, the same for every stack. Go's timers may fire up to 1 ms late when the process is idle, which a call
// meets twice; within a message lateness doesn't add up, as later bytes keep their times.
type Link struct {
	Name     string        // in a row's name: link=3g
	RTT      time.Duration // there and back, besides what the rates cost
	Up, Down float64       // bit/s, of the client; 0 is unlimited
	Source   string        // whose numbers these are
}

// Links returns the links that have a name.
func Links() []Link {
	const webPageTest = "https://github.com/catchpoint/WebPageTest/blob/4e157836cdfb51eb7db93fc7b2488a0582ad1a6c" +
		"/www/settings/connectivity.ini.sample"
	return []Link{
		// 2 ms one way and 100 * 1024 kbit/s; a kilobit is 1024 bits there.
		{"lan", 4 * time.Millisecond, 100 << 20, 100 << 20,
			"LAN in https://github.com/grpc/grpc-go/blob/v1.85.0/benchmark/latency/latency.go"},
		{"4g", 170 * time.Millisecond, 9e6, 9e6, "[4G] in " + webPageTest},
		{"3g", 300 * time.Millisecond, 768e3, 1.6e6, "[3G] in " + webPageTest},
	}
}

// FindLink returns the link of that name. The error for an unknown one lists the names.
func FindLink(name string) (Link, error) {
	var known []string
	for _, l := range Links() {
		if l.Name == name {
			return l, nil
		}
		known = append(known, l.Name)
	}
	return Link{}, fmt.Errorf("rpcbench: unknown link %q, the links are %s", name, strings.Join(known, ", "))
}

// Wrap puts the link beneath the client's end of a connection, which counts as dialled at that moment. Close it, or two
// goroutines stay.
//
// Dialling costs one round trip, though Wrap doesn't wait for it. A client may write when its SYN has been answered:
// nothing leaves before one RTT. A server accepts when the client's ACK has come, half an RTT later: what it says leaves
// after 1.5 RTT and is heard after 2. (It has really accepted before, so that what it does in those 1.5 RTT costs
// nothing; but it has nothing to do until the client speaks.)
//
// Close is TCP's: it returns at once, what was written still arrives at its time, and then the connection ends: when the
// buffer is empty and half an RTT later, or, if the server doesn't read, 5 seconds after that. A server that has closed
// too refuses the next packets, which ends it sooner.
func (l Link) Wrap(conn net.Conn) net.Conn {
	now, there := time.Now(), l.RTT/2
	c := &linkConn{
		Conn: conn,
		up:   newQueue(l.Up, there, now.Add(l.RTT)),
		down: newQueue(l.Down, l.RTT-there, now.Add(l.RTT+there)),
	}
	go c.send()
	go c.receive()
	return c
}

type linkConn struct {
	net.Conn
	up, down *queue
	closed   atomic.Bool
}

const linger = 5 * time.Second // for a server that doesn't read, after Close

func (c *linkConn) Read(p []byte) (int, error)  { return c.down.take(p) }
func (c *linkConn) Write(p []byte) (int, error) { return c.up.put(p) }

// send hands over what has come through the link. It closes the connection if the client has; else the reader may still
// want what came before the failure.
func (c *linkConn) send() {
	p := make([]byte, 32<<10)
	n, err := c.up.take(p)
	for err == nil {
		if _, err = c.Conn.Write(p[:n]); err == nil {
			n, err = c.up.take(p)
		}
	}
	c.up.stop(err, c.down.arrival())
	if c.closed.Load() {
		_ = c.Conn.Close()
	}
}

func (c *linkConn) receive() {
	p := make([]byte, 32<<10)
	for {
		n, err := c.Conn.Read(p)
		if _, closed := c.down.put(p[:n]); closed != nil {
			return
		}
		if err != nil {
			at, _ := c.down.finish(err)
			if !errors.Is(err, io.EOF) { // which is but the end of one direction
				c.up.stop(err, at)
			}
			return
		}
	}
}

func (c *linkConn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	c.down.stop(net.ErrClosed, time.Time{})
	at, dead := c.up.finish(io.EOF)
	if dead { // and send may have missed that closed is set
		_ = c.Conn.Close()
	}
	_ = c.Conn.SetWriteDeadline(at.Add(linger))
	return nil
}

func (c *linkConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *linkConn) SetReadDeadline(t time.Time) error  { return c.down.setDeadline(&c.down.out, t) }
func (c *linkConn) SetWriteDeadline(t time.Time) error { return c.up.setDeadline(&c.up.in, t) }

// queue is one direction: what is put in comes out when it has arrived. Besides growth it allocates nothing, so that
// allocations per call stay the stack's.
type queue struct {
	rate  float64 // bit/s; 0 is unlimited
	delay time.Duration
	limit int // bytes held

	putting chan struct{} // a lock, so that puts don't mix; a mutex would stop the clock of a synctest bubble

	mu      sync.Mutex
	wake    *sync.Cond
	in, out end
	data    bytes.Buffer
	packets []packet  // of data, in order
	head    int       // index of the first that has not been taken
	free    time.Time // when the link has sent what it has
}

// end is one end of a queue.
type end struct {
	deadline time.Time
	err      error // for ever, from that time on
	from     time.Time
	timer    *time.Timer
}

// packet is a number of bytes, or the error that follows the last.
type packet struct {
	at  time.Time // of arrival
	n   int
	err error
}

const (
	packetSize = 1500    // bytes; Ethernet's MTU
	buffer     = 1 << 16 // bytes that wait for the link
	maxQueue   = 4 << 20 // bytes; the most that Linux buffers for a connection by default (tcp_wmem)
)

func newQueue(rate float64, delay time.Duration, open time.Time) *queue {
	q := &queue{rate: rate, delay: delay, limit: maxQueue, putting: make(chan struct{}, 1), free: open}
	if rate > 0 { // what is under way must not take the place of what keeps the link busy
		q.limit = int(min(maxQueue, buffer+rate/8*delay.Seconds()))
	}
	q.wake = sync.NewCond(&q.mu)
	for _, e := range []*end{&q.in, &q.out} {
		e.timer = time.AfterFunc(time.Hour, q.look)
		e.timer.Stop()
	}
	return q
}

// put returns when all of p is held, or with the number of bytes that are.
func (q *queue) put(p []byte) (n int, err error) {
	q.putting <- struct{}{}
	defer func() { <-q.putting }()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if err := q.in.check(time.Now()); err != nil {
			return n, err
		}
		for n < len(p) && q.data.Len() < q.limit {
			part := p[n:][:min(len(p)-n, packetSize, q.limit-q.data.Len())]
			q.data.Write(part)
			q.packets = append(q.packets, packet{at: q.schedule(len(part)), n: len(part)})
			n += len(part)
		}
		q.wake.Broadcast()
		if n == len(p) {
			return n, nil
		}
		q.wait(&q.in, time.Time{})
	}
}

// take waits for the first arrival and returns all that has arrived.
func (q *queue) take(p []byte) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		now := time.Now()
		if err := q.out.check(now); err != nil {
			return 0, err
		}
		var next time.Time
		for n < len(p) && q.head < len(q.packets) {
			first := &q.packets[q.head]
			if next = first.at; next.After(now) || first.err != nil && n > 0 {
				break
			}
			if first.err != nil {
				return 0, first.err
			}
			part := min(first.n, len(p)-n)
			n += part
			if first.n -= part; first.n == 0 {
				q.head++
			}
		}
		if n > 0 || len(p) == 0 {
			_, _ = q.data.Read(p[:n])
			if 2*q.head >= len(q.packets) { // seldom, or a long queue would move for every packet
				q.packets = slices.Delete(q.packets, 0, q.head)
				q.head = 0
			}
			q.wake.Broadcast()
			return n, nil
		}
		q.wait(&q.out, next)
	}
}

// schedule lets the link send n bytes more, and returns when they arrive.
func (q *queue) schedule(n int) time.Time {
	if now := time.Now(); q.free.Before(now) {
		q.free = now
	}
	if q.rate > 0 {
		q.free = q.free.Add(time.Duration(float64(n) * 8e9 / q.rate))
	}
	return q.free.Add(q.delay)
}

// arrival returns when something without size would arrive if it were put now.
func (q *queue) arrival() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.schedule(0)
}

// finish lets err follow the last byte, at the time it returns; dead if the queue was stopped.
func (q *queue) finish(err error) (at time.Time, dead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at = q.schedule(0)
	q.packets = append(q.packets, packet{at: at, err: err})
	q.in.err, q.in.from = net.ErrClosed, time.Time{}
	q.in.timer.Stop() // or it would keep the queue in memory until the deadline
	q.wake.Broadcast()
	return at, q.out.err != nil
}

// stop lets nothing more arrive. It fails what is taken with err at once, and what is put from a certain time on: until
// the client has heard of it, it takes the connection to be alive.
func (q *queue) stop(err error, from time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out.err = err
	if q.in.err == nil {
		q.in.err, q.in.from = err, from
	}
	q.out.timer.Stop()
	q.wake.Broadcast()
}

func (q *queue) setDeadline(e *end, t time.Time) error {
	if left := time.Until(t); left > 0 {
		t = time.Now().Add(left) // on the monotonic clock, which the timer runs on
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if errors.Is(e.err, net.ErrClosed) {
		return net.ErrClosed
	}
	e.deadline = t
	q.wake.Broadcast()
	return nil
}

func (e *end) check(now time.Time) error {
	switch {
	case e.err != nil && !now.Before(e.from):
		return e.err
	case !e.deadline.IsZero() && !now.Before(e.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait returns when something has changed, or when one of the times has come: next, e's deadline, its error's. All who
// wait at one end wait for the same times, so one timer serves them.
func (q *queue) wait(e *end, next time.Time) {
	for _, t := range [...]time.Time{e.deadline, e.from} {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if !next.IsZero() {
		e.timer.Reset(time.Until(next))
	}
	q.wake.Wait()
}

// look makes those who wait look again.
func (q *queue) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake.Broadcast()
}
