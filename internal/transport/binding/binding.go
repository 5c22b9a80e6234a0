// Package binding implements the API on the Go types that a library encodes, and makes clients of them. So no stack
// converts between types inside a call.
package binding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// API is the service on one set of types: user, response, flex message, error body. Its functions run inside calls, so
// they are written out for the types.
type API[U, R, F, E any] struct {
	Answer    func(*U) *R                // as rpcbench.AnswerUser
	Check     func(asked *U, r *R) error // as rpcbench.CheckUser
	Equal     func(a, b *F) bool         // as rpcbench.Flex.Equal
	FromError func(*rpcbench.Error) *E
	ToError   func(*E) *rpcbench.Error
}

// Plain returns the service on the plain structs.
func Plain() API[rpcbench.User, rpcbench.Response, rpcbench.Flex, rpcbench.Error] {
	same := func(e *rpcbench.Error) *rpcbench.Error { return e }
	return API[rpcbench.User, rpcbench.Response, rpcbench.Flex, rpcbench.Error]{
		rpcbench.AnswerUser, rpcbench.CheckUser, (*rpcbench.Flex).Equal, same, same,
	}
}

// Alike returns the service on types with the memory layout of the plain structs: the same fields in the same order,
// with other tags or methods. Its functions are those of the plain structs, and see a value through an unsafe pointer,
// without a conversion. Alike panics if a type has another layout.
func Alike[U, R, F, E any]() API[U, R, F, E] {
	for t, plain := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[U](): reflect.TypeFor[rpcbench.User](),
		reflect.TypeFor[R](): reflect.TypeFor[rpcbench.Response](),
		reflect.TypeFor[F](): reflect.TypeFor[rpcbench.Flex](),
		reflect.TypeFor[E](): reflect.TypeFor[rpcbench.Error](),
	} {
		if layout(t) != layout(plain) {
			panic(fmt.Sprintf("binding: %v does not lie in memory as %v does", t, plain))
		}
	}
	return API[U, R, F, E]{
		Answer: func(u *U) *R { return as[R](rpcbench.AnswerUser(as[rpcbench.User](u))) },
		Check: func(asked *U, r *R) error {
			return rpcbench.CheckUser(as[rpcbench.User](asked), as[rpcbench.Response](r))
		},
		Equal:     func(a, b *F) bool { return as[rpcbench.Flex](a).Equal(as[rpcbench.Flex](b)) },
		FromError: func(e *rpcbench.Error) *E { return as[E](e) },
		ToError: func(e *E) *rpcbench.Error {
			plain := new(rpcbench.Error)
			*as[E](plain) = *e // Err is not sent
			return plain
		},
	}
}

// as returns the same pointer as one to another type with the same layout.
func as[To, From any](v *From) *To { return (*To)(unsafe.Pointer(v)) }

// layout describes the memory layout of a type: names, offsets and types of the fields that JSON sends.
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

// Traits returns the traits of a stack with a codec, to which the transport adds its own.
func Traits(t codec.Traits) rpcbench.Traits {
	return rpcbench.Traits{Codec: t.Library, Lossy: t.Lossy, InvalidUTF8: t.InvalidUTF8}
}

// NewService makes the operation that a server runs, which validates a user and answers.
func (a API[U, R, F, E]) NewService(config rpcbench.ServerConfig) func(context.Context, *U) (*R, error) {
	validate := rpcbench.NewUserValidator[U](config)
	return func(_ context.Context, u *U) (*R, error) {
		if err := validate(u); err != nil {
			return nil, err
		}
		return a.Answer(u), nil
	}
}

// AsError returns the *rpcbench.Error that err is or wraps, or one of the same code and text.
func AsError(err error) *rpcbench.Error {
	if e, ok := errors.AsType[*rpcbench.Error](err); ok {
		return e
	}
	return &rpcbench.Error{Code: rpcbench.CodeOf(err), Message: err.Error()}
}

// WrongReply returns the error of a reply that differs from what was asked; what names the difference.
func WrongReply(what string) error {
	return &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "wrong reply: " + what + " differs from what was asked"}
}

// Convert makes a deep copy of *from as a T. Fields match by their JSON names, and Convert panics if T lacks one. It
// uses reflection, and runs outside of timed calls only.
func Convert[T any](from any) *T {
	to := new(T)
	Copy(to, from)
	return to
}

// Copy is Convert into the fresh value that to points to.
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

// Clone returns a deep copy of what v points to, but for fields that are not exported.
func Clone(v any) any { return clone(reflect.ValueOf(v)).Interface() }

func clone(from reflect.Value) reflect.Value {
	to := reflect.New(from.Type()).Elem()
	to.Set(from)
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			to.Elem().Set(clone(from.Elem()))
		}
	case reflect.Interface:
		if !from.IsNil() {
			to.Set(clone(from.Elem()))
		}
	case reflect.Struct:
		for f, v := range from.Fields() {
			if f.IsExported() {
				to.FieldByIndex(f.Index).Set(clone(v))
			}
		}
	case reflect.Array, reflect.Slice:
		if from.Kind() == reflect.Slice && !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			reflect.Copy(to, from)
		}
		for i := 0; from.Type().Elem().Kind() != reflect.Uint8 && i < from.Len(); i++ {
			to.Index(i).Set(clone(from.Index(i)))
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
			for key, v := range from.Seq2() {
				to.SetMapIndex(key, clone(v))
			}
		}
	}
	return to
}

// Field returns the field of a struct with a JSON name.
func Field(v reflect.Value, name string) reflect.Value {
	for f, field := range v.Fields() {
		if f.IsExported() && JSONName(f) == name {
			return field
		}
	}
	panic(fmt.Sprintf("binding: %v has no field %q", v.Type(), name))
}

// JSONName returns a field's name in JSON.
func JSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
