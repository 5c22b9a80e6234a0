// Package named finds entries of a list by name.
package named

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Find returns the entries of the given names, in their order. The error of an unknown one suggests the nearest and lists
// all; kind is what it calls an entry.
func Find[T any](kind string, all []T, nameOf func(T) string, names ...string) ([]T, error) {
	known := make([]string, len(all))
	for i, entry := range all {
		known[i] = nameOf(entry)
	}
	var found []T
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 && slices.Contains([]string{"httpjson.v2", "json.v2"}, name) {
			return nil, fmt.Errorf("rpcbench: the %s %s is not in this build: encoding/json/v2 needs Go 1.27 or later, without GOEXPERIMENT=nojsonv2; this is %s",
				kind, name, runtime.Version())
		}
		if i < 0 {
			nearest := slices.MinFunc(known, func(a, b string) int {
				return levenshtein.ComputeDistance(a, name) - levenshtein.ComputeDistance(b, name)
			})
			return nil, fmt.Errorf("rpcbench: unknown %s %q, did you mean %q? The %ss are %s", kind, name, nearest, kind, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}
