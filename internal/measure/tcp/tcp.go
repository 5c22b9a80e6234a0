// Package tcp reads what the kernel's TCP did and how it is set, and says what a router did between two network
// namespaces.
package tcp

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Counters are what the TCP of a network namespace did.
type Counters struct {
	Sent     int64 `json:"sent"`     // segments, without those that are sent again
	Again    int64 `json:"again"`    // segments that are sent again, for any reason
	Fast     int64 `json:"fast"`     // fast retransmissions: acknowledgements of later segments told of the loss
	Probes   int64 `json:"probes"`   // tail loss probes: nothing came for two round trips or so
	Timeouts int64 `json:"timeouts"` // of the retransmission timer
}

// Add adds what another namespace did.
func (c *Counters) Add(o Counters) {
	c.Sent, c.Again, c.Fast = c.Sent+o.Sent, c.Again+o.Again, c.Fast+o.Fast
	c.Probes, c.Timeouts = c.Probes+o.Probes, c.Timeouts+o.Timeouts
}

// Sub takes away what was done before.
func (c *Counters) Sub(o Counters) {
	c.Add(Counters{-o.Sent, -o.Again, -o.Fast, -o.Probes, -o.Timeouts})
}

// Router is what a router did with the packets of both ways.
type Router struct {
	Packets int64         `json:"packets"`
	Lost    int64         `json:"lost"`     // that it dropped as the link says
	Full    int64         `json:"full"`     // that it dropped since the queue was full
	CPU     time.Duration `json:"cpu"`      // of its process
	Span    time.Duration `json:"span"`     // that it has routed for
	Late    time.Duration `json:"late_p99"` // how late packets left, 99th percentile
}

// Add adds what another router did.
func (r *Router) Add(o Router) {
	r.Packets, r.Lost, r.Full = r.Packets+o.Packets, r.Lost+o.Lost, r.Full+o.Full
	r.CPU, r.Span, r.Late = r.CPU+o.CPU, r.Span+o.Span, max(r.Late, o.Late)
}

// Files are the kernel's files of a namespace. They stay that namespace's, whatever thread reads them.
type Files struct{ snmp, netstat, dev *os.File }

// Open opens the files of the namespace of the calling thread, which must be locked.
func Open() (f Files, err error) {
	for _, one := range []struct {
		to   **os.File
		name string
	}{{&f.snmp, "snmp"}, {&f.netstat, "netstat"}, {&f.dev, "dev"}} {
		if *one.to, err = os.Open("/proc/thread-self/net/" + one.name); err != nil {
			f.Close()
			return Files{}, err
		}
	}
	return f, nil
}

// Close closes the files.
func (f Files) Close() {
	for _, one := range []*os.File{f.snmp, f.netstat, f.dev} {
		if one != nil {
			_ = one.Close()
		}
	}
}

// Counters reads the counters so far.
func (f Files) Counters() (c Counters, err error) {
	values := map[string]int64{}
	for _, one := range []struct {
		file *os.File
		of   string
	}{{f.snmp, "Tcp"}, {f.netstat, "TcpExt"}} {
		text, err := whole(one.file)
		if err != nil {
			return c, err
		}
		pairs(text, one.of, values)
	}
	for _, one := range []struct {
		to   *int64
		name string
	}{{&c.Sent, "Tcp.OutSegs"}, {&c.Again, "Tcp.RetransSegs"}, {&c.Fast, "TcpExt.TCPFastRetrans"},
		{&c.Probes, "TcpExt.TCPLossProbes"}, {&c.Timeouts, "TcpExt.TCPTimeouts"}} {
		value, told := values[one.name]
		if !told {
			return c, fmt.Errorf("this kernel does not tell %s", one.name)
		}
		*one.to = value
	}
	return c, nil
}

// Dropped is how many packets the namespace's device could not pass on so far, since nobody read them in time.
func (f Files) Dropped(device string) int64 {
	const columns, dropped = 16, 11 // of what is sent
	text, _ := whole(f.dev)
	_, rest, _ := strings.Cut(text, device+":")
	fields := strings.Fields(rest)
	if len(fields) < columns {
		return 0
	}
	n, _ := strconv.ParseInt(fields[dropped], 10, 64)
	return n
}

func whole(f *os.File) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), err
}

// pairs reads lines of names and lines of values below them, which begin with the same word.
func pairs(text, of string, to map[string]int64) {
	var names []string
	for line := range strings.Lines(text) {
		prefix, rest, _ := strings.Cut(line, ":")
		if prefix != of {
			continue
		}
		fields := strings.Fields(rest)
		if names == nil {
			names = fields
			continue
		}
		for i, value := range fields[:min(len(fields), len(names))] {
			to[of+"."+names[i]], _ = strconv.ParseInt(value, 10, 64)
		}
		names = nil
	}
}

// Settings are those of a namespace's TCP that decide what a lost packet costs, by their names below net.ipv4. A kernel
// that has no such setting leaves it out.
type Settings map[string]string

// names are the settings, in the order of reports.
var names = []string{"tcp_congestion_control", "tcp_rto_min_us", "tcp_slow_start_after_idle"}

const folder = "/proc/sys/net/ipv4/"

// Present are the settings of the namespace of the calling thread.
func Present() Settings {
	s := Settings{}
	for _, name := range names {
		if value, err := os.ReadFile(folder + name); err == nil {
			s[name] = strings.TrimSpace(string(value))
		}
	}
	return s
}

// Set gives the namespace of the calling thread these settings.
func (s Settings) Set() error {
	now := Present()
	for _, name := range names {
		if value := s[name]; value != "" && value != now[name] {
			if err := os.WriteFile(folder+name, []byte(value), 0); err != nil {
				return fmt.Errorf("net.ipv4.%s can't be %s as on this machine: %w", name, value, err)
			}
		}
	}
	return nil
}

// String has name=value pairs.
func (s Settings) String() string {
	var all []string
	for _, name := range names {
		if s[name] != "" {
			all = append(all, name+"="+s[name])
		}
	}
	return strings.Join(all, " ")
}
