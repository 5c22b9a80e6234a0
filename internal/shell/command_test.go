package shell

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParse: flags stand before, between and behind other arguments, and take no value that isn't theirs.
func TestParse(t *testing.T) {
	for reason, c := range map[string]struct {
		typed, want string // want is the value of -out, of -v, of -workloads, and the other arguments
	}{
		"nothing":                     {"", " false  []"},
		"flags first":                 {"-out x -v a b", "x true  [a b]"},
		"flags behind":                {"a b -out x -v", "x true  [a b]"},
		"flags between":               {"a -out x b --v c", "x true  [a b c]"},
		"a value with =":              {"a -out=x=y b -v=false", "x=y false  [a b]"},
		"a flag alone has no value":   {"-v false a", " true  [false a]"},
		"a value that looks like one": {"a -out -v b", "-v false  [a b]"},
		"a value that is --":          {"a -out -- -v b", "-- true  [a b]"},
		"no flag behind --":           {"a -v -- -out x --", " true  [a -out x --]"},
		"nothing behind --":           {"a --", " false  [a]"},
		"standard input":              {"- -out - a", "- false  [- a]"},
		"a list, given twice":         {"-workloads a b -workloads=c", " false a,c [b]"},
		"an empty value behind =":     {"a -out= b", "-out has no value: give one, or leave it out"},
		"an empty value":              {"a -out '' b", "-out has no value: give one, or leave it out"},
		"an empty value at the end":   {"a --out ''", "-out has no value: give one, or leave it out"},
		"an empty item of a list":     {"-workloads a -workloads=", "-workloads has no value: give one, or leave it out"},
		"an empty value of a switch":  {"-v= a", "-v has no value: give one, or leave it out"},
		"an empty argument":           {"a '' -v", " true  [a ]"},
		"an unknown flag's is empty":  {"a -bass=", "flag provided but not defined: -bass"},
		"unknown":                     {"a -bass b", "flag provided but not defined: -bass"},
		"unknown, with a value":       {"a --bass=b", "flag provided but not defined: -bass"},
		"without its value":           {"a -out", "flag needs an argument: -out"},
		"three dashes":                {"a ---out b", "bad flag syntax: ---out"},
		"help":                        {"a -h", "flag: help requested"},
	} {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		out, v := f.String("out", "", ""), f.Bool("v", false, "")
		var names []string
		f.Func("workloads", "", func(name string) error { names = append(names, name); return nil })
		got := ""
		if err := parse(f, typed(c.typed)); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%s %t %s %v", *out, *v, strings.Join(names, ","), f.Args())
		}
		require.Equal(t, c.want, got, reason)
	}
}

// typed are the words of a line, in which ” is an empty one.
func typed(line string) []string {
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.Trim(word, "'")
	}
	return words
}

// TestNoValue: what a command line lacks is said in a line, of each kind of flag.
func TestNoValue(t *testing.T) {
	for _, args := range [][]string{{"-base", ""}, {"-base="}, {"--base", ""}, {"x", "-base", ""}, {"-time", ""}, {"-n="},
		{"-quick="}} {
		ran := false
		c := Command{Name: "run", Args: " [stack...]", Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			f.String("base", "httpjson", "")
			f.Duration("time", 0, "")
			f.Int("n", 0, "")
			f.Bool("quick", false, "")
			return func(context.Context, []string) error { ran = true; return nil }
		}}
		err := c.Run(t.Context(), args, io.Discard)
		require.ErrorAs(t, err, new(WrongUse), "%q", args)
		require.Regexp(t, `^run: -[a-z]+ has no value: give one, or leave it out$`, err.Error(), "%q", args)
		require.False(t, ran)
	}
}
