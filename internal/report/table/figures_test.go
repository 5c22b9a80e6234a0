package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFigures: a figure has the digits that its interval carries, on both sides of each bound.
func TestFigures(t *testing.T) {
	for reason, c := range map[string]struct{ want, is string }{
		"a ratio":                          {"0.10", Ratio(0.1)},
		"a ratio below a tenth":            {"0.099", Ratio(0.099)},
		"a ratio with its interval":        {"0.50 (0.45–0.55)", Sized(0.5, 0.45, 0.55)},
		"no ratio":                         {"–", Sized(0, 0, 0)},
		"an interval of a factor of two":   {"1.00–2.00", Interval(1, 2)},
		"an interval of more":              {"–", Interval(1, 2.01)},
		"no interval":                      {"–", Interval(0, 0)},
		"a share":                          {"10%", Percent(0.1)},
		"a share below a tenth":            {"9.4%", Percent(0.094)},
		"a spread":                         {"100%", Spread(1)},
		"a spread of more than two":        {"–", Spread(1.01)},
		"a time below 100 µs":              {"99.9", Micros(99_900)},
		"a time of 100 µs":                 {"100", Micros(100_000)},
		"no time":                          {"–", Micros(0)},
		"a difference that is less":        {"-99.9", More(-99_900)},
		"a difference of more than 100 µs": {"+101", More(101_000)},
		"a size":                           {"12", Size(12.4)},
	} {
		require.Equal(t, c.want, c.is, reason)
	}
}
