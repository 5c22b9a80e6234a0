package rpcbench

// Method is a unary method of your own, with its request type Q and its reply type A: plain structs for JSON, generated
// types for protobuf. Packages such as httpjson make a Stack of it with their function Of. Stacks whose methods have
// the same Name are compared.
type Method[Q, A any] struct {
	Name string // as gRPC writes it: shop.v1.Orders/Get

	// Requests are sent in turn, again and again. They should differ, so that the reply to another request is a wrong
	// reply, and have equal encoded lengths, so that calls are alike.
	Requests []*Q
	Replies  []*A // Replies[i] answers Requests[i]

	// Key returns a number by which the server finds out which of the Requests it has received. It runs inside calls. It
	// is nil if requests can't be told apart, and every reply is then Replies[0].
	Key func(*Q) uint64

	// Equal compares every field of a reply. It runs inside calls, so write it out for the types, without reflection.
	Equal func(want, got *A) bool

	MadeOf string // says in reports where the messages come from: "16 samples", "1 sample"
}
