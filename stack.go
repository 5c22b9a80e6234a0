// Package rpcbench runs a real server and client of one API over many stacks: gRPC with protobuf, JSON over HTTP, and
// others. To benchmark a handler of your own, make a [Method] of it, and a stack of the method:
//
//	get := rpcbench.Handler("shop.v1.Orders/Get", orders.Get, &GetRequest{ID: "a1"}, &GetRequest{ID: "b2"})
//	stacktest.Benchmark(b, httpjson.Of(get), rpcbench.Workload{})
//
// Without a Method, stacks serve the library's own API, which creates users. [Start] makes a [Fixture], whose client
// calls its server over loopback:
//
//	fixture, err := rpcbench.Start(ctx, httpjson.New(), rpcbench.Config{TLS: true})
//	if err != nil {
//		return err
//	}
//	call, err := fixture.Client.Prepare(1)
//	err = errors.Join(err, call(ctx), fixture.Close())
//
// That takes five names: Start, its [Config], the [Fixture], its [Client], and the prepared [Call]. A call can be made
// as often as you like. Each time it encodes and sends the request, receives and decodes the reply, and
// compares the two. In a test, function Start of package [github.com/rpcbench/rpcbench/stacktest] closes the fixture.
//
// A [Stack] is one of the ways: a transport, a wire format, and the libraries that implement them. Package
// [github.com/rpcbench/rpcbench/stacks] lists all of them.
//
// Package stacktest proves that a stack does what it says, and times it. To write a transport of your own, use
// [NewUserValidator], [AnswerUser], [CheckUser], [CallError] and [ServeConns]. The command cmd/rpcbench compares
// stacks, and package [github.com/rpcbench/rpcbench/cli] makes such a command for your stacks. The [guarantees] of the
// measurements are listed with the tests that hold them.
//
// [guarantees]: https://github.com/rpcbench/rpcbench/blob/main/docs/guarantees.md
package rpcbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"
)

// Stack is one way to serve and call an API: a transport, a wire format and the libraries that implement them. A Stack
// is a plain value. The functions of its package make a new one at each call, and stacks share no state.
type Stack struct {
	Name     string // names its rows, such as "httpjson.tuned": [a-z0-9], with single dots between
	Protocol string // stacks with equal Protocol understand each other
	Traits   Traits
	Server   func(ServerConfig) (Server, error) // makes a server, which doesn't listen yet
	Dial     func(ClientConfig) (Client, error) // makes a client, whose connections may wait for its first calls

	// Serves names what the stack serves. With "" this is create-user, and clients are Users. Otherwise it is the name of
	// a Method of your own, and clients are MethodClients. Only stacks that serve the same are compared.
	Serves string
}

// Traits is what a stack declares about itself. Codec and InvalidUTF8 are required, and the others are zero in a stack
// of one call at a time on a plain connection. The suite of package stacktest reads each trait off the wire and the
// allocation profile: one that is wrong fails, and so does one that is declared without need.
type Traits struct {
	// Codec is the import path of the library that encodes and decodes, such as "encoding/json", or the common prefix of
	// its packages. It must allocate in each call on both sides, and no other codec may.
	Codec string
	// HTTP is the version of HTTP without TLS. With "" the protocol isn't HTTP. The suite can't tell its messages apart,
	// and skips the checks that need them.
	HTTP HTTP
	// HTTPOverTLS is HTTP2 if client and server agree on it over TLS, and have another version without. With "" TLS
	// changes nothing.
	HTTPOverTLS HTTP
	// Compression says what is compressed. Checks that change a reply on its way are skipped where anything is.
	Compression Compression
	// AsksGzip says that the client asks for gzip although the server compresses nothing, as net/http's client does
	// unless its Transport has DisableCompression.
	AsksGzip bool
	// Multiplexed says that a connection carries several calls at a time. All callers then share one connection, unless a
	// workload asks for more, and PrepareUser binds each Call to the next connection in turn. Without it each caller has a
	// connection.
	Multiplexed bool
	// Turns says that calls on a Multiplexed connection wait for each other: a request is sent after the reply before it.
	// Each caller then has a connection after all.
	Turns bool
	// Reconnects says that the client opens and closes connections as it needs them, whatever ClientConfig.Conns says.
	// Connections are then counted and never refused, and memory at rest can't be measured.
	Reconnects bool
	// Leased says that calls are messages on streams that stay open, and no HTTP requests of their own.
	Leased bool
	// Traced says that the client makes a span for each call. Its traceparent is then sent, and that of Config.Headers is
	// not.
	Traced Traced
	// Lossy lists the kinds of values that don't come back as they were sent. Kinds of numbers belong here only if the
	// client is an Echoer, since a user has none.
	Lossy []Loss
	// InvalidUTF8 says what happens to invalid UTF-8 in a string.
	InvalidUTF8 UTF8
	// Varies says which bytes of requests for the same user differ. The suite can't follow those.
	Varies Varies
	// ServerLibraries and ClientLibraries are the import paths of the libraries that move a call's bytes on that side,
	// such as "net/http". Code of your own isn't listed. The suite looks for net/http, grpc-go, connect-go and drpc.
	ServerLibraries, ClientLibraries []string
	// Background names functions whose goroutines a library starts once and never ends, such as
	// "github.com/valyala/fasthttp.updateServerDate.func1". A closed fixture must leave no other goroutine.
	Background []string
}

// HTTP is a version of HTTP.
type HTTP string

// The versions.
const (
	HTTP1 HTTP = "1.1"
	HTTP2 HTTP = "2"
)

// Traced says what a tracing library does with the span of a call.
type Traced string

// What becomes of spans. With "" there are none.
const (
	TracedSampled   Traced = "sampled"   // each is recorded
	TracedUnsampled Traced = "unsampled" // none is
)

// Compression says what a stack compresses.
type Compression string

// What is compressed. With "" nothing is.
const (
	CompressionGzip        Compression = "gzip"         // requests and replies
	CompressionGzipReplies Compression = "gzip replies" // requests go uncompressed
)

// UTF8 says what happens to invalid UTF-8 in a string.
type UTF8 string

// What happens to invalid UTF-8.
const (
	UTF8Rejected UTF8 = "rejected" // the call fails as CodeMalformed
	UTF8Replaced UTF8 = "replaced" // U+FFFD takes its place
	UTF8Kept     UTF8 = "kept"     // its bytes stay as they are
)

// Varies says what differs between two requests for the same user. The suite can't follow these bytes, and the rows and
// reports of the stack say so.
type Varies string

// What varies. With "" requests for the same user are equal.
const (
	VariesNumbered Varies = "numbered" // one part of an HTTP request, of at most 64 bytes, such as an id that counts up
	VariesMasked   Varies = "masked"   // every byte of the user, but replies can be read
)

// Loss is a kind of value that does not come back as it was sent, because the format can't express it or a library
// changes it. [Traits].Lossy names those of a stack, and all other values come back bit-equal. The suite sends all of
// them: a loss that is not declared is a fault, and so is a declared loss that does not occur.
type Loss string

// The losses, first those of numbers, which only an echo sends.
const (
	LossNegativeZero      Loss = "negative zero"      // comes back as zero, as where zeros are left out
	LossNaN               Loss = "NaN"                // the call fails
	LossInfinities        Loss = "infinities"         // the call fails
	LossFloatDigits       Loss = "float digits"       // all after the sixth are cut off
	LossControlCharacters Loss = "control characters" // do not arrive, except for tab, line feed and carriage return
	LossNonCharacters     Loss = "non-characters"     // U+FFFE and U+FFFF do not arrive
)

// ServerConfig has the settings of a server.
type ServerConfig struct {
	TLS *tls.Config // nil: no TLS. The stack passes the value on to its library

	// IdleTimeout and HeaderTimeout replace the constants of the same names unless they are zero: see Limits. The suite
	// sets them to milliseconds, to check that a server obeys.
	IdleTimeout, HeaderTimeout time.Duration

	// Wait is how long a handler waits on a timer before it answers, as if it asked a database. Handlers wait side by
	// side. The function that NewUserValidator returns waits for you if the user is valid. The handler of an echo calls
	// CountAndWait. A call that is refused does not wait.
	Wait time.Duration

	handled *handled // of the fixture; nil: nobody counts
}

// handled counts calls. It fills a cache line, so that what lies beside it costs a handler nothing.
type handled struct {
	atomic.Int64
	_ [120]byte
}

func (h *handled) count() {
	if h != nil {
		h.Add(1)
	}
}

// CountAndWait counts a call that the server handles, and then waits for Wait. The function that NewUserValidator
// returns does both by itself, so only an echo of your own calls it.
func (c *ServerConfig) CountAndWait() {
	c.handled.count()
	if c.Wait > 0 { // a comparison alone in most calls, and no call of Sleep
		time.Sleep(c.Wait)
	}
}

// Limits returns how long a connection may be idle, and how long a handshake or the headers of a request may take.
func (c ServerConfig) Limits() (idle, header time.Duration) {
	return cmp.Or(c.IdleTimeout, IdleTimeout), cmp.Or(c.HeaderTimeout, HeaderTimeout)
}

// Server serves connections until it is closed. *http.Server is a Server without TLS.
type Server interface {
	Serve(net.Listener) error // accepts connections until Close; after Close its error is ignored
	Close() error             // ends Serve and closes every connection at once
}

// ClientConfig has the settings of a client.
type ClientConfig struct {
	Addr  string      // host:port; for a Unix socket a stand-in, because DialContext knows the socket
	Conns int         // connections to hold, at least 1; a client with Traits.Reconnects holds as many as it needs
	TLS   *tls.Config // nil: no TLS. The client adds TLS to what DialContext returns

	// DialContext opens every connection of the client.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// Headers are added to every call, except for those of a stream. With nil, only the library's own are sent. If the
	// protocol has no headers, the error of Dial wraps errors.ErrUnsupported.
	Headers *Headers
}

// Headers are what clients in production add to their calls. [Start] fails if one of the three is missing.
type Headers struct {
	UserAgent     string        // replaces the library's own, or stands before it
	Authorization string        // "Bearer …", the same for every call
	Traceparent   func() string // makes a W3C traceparent for each call; safe for concurrent use
}

// Client calls one server. It is safe for concurrent use. Each is also a [Users] or a [MethodClient], which [As] finds.
type Client interface {
	// Prepare builds the request of call i once: of SampleUser(i, 0), or of the i-th request of a Method, after the last
	// of which comes the first again. On a multiplexed stack it binds the Call to the next connection in turn.
	Prepare(i int) (Call, error)
	Close() error // closes its connections; calls after it fail as CodeUnavailable
}

// Users is a Client of the create-user API.
type Users interface {
	Client
	// CreateUser converts from and to plain structs at each call, which is why it is never timed. Its error is an *Error.
	CreateUser(ctx context.Context, u User) (Response, error)
	// PrepareUser builds the library's own request once, as Prepare does.
	PrepareUser(u User) (Call, error)
}

// MethodClient is a Client of a method of your own.
type MethodClient interface {
	Client
	// Messages returns the encoding of requests, and that of replies, which the calls use.
	Messages() (requests, replies Messages)
}

// Messages encodes and decodes the requests, or the replies, of a method of your own as the stack does. Reports and the
// suite use it; calls do not.
type Messages struct {
	MadeOf string                      // see Method
	Encode func(i int) ([]byte, error) // encodes the message of call i
	Sorted func(i int) ([]byte, error) // does the same, with the entries of maps in a fixed order
	Decode func([]byte) error          // says whether the bytes are a message
}

// Echoer is a Client of the create-user API that can also send a message and receive the same back, without validation.
type Echoer interface {
	Echo(ctx context.Context, m *Flex) (*Flex, error) // converts at each call, as CreateUser does
	PrepareEcho(m *Flex) (Call, error)                // builds the request once, as PrepareUser does
}

// Streamer is a Client of the create-user API that can also keep a bidirectional stream open. The server validates
// every user of a stream, as CreateUser does. A user that breaks a rule ends the stream with the same Error.
type Streamer interface {
	// OpenStream opens a stream on the next connection in turn. The caller closes the stream. ctx bounds its whole life.
	// The server may first hear of the stream with its first user.
	OpenStream(ctx context.Context) (Stream, error)
}

// Stream sends users and receives a reply to each. One goroutine at a time may use a Stream and its Calls.
type Stream interface {
	// Prepare builds the library's own request once. The Call sends the request, receives one reply and compares it.
	//
	// If the Call's context is done before sending, the Call fails and the stream stays open. Once the request is sent,
	// only the stream's context ends the Call, and with it the stream.
	//
	// A reply that differs leaves the stream open. Any other error ends the stream, and every later Call returns that
	// error again, or CodeUnavailable after Close.
	Prepare(u User) (Call, error)
	// Close ends the stream in both directions, and waits for the server to end it. The error is the one that has ended
	// the stream, if any. A second Close does nothing and returns the first one's error.
	Close() error
}

// Call makes one request: it encodes, sends, receives, decodes into a fresh value, and compares every field with what
// was asked. Its error is an *Error. One goroutine at a time may make a Call. Time calls with context.Background,
// because a deadline takes some stacks longer than others.
type Call func(ctx context.Context) error
