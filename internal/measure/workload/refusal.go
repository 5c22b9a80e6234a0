package workload

import (
	"fmt"
	"slices"
)

// Refusal is what Check says of a workload. The names of its fields are apart from the text, in which a user's own
// words may stand: a command has flags in their place.
type Refusal struct {
	format string
	args   []any
}

// Field is the name of a field of Workload among the arguments of a Refusal.
type Field string

func refuse(format string, args ...any) error { return &Refusal{format, args} }

func (r *Refusal) Error() string {
	return "a workload's " + r.Says(func(f Field) string { return string(f) })
}

// Says is the text with other names of the fields.
func (r *Refusal) Says(name func(Field) string) string {
	args := slices.Clone(r.args)
	for i, arg := range args {
		if field, ok := arg.(Field); ok {
			args[i] = name(field)
		}
	}
	return fmt.Sprintf(r.format, args...)
}
