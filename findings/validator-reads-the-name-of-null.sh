#!/usr/bin/env bash
# validator: a rule for strings on a field of type sql.Null[string] reads the text "<sql.Null[string] Value>".
#
# What one would expect: a field of type sql.Null[string] with the tag "omitempty,email" is checked for its string, or,
# where the library doesn't know the type, the rule is ignored or refused, as "max=10" is with "Bad field type".
#
# What happens with github.com/go-playground/validator/v10 v10.30.6: rules such as email, startswith and contains ask
# reflect for the field's String(), which for a struct is a text about its type. So someone@example.com fails "email".
# The error names the rule, and nothing says that the string was never looked at. RegisterCustomTypeFunc mends it, once for each instance of the generic type: with sql.Null[string]
# registered, a sql.Null[name] of a string type of one's own still fails.
#
# Why it matters to whoever compares RPC stacks: the plain structs of a JSON API often have sql.Null or a generic
# optional of its own, and the messages of gRPC have a *string, which the same tags judge rightly. So the same request
# is an error with one stack and none with the other, and a benchmark of the two compares errors with replies.
#
# Seen with Go 1.26.8, for the value someone@example.com:
#   *string, email: valid
#   sql.Null[string], email: invalid
#   sql.Null[string], email, registered: valid
#   sql.Null[name], email, sql.Null[string] registered: invalid
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require github.com/go-playground/validator/v10 v10.30.6
MOD
cat > main.go <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"os"
	"reflect"

	"github.com/go-playground/validator/v10"
)

type name string

// The value stands in a struct, as in a request.
type (
	pointer struct {
		Mail *string `validate:"omitempty,email"`
	}
	null struct {
		Mail sql.Null[string] `validate:"omitempty,email"`
	}
	named struct {
		Mail sql.Null[name] `validate:"omitempty,email"`
	}
)

func main() {
	mail := "someone@example.com"
	value := sql.Null[string]{V: mail, Valid: true}
	plain := validator.New(validator.WithRequiredStructEnabled())
	registered := validator.New(validator.WithRequiredStructEnabled())
	registered.RegisterCustomTypeFunc(func(field reflect.Value) any {
		if n := field.Interface().(sql.Null[string]); n.Valid {
			return n.V
		}
		return nil
	}, sql.Null[string]{})

	changed := false
	for _, row := range []struct {
		of       string
		validate *validator.Validate
		request  any
		want     string
	}{
		{"*string, email", plain, pointer{&mail}, "valid"},
		{"sql.Null[string], email", plain, null{value}, "invalid"},
		{"sql.Null[string], email, registered", registered, null{value}, "valid"},
		{
			"sql.Null[name], email, sql.Null[string] registered", registered,
			named{sql.Null[name]{V: name(mail), Valid: true}}, "invalid",
		},
	} {
		got := "valid"
		if err := row.validate.Struct(row.request); err != nil {
			got = "invalid"
		}
		fmt.Printf("%s: %s\n", row.of, got)
		changed = changed || got != row.want
	}
	if changed {
		fmt.Println("changed: the rules used to read the name of the type")
		os.Exit(1)
	}
}
GO
go build -o finding .
./finding
