// Package wire tells from the recorded bytes of one connection what was on the wire: versions, headers, bodies. Clients and
// servers can't tell, since they undo what they negotiated. Package wire reads HTTP/1.x and HTTP/2 in clear, and gRPC's framing.
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
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// ErrNotHTTP says that what the client sent begins neither with HTTP/2's preface nor with a request line of HTTP/1.x.
var ErrNotHTTP = errors.New("wire: not HTTP")

// Message is one request or response as it stood on the wire.
type Message struct {
	Version string // "2", "1.1" or "1.0"
	// Header has canonical keys and HTTP/2's pseudo headers, ":method" and so on. The first line and the Host of HTTP/1.x
	// are there under HTTP/2's names: :method, :path and :authority, or :status.
	Header  http.Header
	Trailer http.Header
	Body    []byte // without chunks and frames; never decompressed
}

// Read returns the messages of one connection, from all bytes that its client sent and received; of HTTP/2 in order of stream
// ids. Left out are interim responses (1xx), streams that were reset, and what is not complete: so requests and responses
// pair by index only if there are as many of both. A body of HTTP/1.x that its connection's end delimits counts as
// complete. What can't be the beginning of a message is an error.
func Read(sent, received []byte) (requests, responses []Message, err error) {
	var sentErr, receivedErr error
	line, _, whole := bytes.Cut(sent, []byte("\n"))
	switch frames, preface := bytes.CutPrefix(sent, []byte(http2.ClientPreface)); {
	case preface:
		requests, sentErr = streams(frames, received)
		responses, receivedErr = streams(received, frames)
	case strings.HasPrefix(http2.ClientPreface, string(sent)):
		return nil, nil, nil
	case !requestLine(string(line), whole):
		return nil, nil, ErrNotHTTP
	default:
		requests, sentErr = messages(sent, requestLine, request)
		responses, receivedErr = messages(received, statusLine, response(requests))
	}
	if sentErr != nil {
		return nil, nil, fmt.Errorf("wire: sent: %w", sentErr)
	}
	if receivedErr != nil {
		return nil, nil, fmt.Errorf("wire: received: %w", receivedErr)
	}
	return requests, responses, nil
}

// messages reads one direction of HTTP/1.x; read is told how many messages were before.
func messages(data []byte, firstLine func(line string, whole bool) bool, read func(*bufio.Reader, int) (Message, error)) ([]Message, error) {
	src := &source{r: bytes.NewReader(data)}
	r := bufio.NewReaderSize(src, len(data)+1)
	_, _ = r.Peek(len(data)) // from here on, what is buffered is what is left
	var all []Message
	for r.Buffered() > 0 {
		rest, _ := r.Peek(r.Buffered())
		line, _, whole := bytes.Cut(rest, []byte("\n"))
		if !firstLine(string(line), whole) {
			return nil, fmt.Errorf("message %d begins %.40q", len(all)+1, line)
		}
		m, err := read(r, len(all))
		if err != nil && src.dry {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(all)+1, err)
		}
		if !strings.HasPrefix(m.Header.Get(":status"), "1") {
			all = append(all, m)
		}
	}
	return all, nil
}

// source tells whether it was asked for more than it has. net/http takes a line that is cut off for a malformed one.
type source struct {
	r   io.Reader
	dry bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.dry = s.dry || err != nil
	return n, err
}

// requestLine says whether line is a request line, or may become one.
func requestLine(line string, whole bool) bool {
	method, rest, _ := strings.Cut(line, " ")
	named := method != "" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	return named && (strings.Contains(rest, " HTTP/1.") || !whole && !strings.ContainsFunc(rest, unicode.IsControl))
}

// statusLine says whether line is a status line, or may become one.
func statusLine(line string, whole bool) bool {
	const version = "HTTP/1."
	return strings.HasPrefix(line, version) || !whole && strings.HasPrefix(version, line)
}

func request(r *bufio.Reader, _ int) (Message, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return Message{}, err
	}
	body, err := io.ReadAll(req.Body)
	req.Header[":method"] = []string{req.Method}
	req.Header[":path"] = []string{req.RequestURI}
	req.Header[":authority"] = []string{req.Host}
	return message(req.Proto, req.Header, req.TransferEncoding, req.Trailer, body), err
}

// response reads what answers requests: whether a body follows depends on the request's method.
func response(requests []Message) func(*bufio.Reader, int) (Message, error) {
	return func(r *bufio.Reader, i int) (Message, error) {
		req := new(http.Request)
		if i < len(requests) {
			req.Method = requests[i].Header.Get(":method")
		}
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			return Message{}, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Header[":status"] = []string{strconv.Itoa(resp.StatusCode)}
		return message(resp.Proto, resp.Header, resp.TransferEncoding, resp.Trailer, body), err
	}
}

func message(proto string, header http.Header, encodings []string, trailer http.Header, body []byte) Message {
	if len(encodings) > 0 { // net/http took it out
		header["Transfer-Encoding"] = encodings
	}
	return Message{strings.TrimPrefix(proto, "HTTP/"), header, trailer, body}
}

// streams reads one direction of HTTP/2. It reads each header block, since the next one refers to it.
func streams(data, otherWay []byte) ([]Message, error) {
	fr := http2.NewFramer(nil, bytes.NewReader(data))
	fr.SetMaxReadFrameSize(frameLimit(otherWay))
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil) // every table's size to begin with; the blocks announce others
	fr.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(math.MaxUint32)
	type stream struct {
		Message
		ended bool
	}
	byID := map[uint32]*stream{}
	for begun := false; ; begun = true {
		frame, err := fr.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, fr.ErrorDetail())
		}
		if _, ok := frame.(*http2.SettingsFrame); !ok && !begun {
			return nil, fmt.Errorf("HTTP/2 begins with %v, not with settings", frame.Header())
		}
		id := frame.Header().StreamID
		s := byID[id]
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if s == nil {
				s = &stream{Message: Message{Version: "2"}}
				byID[id] = s
			}
			header := http.Header{}
			for _, field := range f.Fields {
				header.Add(field.Name, field.Value)
			}
			switch {
			case s.ended:
				return nil, fmt.Errorf("headers after the end of stream %d", id)
			case s.Header != nil:
				s.Trailer = header
			case !strings.HasPrefix(header.Get(":status"), "1"):
				s.Header = header
			}
			s.ended = f.StreamEnded()
		case *http2.DataFrame:
			if s == nil || s.Header == nil || s.ended {
				return nil, fmt.Errorf("data outside of stream %d", id)
			}
			s.Body = append(s.Body, f.Data()...)
			s.ended = f.StreamEnded()
		case *http2.PushPromiseFrame:
			return nil, errors.New("the server pushes, and the Framer doesn't read the header block of that")
		}
	}
	var all []Message
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if s := byID[id]; s.ended {
			all = append(all, s.Message)
		}
	}
	return all, nil
}

// frameLimit returns the largest frame that a side takes, from what it sent. Without it, garbage would pass for a long frame.
func frameLimit(sent []byte) uint32 {
	frame, _ := http2.NewFramer(nil, bytes.NewReader(sent)).ReadFrame()
	if settings, ok := frame.(*http2.SettingsFrame); ok {
		if limit, ok := settings.Value(http2.SettingMaxFrameSize); ok {
			return limit
		}
	}
	return 1 << 14 // the protocol's default
}

// GRPCFrame is one length-prefixed message of gRPC.
type GRPCFrame struct {
	Compressed bool
	Data       []byte // a part of the body, as it is there
}

// GRPCFrames splits a body into gRPC's messages. gRPC-Web's trailers, marked by the highest bit of the flag byte, are not a
// message. An incomplete message is an error, as is any other flag.
func GRPCFrames(body []byte) ([]GRPCFrame, error) {
	const (
		prefix     = 5 // flag and length
		compressed = 1
		trailers   = 0x80
	)
	var frames []GRPCFrame
	for len(body) > 0 {
		if len(body) < prefix || body[0]&^(compressed|trailers) != 0 ||
			uint64(binary.BigEndian.Uint32(body[1:])) > uint64(len(body)-prefix) {
			begin := body[:min(len(body), prefix)]
			return nil, fmt.Errorf("wire: gRPC message %d, of %d bytes left, begins [% x]", len(frames)+1, len(body), begin)
		}
		end := prefix + int(binary.BigEndian.Uint32(body[1:]))
		if body[0]&trailers == 0 {
			frames = append(frames, GRPCFrame{Compressed: body[0] == compressed, Data: body[prefix:end]})
		}
		body = body[end:]
	}
	return frames, nil
}
