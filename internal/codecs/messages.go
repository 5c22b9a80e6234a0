package codecs

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"

	tinylib "github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	"github.com/rpcbench/rpcbench/message/pooledpb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// Messages are the user of the create-user API, without and with payload, and the catalogue.
func Messages() []message.Entry {
	user := func(avatar int) func() any {
		return func() any { u := users.Sample(0, avatar); return &u }
	}
	return append([]message.Entry{
		{Name: "user", Why: "what the stacks send", Size: 36, Gzip: 1.67, New: user(0)},
		{Name: "user.10kB", Why: "random bytes, which text formats write in base64 and nothing compresses", Size: 10_039,
			Gzip: 1, New: user(10_000)},
	}, message.Catalogue()...)
}

// plainForm is for codecs that go by reflection. Without calls a row times its codec.
func plainForm(c *calls[any]) func(message.Entry) Form {
	return func(e message.Entry) Form { return plainOf(e, c) }
}

func plainOf(e message.Entry, c *calls[any]) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return plain(v, c)
	case *message.Small:
		return plain(v, c)
	case *message.Flex:
		return plain(v, c)
	case *message.AddressBook:
		return plain(v, c)
	case *message.NewsFeed:
		return plain(v, c)
	case *message.Tree:
		return plain(v, c)
	case *message.Article:
		return plain(v, c)
	default:
		return missing(v)
	}
}

// protobufForm is for protobuf, its JSON, and vtprotobuf without pools.
func protobufForm(c *calls[proto.Message]) func(message.Entry) Form {
	return func(e message.Entry) Form { return protobufOf(e, c) }
}

func protobufOf(e message.Entry, c *calls[proto.Message]) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return protobufMessage(like[userv1.User](v), c)
	case *message.Small:
		return protobufMessage(like[messagepb.Small](v), c)
	case *message.Flex:
		return protobufMessage(like[messagepb.Flex](v), c)
	case *message.AddressBook:
		return protobufMessage(like[messagepb.AddressBook](v), c)
	case *message.NewsFeed:
		return protobufMessage(like[messagepb.NewsFeed](v), c)
	case *message.Tree:
		return protobufMessage(like[messagepb.Tree](v), c)
	case *message.Article:
		return protobufMessage(like[messagepb.Article](v), c)
	default:
		return missing(v)
	}
}

// pooledForm is for vtprotobuf with pools. Its fresh values are from them.
func pooledForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return Form{Value: like[pooledpb.User](v), Fresh: func() any { return pooledpb.UserFromVTPool() }}
	case *message.Small:
		return Form{Value: like[pooledpb.Small](v), Fresh: func() any { return pooledpb.SmallFromVTPool() }}
	case *message.Flex:
		return Form{Value: like[pooledpb.Flex](v), Fresh: func() any { return pooledpb.FlexFromVTPool() }}
	case *message.AddressBook:
		return Form{Value: like[pooledpb.AddressBook](v), Fresh: func() any { return pooledpb.AddressBookFromVTPool() }}
	case *message.NewsFeed:
		return Form{Value: like[pooledpb.NewsFeed](v), Fresh: func() any { return pooledpb.NewsFeedFromVTPool() }}
	case *message.Tree:
		return Form{Value: like[pooledpb.Tree](v), Fresh: func() any { return pooledpb.TreeFromVTPool() }}
	case *message.Article:
		return Form{Value: like[pooledpb.Article](v), Fresh: func() any { return pooledpb.ArticleFromVTPool() }}
	default:
		return missing(v)
	}
}

// msgpForm is for MessagePack by generated methods.
func msgpForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return msgpMessage(like[msgp.User](v))
	case *message.Small:
		return msgpMessage(like[msgp.Small](v))
	case *message.Flex:
		return msgpMessage(like[msgp.Flex](v))
	case *message.AddressBook:
		return msgpMessage(like[msgp.AddressBook](v))
	case *message.NewsFeed:
		return msgpMessage(like[msgp.NewsFeed](v))
	case *message.Tree:
		return msgpMessage(like[msgp.Tree](v))
	case *message.Article:
		return msgpMessage(like[msgp.Article](v))
	default:
		return missing(v)
	}
}

// xmlForm is for encoding/xml, which has types of its own for what carries bytes.
func xmlForm(e message.Entry) Form {
	c := &calls[any]{marshal: xml.Marshal, unmarshal: xml.Unmarshal}
	switch v := e.New().(type) {
	case *rpcbench.User:
		return plain(like[xmlstd.User](v), c)
	case *message.Flex:
		return plain(like[xmlstd.Flex](v), c)
	default:
		return plainOf(e, c)
	}
}

// calls are those that a library documents, on what it takes.
type calls[M any] struct {
	marshal   func(M) ([]byte, error)
	append    func([]byte, M) ([]byte, error) // instead of marshal
	unmarshal func([]byte, M) error
	generated bool // methods of vtprotobuf, instead of all of them
}

func (c *calls[M]) on(v M) func(dst []byte) ([]byte, error) {
	if c.append != nil {
		return func(dst []byte) ([]byte, error) { return c.append(dst, v) }
	}
	return func([]byte) ([]byte, error) { return c.marshal(v) }
}

func plain[T any](v *T, c *calls[any]) Form {
	f := Form{Value: v, Fresh: func() any { return new(T) }}
	if c != nil {
		f.Marshal = c.on(v)
		f.Unmarshal = func(data []byte) (any, error) { back := new(T); return back, c.unmarshal(data, back) }
	}
	return f
}

func protobufMessage[T any, P interface {
	*T
	proto.Message
	MarshalVT() ([]byte, error)
	UnmarshalVT([]byte) error
}](v P, c *calls[proto.Message]) Form {
	f := Form{Value: v, Fresh: func() any { return P(new(T)) }}
	switch {
	case c == nil:
	case c.generated:
		f.Marshal = func([]byte) ([]byte, error) { return v.MarshalVT() }
		f.Unmarshal = func(data []byte) (any, error) { back := P(new(T)); return back, back.UnmarshalVT(data) }
	default:
		f.Marshal = c.on(v)
		f.Unmarshal = func(data []byte) (any, error) { back := P(new(T)); return back, c.unmarshal(data, back) }
	}
	return f
}

func msgpMessage[T any, P interface {
	*T
	tinylib.Marshaler
	tinylib.Unmarshaler
}](v P) Form {
	return Form{
		Value: v, Fresh: func() any { return P(new(T)) },
		Marshal: func([]byte) ([]byte, error) { return v.MarshalMsg(nil) },
		Unmarshal: func(data []byte) (any, error) {
			back := P(new(T))
			_, err := back.UnmarshalMsg(data)
			return back, err
		},
	}
}

func missing(v any) Form {
	panic(fmt.Sprintf("codecs: a message of type %T needs a line for its native type", v))
}

// like makes a T of plain's fields, by way of JSON, in which all native types are equal.
func like[T any](plain any) *T {
	data, err := json.Marshal(plain)
	v := new(T)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(v)
	}
	if err != nil {
		panic(fmt.Sprintf("codecs: no %T of a %T: %v", v, plain, err))
	}
	return v
}
