// Package catalogue defines the messages that codecs are timed with, as plain structs. Package cataloguepb has the same
// messages as protobuf types, and package cataloguemsgp as types of tinylib/msgp. The content is the same at each run.
package catalogue

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

// Entry is a message of the catalogue.
type Entry struct {
	Name string     // in the names of rows: [a-zA-Z0-9.]+ without "-digits" at the end
	Why  string     // reason that the message exists
	Size int        // bytes as protobuf
	Gzip float64    // size of the gzipped protobuf divided by Size, within 0.05; 0 for an empty message
	New  func() any // makes a pointer to a plain struct, with the same content each time
}

// All lists the messages by type, and for each type from small to large.
func All() []Entry {
	return []Entry{
		{"small.3B", "what a codec costs when there is next to nothing to encode", 3, 9, small("a")},
		{"small.25B", "a short string: the size of many replies", 25, 1.96, small("brown fox, unremarkable")},
		{"flex.empty", "no field is set: the handling of a message alone", 0, 0, func() any { return &rpcbench.Flex{} }},
		{"flex.complex", "every scalar kind and every kind of nesting, once", 133, 0.98,
			func() any { return message.Complex() }},
		{"addressbook", "short strings and an enum, nested twice: the usual business message", 631, 0.60, addressBook},
		{"newsfeed", "large and mixed, in lists of lists: text, ids, times, enums", 141_398, 0.51, newsFeed},
		{"tree.sparse.10B", "a few of the fields, a few bytes", 10, 3.40, tree(34, 10, false)},
		{"tree.sparse.100B", "most fields unset, which most formats leave out", 107, 1.23, tree(3, 100, false)},
		{"tree.sparse.1kB", "the same, larger", 1019, 0.97, tree(4, 1000, false)},
		{"tree.sparse.10kB", "the same, larger", 10_013, 0.85, tree(5, 10_000, false)},
		{"tree.sparse.100kB", "the same, beyond a processor's first cache", 100_002, 0.84, tree(6, 100_000, false)},
		{"tree.dense.100B", "every field set: numbers and short strings", 102, 1.26, tree(34, 100, true)},
		{"tree.dense.1kB", "the same, larger", 1007, 0.96, tree(34, 1000, true)},
		{"tree.dense.10kB", "the same, larger", 10_056, 0.85, tree(34, 10_000, true)},
		{"tree.dense.100kB", "the same, beyond a processor's first cache", 100_055, 0.84, tree(34, 100_000, true)},
		{"article.50", "text, which every format copies", 11_457, 0.45, article(50)},
		{"article.100", "twice the text: does the cost double?", 22_061, 0.44, article(100)},
		{"article.200", "the same, larger", 43_649, 0.42, article(200)},
		{"article.300", "the same, larger", 66_153, 0.41, article(300)},
		{"article.400", "the same, larger", 89_968, 0.41, article(400)},
		{"article.500", "the same, beyond 100 kB", 111_995, 0.40, article(500)},
	}
}

// tree returns a New for a tree. Different seeds give trees different first messages. With seed 34 the first message
// has 10 bytes if sparse and 102 if dense.
func tree(seed uint64, size int, dense bool) func() any {
	return func() any { return NewTree(seed, size, dense) }
}
