package codecs

import (
	"fmt"
	"reflect"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/binding"
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

// of is a message in the type T.
func of[T any](plain any) Form { return Form{binding.Convert[T](plain), func() any { return new(T) }} }

// pooled is likewise of a type with a pool. Fresh returns the destination before to it: by then nobody may use that.
func pooled[T any, P interface {
	*T
	ReturnToVTPool()
}](plain any, fromPool func() P) Form {
	var before P
	return Form{binding.Convert[T](plain), func() any {
		if before != nil {
			before.ReturnToVTPool()
		}
		before = fromPool()
		return before
	}}
}

// plainTypes are for codecs that go by reflection.
func plainTypes(e message.Entry) Form {
	v := e.New()
	t := reflect.TypeOf(v).Elem()
	return Form{v, func() any { return reflect.New(t).Interface() }}
}

// protobufTypes are for protobuf and its JSON.
func protobufTypes(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return of[userv1.User](v)
	case *message.Small:
		return of[messagepb.Small](v)
	case *message.Flex:
		return of[messagepb.Flex](v)
	case *message.AddressBook:
		return of[messagepb.AddressBook](v)
	case *message.NewsFeed:
		return of[messagepb.NewsFeed](v)
	case *message.Tree:
		return of[messagepb.Tree](v)
	case *message.Article:
		return of[messagepb.Article](v)
	default:
		return missing(v)
	}
}

// pooledTypes are those that vtprotobuf has generated with pools.
func pooledTypes(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return pooled(v, pooledpb.UserFromVTPool)
	case *message.Small:
		return pooled(v, pooledpb.SmallFromVTPool)
	case *message.Flex:
		return pooled(v, pooledpb.FlexFromVTPool)
	case *message.AddressBook:
		return pooled(v, pooledpb.AddressBookFromVTPool)
	case *message.NewsFeed:
		return pooled(v, pooledpb.NewsFeedFromVTPool)
	case *message.Tree:
		return pooled(v, pooledpb.TreeFromVTPool)
	case *message.Article:
		return pooled(v, pooledpb.ArticleFromVTPool)
	default:
		return missing(v)
	}
}

// msgpTypes are those that tinylib/msgp has generated methods for.
func msgpTypes(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return of[msgp.User](v)
	case *message.Small:
		return of[msgp.Small](v)
	case *message.Flex:
		return of[msgp.Flex](v)
	case *message.AddressBook:
		return of[msgp.AddressBook](v)
	case *message.NewsFeed:
		return of[msgp.NewsFeed](v)
	case *message.Tree:
		return of[msgp.Tree](v)
	case *message.Article:
		return of[msgp.Article](v)
	default:
		return missing(v)
	}
}

// xmlTypes are for encoding/xml, which has types of its own for what carries bytes.
func xmlTypes(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return of[xmlstd.User](v)
	case *message.Flex:
		return of[xmlstd.Flex](v)
	default:
		return plainTypes(e)
	}
}

func missing(v any) Form {
	panic(fmt.Sprintf("codecs: a message of type %T needs a line for its native type", v))
}
