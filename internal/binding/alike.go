package binding

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/message"
)

// Alike is the service on types that lie in memory as the plain structs do: the same fields in the same order, with tags
// or methods of their own. Its functions are those of the plain structs, which see such a value where it lies. So nothing
// is converted. Alike panics if a type differs.
func Alike[U, R, F, E any]() API[U, R, F, E] {
	type wireError struct { // what is sent of an Error
		Code       rpcbench.Code
		Violations []rpcbench.Violation
		Message    string
	}
	requireAlike[U, rpcbench.User]()
	requireAlike[R, rpcbench.Response]()
	requireAlike[F, message.Flex]()
	requireAlike[E, wireError]()
	requireAlike[rpcbench.Error, wireError]() // at its beginning
	return API[U, R, F, E]{
		Answer:    func(u *U) *R { return as[R](rpcbench.Answer(as[rpcbench.User](u))) },
		Check:     func(asked *U, r *R) error { return rpcbench.Check(as[rpcbench.User](asked), as[rpcbench.Response](r)) },
		Equal:     func(a, b *F) bool { return as[message.Flex](a).Equal(as[message.Flex](b)) },
		FromError: func(e *rpcbench.Error) *E { return as[E](e) },
		ToError: func(e *E) *rpcbench.Error {
			w := as[wireError](e)
			return &rpcbench.Error{Code: w.Code, Violations: w.Violations, Message: w.Message}
		},
	}
}

// as sees a value as another type that requireAlike has compared with its own.
func as[To, From any](v *From) *To { return (*To)(unsafe.Pointer(v)) }

func requireAlike[T, Plain any]() {
	if t, plain := reflect.TypeFor[T](), reflect.TypeFor[Plain](); !alike(t, plain) {
		panic(fmt.Sprintf("binding: %v does not lie in memory as %v does", t, plain))
	}
}

// alike compares fields by name, place and type. What JSON does not send may follow in t.
func alike(t, plain reflect.Type) bool {
	if t.Kind() != plain.Kind() {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return alike(t.Elem(), plain.Elem())
	case reflect.Struct:
		for i := range max(t.NumField(), plain.NumField()) {
			if i >= plain.NumField() && t.Field(i).Tag.Get("json") == "-" {
				continue
			}
			if i >= t.NumField() || i >= plain.NumField() {
				return false
			}
			f, p := t.Field(i), plain.Field(i)
			if f.Name != p.Name || f.Offset != p.Offset || !alike(f.Type, p.Type) {
				return false
			}
		}
	}
	return true
}
