package rpcbench

// Method is a unary method of one's own, on one family of Go types: plain structs for JSON, generated ones for
// protobuf. Packages such as httpjson make a Stack of it with their function Of. Stacks of the same Method.Name are
// compared.
type Method[Q, A any] struct {
	Name string // as gRPC writes it: shop.v1.Orders/Get

	// Requests go round. Each should be another, of one encoded length: a reply that is sent again is then a wrong one.
	Requests []*Q
	Replies  []*A // Replies[i] answers Requests[i]

	// Key tells the server which request it got. It runs inside calls. nil if the requests can't be told apart: every
	// reply is then Replies[0].
	Key func(*Q) uint64

	// Equal compares every field of a reply. It runs inside calls, so it is written out for the types.
	Equal func(want, got *A) bool

	MadeOf string // what the messages are made of, for reports: "16 samples", "1 sample"
}
