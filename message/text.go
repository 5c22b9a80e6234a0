package message

import (
	"math/rand/v2"
	"strings"
)

// Small is the least a codec can be given: one string.
type Small struct {
	Text string `json:"text,omitempty" xml:"text,omitempty" msgpack:"text,omitempty"`
}

// Article is text in sections. It asks how fast a format copies strings, and how that grows with the size: what differs
// between formats otherwise, numbers and names of fields, is hardly there.
type Article struct {
	Title    string     `json:"title,omitempty" xml:"title,omitempty" msgpack:"title,omitempty"`
	Sections []*Section `json:"sections,omitempty" xml:"sections,omitempty" msgpack:"sections,omitempty"`
}

// Section is a heading and a paragraph.
type Section struct {
	Heading string `json:"heading,omitempty" xml:"heading,omitempty" msgpack:"heading,omitempty"`
	Text    string `json:"text,omitempty" xml:"text,omitempty" msgpack:"text,omitempty"`
}

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
const words = `
the of and to a in is it you that he was for on are with as I his they be at one have this from or had by not but what
all were when we there can an your which their said if do will each about how up out them then she many some so these
would other into has more her two like him see time could no make than first been its who now people my made over did
down only way find use may water long little very after words called just where most know get through back much before
go good new write our used me man too any day same right look think also around another came come work three word must
because does part even place well such here take why things help put years different away again off went old number
great tell men say small every found still between name should home big give air line set own under read last never us
left end along while might next sound below saw something thought both few those always looked show large often together
asked house don't world going want school important until form food keep children feet land side without boy once
animals life enough took sometimes four head above kind began almost live page got earth need far hand high year mother
light parts country father let night following picture being study second eyes soon times story boys since white days
ever paper hard near sentence better best across during today others however sure means knew it's try told young miles
sun ways thing whole hear example heard several change answer room sea against top turned learn point city play toward
five using himself usually money seen didn't car morning given order open ground cold really table remember tree course
front space inside ago sad early learned brought close nothing though idea lived became add become grow draw yet less
wind behind cannot letter among able dog shown mean English rest perhaps certain six feel fire ready green yes built
special ran full town complete oh person hot anything hold state list stood ten`
