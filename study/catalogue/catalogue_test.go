package catalogue_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/catalogue/cataloguepb"
)

func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalogue.All() {
		require.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9.]+$`), e.Name)
		require.False(t, seen[e.Name], "two messages are called %s", e.Name)
		seen[e.Name] = true
		require.NotEmpty(t, e.Why, e.Name)
		a, b := e.New(), e.New()
		require.Equal(t, a, b, "%s: the same every time", e.Name)
		require.NotSame(t, a, b, "%s: who decodes into one must not change the other", e.Name)
	}
}

// columns has the values of each field, as "Tree.Int1", in the order of the walk.
type columns map[string][]reflect.Value

func (c columns) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i))
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			name := v.Type().Name() + "." + f.Name
			c[name] = append(c[name], value)
			c.walk(value)
		}
	}
}

func columnsOf(messages ...any) columns {
	c := columns{}
	for _, m := range messages {
		c.walk(reflect.ValueOf(m))
	}
	return c
}

func everything() columns {
	var all []any
	for _, e := range catalogue.All() {
		all = append(all, e.New())
	}
	return columnsOf(all...)
}

func isScalar(v reflect.Value) bool { return v.Kind() != reflect.Slice && v.Kind() != reflect.Pointer }

func isSet(v reflect.Value) bool { return !v.IsZero() }

// A codec that leaves a field out, or takes one for another, must be seen on some catalogue.
func TestFieldsAreSetAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for name, values := range everything() {
		set := 0
		var text strings.Builder // fmt.Sprint(values) is of types
		for _, v := range values {
			if isSet(v) {
				set++
			}
			fmt.Fprintln(&text, v)
		}
		require.Positive(t, set, "%s is never set", name)
		if isScalar(values[0]) {
			typ, _, _ := strings.Cut(name, ".")
			all := typ + values[0].Type().String() + text.String()
			require.Empty(t, seen[all], "%s always has the same value", name)
			seen[all] = name
		}
	}
	require.Len(t, seen, 79, "scalar fields of all messages: none is left out of the catalogue")
}

func TestTrees(t *testing.T) {
	share := func(tree *catalogue.Tree) (set float64, fields int) {
		for _, values := range columnsOf(tree) {
			for _, v := range values {
				if isScalar(v) {
					fields++
					if isSet(v) {
						set++
					}
				}
			}
		}
		return set / float64(fields), fields
	}
	for _, size := range []int{1, 1000, 100_000} {
		dense, fields := share(catalogue.NewTree(7, size, true))
		require.Equal(t, 1.0, dense, "every field of a dense tree is set")
		require.InDelta(t, size/100, fields/15, float64(size)/300+1, "messages in %d bytes", size)
	}
	sparse, _ := share(catalogue.NewTree(7, 100_000, false))
	require.InDelta(t, 0.2, sparse, 0.01, "one field in five of a sparse tree is set")
	require.NotEqual(t, catalogue.NewTree(7, 1000, true), catalogue.NewTree(8, 1000, true), "seeds differ")

	large := columnsOf(catalogue.NewTree(7, 100_000, true))
	negative, lengths := 0, map[int]bool{}
	for _, v := range large["Leaf.Long1"] {
		if v.Int() < 0 {
			negative++
		}
		lengths[len(fmt.Sprintf("%b", v.Int()))] = true
	}
	require.InDelta(t, 1.0/8, float64(negative)/float64(len(large["Leaf.Long1"])), 0.04, "numbers below 0")
	require.Greater(t, len(lengths), 60, "numbers of every length")
}

func TestEnums(t *testing.T) {
	valid := map[string]map[int32]string{
		"Phone.Type": cataloguepb.PhoneType_name, "Post.Reactions": cataloguepb.Reaction_name,
	}
	c := everything()
	for field, names := range valid {
		used := map[string]bool{}
		for _, v := range c[field] {
			if isScalar(v) {
				used[names[int32(v.Int())]] = true
				continue
			}
			for i := range v.Len() {
				used[names[int32(v.Index(i).Int())]] = true
			}
		}
		require.NotContains(t, used, "", "%s has a value that is none of the enum's", field)
		require.Len(t, used, len(names)-1, "%s takes each value but the unspecified one: %v", field, used)
	}
}
