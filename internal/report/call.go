package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
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
	Request     float64 `json:"request_bytes"`
	Reply       float64 `json:"reply_bytes"`
	GzipRequest float64 `json:"gzip_request_bytes"`
	GzipReply   float64 `json:"gzip_reply_bytes"`
	Encode      Span    `json:"encode"` // of a request and a reply together
	Decode      Span    `json:"decode"`
}

// Span is a median with its 95 % interval, in nanoseconds.
type Span struct {
	Ns float64 `json:"ns"`
	Lo float64 `json:"lo_ns"`
	Hi float64 `json:"hi_ns"`
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
