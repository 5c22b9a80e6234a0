package codecs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
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

// plainForm is for codecs that go by reflection.
func plainForm(e message.Entry, codec string) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return plain(v, codec)
	case *message.Small:
		return plain(v, codec)
	case *message.Flex:
		return plain(v, codec)
	case *message.AddressBook:
		return plain(v, codec)
	case *message.NewsFeed:
		return plain(v, codec)
	case *message.Tree:
		return plain(v, codec)
	case *message.Article:
		return plain(v, codec)
	default:
		return missing(v)
	}
}

// protobufForm is for protobuf and its JSON.
func protobufForm(e message.Entry, codec string) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return protobufs(like[userv1.User](v), codec)
	case *message.Small:
		return protobufs(like[messagepb.Small](v), codec)
	case *message.Flex:
		return protobufs(like[messagepb.Flex](v), codec)
	case *message.AddressBook:
		return protobufs(like[messagepb.AddressBook](v), codec)
	case *message.NewsFeed:
		return protobufs(like[messagepb.NewsFeed](v), codec)
	case *message.Tree:
		return protobufs(like[messagepb.Tree](v), codec)
	case *message.Article:
		return protobufs(like[messagepb.Article](v), codec)
	default:
		return missing(v)
	}
}

// xmlForm is for encoding/xml, which has types of its own for what carries bytes.
func xmlForm(e message.Entry, codec string) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return plain(like[xmlstd.User](v), codec)
	case *message.Flex:
		return plain(like[xmlstd.Flex](v), codec)
	default:
		return plainForm(e, codec)
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
