package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// page is one with its blocks made.
type page struct {
	name, text string
	covered    [][2]int // what a ledger's line has found: from, to
}

// line is where a byte of the text is, from 1 on.
func (p *page) line(at int) int { return 1 + strings.Count(p.text[:at], "\n") }

var space = regexp.MustCompile(`\s+`)

// pattern finds words, with any space between them.
func pattern(words string) string { return space.ReplaceAllString(regexp.QuoteMeta(words), `\s+`) }

// find is where the figures of a phrase stand, which stands once in the page, outside of its blocks.
func (p *page) find(said phrase) (places [][2]int, err error) {
	at := p.all(said)
	switch {
	case len(at) == 0:
		return nil, fmt.Errorf("%s has no %q", p.name, said)
	case len(at) > 1:
		return nil, fmt.Errorf("%s has %q twice, in lines %d and %d: lengthen the phrase", p.name, said,
			p.line(at[0][0][0]), p.line(at[1][0][0]))
	}
	return at[0], nil
}

// all is where a phrase's figures stand, each time that the page has it. A phrase that begins or ends with a letter or
// a digit begins or ends a word.
func (p *page) all(said phrase) (at [][][2]int) {
	text, words := p.prose(blocksAlone), pattern(said.texts[0])
	for i, figure := range said.figures {
		words += "(" + pattern(figure) + ")" + pattern(said.texts[i+1])
	}
	rx := regexp.MustCompile(words)
	for from := 0; ; {
		found := rx.FindStringSubmatchIndex(text[from:])
		if found == nil {
			return at
		}
		if !within(text, from+found[0]) && !within(text, from+found[1]) {
			var places [][2]int
			for i := 2; i < len(found); i += 2 {
				places = append(places, [2]int{from + found[i], from + found[i+1]})
			}
			at = append(at, places)
		}
		from += found[0] + 1
	}
}

// middle is what stands around a place in the middle of a word or a number.
var (
	middle  = regexp.MustCompile(`^[\pL\d][\pL\d]|^\d[.,]\d`)
	decimal = regexp.MustCompile(`^\d[.,]\d`)
)

// within tells whether a place is in the middle of a word or a number.
func within(text string, at int) bool {
	if at < 2 || at >= len(text) {
		return false
	}
	signed := strings.HasSuffix(text[:at], "−") || strings.HasSuffix(text[:at], "+")
	return middle.MatchString(text[at-1:]) || decimal.MatchString(text[at-2:]) ||
		signed && plain.MatchString(text[at:at+1])
}

// put writes a figure in place of another one, and notes that a ledger has it.
func (p *page) put(at [2]int, figure string) {
	more := len(figure) - (at[1] - at[0])
	p.text = p.text[:at[0]] + figure + p.text[at[1]:]
	for i, c := range p.covered {
		if c[0] > at[0] {
			p.covered[i] = [2]int{c[0] + more, c[1] + more}
		}
	}
	p.covered = append(p.covered, [2]int{at[0], at[0] + len(figure)})
}

// cover notes all places of a phrase that stands as it is, and tells whether there is one. A number alone that a word
// for less or more follows is a result, not a setting.
func (p *page) cover(l line) (there bool) {
	bare := !letters.MatchString(l.phrase.String())
	for _, places := range p.all(l.phrase) {
		if end := places[0][1]; bare && pointed.MatchString(p.text[end:]) {
			continue
		}
		there, p.covered = true, append(p.covered, places...)
	}
	return there
}

var (
	letters = regexp.MustCompile(`\pL`)
	pointed = regexp.MustCompile(`^\s+(?:` + lessWords + `|` + moreWords + `)\b`)
)

const (
	ofBlocks = `<!-- (?:table|terminal|printed)\b.*?<!-- end -->|<!-- (?:etcd) -->.*?<!-- /|<!--.*?-->`
	ofOthers = "|(?m:^)```.*?(?m:^)```|`[^`\n]*`|(?m:^>[^\n]*$)|\\]\\([^)]*\\)| width=\"[^\"]*\"|" +
		"(?m:^\\[[^]^\n][^]\n]*\\]: [^\n]*$)"
)

// What is no sentence of a page: its blocks; and code, quotations and the targets of links, too.
var (
	blocksAlone = regexp.MustCompile(`(?s)` + ofBlocks)
	noSentence  = regexp.MustCompile(`(?s)` + ofBlocks + ofOthers)
)

// prose is the text with what is none blanked out.
func (p *page) prose(none *regexp.Regexp) string {
	return none.ReplaceAllStringFunc(p.text, func(text string) string {
		return regexp.MustCompile(`[^\n]`).ReplaceAllStringFunc(text, func(r string) string {
			return strings.Repeat("\x00", len(r))
		})
	})
}

// united is what has to be a ledger's: percentages, times, sizes, ratios and their ranges and intervals, words for
// numbers, and that nothing is clear.
var (
	united = regexp.MustCompile(`(?:^|[^\pL\d.,+−±×-])([-+−±×]?` + digits +
		`(?:\s?(?:–|-|to\s|and\s)\s?[+−]?` + digits + `%?)*` +
		`(?:[*_]*[\s\x{A0}\x{202F}]?[*_]*(?:%|[µμu]s\b|ns\b|ms\b|[kMG]B\b|(?:per ?cent|(?:micro|milli|nano)seconds?)\b)|` +
		`\s+times\b|[x×])|` +
		`\d+\.\d+(?:–|\s+to\s+)\d+\.\d+|\d+\.\d+ \(\d+\.\d+–\d+\.\d+\)|± ?\d[\d.]*)`)
	worded = regexp.MustCompile(`(?i)\b(?:twice|half|(?:third|quarter|fifth|sixth|eighth|tenth|double|triple)s?)\b` +
		`[^.;:|]{0,40}?\b(?:` + lessWords + `|` + moreWords + `|as\s+(?:many|much|long))\b|` +
		`\b(?:more|less)\s+than\s+(?:half|twice)|\b(?:twice|half|thirds?)\s+(?:of\s+)?(?:the|JSON's|gRPC's)\b|` +
		`\b(?:doubles|halves|triples)\b|` +
		`\b(?:two|three|four|five|six|seven|eight|nine|ten)\s+times\b|\bno\s+(?:\pL+\s+)?differences?\b`)
	rated = regexp.MustCompile(`\b(` + digits + `)(?: \w+){0,2} a second|(\d+) calls/s|` +
		`\b((?:two|three|four|` + digits + `) (?:seconds?|minutes?)|a minute)\b`)
)

// escaped are the figures that no ledger has.
func (p *page) escaped() (problems []error) {
	text := p.prose(noSentence)
	forms := []*regexp.Regexp{united, worded}
	if p.name == "README.md" {
		forms = append(forms, rated)
	}
	for _, form := range forms {
		for from := 0; from < len(text); {
			found := form.FindStringSubmatchIndex(text[from:])
			if found == nil {
				break
			}
			begin, end := from+found[0], from+found[1]
			for i := 2; i+1 < len(found); i += 2 {
				if found[i] >= 0 {
					begin, end = from+found[i], from+found[i+1]
				}
			}
			if !p.covers(begin, end) {
				problems = append(problems, fmt.Errorf("%s:%d: %q is in no ledger: mend or add a line of %s", p.name, p.line(begin),
					space.ReplaceAllString(text[begin:end], " "), ledgerOf(p.name)))
			}
			from = max(end, begin+1)
		}
	}
	return problems
}

// covers tells whether a ledger has a figure that stands between two places, or all of its numbers.
func (p *page) covers(begin, end int) bool {
	for at := begin; at < end; at++ {
		if c := p.text[at]; '0' <= c && c <= '9' && !p.covering(at) {
			return false
		}
	}
	if plain.MatchString(p.text[begin:end]) {
		return true
	}
	for at := begin; at < end; at++ {
		if p.covering(at) {
			return true
		}
	}
	return false
}

func (p *page) covering(at int) bool {
	for _, c := range p.covered {
		if c[0] <= at && at < c[1] {
			return true
		}
	}
	return false
}
