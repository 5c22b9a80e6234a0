// Package layers splits the CPU time of a profile among the layers of a call: serialisation, RPC library, networking
// and so on. The words are those of the published studies of RPC cost (S. Kanev et al., Profiling a warehouse-scale
// computer, ISCA 2015; K. Seemakhupt et al., A cloud-scale characterization of remote procedure calls, SOSP 2023).
//
// rules.txt says which function belongs to which layer. The innermost function of a call stack that has a layer decides
// for the whole sample. Samples also have a side, by the pprof label that [rpcbench.Start] gives to goroutines.
package layers

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/pprof/profile"

	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// Other is the layer of samples that no rule knows.
const Other = "other"

// Names returns the layers in the order of rules.txt, and Other.
func Names() []string {
	names, _ := Parse(rulesText)
	return append(names, Other)
}

// Sides returns the values of the label. The scheduler and the collector work for both sides, without a label.
func Sides() []string { return []string{"client", "server", Unlabelled} }

// Unlabelled is the side of samples of goroutines that nobody labels.
const Unlabelled = "unlabelled"

//go:embed rules.txt
var rulesText string

// Known returns the rules of rules.txt.
func Known() Rules {
	_, known := Parse(rulesText)
	return known
}

// Rules maps the beginnings of functions' names to layers, or to owners of work.
type Rules map[string]string

// Parse reads rules that are written as those of rules.txt. names are those of the layers, in their order.
func Parse(text string) (names []string, r Rules) {
	r = Rules{}
	for line := range strings.Lines(text) {
		layer, beginnings, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if !slices.Contains(names, layer) {
			names = append(names, layer)
		}
		for beginning := range strings.FieldsSeq(beginnings) {
			r[beginning] = layer
		}
	}
	return names, r
}

// Layer returns the layer of a function, or "" if its caller decides. A beginning has at most 100 bytes: a profile may
// have names of some MB, to keep its reader busy.
func (r Rules) Layer(function string) string {
	for n := min(len(function), 100); n > 0; n-- {
		if layer := r[function[:n]]; layer != "" {
			return layer
		}
	}
	return ""
}

// Part is the CPU time of one function within a layer and a side.
type Part struct {
	Layer, Side string
	Function    string // the one that decided the layer; for Other the innermost
	Samples     int64
	CPU         time.Duration
	Label       string `json:",omitzero"` // the value of the label that a service is split by
}

// Parts are those of a profile. They add up to the whole.
type Parts []Part

// Split is a profile of calls by parts.
type Split struct {
	Row   string // what was profiled
	Calls int64  // made meanwhile
	Parts Parts
}

// All is the condition that each part satisfies.
func All(Part) bool { return true }

// Within is the condition of the parts of a layer and of a side. "" is any.
func Within(layer, side string) func(Part) bool {
	return func(p Part) bool { return (layer == "" || p.Layer == layer) && (side == "" || p.Side == side) }
}

// Sum returns the samples and the CPU time of the parts that satisfy the condition.
func (all Parts) Sum(of func(Part) bool) (samples int64, cpu time.Duration) {
	for _, p := range all {
		if of(p) {
			samples, cpu = samples+p.Samples, cpu+p.CPU
		}
	}
	return samples, cpu
}

// comment is what a profile says of itself.
const comment = "rpcbench: %d calls of %s"

// Recording is a CPU profile that is being taken. Go takes one at a time. Data has the profile after Stop.
type Recording struct{ Data bytes.Buffer }

// Start starts a recording.
func Start() (*Recording, error) {
	r := new(Recording)
	return r, pprof.StartCPUProfile(&r.Data)
}

// Stop ends the recording of calls of a row, and returns its profile.
func (r *Recording) Stop(row string, calls int64) (*profile.Profile, error) {
	pprof.StopCPUProfile()
	return Merge(row, calls, r.Data.Bytes())
}

// Merge makes one profile of recordings of a row. It writes the calls of all of them, since profile.Merge keeps one of
// two comments that are alike.
func Merge(row string, calls int64, recordings ...[]byte) (*profile.Profile, error) {
	all := make([]*profile.Profile, len(recordings))
	for i, data := range recordings {
		var err error
		if all[i], err = profile.ParseData(data); err != nil {
			return nil, err
		}
	}
	p, err := profile.Merge(all)
	if err == nil {
		p.Comments = []string{fmt.Sprintf(comment, calls, row)}
	}
	return p, err
}

// most is how large a profile may be, uncompressed. One of grpcservehttp over 2 s has 43 kB, one of a minute of 16 busy
// cores some MB. Parsed, a malicious one takes 80 times as much memory.
const most = 16 << 20

// rows matches the output of benchmarks.
var rows = regexp.MustCompile(`(?m)^Benchmark\S*\s+\d+\s+\S+ ns/op`)

// ReadFile reads the profile of a file.
func ReadFile(path string) (*profile.Profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(path, file)
}

// Read reads a profile that has a name in messages.
func Read(name string, from io.Reader) (*profile.Profile, error) {
	whole := bufio.NewReader(from)
	var plain io.Reader = whole // go tool pprof takes such profiles, too
	var err error
	if magic, _ := whole.Peek(2); string(magic) == "\x1f\x8b" {
		plain, err = gzip.NewReader(whole)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(plain, most))
	}
	if len(data) == most {
		return nil, fmt.Errorf("%s has %d MiB and more, uncompressed: profile for less time, or merge fewer: "+
			"go tool pprof -proto FIRST SECOND > FEWER", name, most>>20)
	}
	if rows.Match(data) {
		return nil, fmt.Errorf("%s has rows of go test -bench, and no profile: benchstat reads them", name)
	}
	p, parseErr := profile.ParseUncompressed(data)
	if err = cmp.Or(err, parseErr); err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no whole profile, as /debug/pprof/profile writes it: %w", name, err)
	}
	return p, nil
}

// Calls returns how many calls of which row a profile says that it is of: 0 of another program.
func Calls(p *profile.Profile) (row string, calls int64) {
	for _, c := range p.Comments {
		var more int64
		if _, err := fmt.Sscanf(c, comment, &more, &row); err == nil {
			calls += more
		}
	}
	return row, calls
}

// Legible gives functions the names that they have in sources, and that may end on a terminal.
func Legible(p *profile.Profile) {
	for _, f := range p.Function {
		f.Name = Plain(strings.ReplaceAll(f.Name, "%2e", ".")) // which linkers make of a package's dot
	}
}

// Plain is text of a profile as it may end on a terminal.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// Name is a function's without its type arguments, which may be whole structs.
func Name(f *profile.Function) string { return typeArguments.ReplaceAllString(f.Name, "") }

var typeArguments = regexp.MustCompile(`\[.*\]`)

// ErrService is the error of Of for a profile of another program, whose calls nobody counted.
var ErrService = errors.New("it is the profile of a service")

// Of splits a profile of one or more recordings of the same row.
func Of(p *profile.Profile) (s Split, err error) {
	if s.Row, s.Calls = Calls(p); s.Calls == 0 {
		_, err = cpuOf(p)
		return s, cmp.Or(err, ErrService)
	}
	Legible(p)
	if s.Parts, err = Tally(p, Known().part); err != nil {
		return s, err
	}
	if !slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Side != Unlabelled }) {
		err = errors.New("no sample has the label side, so client and server can't be told apart")
	}
	return s, err
}

// Tally adds up the samples of a CPU profile by the part that each belongs to.
func Tally(p *profile.Profile, of func(*profile.Sample) Part) (all Parts, err error) {
	amounts, err := cpuOf(p)
	if err != nil {
		return nil, err
	}
	seen := map[Part]int{}
	for _, sample := range p.Sample {
		count, cpu := amounts(sample)
		if count < 0 || cpu < 0 {
			return nil, errors.New("it is a difference of two profiles: give one")
		}
		part := of(sample)
		i, known := seen[part]
		if !known {
			i = len(all)
			seen[part], all = i, append(all, part)
		}
		all[i].Samples += count
		all[i].CPU += cpu
	}
	samples, _ := all.Sum(All)
	nameless, _ := all.Sum(func(p Part) bool { return p.Function == "" })
	switch {
	case samples == 0:
		return nil, child.ErrNoSamples
	case 2*nameless > samples:
		return nil, errors.New("most samples have no function names: add them with go tool pprof -proto PROGRAM PROFILE")
	}
	return all, nil
}

// unit returns how long a unit of time is, by the names that go tool pprof knows, and 0 of another unit.
func unit(name string) time.Duration {
	switch strings.ToLower(name) {
	case "ns", "nanosecond", "nanoseconds":
		return time.Nanosecond
	case "us", "μs", "microsecond", "microseconds":
		return time.Microsecond
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "second", "seconds":
		return time.Second
	}
	return 0
}

// kind is what a profile that isn't of CPU is of, by its values: Go's, or those of fgprof. Profiles of mutexes and of
// blocking have the same ones.
func kind(p *profile.Profile) string {
	var values []string
	for _, t := range p.SampleType {
		values = append(values, Plain(t.Type))
	}
	timed := values
	if p.PeriodType != nil {
		timed = append(slices.Clone(values), p.PeriodType.Type)
	}
	for value, of := range map[string]string{"inuse_space": "the heap", "alloc_space": "the heap",
		"goroutine": "goroutines", "contentions": "mutexes or blocking", "threadcreate": "threads",
		"time": "the time that passes", "wall": "the time that passes"} {
		if slices.Contains(timed, value) {
			return fmt.Sprintf("one of %s (%s)", of, strings.Join(values, ", "))
		}
	}
	return "one of " + strings.Join(values, ", ")
}

// cpuOf returns what tells how many samples of a CPU profile a line of it stands for, and how much CPU time. A profile
// that has one of the two values has the other by its period, which is that of Go's profiler unless the profile tells.
func cpuOf(p *profile.Profile) (amounts func(*profile.Sample) (int64, time.Duration), err error) {
	value, count, ofCPU, period := -1, -1, true, 10*time.Millisecond
	for i, t := range p.SampleType {
		switch {
		case t.Type == "cpu" && unit(t.Unit) > 0:
			value = i
		case t.Type == "samples" && t.Unit == "count":
			count = i
		}
	}
	if t := p.PeriodType; t != nil && t.Type != "" {
		ofCPU = t.Type == "cpu"
		if told := time.Duration(p.Period) * unit(t.Unit); told > 0 {
			period = told
		}
	}
	switch {
	case value < 0 && (count < 0 || !ofCPU || len(p.SampleType) > 1): // fgprof counts samples of the time that passes
		return nil, fmt.Errorf("it is no CPU profile, but %s: take the one of /debug/pprof/profile", kind(p))
	case value < 0:
		return func(s *profile.Sample) (int64, time.Duration) {
			return s.Value[count], time.Duration(s.Value[count]) * period
		}, nil
	}
	each := unit(p.SampleType[value].Unit)
	return func(s *profile.Sample) (int64, time.Duration) {
		cpu := time.Duration(s.Value[value]) * each
		if count < 0 {
			return int64((cpu + period/2) / period), cpu
		}
		return s.Value[count], cpu
	}, nil
}

// part returns the part that a sample belongs to, without its amounts.
func (r Rules) part(sample *profile.Sample) Part {
	part := Part{Layer: Other, Side: Unlabelled}
	if side := sample.Label["side"]; len(side) > 0 {
		part.Side = side[0]
	}
	for _, location := range sample.Location { // the innermost first
		for _, line := range location.Line {
			layer := r.Layer(line.Function.Name)
			if part.Function == "" || layer != "" {
				part.Function = Name(line.Function)
			}
			if layer != "" {
				part.Layer = layer
				return part
			}
		}
	}
	return part
}

// Amount is what a function takes, with its standard error.
type Amount struct{ Value, SE float64 }

// Largest names the three functions that take most, of those above two standard errors.
func Largest(by map[string]Amount, format string) string {
	size := func(name string) float64 { return math.Abs(by[name].Value) }
	maps.DeleteFunc(by, func(name string, a Amount) bool { return size(name) <= 2*a.SE })
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(size(y), size(x)), cmp.Compare(x, y))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf(format, name, by[name].Value, by[name].SE)
	}
	return strings.Join(names[:min(3, len(names))], ", ")
}
