package binding

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/message"
)

// Alike is the service on types that lie in memory as the plain structs do: the same fields in the same order, with tags
// or methods of their own. Its functions are those of the plain structs, which see such a value where it lies. So nothing
// is converted. Alike panics if a type differs.
func Alike[U, R, F, E any]() API[U, R, F, E] {
	requireAlike[U, rpcbench.User]()
	requireAlike[R, rpcbench.Response]()
	requireAlike[F, message.Flex]()
	requireAlike[E, rpcbench.Error]()
	return API[U, R, F, E]{
		Answer:    func(u *U) *R { return as[R](rpcbench.Answer(as[rpcbench.User](u))) },
		Check:     func(asked *U, r *R) error { return rpcbench.Check(as[rpcbench.User](asked), as[rpcbench.Response](r)) },
		Equal:     func(a, b *F) bool { return as[message.Flex](a).Equal(as[message.Flex](b)) },
		FromError: func(e *rpcbench.Error) *E { return as[E](e) },
		ToError: func(e *E) *rpcbench.Error {
			plain := new(rpcbench.Error)
			*as[E](plain) = *e // and no Err, which is not sent
			return plain
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

// alike compares fields by name, place and type. T lacks what JSON does not send.
func alike(t, plain reflect.Type) bool {
	switch {
	case t.Kind() != plain.Kind():
		return false
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return alike(t.Elem(), plain.Elem())
	case t.Kind() != reflect.Struct:
		return true
	}
	unsent := func(f reflect.StructField) bool { return f.Tag.Get("json") == "-" }
	sent := slices.DeleteFunc(reflect.VisibleFields(plain), unsent)
	return slices.EqualFunc(reflect.VisibleFields(t), sent, func(f, p reflect.StructField) bool {
		return f.Name == p.Name && f.Offset == p.Offset && alike(f.Type, p.Type)
	})
}
