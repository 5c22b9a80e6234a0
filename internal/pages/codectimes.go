package pages

import (
	"fmt"
	"strings"

	"golang.org/x/perf/benchmath"
)

var (
	shownMessages = []string{"user", "user.10kB", "addressbook", "newsfeed", "tree.dense.1kB", "tree.dense.100kB",
		"article.50"}
	timedCodecs = []string{"protobuf", "json", "goccy", "protobuf.vt"}
	askedCodecs = []string{"json", "sonic", "sonic.std", "cbor"} // of stacks/more
	sizedCodecs = []string{"protobuf", "json", "json.gzip", "xml", "msgpack.generated"}
)

// codecTimes has a table for encoding and one for decoding: medians of processes, and how far their 95 % intervals
// reach.
func codecTimes(part string, messages, codecs []string) func(b *block) string {
	cell := func(s benchmath.Summary) string { return duration(s.Center) + " ± " + s.PctRangeString() }
	return func(b *block) string {
		times := b.measured("ns/op", b.from[0]+"/"+part+"/rows.txt")
		return b.codecTable("encode", "marshal", messages, codecs, times, cell) + "\n" +
			b.codecTable("decode", "unmarshal", messages, codecs, times, cell)
	}
}

// codecSizes has the lengths of bodies.
func codecSizes(b *block) string {
	sizes := b.measured("size-B", b.from[0]+"/codecs/rows.txt")
	return b.codecTable("bytes of", "marshal", shownMessages, sizedCodecs, sizes,
		func(s benchmath.Summary) string { return fmt.Sprintf("%.0f", s.Center) })
}

// codecTable has a row for each message and a column for each codec.
func (b *block) codecTable(title, op string, messages, codecs []string, from map[string][]float64,
	cell func(benchmath.Summary) string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %s | `%s` |\n|---|%s\n", title, strings.Join(codecs, "` | `"), strings.Repeat("---:|", len(codecs)))
	for _, msg := range messages {
		fmt.Fprintf(&t, "| `%s` |", msg)
		for _, codec := range codecs {
			fmt.Fprintf(&t, " %s |", cell(b.summary(from, "Codec/codec="+codec+"/msg="+msg+"/op="+op)))
		}
		t.WriteString("\n")
	}
	return t.String()
}

// duration has three digits.
func duration(ns float64) string {
	switch {
	case ns < 999.5:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 999_500:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}
