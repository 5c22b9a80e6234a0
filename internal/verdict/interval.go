package verdict

// Interval is what is known of a ratio: the ends of its confidence interval, and the noise floor, within which a
// difference is none. How an interval becomes a word stands here alone.
type Interval struct{ Lo, Hi, Floor float64 }

// Place is where an interval lies to a range of ratios. Across is a place that decides nothing.
type Place int

const (
	Across Place = iota
	Below
	Inside
	Above
)

// At tells where the interval lies to the ratios from least to most. One that reaches into the noise floor may be
// anywhere in it, so it has all of the floor.
func (i Interval) At(least, most float64) Place {
	lo, hi := i.Lo, i.Hi
	if i.InFloor() {
		lo, hi = min(lo, 1/(1+i.Floor)), max(hi, 1+i.Floor)
	}
	switch {
	case least <= lo && hi <= most:
		return Inside
	case hi < least:
		return Below
	case lo > most:
		return Above
	}
	return Across
}

// InFloor tells whether the interval reaches into the noise floor. What is no number does.
func (i Interval) InFloor() bool { return !(i.Lo > 1+i.Floor || i.Hi < 1/(1+i.Floor)) }

// ExcludesOne tells whether the interval alone, without the noise floor, proves a difference.
func (i Interval) ExcludesOne() bool { return i.Lo > 1 || i.Hi < 1 }

// Verdict is less or more of an interval beyond the noise floor, however small the difference, and same of one that
// lies with the floor within the margin. Exchanging base and stack exchanges less and more, and changes nothing else.
func (i Interval) Verdict(margin float64) Verdict {
	switch i.At(1, 1) {
	case Below:
		return Less
	case Above:
		return More
	}
	if i.At(1/(1+margin), 1+margin) == Inside {
		return Same
	}
	return Undecided
}
