package workload_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
)

// Values of JSON are compared, and not how they are written.
func TestChanges(t *testing.T) {
	const long = `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`
	for why, c := range map[string]struct{ base, own, want string }{
		"the same text":             {`{"a":1}`, `{"a":1}`, ""},
		"spaces":                    {`{"a":[1,2]}`, ` { "a": [ 1, 2 ] }`, ""},
		"another order of keys":     {`{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		"another escape":            {`"<é"`, `"\u003c\u00e9"`, ""},
		"an exponent of two digits": {`1e-7`, `1e-07`, ""},
		"a number without exponent": {`1e-7`, `0.00000010`, ""},
		"a capital exponent":        {`12e+3`, `1.2E4`, ""},
		"a point and a zero":        {`-100`, `-100.0`, ""},
		"zeros":                     {`0`, `-0.0e5`, ""},
		"integers that a float64 does not tell apart": {`9007199254740993`, `9007199254740992`,
			"request is 9007199254740992, and base writes 9007199254740993"},
		"a sign":                 {`1`, `-1`, "request is -1, and base writes 1"},
		"a power":                {`1e9`, `1e8`, "request is 1e8, and base writes 1e9"},
		"a missing key":          {`{"a":1,"b":2}`, `{"a":1}`, "request.b is left out, and base writes 2"},
		"a key more":             {`{"a":1}`, `{"a":1,"b":null}`, "request.b is null, and base leaves it out"},
		"a number as a string":   {`{"n":1}`, `{"n":"1"}`, `request.n is "1", and base writes 1`},
		"an empty list or none":  {`{"n":[]}`, `{"n":null}`, "request.n is null, and base writes []"},
		"an object or none":      {`{"n":null}`, `{"n":{}}`, "request.n is {}, and base writes null"},
		"a list of other length": {`{"n":[1,2]}`, `{"n":[1]}`, "request.n has 1 elements, and 2 with base"},
		"elements that differ alike": {`[{"a":1},{"a":2}]`, `[{"a":1.5},{"a":2.5}]`,
			"request[].a is 1.5, and base writes 1"},
		"below objects and lists": {`{"o":{"l":[{"x":true}]}}`, `{"o":{"l":[{"x":false}]}}`,
			"request.o.l[].x is false, and base writes true"},
		"more than three": {`{"a":1,"b":1,"c":1,"d":1,"e":1}`, `{"a":2,"b":2,"c":2,"d":2,"e":2}`,
			"request.a is 2, and base writes 1; request.b is 2, and base writes 1; request.c is 2, and base writes 1; " +
				"2 more differ"},
		"a long value": {`1`, long, `request is "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…, and base writes 1`},
	} {
		got, err := workload.Changes(c.base, c.own)
		require.NoError(t, err, why)
		require.Equal(t, c.want, got, why)
	}
}

// order has what libraries write otherwise.
type order struct {
	ID       int       `json:"id"`
	Deadline time.Time `json:"deadline,omitzero"`
	Rate     float64   `json:"rate"`
}

// ordering returns a method with such a request, and the reply is the request.
func ordering(asked order, handle func(context.Context, *order) (*order, error)) rpcbench.Method[order, order] {
	m := rpcbench.Method[order, order]{Name: "shop.v1.Orders/Put", Requests: []*order{&asked}, Handle: handle,
		Equal: func(want, got *order) bool { return want.ID == got.ID }}
	if handle == nil {
		m.Replies = m.Requests
	}
	return m
}

// TestOtherJSON: json-iterator ignores omitzero. A method with such a field passes with both libraries, and they send
// other bodies.
func TestOtherJSON(t *testing.T) {
	const zero = `deadline is "0001-01-01T00:00:00Z", and httpjson leaves it out`
	var answers atomic.Int64
	vary := func(_ context.Context, q *order) (*order, error) {
		return &order{ID: q.ID, Rate: float64(answers.Add(1))}, nil
	}
	echo := func(_ context.Context, q *order) (*order, error) { return q, nil }
	set := order{ID: 7, Deadline: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), Rate: 1e-7}
	none := order{ID: 7, Rate: 1e-7}
	both := "httpjsoniter sends other JSON than httpjson: reply." + zero + "; request." + zero
	of := func(m rpcbench.Method[order, order]) [2]rpcbench.Stack {
		return [2]rpcbench.Stack{httpjson.Of(m), httpjsoniter.Of(m)}
	}
	other := ordering(none, nil)
	other.Name = "shop.v1.Orders/Take"
	exempt := "connectrpc.json writes protobuf's own JSON, which isn't that of plain structs"
	for why, c := range map[string]struct {
		stacks [2]rpcbench.Stack
		want   string
	}{
		"nothing is zero":              {of(ordering(set, nil)), ""},
		"a field that omitzero drops":  {of(ordering(none, nil)), both},
		"a handler that answers alike": {of(ordering(none, echo)), both},
		"a handler that varies": {of(ordering(none, vary)), "httpjsoniter sends other JSON than httpjson: request." +
			zero},
		"other methods":           {[2]rpcbench.Stack{httpjson.Of(ordering(none, nil)), httpjsoniter.Of(other)}, ""},
		"create-user":             {[2]rpcbench.Stack{httpjson.New(), httpjsoniter.New()}, ""},
		"no JSON":                 {[2]rpcbench.Stack{httpjson.New(), grpcprotobuf.New()}, ""},
		"a base without JSON":     {[2]rpcbench.Stack{grpcprotobuf.New(), connectrpc.JSON()}, ""},
		"protobuf's own":          {[2]rpcbench.Stack{httpjson.New(), connectrpc.JSON()}, exempt},
		"protobuf's own, as base": {[2]rpcbench.Stack{connectrpc.JSON(), httpjson.New()}, exempt},
		"protobuf's own, twice":   {[2]rpcbench.Stack{connectrpc.JSON(), connectrpc.JSON()}, ""},
	} {
		got, err := workload.OtherJSON(t.Context(), c.stacks[0], c.stacks[1])
		require.NoError(t, err, why)
		require.Equal(t, c.want, got, why)
	}
	closed := httpjson.Of(ordering(none, nil))
	closed.Dial = nil
	_, err := workload.OtherJSON(t.Context(), httpjson.Of(ordering(none, nil)), closed)
	require.EqualError(t, err, "httpjson: stack: a Stack needs a Server and a Dial")
}
