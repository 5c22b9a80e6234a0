package pages

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// ledger has a line for each figure in the sentences of a page.
type ledger struct {
	file   string
	text   []string // all lines, as they should stand
	lines  []line
	values map[string]value // what the ledger names
}

// line is one phrase and where its figure comes from.
type line struct {
	at     int // in the ledger, from 1 on
	quoted string
	phrase phrase
	from   []ast.Expr // a source for each figure
}

// ledger reads a ledger. A page without figures has none. What is no line of one is a problem.
func (m *maker) ledger(file string) (l ledger, problems []error) {
	l = ledger{file: file, values: map[string]value{}}
	data, err := os.ReadFile(filepath.Join(m.root, file))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	} else if err != nil {
		return l, []error{err}
	}
	l.text = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, text := range l.text {
		if err := try(func() { m.readLine(&l, i+1, strings.TrimSpace(text)) }); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", file, i+1, err))
		}
	}
	return l, problems
}

var named = regexp.MustCompile(`^([a-zA-Z]\w*) = (.+)$`)

// readLine reads a line: "phrase" = source, name = source, a comment or nothing.
func (m *maker) readLine(l *ledger, at int, text string) {
	if text == "" || strings.HasPrefix(text, "#") {
		return
	}
	if named := named.FindStringSubmatch(text); named != nil {
		l.values[named[1]] = m.eval(l, parse(named[2])[0])
		return
	}
	quoted, err := strconv.QuotedPrefix(text)
	source, is := strings.CutPrefix(strings.TrimPrefix(text, quoted), " = ")
	if err != nil || !is {
		fail(`it is neither "a phrase" = a source, nor name = a source`)
	}
	words, err := strconv.Unquote(quoted)
	if err != nil {
		fail("%s: %w", quoted, err)
	}
	one := line{at: at, quoted: quoted, from: parse(source)}
	one.phrase = phraseOf(words, one.stands() || one.calls("where"))
	if n := len(one.phrase.figures); n != len(one.from) {
		fail("%d figures and %d sources", n, len(one.from))
	}
	l.lines = append(l.lines, one)
}

// parse reads sources behind commas.
func parse(source string) []ast.Expr {
	expr, err := parser.ParseExpr("of(" + source + ")")
	if call, is := expr.(*ast.CallExpr); is && err == nil && len(call.Args) > 0 {
		return call.Args
	}
	fail("%s is no source", source)
	return nil
}

// stands tells whether the figure is no record's: a setting, somebody else's, or computed at a commit from records that
// are no longer here.
func (l line) stands() bool { return l.calls("setting", "theirs", "commit") }

// calls tells whether the first source is a call of one of these.
func (l line) calls(names ...string) bool {
	call, is := l.from[0].(*ast.CallExpr)
	if !is {
		return false
	}
	name, is := call.Fun.(*ast.Ident)
	return is && slices.Contains(names, name.Name)
}

// value is what a source has: one number, or one for each run or row. A ratio that runs have measured has a figure for
// each number, with its verdict.
type value struct {
	all     []float64
	figures []verdict.Figure
	lo, hi  float64        // the interval of a single number, if it has one
	text    string         // of where, or as it's typed
	typed   bool           // it's read from no record
	from    report.Summary // the first record that it's from, if that says where it was measured
	bounds  *[2]float64    // where it has to lie for words that have no bounds of their own
	of      string         // the quantity that a run was asked for
}

func one(n float64) value { return value{all: []float64{n}} }

// ratio is a value of figures.
func ratio(figures ...verdict.Figure) (v value) {
	for _, f := range figures {
		v.all = append(v.all, f.Ratio)
	}
	v.figures = figures
	if len(figures) == 1 {
		v.lo, v.hi = figures[0].Lo, figures[0].Hi
	}
	return v
}

// eval is the value of a source.
func (m *maker) eval(l *ledger, expr ast.Expr) value {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return m.eval(l, e.X)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err != nil {
				fail("%s: %w", e.Value, err)
			}
			return value{text: text, typed: true}
		}
		return value{all: []float64{number(e.Value)}, typed: true}
	case *ast.Ident:
		v, known := l.values[e.Name]
		if !known {
			fail("nothing is called %q above", e.Name)
		}
		return v
	case *ast.BinaryExpr:
		return derived(e.Op, m.eval(l, e.X), m.eval(l, e.Y))
	case *ast.CallExpr:
		name, _ := e.Fun.(*ast.Ident)
		if name == nil {
			break
		}
		if source := m.sources()[name.Name]; source != nil {
			return source(name.Name, m.args(l, e.Args))
		}
		fail("no source is called %q: there are %s", name.Name, strings.Join(sourceNames(m), ", "))
	}
	fail("a source is a call, a number, a name, or made of these by + - * /")
	return value{}
}

// args are the arguments of a source.
func (m *maker) args(l *ledger, exprs []ast.Expr) (all []value) {
	for _, e := range exprs {
		all = append(all, m.eval(l, e))
	}
	return all
}

// derived is made of two values: number by number, or each number with the only one of the other. The quotient of two
// ratios to one base is a figure again; all else has neither interval nor verdict.
func derived(op token.Token, a, b value) value {
	if a.text != "" || b.text != "" {
		if op != token.ADD || a.all != nil || b.all != nil {
			fail("texts can only be added to texts")
		}
		return value{text: a.text + b.text, typed: true}
	}
	switch from := a.from; {
	case op != token.QUO || len(b.figures) != 1:
	case len(a.figures) == 1:
		v := ratio(verdict.Quotient(a.figures[0], b.figures[0]))
		v.from, v.of = from, a.of
		return v
	case a.typed && a.all[0] == 1 && len(a.all) == 1:
		v := ratio(b.figures[0].Inverse())
		v.from, v.of = b.from, b.of
		return v
	}
	n := max(len(a.all), len(b.all))
	if len(a.all) != n && len(a.all) != 1 || len(b.all) != n && len(b.all) != 1 {
		fail("%d numbers and %d can't be computed with one by one", len(a.all), len(b.all))
	}
	v := value{typed: a.typed && b.typed, from: a.from}
	for i := range n {
		x, y := a.all[i%len(a.all)], b.all[i%len(b.all)]
		made := map[token.Token]float64{token.ADD: x + y, token.SUB: x - y, token.MUL: x * y, token.QUO: x / y}
		v.all = append(v.all, made[op])
	}
	switch scales := op == token.QUO || op == token.MUL; {
	case n > 1 || !scales || a.lo == 0 || len(a.figures)+len(b.figures) > 0:
	case b.lo == 0:
		v.lo, v.hi = a.lo*v.all[0]/a.all[0], a.hi*v.all[0]/a.all[0]
	case op == token.QUO: // of two that aren't paired, so it's the widest
		v.lo, v.hi = a.lo/b.hi, a.hi/b.lo
	}
	for _, n := range v.all {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			fail("it divides by 0")
		}
	}
	return v
}

// keep compares the figures of a ledger's line with those of its phrase in the page, and writes the ones that the
// records have into both.
func (m *maker) keep(p *page, l *ledger, i int) error {
	at := l.lines[i]
	if at.stands() {
		if !p.cover(at) {
			return fmt.Errorf("%s:%d: %s has no %q", l.file, at.at, p.name, at.phrase)
		}
		return nil
	}
	places, err := p.find(at.phrase)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", l.file, at.at, err)
	}
	should := at.phrase
	should.figures = slices.Clone(at.phrase.figures)
	for i, from := range at.from {
		if err := try(func() {
			v := m.eval(l, from)
			switch {
			case v.typed:
				fail("the figure is typed, and read from no record")
			case v.all == nil && v.text == "":
				fail("the source has no number")
			}
			should.figures[i] = at.phrase.nth(i).write(v)
		}); err != nil {
			p.covered = append(p.covered, places...) // which needs no second problem
			return fmt.Errorf("%s:%d: %q: %w (%s:%d)", p.name, p.line(places[i][0]), at.phrase, err, l.file, at.at)
		}
	}
	for i := range slices.Backward(places) {
		p.put(places[i], should.figures[i])
	}
	if should.String() != at.phrase.String() {
		m.stale = append(m.stale, fmt.Errorf("%s:%d: %q should be %q (%s:%d)", p.name, p.line(places[0][0]), at.phrase,
			should, l.file, at.at))
		l.text[at.at-1] = strings.Replace(l.text[at.at-1], at.quoted, strconv.Quote(should.marked()), 1)
	}
	return nil
}
