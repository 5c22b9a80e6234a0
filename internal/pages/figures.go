package pages

import (
	"regexp"
	"strconv"
	"strings"
)

var number = regexp.MustCompile(`[-+]?\d[\d,]*(?:\.\d+)?`)

// inOrder says whether text has all figures, one after the other.
func inOrder(text string, figures []string) bool {
	tokens := number.FindAllString(text, -1)
	for _, figure := range figures {
		for len(tokens) > 0 && !same(tokens[0], figure) {
			tokens = tokens[1:]
		}
		if len(tokens) == 0 {
			return false
		}
		tokens = tokens[1:]
	}
	return true
}

// same says whether a raw figure, or a thousandth of it, is another one when it is rounded to as many digits. A figure
// without a sign is a size.
func same(raw, figure string) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, ",", "") }
	if raw[0] != figure[0] && !strings.ContainsAny(figure[:1], "+-") {
		raw = strings.TrimLeft(raw, "+-")
	}
	if raw[0] == '+' && figure[0] != '+' || raw[0] != '+' && figure[0] == '+' {
		return false
	}
	value, err := strconv.ParseFloat(plain(raw), 64)
	_, decimals, _ := strings.Cut(figure, ".")
	want, wrong := strconv.ParseFloat(plain(figure), 64)
	round := func(v float64) string { return strconv.FormatFloat(v, 'f', len(decimals), 64) }
	return err == nil && wrong == nil && (round(value) == round(want) || round(value/1000) == round(want))
}
