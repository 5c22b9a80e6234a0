package pages

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// phrase is a piece of a page with figures, and the texts before, between and behind them.
type phrase struct{ texts, figures []string }

// String is the phrase as the page has it, and marked as its ledger does: with braces if it has several numbers.
func (p phrase) String() string { return p.joined("", "") }

func (p phrase) marked() string {
	if len(p.figures) > 1 || plain.MatchString(strings.Join(p.texts, " ")) {
		return p.joined("{", "}")
	}
	return p.String()
}

func (p phrase) joined(begin, end string) string {
	said := p.texts[0]
	for i, figure := range p.figures {
		said += begin + figure + end + p.texts[i+1]
	}
	return said
}

// stated is one figure of a phrase, and the words before and behind it without the other figures.
type stated struct{ before, figure, behind string }

func (p phrase) nth(i int) stated {
	return stated{strings.Join(p.texts[:i+1], " "), p.figures[i], strings.Join(p.texts[i+1:], " ")}
}

const (
	digits    = `\d[\d,]*(?:\.\d+)?`
	unclear   = "no clear difference"
	lessWords = `less|lower|fewer|shorter|saves`
	moreWords = `more|higher|longer`
)

// wordBounds are words for numbers, with the least and the largest number that each may stand for.
var wordBounds = map[string][2]float64{
	"none": {0, 0}, "one": {0.95, 1.05}, "a tenth": {0.08, 0.12}, "a quarter": {0.22, 0.28}, "a third": {0.30, 0.37},
	"half": {0.45, 0.55}, "two thirds": {0.63, 0.70}, "twice": {1.9, 2.1}, "more than twice": {2, math.Inf(1)},
	"more than half": {0.5, 1}, "less than half": {0, 0.5},
}

var (
	plain    = regexp.MustCompile(digits)
	sizedAs  = regexp.MustCompile(`^(` + digits + `) \(` + digits + `–` + digits + `\)$`)
	signedAs = regexp.MustCompile(`^([+−])` + digits + `%(?: to [+−]` + digits + `%)?$`)
	shareAs  = regexp.MustCompile(`^(` + digits + `)(?:(?: to |–)(` + digits + `))?%$`)
	plainAs  = regexp.MustCompile(`^([+−]?` + digits + `)(?: to (` + digits + `))?$`)
	// figures are the forms of a figure, in the order in which a phrase without braces is searched.
	figures = []*regexp.Regexp{
		regexp.MustCompile(`(?i)` + unclear),
		regexp.MustCompile(digits + ` \(` + digits + `–` + digits + `\)`),
		regexp.MustCompile(`[+−]` + digits + `%(?: to [+−]` + digits + `%)?`),
		regexp.MustCompile(digits + `(?:(?: to |–)` + digits + `)?%`),
		regexp.MustCompile(digits + `(?: to ` + digits + `)?`),
		regexp.MustCompile(`\b(?:` + strings.Join(numberWords(), "|") + `)\b`),
	}
	directions = regexp.MustCompile(`\b(?:(` + lessWords + `)|(` + moreWords + `))\b`)
	// otherWays are words for a direction that nothing checks.
	otherWays = regexp.MustCompile(`(?i)\b(?:(?:slow|fast|cheap|dear|small|larg|bigg|great|heavi|light|quick)er|` +
		`(?:ris|increas|decreas|reduc|doubl|halv)(?:es?|ed|ing)|(?:fall|drop|grow|shrink|gain|lose|cut|add|beat|win)s|rose|fell|grew)\b`)
)

// quantitySaid is what a percentage is of, if the phrase names one of the quantities right behind its direction.
var quantitySaid = regexp.MustCompile(`^\s+(?:` + lessWords + `|` + moreWords + `)\s+(CPU|time|median|p95|p99)\b`)

// numberWords are all of wordBounds, the longest first.
func numberWords() (all []string) {
	for word := range wordBounds {
		all = append(all, word)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

var braces = regexp.MustCompile(`\{([^{}]+)\}`)

// phraseOf finds the figures in a ledger's words: in braces, or the only one. Of what stands as it is all is the
// figure.
func phraseOf(words string, stands bool) (p phrase) {
	if strings.TrimSpace(words) == "" {
		fail("the phrase is empty")
	}
	if stands {
		return phrase{[]string{"", ""}, []string{words}}
	}
	marked := braces.FindAllStringSubmatchIndex(words, -1)
	if strings.ContainsAny(braces.ReplaceAllString(words, ""), "{}") {
		fail("%q: a brace without its end, or nothing in it", words)
	}
	for _, form := range figures {
		if at := form.FindStringIndex(words); marked == nil && at != nil {
			p = phrase{[]string{words[:at[0]], words[at[1]:]}, []string{words[at[0]:at[1]]}}
			if plain.MatchString(strings.Join(p.texts, " ")) {
				fail("%q has several numbers: put braces around the figure", words)
			}
			return p
		}
	}
	if marked == nil {
		fail("%q has no number", words)
	}
	at := 0
	for _, found := range marked {
		p.texts, p.figures = append(p.texts, words[at:found[0]]), append(p.figures, words[found[2]:found[3]])
		at = found[1]
	}
	p.texts = append(p.texts, words[at:])
	return p
}

// direction is which way a phrase says that its figure points: by the first such word behind it, or the last before.
func (p stated) direction() verdict.Verdict {
	if found := directions.FindStringSubmatch(p.behind); found != nil {
		return pointing(found[1] != "")
	}
	if all := directions.FindAllStringSubmatch(p.before, -1); all != nil {
		return pointing(all[len(all)-1][1] != "")
	}
	return ""
}

func pointing(less bool) verdict.Verdict {
	return map[bool]verdict.Verdict{true: verdict.Less, false: verdict.More}[less]
}

// write is the figure as the phrase should have it. It fails if the phrase doesn't say the truth with any number.
func (p stated) write(v value) string {
	sign := signedAs.FindStringSubmatch(p.figure)
	switch bounds, isWord := wordBounds[p.figure]; {
	case v.text != "":
		return v.text
	case v.bounds != nil && (isWord || plain.MatchString(p.figure) || strings.EqualFold(p.figure, unclear)):
		fail("bounds are for words of your own: this figure needs its source alone")
	case v.bounds != nil:
		stated{figure: p.figure}.within(v, *v.bounds)
	case strings.EqualFold(p.figure, unclear):
		noDifference(v)
	case sizedAs.MatchString(p.figure):
		if len(v.all) != 1 || v.lo == 0 {
			fail("the source has no interval")
		}
		n := decimals(sizedAs.FindStringSubmatch(p.figure)[1])
		return fmt.Sprintf("%s (%s–%s)", written(v.all[0], n), written(v.lo, n), written(v.hi, n))
	case sign != nil:
		return signs(v)
	case isWord:
		p.within(v, bounds)
	case shareAs.MatchString(p.figure):
		return p.share(v)
	case plainAs.MatchString(p.figure):
		return p.number(v)
	default:
		fail("%q is no form of a figure", p.figure)
	}
	return p.figure
}

// noDifference fails if a verdict says less or more.
func noDifference(v value) {
	figures := v.figures
	if figures == nil && v.lo > 0 {
		figures = append(figures, verdict.Figure{Verdict: verdict.Interval{Lo: v.lo, Hi: v.hi}.Verdict(0)})
	}
	if figures == nil || slices.ContainsFunc(figures, decides) {
		fail("there is a clear difference, or no interval: %s", said(v))
	}
}

// decides tells whether a figure says less or more.
func decides(f verdict.Figure) bool { return f.Verdict == verdict.Less || f.Verdict == verdict.More }

// said is what a value says, for an error.
func said(v value) string {
	if len(v.figures) == 1 {
		f := v.figures[0]
		return fmt.Sprintf("%s (%s–%s), %s", table.Ratio(f.Ratio), table.Ratio(f.Lo), table.Ratio(f.Hi), f.Verdict)
	}
	if least, most := slices.Min(v.all), slices.Max(v.all); least != most {
		return fmt.Sprintf("%.4g to %.4g", least, most)
	}
	return fmt.Sprintf("%.4g", v.all[0])
}

// points fails unless ratios point where a phrase says: all of them lie on that side of 1, one verdict at least says
// so, and none the contrary. What no run compared has no verdict.
func points(v value, to verdict.Verdict) {
	word := map[verdict.Verdict]string{verdict.Less: "less", verdict.More: "more"}[to]
	for _, ratio := range v.all {
		if ratio > 1 == (to == verdict.Less) {
			fail("it isn't always %s: %s", word, said(v))
		}
	}
	if interval := (verdict.Interval{Lo: v.lo, Hi: v.hi}); v.figures == nil && v.lo > 0 && interval.Verdict(0) != to {
		fail("the interval doesn't say %s: %s", word, said(v))
	}
	if v.figures != nil && !slices.ContainsFunc(v.figures, func(f verdict.Figure) bool { return f.Verdict == to }) {
		fail("no verdict says %s: %s", word, said(v))
	}
}

// far are how far ratios are from 1, in percent, the nearest first.
func far(v value) (all []float64) {
	for _, ratio := range v.all {
		all = append(all, 100*math.Abs(ratio-1))
	}
	slices.Sort(all)
	return all
}

// share is a percentage: of ratios by how much they differ from 1, if the phrase has a direction or says up to, and of
// all else the number itself.
func (p stated) share(v value) string {
	n, to, upTo := decimals(shareAs.FindStringSubmatch(p.figure)[1]), p.direction(), strings.HasSuffix(p.before, "up to ")
	if other := otherWays.FindString(p.before + " " + p.behind); other != "" && (v.figures != nil || upTo) {
		fail("nothing checks %q: say less, lower, fewer, shorter or saves, or more, higher or longer", other)
	}
	if of := quantitySaid.FindStringSubmatch(p.behind); of != nil && v.of != "" && of[1] != v.of {
		fail("the phrase is of %s, and the source of %s", of[1], v.of)
	}
	var all []float64
	switch {
	case to != "":
		points(v, to)
		all = far(v)
	case upTo:
		all = far(v)
	case v.figures != nil:
		fail("it's a ratio, so the phrase needs less, lower, fewer, shorter or saves, or more, higher or longer")
	default:
		for _, share := range v.all {
			all = append(all, 100*share)
		}
		slices.Sort(all)
	}
	if upTo {
		all = all[len(all)-1:]
	}
	return ranged(all, n, p.figure) + "%"
}

// number is a number, or a range of them. If the phrase has a direction it is a difference, and written without a sign.
func (p stated) number(v value) string {
	all := slices.Clone(v.all)
	places := decimals(plainAs.FindStringSubmatch(p.figure)[1])
	if len(v.figures) == 1 && !decides(v.figures[0]) {
		fail("nothing is decided, so it is %q: %s", unclear, said(v))
	}
	if strings.HasPrefix(p.figure, "+") || strings.HasPrefix(p.figure, "−") {
		if len(all) > 1 {
			fail("a number with a sign is one")
		}
		return strings.Replace(fmt.Sprintf("%+.*f", places, all[0]), "-", "−", 1)
	}
	for i, n := range all {
		switch to := p.direction(); {
		case to != "" && n > 0 == (to == verdict.Less):
			fail("it isn't always %s: %s", to, said(v))
		case to != "":
			all[i] = math.Abs(n)
		}
	}
	slices.Sort(all)
	return ranged(all, places, p.figure)
}

// ranged is one number, or the first and the last one if they are written differently.
func ranged(all []float64, n int, as string) string {
	least, most := written(all[0], n), written(all[len(all)-1], n)
	if least == most {
		return most
	}
	if strings.Contains(as, "–") {
		return least + "–" + most
	}
	return least + " to " + most
}

// signs is a difference with its sign, or the range of several. A single one has to be decided.
func signs(v value) string {
	if len(v.figures) == 1 && !decides(v.figures[0]) {
		fail("nothing is decided, so it is %q: %s", unclear, said(v))
	}
	least, most := signed(slices.Min(v.all)), signed(slices.Max(v.all))
	if least == most {
		return most
	}
	return least + " to " + most
}

// signed is how far a ratio is from 1, in percent with a sign.
func signed(ratio float64) string {
	return strings.Replace(fmt.Sprintf("%+.0f%%", 100*(ratio-1)), "-", "−", 1)
}

// atOnce tells whether a direction stands beside a word: half less, saves a third.
func (p stated) atOnce() bool {
	return pointed.MatchString(p.behind) || strings.HasSuffix(strings.TrimSpace(p.before), "saves")
}

// within fails unless a word stands for all numbers. With a direction at once it stands for how far they are from 1.
func (p stated) within(v value, bounds [2]float64) {
	all := v.all
	if p.atOnce() {
		points(v, p.direction())
		all = nil
		for _, percent := range far(v) {
			all = append(all, percent/100)
		}
	}
	for _, n := range all {
		if n < bounds[0] || n > bounds[1] {
			fail("%q stands for %g to %g, and it is %s", p.figure, bounds[0], bounds[1], said(v))
		}
	}
}

// decimals are those of a number as it stands.
func decimals(number string) int {
	_, behind, _ := strings.Cut(number, ".")
	return len(behind)
}

// written is a number with so many decimals, and a comma before its thousands.
func written(n float64, decimals int) string {
	text := strconv.FormatFloat(n, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return whole + rest
}
