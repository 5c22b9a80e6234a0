package rpcstatus

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/rpcbench/rpcbench"
)

// The numbers of status codes that clients of Connect give their own errors.
const (
	canceled         = 1
	invalidArgument  = 3
	deadlineExceeded = 4
	unavailable      = 14
)

// OfConnect turns an error of a Connect client, of either version, into an *rpcbench.Error. Errors that the server
// sent, which are remote, keep their code. The client's own errors are recognised by their code, by what they wrap, and
// by how their message begins.
func OfConnect(ctx context.Context, err error, number uint32, message string, remote bool, details []any) error {
	begins := func(words string) bool { return strings.HasPrefix(message, words) }
	e := Error(err, number, message)
	switch {
	case number == invalidArgument: // without details, either side's own failure to decode
		for _, d := range details {
			AddDetail(e, d)
		}
	case remote:
	case number == deadlineExceeded: // of the context, or of net's timer before it
	case errors.As(err, new(net.Error)), errors.Is(err, io.ErrUnexpectedEOF), begins("read "),
		begins("protocol error: incomplete envelope: "), number == unavailable, number == canceled:
		return rpcbench.CallError(ctx, err) // no connection, or it broke, or was reset, or the context ended
	case begins("stream error: "): // the server reset the stream
	case number == internal: // a message that can't be encoded or decoded
		e.Code = rpcbench.CodeMalformed
	}
	return e
}
