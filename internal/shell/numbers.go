package shell

import (
	"slices"
	"strconv"
	"strings"
)

// Numbers is the value of a flag that has a number, or several with commas between: a list, which is a sweep.
type Numbers struct {
	Flag, Of string                             // its name, and what the numbers are of
	Words    []string                           // that may stand in place of a number
	Read     func(text string) (float64, error) // reads a number, and refuses others
	All      []Number                           // those that were typed
}

// Number is a number that was typed, or a word in its place.
type Number struct {
	N    float64
	Word string
}

func (n Number) String() string {
	if n.Word != "" {
		return n.Word
	}
	return strconv.FormatFloat(n.N, 'f', -1, 64)
}

// Texts are the numbers as they may be typed.
func (v *Numbers) Texts() (all []string) {
	for _, n := range v.All {
		all = append(all, n.String())
	}
	return all
}

func (v *Numbers) String() string { return strings.Join(v.Texts(), ",") }

// Set reads what was typed in place of all before.
func (v *Numbers) Set(typed string) (err error) {
	v.All = nil
	each := strings.Split(typed, ",")
	for _, text := range each {
		n := Number{Word: text}
		if !slices.Contains(v.Words, text) {
			if n.N, err = v.Read(text); err != nil {
				return Wrong("%w", err)
			}
			n.Word = ""
		}
		switch {
		case len(each) > 1 && n == Number{}:
			return Wrong("-%s: 0 stands for another number, and has no place in a list", v.Flag)
		case slices.Contains(v.All, n):
			return Wrong("-%s: %s is named twice: name it once", v.Flag, n)
		}
		v.All = append(v.All, n)
	}
	return nil
}

// At is the i-th number of a list, the one that stands for all, or 0 where none was typed.
func (v *Numbers) At(i int) Number {
	switch len(v.All) {
	case 0:
		return Number{}
	case 1:
		return v.All[0]
	}
	return v.All[i]
}

// Whole is the value of a flag with whole numbers that Within takes.
func Whole(flag, of string) Numbers {
	return Numbers{Flag: flag, Of: of, Read: func(text string) (float64, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, Wrong("-%s: %q is no number of %s: give one, or a list such as 1,4,16", flag, text, of)
		}
		return float64(n), Within(flag, n)
	}}
}
