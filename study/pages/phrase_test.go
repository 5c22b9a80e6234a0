package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// of is a figure with a verdict.
func of(ratio, lo, hi float64, says verdict.Verdict) verdict.Figure {
	return verdict.Figure{Ratio: ratio, Lo: lo, Hi: hi, Verdict: says}
}

// TestPhrases: the figure that a phrase should have, or why it can't say the truth.
func TestPhrases(t *testing.T) {
	less, more := ratio(of(0.74, 0.7, 0.78, verdict.Less)), ratio(of(1.256, 1.2, 1.3, verdict.More))
	open := ratio(of(0.9, 0.7, 1.1, verdict.Undecided))
	runs := ratio(of(1.1, 1, 1.2, verdict.Undecided), of(1.31, 1.2, 1.4, verdict.More))
	contrary := ratio(of(0.9, 0.8, 0.95, verdict.Less), of(1.31, 1.2, 1.4, verdict.More))
	undecided := ratio(of(1.1, 0.9, 1.2, verdict.Undecided), of(1.2, 0.9, 1.4, verdict.Undecided))
	half := value{all: []float64{0.5}, lo: 0.4, hi: 1.1}
	for _, c := range []struct {
		phrase string
		value  value
		want   string // or a part of the error
	}{
		{"26% less CPU", less, "26%"},
		{"uses 9% less", less, "26%"},
		{"30.1% lower latency", less, "26.0%"},
		{"which saves {9%} of gRPC's CPU", less, "26%"},
		{"26% more CPU", less, "it isn't always more: 0.74 (0.70–0.78), less"},
		{"26% more CPU", more, "26%"},
		{"26% fewer calls", more, "it isn't always less"},
		{"is 26% cheaper in CPU", less, `nothing checks "cheaper"`},
		{"uses {26%}", less, "it's a ratio, so the phrase needs less"},
		{"26% less CPU, so it is faster", less, `nothing checks "faster"`},
		{"CPU falls by up to {26%}", less, `nothing checks "falls"`},
		{"which saves {half} of gRPC's CPU", less, `"half" stands for 0.45 to 0.55`},
		{"which saves {a quarter} of gRPC's CPU", less, "a quarter"},
		{"0.9 times as long", open, "nothing is decided"},
		{"No clear difference in CPU", open, "No clear difference"},
		{"{half} of it", value{all: []float64{0.5}, bounds: &[2]float64{0, 1}}, "bounds are for words of your own"},
		{"{no clear difference}", value{all: []float64{0.5}, bounds: &[2]float64{0, 1}}, "bounds are for words of your own"},
		{"10% less", open, "no verdict says less: 0.90 (0.70–1.10), undecided"},
		{"10 to 20% more", runs, "10 to 31%"},
		{"10–20% more", runs, "10–31%"},
		{"15% more", runs, "10 to 31%"},
		{"10 to 20% more", ratio(runs.figures[1]), "31%"},
		{"10 to 20% more", contrary, "it isn't always more: 0.9 to 1.31"},
		{"10 to 20% more", undecided, "no verdict says more"},
		{"differed by up to 5%", value{all: []float64{0.97, 1.01, 1.04}}, "4%"},
		{"no clear difference in CPU", open, "no clear difference"},
		{"no clear difference", undecided, "no clear difference"},
		{"no clear difference", ratio(of(1, 0.99, 1.01, verdict.Same)), "no clear difference"},
		{"no clear difference", less, "there is a clear difference, or no interval: 0.74"},
		{"no clear difference", runs, "there is a clear difference"},
		{"no clear difference", one(2), "there is a clear difference, or no interval"},
		{"no clear difference", half, "no clear difference"},
		{"half the time: {no clear difference}", value{all: []float64{0.5}, lo: 0.4, hi: 0.6}, "there is a clear difference"},
		{"38% less time", half, "the interval doesn't say less"},
		{"38% less time", value{all: []float64{0.5}, lo: 0.4, hi: 0.6}, "50%"},
		{"0.73 (0.70–0.76)", less, "0.74 (0.70–0.78)"},
		{"0.731 (0.7–0.8)", less, "0.740 (0.700–0.780)"},
		{"0.73 (0.70–0.76)", one(0.7), "the source has no interval"},
		{"0.73 (0.70–0.76)", runs, "the source has no interval"},
		{"| +41% |", more, "+26%"},
		{"| −41% |", more, "+26%"},
		{"| +41% |", less, "−26%"},
		{"| +41% |", open, `nothing is decided, so it is "no clear difference"`},
		{"−8% to +17%", contrary, "−10% to +31%"},
		{"a noise floor of {23%}", one(0.073), "7%"},
		{"a noise floor of {7.1%}", one(0.073), "7.3%"},
		{"1.3 to 1.4 times as many", runs, "1.1 to 1.3"},
		{"2.4 times as long", one(2.36), "2.4"},
		{"0.1 to 0.2 of a core more", value{all: []float64{0.06, 0.24}}, "0.1 to 0.2"},
		{"0.1 of a core more", one(-0.1), "it isn't always more"},
		{"0.1 of a core less", one(-0.12), "0.1"},
		{"1,234 calls", one(51_234.4), "51,234"},
		{"12.3 kB", one(1234.56), "1,234.6"},
		{"{−1.7} ± {0.7}", one(1.24), "+1.2"},
		{"half the time", one(0.54), "half"},
		{"half the time", one(0.56), `"half" stands for 0.45 to 0.55, and it is 0.56`},
		{"a third less", less, `"a third" stands for 0.3 to 0.37`},
		{"a quarter less", less, "a quarter"},
		{"a quarter more", less, "it isn't always more"},
		{"a quarter less", open, "no verdict says less"},
		{"a tenth more", ratio(of(1.11, 1.1, 1.12, verdict.More)), "a tenth"},
		{"twice as long", one(1.95), "twice"},
		{"twice as long", one(2.2), `"twice" stands for`},
		{"more than twice JSON's, and less elsewhere", one(2.2), "more than twice"},
		{"more than twice JSON's", one(1.9), `"more than twice" stands for`},
		{"less than half the time", one(0.51), `"less than half" stands for`},
		{"none of them", one(0), "none"},
		{"none of them", one(1), `"none" stands for 0 to 0`},
		{"{don't cross}", value{all: []float64{1.2, 1.3}, bounds: &[2]float64{1, 9}}, "don't cross"},
		{"{don't cross}", value{all: []float64{0.9, 1.3}, bounds: &[2]float64{1, 9}}, "stands for 1 to 9, and it is 0.9"},
		{"{often}", one(2), `"often" is no form of a figure`},
	} {
		said := ""
		if err := try(func() { said = phraseOf(c.phrase, false).nth(0).write(c.value) }); err != nil {
			said = err.Error()
		}
		require.Contains(t, said, c.want, c.phrase)
		require.Equal(t, len(c.want) == len(said), said == c.want, c.phrase)
	}
	two := phraseOf("{19%} more CPU and {no clear difference} in latency, {1.2} µs less", false)
	require.Equal(t, []verdict.Verdict{verdict.More, verdict.Less, verdict.Less},
		[]verdict.Verdict{two.nth(0).direction(), two.nth(1).direction(), two.nth(2).direction()})
	require.Equal(t, "{19%} more CPU and {no clear difference} in latency, {1.2} µs less", two.marked())
	require.Equal(t, "half the time", phraseOf("{half} the time", false).marked())
}

// TestDerived: what becomes of intervals and verdicts.
func TestDerived(t *testing.T) {
	const codecs = `codec("2026-11-23-files/noisy/codecs/rows.txt", "marshal", "user", `
	m := pageMaker(t, record(t))
	for source, want := range map[string]string{
		dear + " / " + cheap:               "2.400 (2.083–2.766)",
		"1 / " + cheap:                     "2.000 (1.818–2.222)",
		cheap + " / 10":                    "0.050 (–)",
		"(" + dear + " - " + cheap + ")*2": "1.400 (–)",
		`rows("2026-11-23-files/noisy/codecs/rows.txt", "Codec/codec={protobuf,json}/msg=user/op=marshal", "ns/op")`: "100.500 (–)",
		codecs + `"json") / ` + codecs + `"protobuf")`:                                                               "2.990 (2.970–3.010)",
		`codec("2026-11-23-files/noisy/codecs/rows.txt", "size", "user", "protobuf")`:                                "10.000 (–)",
		`idle("2026-11-23-files/rest", "connections, TLS", "httpjson", "server", "resident-B") / 1000`:               "28.400 (–)",
		`samples("2026-11-23-files/one.pprof", "lib.serve")`:                                                         "0.400 (–)",

		"line(\"2026-11-23-files/writes.txt\", 2, \"client writes\", \"| `a`\")": "8.000 (–)",

		`sized(` + dear + `, ` + cheap + `, 3 * ` + dear + `)`:                                                                     "1.200 (0.500–3.600)",
		`rows("2026-11-23-files/rows.txt", "Tuned/stack=a", "x-ratio", "x-ratio-lo")`:                                              "1.715 (–)",
		`run("2026-11-23-rates", "900", "grpcprotobuf", "stack CPU") - run("2026-11-23-rates", "900", "grpcprotobuf", "base CPU")`: "22000.000 (–)",
		`run("2026-11-23-quiet", "small", "grpcprotobuf", "unpaired calls") * 33600`:                                               "0.700 (0.6",
	} {
		var v value
		require.NoError(t, try(func() { v = m.eval(&ledger{}, parse(source)[0]) }), source)
		said := written(v.all[0], 3) + " (–)"
		if said = noCommas(said); v.lo > 0 {
			said = noCommas(written(v.all[0], 3) + " (" + written(v.lo, 3) + "–" + written(v.hi, 3) + ")")
		}
		require.Contains(t, said, want, source)
	}
	none := parse(dear + " / (" + dear + " - " + dear + ")")
	require.ErrorContains(t, try(func() { m.eval(&ledger{}, none[0]) }), "divides by 0")
	require.Equal(t, []string{"example.com/lib/x v1.2.3", "net/http"},
		[]string{m.versioned("example.com/lib/x"), m.versioned("net/http")})
}

func noCommas(text string) string { return strings.ReplaceAll(text, ",", "") }
