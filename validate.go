package rpcbench

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// rules returns the rules of each field, by its name on the wire, as validator/v10 writes them. Lengths count
// characters of strings and bytes of the avatar. "-" skips a field: a field without a rule would cost an allocation.
func rules() map[string]string {
	return map[string]string{
		"id":       "-", // set by the service
		"email":    "required,email,max=254",
		"name":     "min=4,max=100",
		"password": "min=4,max=72",
		"avatar":   "max=" + strconv.Itoa(MaxAvatar),
	}
}

// NewValidator returns the validation that every server runs on a request of type T, the user type of its library. The
// returned function's error is an *Error with the code Invalid. NewValidator panics unless T has exactly the fields of
// User, by their json names: validator/v10 would silently ignore a rule for a field that does not exist.
func NewValidator[T any]() func(*T) error {
	byField, rest := map[string]string{}, rules()
	t := reflect.TypeFor[T]()
	for f := range t.Fields() {
		if f.IsExported() {
			byField[f.Name] = rest[jsonName(f)]
			delete(rest, jsonName(f))
		}
	}
	if len(rest) > 0 || len(byField) != len(rules()) {
		panic(fmt.Sprintf("rpcbench: the fields of %v are not those of User, by their json names", t))
	}
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonName)
	v.RegisterStructValidationMapRules(byField, new(T))
	return func(u *T) error {
		err := v.Struct(u)
		if err == nil {
			return nil
		}
		fields, _ := errors.AsType[validator.ValidationErrors](err) // no other error, since u is a pointer to a struct
		e := &Error{Code: Invalid}
		for _, f := range fields {
			rule := f.Tag()
			if f.Param() != "" {
				rule += "=" + f.Param()
			}
			e.Violations = append(e.Violations, Violation{Field: f.Field(), Rule: rule})
		}
		return e
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
