package catalogue

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

func small(text string) func() any { return func() any { return &Small{Text: text} } }

func addressBook() any {
	r := source(1)
	var b AddressBook
	for _, name := range []string{
		"Anna Novak", "Łukasz Nowak", "José Garcia", "Zoë Miller", "Søren Larsen", "Mei Chen", "Omar Haddad",
	} {
		_, last, _ := strings.Cut(name, " ")
		email := fmt.Sprintf("%s.%02d@example.com", strings.ToLower(last), r.IntN(100))
		p := &Person{ID: 1 + r.Int32N(1_000_000), Name: name, Email: email}
		for range 1 + r.IntN(3) {
			number := fmt.Sprintf("+1 555 %07d", r.IntN(10_000_000))
			p.Phones = append(p.Phones, &Phone{Number: number, Type: Mobile + PhoneType(r.Int32N(int32(Work)))})
		}
		b.People = append(b.People, p)
	}
	return &b
}

func newsFeed() any {
	r := newProse(2)
	id := func() int64 { return 1 + r.Int64N(1<<60) }
	time := func() int64 { return 1_700_000_000 + r.Int64N(100_000_000) }
	var f NewsFeed
	for range 23 {
		p := &Profile{ID: id(), Name: r.phrase(2), Bio: r.sentences(2)}
		for range 10 {
			post := &Post{ID: id(), Time: time(), Text: r.sentences(2 + r.IntN(4))}
			for range r.IntN(25) {
				post.Reactions = append(post.Reactions, Like+Reaction(r.Int32N(int32(Rage))))
			}
			for range r.IntN(8) {
				post.Comments = append(post.Comments, &Comment{Author: id(), Time: time(), Text: r.sentences(1 + r.IntN(3))})
			}
			p.Posts = append(p.Posts, post)
		}
		f.Profiles = append(f.Profiles, p)
	}
	return &f
}

// article returns a New for an article with sections of about 220 bytes. A longer article begins like a shorter one.
func article(sections int) func() any {
	return func() any {
		r := newProse(1)
		a := &Article{Title: r.phrase(5)}
		for range sections {
			a.Sections = append(a.Sections, &Section{Heading: r.phrase(3), Text: r.sentences(3 + r.IntN(3))})
		}
		return a
	}
}

// source returns a generator of the same numbers on every platform and in every release of Go.
func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// prose makes random English text. gzip compresses it like English: to 0.45 of 10 kB and 0.40 of 100 kB.
type prose struct {
	*rand.Rand
	words []string
}

func newProse(seed uint64) prose { return prose{source(seed), strings.Fields(words)} }

// sentences returns n sentences of about 55 bytes. One in eight has quotation marks, which text formats must escape.
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

// phrase returns n words, the first with a capital letter. Common words occur often: of N words, the one at rank i has
// a probability of about ln(N/i)/N.
func (p prose) phrase(n int) string {
	taken := make([]string, n)
	for i := range taken {
		taken[i] = p.words[p.IntN(1+p.IntN(len(p.words)))]
	}
	s := strings.Join(taken, " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// words are common English words, roughly from the most common down.
//
//go:embed words.txt
var words string
