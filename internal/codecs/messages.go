package codecs

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// plainForm is for codecs that go by reflection.
func plainForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return form(v)
	case *message.Small:
		return form(v)
	case *message.Flex:
		return form(v)
	case *message.AddressBook:
		return form(v)
	case *message.NewsFeed:
		return form(v)
	case *message.Tree:
		return form(v)
	case *message.Article:
		return form(v)
	default:
		return missing(v)
	}
}

// protobufForm is for protobuf, its JSON, and vtprotobuf without pools.
func protobufForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return form(like[userv1.User](v))
	case *message.Small:
		return form(like[messagepb.Small](v))
	case *message.Flex:
		return form(like[messagepb.Flex](v))
	case *message.AddressBook:
		return form(like[messagepb.AddressBook](v))
	case *message.NewsFeed:
		return form(like[messagepb.NewsFeed](v))
	case *message.Tree:
		return form(like[messagepb.Tree](v))
	case *message.Article:
		return form(like[messagepb.Article](v))
	default:
		return missing(v)
	}
}

// pooledForm is for vtprotobuf with pools. Its fresh values are from them.
func pooledForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return Form{like[pooledpb.User](v), func() any { return pooledpb.UserFromVTPool() }}
	case *message.Small:
		return Form{like[pooledpb.Small](v), func() any { return pooledpb.SmallFromVTPool() }}
	case *message.Flex:
		return Form{like[pooledpb.Flex](v), func() any { return pooledpb.FlexFromVTPool() }}
	case *message.AddressBook:
		return Form{like[pooledpb.AddressBook](v), func() any { return pooledpb.AddressBookFromVTPool() }}
	case *message.NewsFeed:
		return Form{like[pooledpb.NewsFeed](v), func() any { return pooledpb.NewsFeedFromVTPool() }}
	case *message.Tree:
		return Form{like[pooledpb.Tree](v), func() any { return pooledpb.TreeFromVTPool() }}
	case *message.Article:
		return Form{like[pooledpb.Article](v), func() any { return pooledpb.ArticleFromVTPool() }}
	default:
		return missing(v)
	}
}

// msgpForm is for MessagePack by generated methods.
func msgpForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return form(like[msgp.User](v))
	case *message.Small:
		return form(like[msgp.Small](v))
	case *message.Flex:
		return form(like[msgp.Flex](v))
	case *message.AddressBook:
		return form(like[msgp.AddressBook](v))
	case *message.NewsFeed:
		return form(like[msgp.NewsFeed](v))
	case *message.Tree:
		return form(like[msgp.Tree](v))
	case *message.Article:
		return form(like[msgp.Article](v))
	default:
		return missing(v)
	}
}

// xmlForm is for encoding/xml, which has types of its own for what carries bytes.
func xmlForm(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return form(like[xmlstd.User](v))
	case *message.Flex:
		return form(like[xmlstd.Flex](v))
	default:
		return plainForm(e)
	}
}

func form[T any](v *T) Form {
	return Form{Value: v, Fresh: func() any { return new(T) }}
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
