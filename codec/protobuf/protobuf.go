// Package protobuf is google.golang.org/protobuf as a codec, in its three forms.
package protobuf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls proto.Marshal and proto.Unmarshal: a value that is no proto.Message is an error.
//
// What the wire format can't tell, it can't either: no bytes are a message without fields, and bytes that follow a
// message are more of its fields, or an error when they can't be.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/protobuf" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, notMessage(v)
	}
	return proto.Marshal(m)
}

func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return notMessage(v)
	}
	return proto.Unmarshal(data, m)
}

// Traits: the types are generated, and the code that encodes them is not. The library builds tables from their
// descriptors, by reflection, at a type's first use.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "google.golang.org/protobuf",
		InvalidUTF8: codec.UTF8{Encoding: codec.Rejected, Decoding: codec.Rejected},
	}
}

// Append is Codec with the caller's buffer.
type Append struct{ Codec }

// Append calls MarshalAppend with the options that proto.Marshal has.
func (Append) Append(dst []byte, v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return dst, notMessage(v)
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

func (a Append) Traits() codec.Traits {
	t := a.Codec.Traits()
	t.Reuses = "buffer"
	return t
}

// Delimited writes and reads messages behind their lengths, as package protodelim does. A message may have 4 MiB,
// protodelim's default.
type Delimited struct{}

// ContentType says as much as is registered for streams of messages.
func (Delimited) ContentType() string { return "application/octet-stream" }

func (Delimited) Encode(w io.Writer, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return notMessage(v)
	}
	_, err := protodelim.MarshalTo(w, m)
	return err
}

// Decode reads one message. From an r that is no protodelim.Reader it reads ahead, as a json.Decoder does.
func (Delimited) Decode(r io.Reader, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return notMessage(v)
	}
	from, ok := r.(protodelim.Reader)
	if !ok {
		from = bufio.NewReader(r)
	}
	return protodelim.UnmarshalFrom(from, m)
}

// Marshal makes a stream of one message.
func (d Delimited) Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	if err := d.Encode(&out, v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unmarshal reads a stream of one message, and refuses one of more.
func (d Delimited) Unmarshal(data []byte, v any) error {
	r := bytes.NewReader(data)
	if err := d.Decode(r, v); err != nil {
		return err
	}
	if r.Len() > 0 {
		return errRest
	}
	return nil
}

func (Delimited) Traits() codec.Traits {
	t := Codec{}.Traits()
	t.Reuses = "buffer"
	return t
}

func notMessage(v any) error { return fmt.Errorf("protobuf: %T is no proto.Message", v) }

var errRest = errors.New("protobuf: more data after the message")
