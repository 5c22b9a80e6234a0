package report

import (
	"fmt"
	"slices"
	"strconv"
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
	Handler     *Share  `json:"handler,omitempty"` // of a call that has a handler
}

// Share is what of a call's CPU its handler takes. Calls over the stack and calls of the handler alone were made in
// turns in one process, on one core.
type Share struct {
	Call    Span    `json:"call_cpu"`    // over the stack
	Handler Span    `json:"handler_cpu"` // alone
	Share   float64 `json:"share"`       // the median of both turn by turn, with its 95 % interval
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
}

func (s Share) String() string {
	return fmt.Sprintf("%s%% (%s–%s)", s.percent(s.Share), s.percent(s.Lo), s.percent(s.Hi))
}

// Stack is the share of all that is not the handler.
func (s Share) Stack() string { return s.percent(1-min(1, s.Share)) + "%" }

// percent has a decimal where the handler is less than a tenth of a call. Noise may have made a share more than all.
func (s Share) percent(share float64) string {
	decimals := 0
	if s.Share < 0.1 {
		decimals = 1
	}
	return strconv.FormatFloat(100*min(1, share), 'f', decimals, 64)
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

// Shares say how much of a call the handler is, and how much the stack: of the base and of those compared with it.
func (s Summary) Shares() (all []string) {
	if s.Call == nil {
		return nil
	}
	compared := append(s.Stacks(), s.Base)
	for _, b := range s.Call.Bodies {
		if b.Handler != nil && slices.Contains(compared, b.Stack) {
			all = append(all, fmt.Sprintf("Of the CPU of your call over %s your handler is %s, the stack %s.", Label(b.Stack),
				b.Handler, b.Handler.Stack()))
		}
	}
	return all
}
