package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/table"
)

// Call is what a run knows of a method of one's own.
type Call struct {
	Method string `json:"method"`
	Made   string `json:"made"` // what its messages are made of
	Bodies []Body `json:"bodies"`
}

// Body is how a stack encodes the method's messages: means over the messages that go round, in bytes, and times of the
// stack's codec alone.
type Body struct {
	Stack       string  `json:"stack"`
	Format      string  `json:"format"` // JSON or protobuf
	Codec       string  `json:"codec"`  // import path
	Request     float64 `json:"request"`
	Reply       float64 `json:"reply"`
	GzipRequest float64 `json:"gzip_request"`
	GzipReply   float64 `json:"gzip_reply"`
	Encode      Span    `json:"encode"` // of a request and a reply together
	Decode      Span    `json:"decode"`
}

// Span is a median with its 95 % interval, in nanoseconds.
type Span struct {
	Ns float64 `json:"ns"`
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

func (s Span) String() string {
	return table.Known(s.Ns, fmt.Sprintf("%.1f (%.1f–%.1f)", s.Ns/1000, s.Lo/1000, s.Hi/1000))
}

// String names the method and the size of its messages in each format.
func (c Call) String() string {
	var formats, sizes, gzips []string
	for _, b := range c.Bodies {
		if !slices.Contains(formats, b.Format) {
			formats = append(formats, b.Format)
			sizes = append(sizes, fmt.Sprintf("%.0f B of %s", b.Request+b.Reply, b.Format))
			gzips = append(gzips, fmt.Sprintf("%.0f", b.GzipRequest+b.GzipReply))
		}
	}
	return fmt.Sprintf("Your call, %s: %s (gzip %s).", c.Method, strings.Join(sizes, ", "), strings.Join(gzips, " and "))
}

// yours says what one of the answers is for a method of one's own, without a full stop.
func (s Summary) yours(a Answer) string {
	micro, more := a.more()
	said := a.takes(Label(a.Stack), Label(s.Base)) + ": " + more
	if a.Rate > 0 {
		said += fmt.Sprintf(", at %.0f calls a second", a.Rate)
	}
	if !a.byCPU {
		said += ", " + table.Percent(micro/10_000) + " of a request of 10 ms"
	}
	if a.GOMAXPROCS == 1 && !s.Remote {
		said += ", " + table.Percent(micro/1000) + " of a core at 1,000 calls a second"
	}
	return said
}
