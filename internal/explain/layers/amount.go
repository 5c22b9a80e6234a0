package layers

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Amount is what a function takes, with its standard error.
type Amount struct{ Value, SE float64 }

// Largest names the three functions that take most, of those above two standard errors.
func Largest(by map[string]Amount, format string) string {
	size := func(name string) float64 { return math.Abs(by[name].Value) }
	maps.DeleteFunc(by, func(name string, a Amount) bool { return size(name) <= 2*a.SE })
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(size(y), size(x)), cmp.Compare(x, y))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf(format, name, by[name].Value, by[name].SE)
	}
	return strings.Join(names[:min(3, len(names))], ", ")
}
