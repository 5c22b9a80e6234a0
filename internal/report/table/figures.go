package table

import (
	"fmt"
	"math"
)

// Ratio has the digits that an interval of a percent carries.
func Ratio(ratio float64) string {
	if ratio < 0.1 {
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// Sized is a ratio with its interval, or a dash if there is none.
func Sized(ratio, lo, hi float64) string {
	return Known(ratio, Ratio(ratio)+" ("+Interval(lo, hi)+")")
}

// Interval is an interval of a ratio, or a dash if it tells no size.
func Interval(lo, hi float64) string {
	if !TellsSize(lo, hi) {
		return "–"
	}
	return Ratio(lo) + "–" + Ratio(hi)
}

// NoSize is why a ratio has a dash for its interval, or nothing if it has none.
func NoSize(lo, hi float64) string {
	switch {
	case TellsSize(lo, hi):
		return ""
	case lo > 0:
		return "the interval spans more than a factor of two"
	}
	return "too few processes for an interval"
}

// TellsSize is false of an interval that spans more than a factor of two, and of none.
func TellsSize(lo, hi float64) bool { return 0 < lo && hi <= 2*lo }

// Percent is a share.
func Percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f%%", 100*share)
	}
	return fmt.Sprintf("%.2g%%", 100*share)
}

// Spread is a share by which figures differ. Beyond a factor of two it tells no size, and is a dash, as an interval is.
func Spread(share float64) string {
	if share > 1 {
		return "–"
	}
	return Percent(share)
}

// Micros are nanoseconds in microseconds, or a dash if there are none. More has a sign.
func Micros(ns float64) string { return Known(ns, fmt.Sprintf("%.*f", digits(ns), ns/1000)) }
func More(ns float64) string   { return fmt.Sprintf("%+.*f", digits(ns), ns/1000) }

// digits are those after the point of microseconds: as many as an interval of a percent carries.
func digits(ns float64) int {
	if math.Abs(ns) < 1e5 {
		return 1
	}
	return 0
}

// Size is a number of bytes, or of anything else that a mean is of.
func Size(n float64) string { return fmt.Sprintf("%.0f", n) }

// Known is the text of a value, or a dash if the value is not known.
func Known(value float64, text string) string {
	if value == 0 {
		return "–"
	}
	return text
}
