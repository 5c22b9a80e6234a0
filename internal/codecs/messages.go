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
}](fromPool func() P) func(plain any) Form {
	return func(plain any) Form {
		var before P
		return Form{binding.Convert[T](plain), func() any {
			if before != nil {
				before.ReturnToVTPool()
			}
			before = fromPool()
			return before
		}}
	}
}

// plainTypes are for codecs that go by reflection.
func plainTypes(e message.Entry) Form {
	v := e.New()
	t := reflect.TypeOf(v).Elem()
	return Form{v, func() any { return reflect.New(t).Interface() }}
}

// types are native types for the plain struct of each message.
type types struct {
	user, small, flex, book, feed, tree, article func(plain any) Form
}

func (t types) form(e message.Entry) Form {
	switch v := e.New().(type) {
	case *rpcbench.User:
		return t.user(v)
	case *message.Small:
		return t.small(v)
	case *message.Flex:
		return t.flex(v)
	case *message.AddressBook:
		return t.book(v)
	case *message.NewsFeed:
		return t.feed(v)
	case *message.Tree:
		return t.tree(v)
	case *message.Article:
		return t.article(v)
	default:
		panic(fmt.Sprintf("codecs: a message of type %T needs a line for its native type", v))
	}
}

// protobufTypes are for protobuf and its JSON.
func protobufTypes(e message.Entry) Form {
	return types{
		of[userv1.User], of[messagepb.Small], of[messagepb.Flex], of[messagepb.AddressBook],
		of[messagepb.NewsFeed], of[messagepb.Tree], of[messagepb.Article],
	}.form(e)
}

// pooledTypes are those that vtprotobuf has generated with pools.
func pooledTypes(e message.Entry) Form {
	return types{
		pooled(pooledpb.UserFromVTPool), pooled(pooledpb.SmallFromVTPool), pooled(pooledpb.FlexFromVTPool),
		pooled(pooledpb.AddressBookFromVTPool), pooled(pooledpb.NewsFeedFromVTPool), pooled(pooledpb.TreeFromVTPool),
		pooled(pooledpb.ArticleFromVTPool),
	}.form(e)
}

// msgpTypes are those that tinylib/msgp has generated methods for.
func msgpTypes(e message.Entry) Form {
	return types{
		of[msgp.User], of[msgp.Small], of[msgp.Flex], of[msgp.AddressBook], of[msgp.NewsFeed], of[msgp.Tree], of[msgp.Article],
	}.form(e)
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
