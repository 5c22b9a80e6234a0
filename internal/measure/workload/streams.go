package workload

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Sharing is how many callers share a connection of the stack. Where each call has a connection, none does.
func (w Workload) Sharing(t rpcbench.Traits) int {
	if w.NewConn || t.Reconnects {
		return 1
	}
	return ceil(w.AtOnce(), w.Connections(t))
}

// ceil is a quotient, rounded up.
func ceil(n, by int) int { return (n + by - 1) / by }

// MostStreams is how many calls a server of the stack takes on a connection at a time: 250 if that is net/http's over
// HTTP/2. It is 0 if nobody knows.
func MostStreams(t rpcbench.Traits) int {
	if t.HTTP == "2" && slices.Contains(t.ServerLibraries, "net/http") {
		return 250
	}
	return 0
}

// turns is how many calls of the stack take place one after the other, so that each of the callers has its turn.
func (w Workload) turns(t rpcbench.Traits) int {
	most := MostStreams(t)
	switch sharing := w.Sharing(t); {
	case !t.Multiplexed || t.Turns:
		return sharing
	case most > 0:
		return ceil(sharing, most)
	}
	return 1
}

// Room is how many connections all callers need, of which each carries so many calls at a time.
func (w Workload) Room(most int) int { return ceil(w.AtOnce(), most) }

// Crowded says whether more callers share a connection than its server takes, although nobody has asked for so few
// connections. The others' calls would wait, and the figures be of that.
func (w Workload) Crowded(t rpcbench.Traits) bool {
	most := MostStreams(t)
	return w.Conns == 0 && most > 0 && w.Sharing(t) > most
}

func (w Workload) checkStreams(t rpcbench.Traits) error {
	if most := MostStreams(t); w.Crowded(t) {
		return fmt.Errorf("net/http's HTTP/2 server takes %d calls on a connection, and here are %d callers on each: "+
			"give %d connections", most, w.Sharing(t), w.Room(most))
	}
	return nil
}

// spare is how many connections more than those of the workload a client may open: net/http's opens another one where
// the server takes no more calls on those that it has. It takes a new one to carry a hundred until it is told of more.
// How many a server elsewhere takes nobody knows here: it may be a proxy's 37.
func (w Workload) spare(t rpcbench.Traits, elsewhere bool) int64 {
	const untold = 100
	switch most := MostStreams(t); {
	case w.Sharing(t) < 2 || t.HTTP != "2":
		return 0
	case elsewhere:
		return int64(w.AtOnce() - w.Connections(t))
	case most > 0 && w.Sharing(t) > most:
		return int64(w.Room(untold) - w.Connections(t))
	}
	return 0
}

// ReadStreams reads off the wire, in clear, how many calls a server takes on a connection at a time: its
// SETTINGS_MAX_CONCURRENT_STREAMS. It is 0 if the server sets no limit. It makes a call, and closes what it started.
func ReadStreams(ctx context.Context, stack rpcbench.Stack, remote string) (most int, err error) {
	var wire tap.Tap
	f, err := rpcbench.Start(ctx, stack, rpcbench.Config{Remote: remote, WrapClient: wire.Wrap})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for _, c := range wire.Conns() {
		if _, received := c.Bytes(); most == 0 {
			most = streamLimit(received)
		}
	}
	return most, nil
}

// streamLimit is the last SETTINGS_MAX_CONCURRENT_STREAMS of what an HTTP/2 server has sent, or 0.
func streamLimit(received []byte) (most int) {
	const header, settings, ack, maxStreams, each = 9, 0x4, 0x1, 0x3, 6
	for len(received) >= header {
		length := int(received[0])<<16 | int(binary.BigEndian.Uint16(received[1:]))
		kind, flags := received[3], received[4]
		received = received[header:]
		payload := received[:min(length, len(received))]
		received = received[len(payload):]
		if kind != settings || flags&ack != 0 {
			continue
		}
		for ; len(payload) >= each; payload = payload[each:] {
			if value := binary.BigEndian.Uint32(payload[2:]); binary.BigEndian.Uint16(payload) == maxStreams {
				most = int(min(value, 1<<31-1))
			}
		}
	}
	return most
}

// Starting is about how long a link takes for what all connections of the stack carry until they are ready.
func (w Workload) Starting(t rpcbench.Traits) (lost time.Duration) {
	const around, handshake = 300, 4000 // bytes of a first call, and of TLS
	const again = 15 * time.Second      // until a connection is there of which the first packets were lost four times
	link, linked := w.Linked()
	if !linked {
		return 0
	}
	each := around + w.Size()
	if w.TLS {
		each += handshake
	}
	if link.Loss > 0 {
		lost = again
	}
	return lost + 4*link.RTT + time.Duration(8e9*float64(w.Connections(t)*each)/link.Rate)
}

// Files is how many files a process may have open at a time that measures the stack, or serves it: both ends of each
// connection, or where servers have processes of their own, as many new ones beside those that are just being closed.
// elsewhere says that no process of ours serves.
func (w Workload) Files(t rpcbench.Traits, elsewhere bool) int {
	const few, spare = 20, 100 // what a process has open besides
	conns := w.Connections(t)
	if w.NewConn || t.Reconnects {
		conns += w.AtOnce()
	}
	switch {
	case conns < few: // which any process may
		return 0
	case !w.Windowed(): // whose fixtures are open side by side: the base, its copy and the contestant
		conns *= 3
	}
	if !elsewhere {
		conns *= 2
	}
	return conns + spare
}
