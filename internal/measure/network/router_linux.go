package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Routing is the job of a child that is the router.
func Routing() child.Job { return child.NewJob(route) }

const (
	first   = 3                      // the file of the clients' device; the next one is the servers'
	mtu     = 1500                   // bytes; Ethernet's
	holds   = 100 * time.Millisecond // of the rate: what a queue holds more is dropped
	looks   = 100 * time.Millisecond // after which a router without packets looks whether it is to end
	batch   = 64                     // packets that it reads of one side before it writes
	slackNs = 1                      // how late the kernel may wake this thread; by default it takes 50 µs
)

func route(ctx context.Context, _ child.Stacks, asked routing, lines <-chan []byte, reply func(any) error) error {
	r := newRouter(asked, first, first+1)
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case line, more := <-lines:
			if !more {
				r.stop.Store(true)
				return <-ended
			}
			if share, err := strconv.ParseFloat(string(line), 64); err == nil {
				r.lose(share)
			}
			_ = reply(r.did()) // it fails if the parent has ended, and then lines end too
		}
	}
}

// router takes packets of two devices to each other.
type router struct {
	hops [2]*hop
	stop atomic.Bool
	from time.Time // since which its times count

	mu   sync.Mutex // guards what follows
	sum  tcp.Router
	late *loop.Recorder
}

// hop is one way of a link.
type hop struct {
	from, to int // files
	link     tap.Link
	random   *rand.Rand
	free     time.Duration // when it will have sent all packets so far
	queue    []*packet     // in the order in which they arrive
	spare    []*packet
}

type packet struct {
	at   time.Duration // when it arrives
	n    int
	data [mtu]byte
}

func newRouter(asked routing, clients, servers int) *router {
	way := func(from, to int, n uint64) *hop {
		return &hop{from: from, to: to, link: asked.Link, random: rand.New(rand.NewPCG(asked.Seed, n))}
	}
	return &router{hops: [2]*hop{way(clients, servers, 1), way(servers, clients, 2)}, from: time.Now(),
		late: loop.NewRecorder()}
}

// lose changes the share of packets that are lost.
func (r *router) lose(share float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hops {
		h.link.Loss = share
	}
}

// did is what the router did so far.
func (r *router) did() tcp.Router {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Late, _ = r.late.Quantile(0.99)
	r.sum.Span = time.Since(r.from)
	return r.sum
}

// run routes until it is to stop. One thread waits for packets of both devices, and until the next one arrives.
func (r *router) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, slackNs, 0, 0, 0); err != nil {
		return fmt.Errorf("the timer's slack: %w", err)
	}
	var files []unix.PollFd
	for _, h := range r.hops {
		if err := unix.SetNonblock(h.from, true); err != nil {
			return fmt.Errorf("the device: %w", err)
		}
		files = append(files, unix.PollFd{Fd: int32(h.from), Events: unix.POLLIN})
	}
	for !r.stop.Load() && ctx.Err() == nil {
		until := unix.NsecToTimespec(int64(r.next(time.Since(r.from))))
		if _, err := unix.Ppoll(files, &until, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for packets: %w", err)
		}
		r.mu.Lock()
		err := r.turn()
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// next is how long no packet arrives.
func (r *router) next(now time.Duration) time.Duration {
	wait := looks
	for _, h := range r.hops {
		if len(h.queue) > 0 {
			wait = min(wait, max(0, h.queue[0].at-now))
		}
	}
	return wait
}

// turn takes in what has come, and lets out what arrives.
func (r *router) turn() error {
	var err error
	for _, h := range r.hops {
		err = cmp.Or(err, h.take(r.from, &r.sum))
	}
	for _, h := range r.hops {
		err = cmp.Or(err, h.give(r.from, r.late))
	}
	return err
}

// take reads packets, of which some are lost and some find no place.
func (h *hop) take(from time.Time, sum *tcp.Router) error {
	for range batch {
		p := h.fresh()
		n, err := unix.Read(h.from, p.data[:])
		if err != nil {
			h.spare = append(h.spare, p)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				return nil
			}
			return fmt.Errorf("reading a packet: %w", err)
		}
		p.n = n
		sum.Packets++
		switch now := time.Since(from); {
		case h.random.Float64() < h.link.Loss:
			sum.Lost++
		case h.link.Rate > 0 && h.free-now > holds:
			sum.Full++
		default:
			h.send(p, now)
			continue
		}
		h.spare = append(h.spare, p)
	}
	return nil
}

// send gives a packet its turn behind those before it.
func (h *hop) send(p *packet, now time.Duration) {
	h.free = max(h.free, now)
	if h.link.Rate > 0 {
		h.free += time.Duration(float64(p.n) * 8e9 / h.link.Rate)
	}
	p.at = h.free + h.link.RTT/2
	h.queue = append(h.queue, p)
}

// give writes the packets that arrive by now.
func (h *hop) give(from time.Time, late *loop.Recorder) error {
	n := 0
	for ; n < len(h.queue) && n < batch; n++ {
		p, now := h.queue[n], time.Since(from)
		if p.at > now {
			break
		}
		if _, err := unix.Write(h.to, p.data[:p.n]); err != nil && !errors.Is(err, unix.EAGAIN) &&
			!errors.Is(err, unix.EINTR) {
			return fmt.Errorf("writing a packet: %w", err)
		}
		late.Record(now - p.at)
		h.spare = append(h.spare, p)
	}
	h.queue = append(h.queue[:0], h.queue[n:]...)
	return nil
}

func (h *hop) fresh() *packet {
	if last := len(h.spare) - 1; last >= 0 {
		p := h.spare[last]
		h.spare = h.spare[:last]
		return p
	}
	return new(packet)
}
