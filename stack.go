package rpcbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/rpcbench/rpcbench/message"
)

// Stack is one way to serve and call the create-user API: a transport, a wire format and the libraries that implement
// them. It is a plain value, made anew by its package's functions; nothing of it is shared by the process.
type Stack struct {
	Name     string // how rows call it: "httpjson", "httpjson.stream"; [a-z0-9.]+, and no "-digits" at the end
	Protocol string // the Server of one stack and the Dial of another of equal Protocol understand each other
	Traits   Traits
	Server   func(ServerConfig) (Server, error) // neither listens nor names a port
	Dial     func(ClientConfig) (Client, error) // opens its connections at once or by the first calls
}

// Traits is what a stack declares about itself. The suite reads each off the wire or the allocation profile.
type Traits struct {
	Codec       string   // import path of the library that encodes and decodes, or a path above its packages
	HTTP        string   // "1.1", "2", or "" for a protocol that isn't HTTP
	Compression string   // "" for identity, "gzip" for requests and replies, or GzipReplies
	Multiplexed bool     // several calls at a time share a connection; a Call is then bound to one connection by Prepare
	Lossy       []string // what does not come back bit-equal: codec.NegativeZero and the constants below it
	InvalidUTF8 string   // what becomes of it in a string: codec.Rejected, with Malformed, codec.Replaced or codec.Kept

	// Server and Client are import paths of the libraries that move a call's bytes, such as "net/http", if there are any.
	Server, Client []string

	// Background names functions whose goroutines a library starts once and keeps, such as
	// "github.com/valyala/fasthttp.updateServerDate.func1". A closed fixture leaves no other goroutine.
	Background []string
}

// GzipReplies is the Compression of a stack whose requests go uncompressed.
const GzipReplies = "gzip replies"

// Cross is the stack of one's server and another's client. They must speak the same protocol.
func Cross(client, server Stack) (Stack, error) {
	if client.Protocol != server.Protocol {
		return Stack{}, fmt.Errorf("rpcbench: a client of %s, which speaks %s, can't call a server of %s, which speaks %s",
			client.Name, client.Protocol, server.Name, server.Protocol)
	}
	client.Name += ".to." + server.Name
	client.Server, client.Traits.Server = server.Server, server.Traits.Server
	return client, nil
}

// ServerConfig is what surrounds a server.
type ServerConfig struct {
	TLS *tls.Config // nil: in clear. The stack hands it to its own library

	// IdleTimeout and HeaderTimeout replace the constants of these names unless they are zero: see Limits. The suite
	// sets milliseconds, to see that a server keeps them.
	IdleTimeout, HeaderTimeout time.Duration
}

// Limits returns how long a connection may be without a request, and how long a handshake or headers may take.
func (c ServerConfig) Limits() (idle, header time.Duration) {
	return cmp.Or(c.IdleTimeout, IdleTimeout), cmp.Or(c.HeaderTimeout, HeaderTimeout)
}

// Server serves connections until it is closed. *http.Server is one, in clear.
type Server interface {
	Serve(net.Listener) error // accepts connections until Close; its error after that has no meaning
	Close() error             // ends Serve and closes every connection at once
}

// ClientConfig is what surrounds a client.
type ClientConfig struct {
	Addr  string      // host:port
	Conns int         // connections to hold, at least 1
	TLS   *tls.Config // as of ServerConfig, above DialContext's connection

	// DialContext opens every connection of the client.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// Headers go with every call that is no stream; nil: none but the library's own. Dial's error wraps
	// errors.ErrUnsupported if the protocol has no headers.
	Headers *Headers
}

// Headers are what clients in production add to their calls. All three are needed.
type Headers struct {
	UserAgent     string        // in place of the library's own, which may follow it
	Authorization string        // "Bearer …": the same with every call
	Traceparent   func() string // W3C Trace Context's header: another with every call. Safe for concurrent use
}

// Client calls one server. It is safe for concurrent use.
type Client interface {
	// CreateUser takes and returns neutral types: for people and for the suite, never timed. Its error is an *Error.
	CreateUser(ctx context.Context, u User) (Response, error)
	// Prepare builds the native request once. On a multiplexed stack the Call is bound to the next connection in turn.
	Prepare(u User) (Call, error)
	Close() error
}

// Echoer is a Client that can also send the flex message there and back, without validation.
type Echoer interface {
	Echo(ctx context.Context, m *message.Flex) (*message.Flex, error) // neutral, as CreateUser is
	PrepareEcho(m *message.Flex) (Call, error)                        // native, as Prepare is
}

// Streamer is a Client that can also keep a bidirectional stream open. The server validates every user of a stream as
// CreateUser's. One that breaks a rule ends the stream with the same Error.
type Streamer interface {
	// OpenStream opens a stream on the next connection in turn, for the caller to close. ctx bounds its whole life. The
	// server may hear of the stream no sooner than of the first user.
	OpenStream(ctx context.Context) (Stream, error)
}

// Stream sends users and receives a reply to each. One goroutine at a time, its Calls among them.
type Stream interface {
	// Prepare builds the native request once. The Call sends it, receives one reply and compares it. It looks at its own
	// context once: if that is done, nothing is sent, and the stream stays open. After that only the stream's context
	// ends the Call, and the stream with it. The stream stays open after a reply that differs. Any other error ends the
	// stream, and every later Call returns that error again, or Unavailable after Close.
	Prepare(u User) (Call, error)
	// Close ends the stream, both ways, and waits for the server to end it. It returns the error that has ended the
	// stream, if any. A second call does nothing and returns the first one's error.
	Close() error
}

// Call encodes, sends, receives, decodes into a fresh value and compares it with what was asked: every time, all of it.
// Its error is an *Error. One goroutine at a time.
type Call func(ctx context.Context) error
