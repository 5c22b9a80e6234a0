package message

import (
	_ "embed"
	"math/rand/v2"
	"strings"
)

// NewArticle makes so many sections, each of about 220 bytes. A longer article begins like a shorter one.
func NewArticle(sections int) *Article {
	r := newProse(1)
	a := &Article{Title: r.phrase(5)}
	for range sections {
		a.Sections = append(a.Sections, &Section{Heading: r.phrase(3), Text: r.sentences(3 + r.IntN(3))})
	}
	return a
}

// source gives the same numbers on every platform and in every release of Go.
func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// prose is English but for the sense. gzip makes of it what it makes of English: 0.45 at 10 kB, 0.40 at 100 kB.
type prose struct {
	*rand.Rand
	words []string
}

func newProse(seed uint64) prose { return prose{source(seed), strings.Fields(words)} }

// sentences are about 55 bytes each. One in eight is in quotation marks, which the text formats have to escape.
func (p prose) sentences(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = p.phrase(5+p.IntN(12)) + "."
		if p.IntN(8) == 0 {
			all[i] = `"` + all[i] + `"`
		}
	}
	return strings.Join(all, " ")
}

// phrase is n words that begin with a capital letter. Common words are common in it: of N, the one at rank i is taken
// with a likelihood of about ln(N/i)/N.
func (p prose) phrase(n int) string {
	taken := make([]string, n)
	for i := range taken {
		taken[i] = p.words[p.IntN(1+p.IntN(len(p.words)))]
	}
	s := strings.Join(taken, " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// words are common in English, about from the most common down.
//
//go:embed words.txt
var words string
