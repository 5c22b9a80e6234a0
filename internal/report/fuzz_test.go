package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// FuzzNames: whatever a file has for a name, the pages are well formed and load nothing from elsewhere. The name is
// read from a summary.json, as report reads it.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"httpjson", "",
		"a|b\n<script>x</script><img src=x onerror=y>\x1b[31m",      // elements, a row of Markdown, a terminal's escape
		"</pre></style><style>@import url(//x)</style>",             // the end of what surrounds it
		"[a](javascript:b) ![c](//d) <https://e> `f` \\|g \\",       // links, pictures and code of Markdown
		"\"><a href=//x>&quot;&#60;script&#62;",                     // attributes and references
		"a\r| b |\u2028| c |\u0085\v\f", "\x00\xed\xa0\x80\xff\xfe", // ends of lines; what XML can't have
		"    indented", "---", "# heading", "{{.}}", "%!s(int=1)", "@-1", "1e999", "\u202eabc", "\ufffe\uffff", `a\|b`,
	} {
		f.Add(name, "")
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, name, over string) {
		dir := t.TempDir()
		named, err := json.Marshal(hostile(name, over))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.json"), named, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(name), 0o600))
		s, err := Read(dir)
		require.NoError(t, err)
		var page, md, svg bytes.Buffer
		require.NoError(t, errors.Join(s.HTML(&page), s.Markdown(&md), s.SVG(&svg)))
		safeHTML(t, page.String())
		safeMarkdown(t, md.String())
		for decoder := xml.NewDecoder(&svg); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "the picture is no XML")
			if element, ok := token.(xml.StartElement); ok {
				require.NotContains(t, []string{"script", "image", "a", "foreignObject", "use"}, element.Name.Local)
			}
		}
	})
}

// hostile is a run each of whose names is the given one.
func hostile(name, over string) Summary {
	s := found()
	s.Base, s.Command, s.Over, s.Environment, s.Notes, s.Warnings = name, name, over, []string{name},
		[]string{name}, []string{name}
	s.Layers, s.Call = name, &Call{Method: name, Made: name, Bodies: []Body{{Stack: name, Codec: name, Format: name}}}
	for i := range s.Answers {
		a := &s.Answers[i]
		a.Workload, a.Stack, a.Does, a.Unchecked = name, name, name, []verdict.Unchecked{verdict.Unchecked(name)}
		a.Time.Reason.Kind, a.Time.Verdict = verdict.Kind(name), verdict.Verdict(name)
	}
	s.Answers[0].Value, s.Answers[1].Value, s.Answers[2].Value = name, "5", Saturated
	return s
}

// safeHTML demands that a page has no element that loads or runs something, no such attribute and no such style, and
// that no name ends the element that it is in.
func safeHTML(t *testing.T, page string) {
	t.Helper()
	open := map[string]int{}
	tokens, style := html.NewTokenizer(strings.NewReader(page)), false
	for tokens.Next() != html.ErrorToken {
		token := tokens.Token()
		switch token.Type {
		case html.StartTagToken, html.SelfClosingTagToken:
			require.NotContains(t, []string{"script", "img", "image", "iframe", "link", "object", "embed", "base", "form", "a",
				"use"}, token.Data)
			for _, attribute := range token.Attr {
				require.NotRegexp(t, `^(src|srcset|href|xlink:href|action|on.*)$`, attribute.Key, token.String())
			}
			open[token.Data]++
		case html.EndTagToken:
			open[token.Data]--
		case html.TextToken:
			if style {
				require.NotRegexp(t, `url\(|@import`, token.Data)
			}
		}
		style = token.Type == html.StartTagToken && token.Data == "style"
	}
	require.ErrorIs(t, tokens.Err(), io.EOF)
	for _, name := range []string{"style", "title", "svg", "table", "pre"} {
		require.Zero(t, open[name], "a name ends the element %s", name)
	}
}

// safeMarkdown demands that rows have the cells of their head, and that no element or control character is there.
func safeMarkdown(t *testing.T, page string) {
	t.Helper()
	cells, rows, fenced := 0, 0, false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		for _, r := range line {
			require.False(t, unicode.IsControl(r), "the control character %q in %q", r, line)
		}
		if fenced = fenced != strings.HasPrefix(line, "```"); fenced || strings.HasPrefix(line, "    ") {
			continue // code is text to every renderer
		}
		require.NotRegexp(t, `(?i)<(script|img|a|iframe)`, line)
		bars := strings.Count(strings.NewReplacer(`\\`, "", `\|`, "").Replace(line), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = bars
		default:
			rows++
			require.Equal(t, cells, bars, line)
		}
	}
	require.Greater(t, rows, 12)
}
