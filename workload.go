package rpcbench

import (
	"fmt"
	"time"
)

// Payload is what a call sends and gets back. "" is a small user. A size, such as 2kB, is a user with as many random
// bytes, and [Bytes] makes one. Flex messages are echoed: see [Flex].
type Payload string

// The messages that are echoed.
const (
	FlexEmpty   Payload = "flex.empty"
	FlexComplex Payload = "flex.complex"
	Flex2kB     Payload = "flex.2kB"
	Flex18kB    Payload = "flex.18kB"
	FlexDrawn   Payload = "drawn" // more than a thousand, whose sizes follow those of requests at Google
)

// Bytes is the payload of so many random bytes.
func Bytes(n int) Payload { return Payload(fmt.Sprintf("%dB", n)) }

// Link is an emulated network: a round trip and a rate, such as "40ms/10Mbps", which [LinkOf] makes. "" is none.
type Link string

// Link4G is that of a mobile phone.
const Link4G Link = "4g"

// LinkOf is a link of a round trip and of so many million bits a second.
func LinkOf(roundTrip time.Duration, mbps float64) Link {
	return Link(fmt.Sprintf("%v/%vMbps", roundTrip, mbps))
}

// Workload is one use of a service: what a call sends, and what surrounds the calls. It is a plain value, which other
// processes read as JSON. The zero value is one caller over one connection, who creates small users, or calls a Method.
//
// A workload is refused when it is opened if a number in it is negative, or if no stack could do what it asks, such as
// a new connection for each message of a stream.
type Workload struct { // a field that is added later is omitzero in JSON: older builds refuse what they do not know
	Name  string // names the workload in tables: letters, digits, dots and dashes
	Title string // says in a few words what a call is

	Payload Payload `json:",omitzero"` // what a call sends and gets back

	Invalid  bool // the user breaks a rule, and is refused
	Deadline bool // each call has a context.WithTimeout of its own
	Headers  bool // calls have the headers that clients in production add: see type Headers
	Stream   bool // users are sent on one stream that stays open; in a comparison, a stack without streams makes calls

	Callers int     // each calls again as soon as it has its reply; 0 is one
	Rate    float64 // calls that begin per second, even if earlier ones are late; 0 is none. Callers 0 is then 100
	Conns   int     // connections; 0 is one if a connection carries several calls at a time, else one per caller
	NewConn bool    // each call opens a connection, and closes it
	TLS     bool    // TLS 1.3
	Unix    bool    // a Unix socket in place of TCP
	Link    Link    // emulated network, which all connections share

	Wait  time.Duration `json:",omitzero"` // how long handlers wait before they answer: see ServerConfig
	Procs int           // GOMAXPROCS that the workload needs: 1 to compare CPU work, 0 for all cores
	Apart bool          // the server has a process of its own
}
