// Package wire parses the recorded bytes of one connection, HTTP/1.x or HTTP/2 without TLS, into messages with version,
// headers and body. Clients and servers can't tell what was on the wire, since they undo what they negotiated.
package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// ErrNotHTTP says that the client's bytes begin neither with HTTP/2's preface nor with a request line of HTTP/1.x.
var ErrNotHTTP = errors.New("wire: not HTTP")

// Message is one request or response as it was on the wire.
type Message struct {
	Version string // "2", "1.1" or "1.0"
	// Header has canonical keys, and pseudo headers such as ":method". For HTTP/1.x the first line and the Host stand
	// under HTTP/2's names :method, :path and :authority, or :status.
	Header  http.Header
	Trailer http.Header
	Body    []byte // without chunks and frames; never decompressed
}

// Read returns the messages of one connection, from all bytes that its client sent and received. Messages of HTTP/2 are
// in order of stream ids. The end of the connection may end a body of HTTP/1.x.
//
// Read leaves out interim responses (1xx), streams that were reset, and messages that are cut off after their first
// line. Requests and responses match by index only if there are as many of both.
func Read(sent, received []byte) (requests, responses []Message, err error) {
	var sentErr, receivedErr error
	if frames, ok := bytes.CutPrefix(sent, []byte(http2.ClientPreface)); ok {
		requests, _, sentErr = streams(frames)
		responses, _, receivedErr = streams(received)
	} else if requestLine.Match(sent) {
		requests, sentErr = messages(sent, requestLine, request)
		responses, receivedErr = messages(received, statusLine, response)
	} else {
		return nil, nil, ErrNotHTTP
	}
	if sentErr != nil {
		return nil, nil, fmt.Errorf("wire: sent: %w", sentErr)
	}
	if receivedErr != nil {
		return nil, nil, fmt.Errorf("wire: received: %w", receivedErr)
	}
	return requests, responses, nil
}

// Open returns the requests of HTTP/2 streams that the client has begun and neither ended nor reset, with what their
// bodies have so far. There are none of another protocol.
func Open(sent []byte) ([]Message, error) {
	frames, ok := bytes.CutPrefix(sent, []byte(http2.ClientPreface))
	if !ok {
		return nil, nil
	}
	_, open, err := streams(frames)
	return open, err
}

var (
	requestLine = regexp.MustCompile(`^[A-Z]+ \S+ HTTP/1\.[01]\r\n`)
	statusLine  = regexp.MustCompile(`^HTTP/1\.[01] [0-9]{3}.*\r\n`)
)

// messages reads one direction of HTTP/1.x.
func messages(data []byte, begins *regexp.Regexp, read func(*bufio.Reader) (Message, error)) ([]Message, error) {
	r := bufio.NewReaderSize(bytes.NewReader(data), len(data)+1)
	var all []Message
	for rest, _ := r.Peek(len(data)); len(rest) > 0; rest, _ = r.Peek(r.Buffered()) {
		if !begins.Match(rest) {
			return nil, fmt.Errorf("message %d begins %.40q", len(all)+1, rest)
		}
		m, err := read(r)
		switch {
		case err != nil && r.Buffered() == 0: // a message that is cut off
		case err != nil:
			return nil, fmt.Errorf("message %d: %w", len(all)+1, err)
		case !strings.HasPrefix(m.Header.Get(":status"), "1"):
			all = append(all, m)
		}
	}
	return all, nil
}

func request(r *bufio.Reader) (Message, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return Message{}, err
	}
	req.Header[":method"] = []string{req.Method}
	req.Header[":path"] = []string{req.RequestURI}
	req.Header[":authority"] = []string{req.Host}
	body, err := io.ReadAll(req.Body)
	return message(req.Proto, req.Header, req.TransferEncoding, req.Trailer, body), err
}

// response reads a response to a request other than HEAD.
func response(r *bufio.Reader) (Message, error) {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return Message{}, err
	}
	resp.Header[":status"] = []string{strconv.Itoa(resp.StatusCode)}
	body, err := io.ReadAll(resp.Body)
	return message(resp.Proto, resp.Header, resp.TransferEncoding, resp.Trailer, body), err
}

func message(proto string, header http.Header, encodings []string, trailer http.Header, body []byte) Message {
	if len(encodings) > 0 { // net/http has removed the header
		header["Transfer-Encoding"] = encodings
	}
	return Message{strings.TrimPrefix(proto, "HTTP/"), header, trailer, body}
}

// frameLimit exceeds the frames of every stack. Text is not taken for a frame: its first letters would be a length of
// 0x414141 or more.
const frameLimit = 4 << 20

// streams reads one direction of HTTP/2, and returns the messages that have ended and those that are open. It decodes
// every header block, since later blocks refer to earlier ones.
func streams(data []byte) (ended, open []Message, err error) {
	fr := http2.NewFramer(nil, bytes.NewReader(data))
	fr.SetMaxReadFrameSize(frameLimit)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil) // the initial size of every table; blocks announce other sizes
	fr.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(math.MaxUint32)
	type stream struct {
		Message
		ended, reset bool
	}
	byID := map[uint32]*stream{}
	for {
		frame, err := fr.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, nil, errors.Join(err, fr.ErrorDetail())
		}
		s := byID[frame.Header().StreamID]
		if s == nil {
			s = &stream{Message: Message{Version: "2"}}
			byID[frame.Header().StreamID] = s
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			header := http.Header{}
			for _, field := range f.Fields {
				header.Add(field.Name, field.Value)
			}
			if s.Header != nil {
				s.Trailer = header
			} else if !strings.HasPrefix(header.Get(":status"), "1") {
				s.Header = header
			}
			s.ended = f.StreamEnded()
		case *http2.DataFrame:
			s.Body = append(s.Body, f.Data()...)
			s.ended = f.StreamEnded()
		case *http2.RSTStreamFrame:
			s.reset = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if s := byID[id]; s.ended {
			ended = append(ended, s.Message)
		} else if s.Header != nil && !s.reset {
			open = append(open, s.Message)
		}
	}
	return ended, open, nil
}

// Compressed reports whether a gRPC message within a body has its compressed flag set. gRPC-Web's trailers, marked by
// the highest bit of the flag byte, are not a message. An incomplete message is an error, as is any other flag.
func Compressed(body []byte) (flagged bool, err error) {
	const (
		prefix     = 5 // flag and length
		compressed = 1
		trailers   = 0x80
	)
	for len(body) > 0 {
		if len(body) < prefix || body[0]&^(compressed|trailers) != 0 ||
			uint64(binary.BigEndian.Uint32(body[1:])) > uint64(len(body)-prefix) {
			return false, fmt.Errorf("wire: no gRPC message in %d bytes from [% x]", len(body), body[:min(len(body), prefix)])
		}
		flagged = flagged || body[0] == compressed
		body = body[prefix+int(binary.BigEndian.Uint32(body[1:])):]
	}
	return flagged, nil
}
