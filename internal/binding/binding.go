// Package binding binds the API to the Go types that a library encodes, and makes clients on them, so that no stack converts
// anything inside a call.
package binding

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/message"
)

// API is the service on one set of native types: user, response, flex message, error body. Calls use its functions, which
// therefore are written out for the types.
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
	return API[rpcbench.User, rpcbench.Response, message.Flex, rpcbench.Error]{rpcbench.Answer, rpcbench.Check, (*message.Flex).Equal, same, same}
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

// WrongReply is the error of a reply that differs from what was asked for, as rpcbench.Check has it.
func WrongReply(what string) error {
	return &rpcbench.Error{Code: rpcbench.Internal, Message: fmt.Sprintf("wrong reply: %s differs from what was asked", what)}
}

// Convert makes a T of what from points to, with all within. Fields go by their names in JSON; one that T lacks is a panic.
// It is for neutral values, outside of timed calls.
func Convert[T any](from any) *T {
	to := new(T)
	Copy(to, from)
	return to
}

// Copy is Convert into what to points to.
func Copy(to, from any) { copyValue(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()) }

func copyValue(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if from.IsNil() {
			to.SetZero()
			return
		}
		to.Set(reflect.New(to.Type().Elem()))
		copyValue(to.Elem(), from.Elem())
	case reflect.Struct:
		for i := range from.NumField() {
			if f := from.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				copyValue(Field(to, JSONName(f)), from.Field(i))
			}
		}
	case reflect.Slice:
		switch {
		case from.IsNil():
			to.SetZero()
		case from.Type().Elem().Kind() == reflect.Uint8:
			to.SetBytes(bytes.Clone(from.Bytes()))
		default:
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
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && JSONName(f) == name {
			return v.Field(i)
		}
	}
	panic(fmt.Sprintf("binding: %v has no field %q", v.Type(), name))
}

// JSONName is a field's name in JSON.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
