package bound

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// Samples that a label splits, whose testkit.Profile calls it side.
const (
	handles   = "shop.tax<shop.(*Server).Buy<google.golang.org/grpc.(*Server).handleStream<runtime.goexit"
	serves    = "google.golang.org/grpc.encode<google.golang.org/grpc.(*Server).handleStream<runtime.goexit"
	schedules = "runtime.futex<runtime.findRunnable<runtime.mcall"
)

// split prints a profile by a label, with one space where a table has more.
func split(t *testing.T, p *profile.Profile, label string) string {
	t.Helper()
	s, err := By("shop.pprof", p, label)
	require.NoError(t, err)
	require.NoError(t, s.lacks())
	var out strings.Builder
	require.NoError(t, s.print(&out, report.Summary{}, "shop.pprof"))
	return regexp.MustCompile(`[ \n]+`).ReplaceAllString(out.String(), " ")
}

// A label has a row for each of its values: what they take, and how much of that is of RPCs and of handlers.
func TestByALabel(t *testing.T) {
	samples := func(all ...any) (made []string) { // how many, of what
		for i := 0; i < len(all); i += 2 {
			made = append(made, slices.Repeat([]string{all[i+1].(string)}, all[i].(int))...)
		}
		return made
	}
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("/shop/%04d %s", i, serves))
	}
	const head = "RPCs and handlers are shares of a row. side CPU, s of all, % RPCs, % handlers, % samples "
	for why, c := range map[string]struct {
		samples []string
		want    []string
	}{
		"on each sample": {samples(1, "/a "+serves, 3, "/a "+handles, 6, "/b "+handles), []string{
			"100.0% of the samples have the label side. " + head +
				"/b 0.06 60.0 0.0 100.0 6 /a 0.04 40.0 25.0 75.0 4 sum 0.10 100.0 10.0 90.0 10 Next:"}},
		"on half of them": {samples(2, "/a "+serves, 3, "/b "+handles, 4, " "+serves, 1, " "+schedules), []string{
			"50.0% of the samples have the label side, which the scheduler and the collector (10.0%) never have. ",
			"/b 0.03 30.0 0.0 100.0 3 /a 0.02 20.0 100.0 0.0 2 without the label 0.05 50.0 80.0 0.0 5 sum 0.10 100.0 60.0"}},
		"of ten thousand values": {many, []string{"Of its 10000 values, the 20 that take most have rows.",
			"/shop/0019 0.01 0.0 100.0 0.0 1 9980 others 99.80 99.8 100.0 0.0 9980 sum 100.00 100.0 100.0 0.0 10000"}},
		"of a value that steers": {samples(2, "/a\x1b[2J "+serves), []string{" /a?[2J 0.02 100.0 100.0 0.0 2 "}},
		"of a value that fills a page": {samples(2, strings.Repeat("a", 1000)+"b "+serves), []string{
			" " + strings.Repeat("a", 25) + "…" + strings.Repeat("a", 23) + "b 0.02 100.0 "}},
	} {
		said := split(t, testkit.Profile(nil, c.samples...), "side")
		for _, want := range c.want {
			require.Contains(t, said, want, "a label %s", why)
		}
	}
}

// A sample may have several values of a label, after profiles were merged by hand. It has one row.
func TestSeveralValues(t *testing.T) {
	p := testkit.Profile(nil, "/a "+serves, "/a "+serves, "/b "+serves, " "+schedules)
	p.Sample[0].Label["side"] = []string{"/a", "/b"}
	said := split(t, p, "side")
	require.Contains(t, said, "Of the samples 1 have several values of it, and a row of these together.")
	require.Contains(t, said, " /a and /b 0.01 25.0 100.0 0.0 1 /b 0.01 25.0 ")
	p.Sample[1].Label["route"] = []string{"/c"} // another label is no other value
	require.Equal(t, said, split(t, p, "side"))
	require.Contains(t, split(t, p, "route"), "25.0% of the samples have the label route, ")
}

// Whoever knows no label is told of those that are there, or how to have one.
func TestNoLabel(t *testing.T) {
	plain := func() *profile.Profile { return testkit.Profile(nil, " "+serves, " "+schedules) }
	two := func() *profile.Profile {
		p := testkit.Profile(nil, "/a "+serves, " "+schedules)
		p.Sample[1].Label = map[string][]string{"100%": {"x"}}
		return p
	}
	require.Contains(t, split(t, plain(), ""), " CPU by method needs labels, and no sample has one: grpc-go (1.82 and "+
		"later) sets grpc.method if the service's environment has GRPC_GO_SERVER_GOROUTINE_LABELS=grpc.method=true, and "+
		"pprof.Do sets any label. Next:")
	require.Contains(t, split(t, two(), ""), " Samples have labels: 100%, side. -by 100% splits the CPU by the values of "+
		"one.")
	for label, want := range map[string]string{
		"sidee":       "bound: -by sidee: no sample has this label: did you mean side? the labels are 100%, side",
		"grpc.method": "bound: -by grpc.method: no sample has this label: the labels are 100%, side",
	} {
		s, err := By("shop.pprof", two(), label)
		require.NoError(t, err)
		require.EqualError(t, s.lacks(), want)
		require.ErrorAs(t, s.lacks(), new(shell.WrongUse))
	}
	s, err := By("shop.pprof", plain(), "grpc.method")
	require.NoError(t, err)
	require.EqualError(t, s.lacks(), "bound: -by grpc.method: no sample of shop.pprof has a label: "+labelling)
	many := plain()
	many.Sample[0].Label = map[string][]string{}
	for i := range 12 {
		many.Sample[0].Label[fmt.Sprintf("l%02d", i)] = []string{"x"}
	}
	require.Contains(t, split(t, many, ""), "labels: l00, l01, l02, l03, l04, l05, l06, l07, l08, l09, 2 more. -by l00 ")
}

// docs/service.md has what is printed of a labelled profile.
func TestMethodsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	out, err := typed(t, "-by", "grpc.method", "testdata/methods/go1.27.pprof")
	require.NoError(t, err)
	before, said, found := strings.Cut(out, "\nsum ")
	require.True(t, found, before)
	_, said, _ = strings.Cut(said, "\n\n")
	said, _, _ = strings.Cut(said, "\n\nNext: ")
	_, shown, _ := strings.Cut(string(page), "<!-- by -->\n```text\n")
	shown, _, _ = strings.Cut(shown, "\n```\n<!-- /by -->")
	require.Equal(t, said, shown)
}

// TestMethodsOfTwoReleases: Go 1.27 names closures otherwise than 1.26 does. In profiles of one program, made with
// each, what handlers and interceptors do is theirs, and shares are alike.
func TestMethodsOfTwoReleases(t *testing.T) {
	ours := regexp.MustCompile(`orders\.(Get|List)|main\.each`)
	closures := map[string]string{"go1.26": "main.run.logged.func1.1", "go1.27": "main.logged.func1.1"}
	list := map[string]float64{}
	for release, closure := range closures {
		p, err := layers.ReadFile("testdata/methods/" + release + ".pprof")
		require.NoError(t, err)
		known := func(f *profile.Function) bool { return f.Name == closure }
		require.True(t, slices.ContainsFunc(p.Function, known), "%s names its closures otherwise", release)
		s, err := By(release, p.Copy(), "grpc.method")
		require.NoError(t, err)
		require.Equal(t, []string{"grpc.method", "route"}, s.Labels)
		with, _ := s.values()
		require.Len(t, with, 2, release)
		require.Equal(t, "/shop.Orders/List", with[0].name)
		for _, v := range with {
			require.Positive(t, v.handlers, "%s: handlers of %s", release, v.name)
			require.Positive(t, v.rpcs, "%s: RPCs of %s", release, v.name)
		}
		list[release] = float64(with[0].handlers) / float64(with[0].samples)

		s, err = Of(release, p.Copy())
		require.NoError(t, err)
		unknown, _ := s.Parts.Sum(layers.Within(layers.Other, ""))
		require.Zero(t, unknown, "what no rule knows of the RPCs with %s: %v", release, s.Parts)
		found, _, _, _ := p.FilterSamplesByName(ours, nil, nil, nil)
		require.True(t, found)
		s, err = Of(release, p)
		require.NoError(t, err)
		rpcs, _ := s.Parts.Sum(InRPCs)
		require.Zero(t, rpcs, "RPCs within handlers with %s: %v", release, s.Parts)
		handlers, _ := s.Parts.Sum(layers.Within(Handlers, ""))
		require.Equal(t, s.samples(), handlers, "%s: %v", release, s.Parts)
	}
	require.InDelta(t, list["go1.26"], list["go1.27"], 0.1, "the handlers' share of a method")
}
