package timing

// Verdict is what an interval says about an arm and its base, in a word.
type Verdict string

const (
	Faster    Verdict = "faster"    // the arm takes less time than the base
	Slower    Verdict = "slower"    // it takes more
	Equal     Verdict = "equal"     // the two differ by less than the margin
	Undecided Verdict = "undecided" // the interval allows for more than one of the others
)

// Verdict reads the interval alone. It is faster or slower if the whole interval lies on one side of 1 and outside the
// noise floor; else equal if the whole interval, and the noise floor too, is within margin of 1; else undecided. So a
// difference that is found is reported even if it is smaller than the margin.
//
// floor and margin are fractions: 0.02 reaches from 1/1.02 to 1.02, so that exchanging arm and base turns faster into
// slower and changes nothing else.
func (i Interval) Verdict(floor, margin float64) Verdict {
	switch {
	case i.Hi < 1/(1+floor):
		return Faster
	case i.Lo > 1+floor:
		return Slower
	case floor <= margin && i.Lo >= 1/(1+margin) && i.Hi <= 1+margin:
		return Equal
	}
	return Undecided
}

// Floor is the end of the interval that is farther from 1, as a fraction: 0.005 for one from 0.998 to 1.005. Of a base
// compared with itself it is the noise floor: below it the method tells an arm from its own copy.
func (i Interval) Floor() float64 { return max(i.Hi, 1/i.Lo) - 1 }
