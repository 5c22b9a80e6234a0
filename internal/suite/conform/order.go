package conform

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// otherOrder gives a Call the right reply with two of its fields in another order, which only a decoder understands.
// The Call must take it, and the codec must allocate no more for it than for the reply as it always comes. A client
// that compares bytes, and decodes what differs, would.
func otherOrder(f *session) {
	const times = 32
	skipIf(f.Stack.Traits.Compression != "", cantReplace)
	skipIf(strings.Contains(environ.Build(), "-race"), "the race detector drops objects from pools at random")
	call := f.call(2, 0)
	must(call(context.Background()), "call")
	_, replies := f.messages()
	skipIf(len(replies) == 0, "bodies of an unknown protocol can't be read")
	body := replies[len(replies)-1].Body
	if isGRPC(replies[len(replies)-1]) && len(body) > 5 {
		body = body[5:]
	}
	other := turned(body)
	skipIf(other == nil, "the reply has no two members of JSON or fields of protobuf that could change places")
	f.tap.SetFilter(tap.Replace(body, other))
	_, received, err := f.record(context.Background(), call) // as they came
	f.tap.SetFilter(nil)
	skipIf(!bytes.Contains(received, body), "no two replies have the same bytes")
	must(err, "the right reply with its fields in another order, which a Call must decode and not compare as bytes")
	codec := f.Stack.Traits.Codec
	through := func(filter tap.Filter) func() error {
		return func() error {
			f.tap.SetFilter(filter)
			defer f.tap.SetFilter(nil)
			return goRound([]rpcbench.Call{call}, times)
		}
	}
	for attempt := 1; ; attempt++ { // pools of the libraries may fill meanwhile
		profiles := f.profiledEach(through(nil), through(tap.Replace(body, other)))
		usual, _ := sides(profiles[0].Objects(codec, f.Stack.Traits.ClientLibraries...))
		changed, _ := sides(profiles[1].Objects(codec, f.Stack.Traits.ClientLibraries...))
		if changed-usual < max(times*3/4, changed/4) { // protojson takes an object more for fields in another order
			return
		}
		failIf(attempt == 3, "in %d calls %s allocated %d objects in the client, and %d for the same reply with its fields "+
			"in another order: replies that come as expected are not decoded", times, codec, usual, changed)
	}
}

// turned returns a message of JSON or protobuf with two neighbouring members or fields in the other order, or nil. Two
// fields of one number are elements of a list, whose order is part of the message.
func turned(body []byte) []byte {
	if bytes.HasPrefix(body, []byte("{")) && json.Valid(body) {
		return turnedJSON(body)
	}
	var out []byte
	for from := 0; from < len(body); {
		size := field(body[from:])
		if size == 0 {
			return nil // no protobuf
		}
		next := from + size
		if after := field(body[next:]); out == nil && after > 0 && number(body[from:]) != number(body[next:]) {
			out = slices.Concat(body[:from], body[next:next+after], body[from:next], body[next+after:])
		}
		from = next
	}
	return out
}

// number returns the number of the field of protobuf that body begins with.
func number(body []byte) uint64 {
	tag, _ := binary.Uvarint(body)
	return tag >> 3
}

// field returns how many bytes the first field of a message of protobuf has, or 0. No importer of this package compiles
// the library.
func field(body []byte) int {
	tag, n := binary.Uvarint(body)
	if n <= 0 || tag>>3 == 0 {
		return 0
	}
	value, size := uint64(0), 0
	switch tag & 7 {
	case 0:
		_, size = binary.Uvarint(body[n:])
	case 1:
		size = 8
	case 2:
		value, size = binary.Uvarint(body[n:])
	case 5:
		size = 4
	}
	if size <= 0 || value > uint64(len(body)) || n+size+int(value) > len(body) {
		return 0
	}
	return n + size + int(value)
}

// turnedJSON exchanges the first two members of an object that is written without spaces.
func turnedJSON(body []byte) []byte {
	var members [][]byte
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for from := int64(1); len(members) < 2 && d.More(); {
		var value json.RawMessage
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			return nil
		}
		members = append(members, bytes.TrimPrefix(body[from:d.InputOffset()], []byte(",")))
		from = d.InputOffset()
	}
	if len(members) < 2 {
		return nil
	}
	was := bytes.Join(members, []byte(","))
	return bytes.Replace(body, was, bytes.Join([][]byte{members[1], members[0]}, []byte(",")), 1)
}
