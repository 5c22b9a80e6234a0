// Package binding binds the API to the Go types that a library encodes, and makes clients on them, so that no stack
// converts anything inside a call.
package binding

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/message"
)

// API is the service on one set of native types: user, response, flex message, error body. Calls use its functions,
// which therefore are written out for the types.
type API[U, R, F, E any] struct {
	Answer    func(*U) *R                // as rpcbench.Answer
	Check     func(asked *U, r *R) error // as rpcbench.Check
	Equal     func(a, b *F) bool         // as message.Flex.Equal
	FromError func(*rpcbench.Error) *E
	ToError   func(*E) *rpcbench.Error
}

// Plain is the service on the plain structs.
func Plain() API[rpcbench.User, rpcbench.Response, message.Flex, rpcbench.Error] {
	same := func(e *rpcbench.Error) *rpcbench.Error { return e }
	return API[rpcbench.User, rpcbench.Response, message.Flex, rpcbench.Error]{
		rpcbench.Answer, rpcbench.Check, (*message.Flex).Equal, same, same,
	}
}

// Alike is the service on types that lie in memory as the plain structs do: the same fields in the same order, with
// tags or methods of their own. Its functions are those of the plain structs, which see such a value where it lies. So
// nothing is converted. Alike panics if a type differs.
func Alike[U, R, F, E any]() API[U, R, F, E] {
	for t, plain := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[U](): reflect.TypeFor[rpcbench.User](),
		reflect.TypeFor[R](): reflect.TypeFor[rpcbench.Response](),
		reflect.TypeFor[F](): reflect.TypeFor[message.Flex](),
		reflect.TypeFor[E](): reflect.TypeFor[rpcbench.Error](),
	} {
		if layout(t) != layout(plain) {
			panic(fmt.Sprintf("binding: %v does not lie in memory as %v does", t, plain))
		}
	}
	return API[U, R, F, E]{
		Answer: func(u *U) *R { return as[R](rpcbench.Answer(as[rpcbench.User](u))) },
		Check: func(asked *U, r *R) error {
			return rpcbench.Check(as[rpcbench.User](asked), as[rpcbench.Response](r))
		},
		Equal:     func(a, b *F) bool { return as[message.Flex](a).Equal(as[message.Flex](b)) },
		FromError: func(e *rpcbench.Error) *E { return as[E](e) },
		ToError: func(e *E) *rpcbench.Error {
			plain := new(rpcbench.Error)
			*as[E](plain) = *e // and no Err, which is not sent
			return plain
		},
	}
}

// as sees a value as another type whose layout is the same.
func as[To, From any](v *From) *To { return (*To)(unsafe.Pointer(v)) }

// layout is how a type lies in memory: its fields' names, places and types, without what JSON does not send.
func layout(t reflect.Type) string {
	text := t.Kind().String()
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		text += " of " + layout(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Tag.Get("json") != "-" {
				text += fmt.Sprintf(" {%s at %d: %s}", f.Name, f.Offset, layout(f.Type))
			}
		}
	}
	return text
}

// Traits are those of a stack over bare connections with the codec's. Other transports add theirs.
func Traits(t codec.Traits) rpcbench.Traits {
	return rpcbench.Traits{Codec: t.Library, Lossy: t.Lossy, InvalidUTF8: t.InvalidUTF8.Encoding}
}

// NewService makes the operation that a server runs: it validates and answers.
func (a API[U, R, F, E]) NewService() func(context.Context, *U) (*R, error) {
	validate := rpcbench.NewValidator[U]()
	return func(_ context.Context, u *U) (*R, error) {
		if err := validate(u); err != nil {
			return nil, err
		}
		return a.Answer(u), nil
	}
}

// WrongReply is the error of a reply in which what differs from what was asked for.
func WrongReply(what string) error {
	return &rpcbench.Error{Code: rpcbench.Internal, Message: "wrong reply: " + what + " differs from what was asked"}
}

// Convert makes a T of what from points to, with all within. Fields go by their names in JSON; one that T lacks is a
// panic. It is for neutral values, outside of timed calls.
func Convert[T any](from any) *T {
	to := new(T)
	Copy(to, from)
	return to
}

// Copy is Convert into a fresh value, to which to points.
func Copy(to, from any) { copyValue(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()) }

func copyValue(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			copyValue(to.Elem(), from.Elem())
		}
	case reflect.Struct:
		for f, v := range from.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				copyValue(Field(to, JSONName(f)), v)
			}
		}
	case reflect.Slice:
		if from.Type().Elem().Kind() == reflect.Uint8 {
			to.SetBytes(bytes.Clone(from.Bytes()))
		} else if !from.IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				copyValue(to.Index(i), from.Index(i))
			}
		}
	default:
		to.Set(from.Convert(to.Type()))
	}
}

// Field is the field of a struct that has the name in JSON.
func Field(v reflect.Value, name string) reflect.Value {
	for f, field := range v.Fields() {
		if f.IsExported() && JSONName(f) == name {
			return field
		}
	}
	panic(fmt.Sprintf("binding: %v has no field %q", v.Type(), name))
}

// JSONName is a field's name in JSON.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
