package rpcbench

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
)

// Method is a unary method of your own, with its request type Q and its reply type A: plain structs for JSON, generated
// types for protobuf. Packages such as httpjson make a Stack of it with their function Of. Stacks whose methods have
// the same Name are compared.
//
// Name, Requests, Equal, and either Handle or Replies are required. The server runs Handle, or answers with Replies as
// they are.
type Method[Q, A any] struct {
	Name string // as gRPC writes it: shop.v1.Orders/Get
	// Requests are sent in turn, again and again. They should differ, so that the reply to another request is a wrong
	// reply, and have equal encoded lengths, so that calls are alike.
	Requests []*Q
	Replies  []*A // Replies[i] answers Requests[i]; may be nil with Handle
	// Handle is your handler. Several callers run it at a time. ServerConfig.Wait comes before it. Without Replies, the
	// stack's first Dial asks it once for each request, directly and not over the wire, and every reply is compared with
	// that answer. So an answer must follow from its request alone; what varies by design, Equal leaves out. Handle may
	// change its request, and must not change its answer later.
	//
	// An *Error with one of the package's codes reaches the caller with this code, and so do errors of package context.
	// Any other error is CodeInternal. So are a panic, and an answer that is nil without an error.
	Handle func(context.Context, *Q) (*A, error)
	// Alone calls the handler for which Handle converts messages, with request i as that handler takes it. Converted sets
	// it, and it fails if the handler changes the request. It is nil if Handle converts nothing.
	Alone func(ctx context.Context, i int) error
	// Key returns a number by which the server finds out which of the Requests it has received. It runs inside calls. It
	// is nil if requests can't be told apart, and every reply is then Replies[0]. A Handle takes its place.
	Key func(*Q) uint64
	// Equal compares every field of a reply. It runs inside calls, so write it out for the types, without reflection.
	Equal  func(want, got *A) bool
	MadeOf string // says in reports where the messages come from: "16 samples", "1 sample"
}

// Handler makes a method of your handler alone, whose answers == compares: they hold neither pointers nor slices. For
// others make a Method with an Equal of its own. Package grpcprotobuf has a Handler of generated messages.
func Handler[Q any, A comparable](name string, handle func(context.Context, *Q) (*A, error),
	requests ...*Q) Method[Q, A] {
	return Method[Q, A]{Name: name, Requests: requests, Handle: handle,
		Equal: func(want, got *A) bool { return *want == *got }}
}

// Converted makes a method of other messages whose handler is that of m: of generated types for protobuf where the
// handler takes plain structs, or the other way round. Its Handle converts each request that the server has received,
// calls the Handle of m, and converts the answer. This is part of each call, as it is in a service with such a handler,
// and Of puts ".converted" behind the stack's name.
//
// m takes P and answers B; the new method takes Q and answers A. request and reply also convert the Requests and
// Replies of m, once and before any call. received converts what the server has received. equal compares what calls
// bring back.
func Converted[Q, A, P, B any](m Method[P, B], request func(*P) *Q, received func(*Q) *P, reply func(*B) *A,
	equal func(want, got *A) bool) Method[Q, A] {
	c := Method[Q, A]{Name: m.Name, Equal: equal, MadeOf: m.MadeOf, Alone: m.Alone}
	handle := m.Handle
	if handle == nil {
		handle = func(context.Context, *P) (*B, error) {
			return nil, errors.New("Converted needs a Method with a Handle")
		}
	}
	c.Handle = func(ctx context.Context, q *Q) (*A, error) {
		a, err := handle(ctx, received(q))
		if a == nil || err != nil {
			return nil, err
		}
		return reply(a), nil
	}
	own := make([]*P, len(m.Requests)) // of Alone: a handler may change its request
	for i, q := range m.Requests {
		c.Requests, own[i] = append(c.Requests, request(q)), received(request(q))
	}
	for _, a := range m.Replies {
		c.Replies = append(c.Replies, reply(a))
	}
	if c.Alone == nil {
		unchanged := make([]atomic.Bool, len(own)) // by the first call
		c.Alone = func(ctx context.Context, i int) error {
			i %= len(own)
			_, err := handle(ctx, own[i])
			if err == nil && !unchanged[i].Load() {
				if !same(own[i], received(c.Requests[i])) {
					return errors.New("the Handle changes its request")
				}
				unchanged[i].Store(true)
			}
			return err
		}
	}
	return c
}

// same leaves out what generated types cache in unexported fields.
func same[P any](a, b *P) bool {
	type message interface {
		ProtoMessage()
		String() string
	}
	if m, ok := any(a).(message); ok {
		return m.String() == any(b).(message).String()
	}
	return reflect.DeepEqual(a, b)
}
