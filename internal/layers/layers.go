// Package layers splits the CPU time of a profile among the layers of a call: serialisation, RPC library, networking
// and so on. The words are those of the published studies of RPC cost (S. Kanev et al., Profiling a warehouse-scale
// computer, ISCA 2015; K. Seemakhupt et al., A cloud-scale characterization of remote procedure calls, SOSP 2023).
//
// rules.txt says which function belongs to which layer. The innermost function of a call stack that has a layer decides
// for the whole sample. Samples also have a side, by the pprof label that [rpcbench.Start] gives to goroutines.
package layers

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Other is the layer of samples that no rule knows.
const Other = "other"

// Names returns the layers in the order of rules.txt, and Other.
func Names() []string {
	names, _ := parse()
	return append(names, Other)
}

// Sides returns the values of the label. The scheduler and the collector work for both sides, without a label.
func Sides() []string { return []string{"client", "server", Unlabelled} }

// Unlabelled is the side of samples of goroutines that nobody labels.
const Unlabelled = "unlabelled"

//go:embed rules.txt
var rulesText string

// rules maps the beginnings of functions' names to layers.
type rules map[string]string

func parse() (names []string, r rules) {
	r = rules{}
	for line := range strings.Lines(rulesText) {
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

// layer returns the layer of a function, or "" if its caller decides.
func (r rules) layer(function string) string {
	for n := len(function); n > 0; n-- {
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
}

// Split is a profile by parts.
type Split struct {
	Row   string // what was profiled
	Calls int64  // made meanwhile
	Parts []Part // they add up to the whole profile
}

// Sum returns the samples and the CPU time of the parts that satisfy the condition.
func (s Split) Sum(of func(Part) bool) (samples int64, cpu time.Duration) {
	for _, p := range s.Parts {
		if of(p) {
			samples, cpu = samples+p.Samples, cpu+p.CPU
		}
	}
	return samples, cpu
}

// comment is what a profile says of itself.
const comment = "rpcbench: %d calls of %s"

// Recording is a CPU profile that is being taken. Go takes one at a time.
type Recording struct{ data bytes.Buffer }

// Start starts a recording.
func Start() (*Recording, error) {
	r := new(Recording)
	return r, pprof.StartCPUProfile(&r.data)
}

// Stop ends the recording of calls of a row, and returns its profile.
func (r *Recording) Stop(row string, calls int64) (*profile.Profile, error) {
	pprof.StopCPUProfile()
	p, err := profile.Parse(&r.data)
	if err == nil {
		p.Comments = append(p.Comments, fmt.Sprintf(comment, calls, row))
	}
	return p, err
}

// most is how large a profile may be, uncompressed. One of grpcservehttp over 2 s has 43 kB. Parsed, a malicious one
// takes 80 times as much memory.
const most = 4 << 20

// ReadFile splits the profile of a file.
func ReadFile(path string) (Split, error) {
	file, err := os.Open(path)
	if err != nil {
		return Split{}, fmt.Errorf("rpcbench: %w", err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(unzipped, most))
	}
	if len(data) == most {
		return Split{}, fmt.Errorf("rpcbench: %s has %d MiB and more, uncompressed: a shorter -benchtime gives a smaller profile", path, most>>20)
	}
	p, parseErr := profile.ParseUncompressed(data)
	if err = cmp.Or(err, parseErr); err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return Split{}, fmt.Errorf("rpcbench: %s is no whole profile: %w", path, err)
	}
	s, err := Of(p)
	if err != nil {
		return s, fmt.Errorf("rpcbench: %s: %w", path, err)
	}
	return s, nil
}

// Of splits a profile of one or more recordings of the same row.
func Of(p *profile.Profile) (s Split, err error) {
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" && t.Unit == "nanoseconds" })
	if value < 0 {
		return s, errors.New("it is no CPU profile")
	}
	for _, c := range p.Comments {
		var calls int64
		if _, err := fmt.Sscanf(c, comment, &calls, &s.Row); err == nil {
			s.Calls += calls
		}
	}
	_, known := parse()
	parts, labelled := map[Part]int{}, false
	for _, sample := range p.Sample {
		part := known.part(sample)
		labelled = labelled || part.Side != Unlabelled
		i, seen := parts[part]
		if !seen {
			i = len(s.Parts)
			parts[part], s.Parts = i, append(s.Parts, part)
		}
		s.Parts[i].Samples += sample.Value[0]
		s.Parts[i].CPU += time.Duration(sample.Value[value])
	}
	switch samples, _ := s.Sum(func(Part) bool { return true }); {
	case s.Calls == 0:
		return s, errors.New("the profile is not one of rpcbench's: make it with go test -bench -profiles")
	case samples == 0:
		return s, errors.New("the profile has no samples: a longer -benchtime gives some, 100 per second of CPU time")
	case !labelled:
		return s, errors.New("no sample has the label side, so client and server can't be told apart")
	}
	return s, nil
}

// part returns the part that a sample belongs to, without its amounts.
func (r rules) part(sample *profile.Sample) Part {
	part := Part{Layer: Other, Side: Unlabelled}
	if side := sample.Label["side"]; len(side) > 0 {
		part.Side = side[0]
	}
	for _, location := range sample.Location { // the innermost first
		for _, line := range location.Line {
			layer := r.layer(line.Function.Name)
			if part.Function == "" || layer != "" {
				part.Function = typeArguments.ReplaceAllString(line.Function.Name, "")
			}
			if layer != "" {
				part.Layer = layer
				return part
			}
		}
	}
	return part
}

// typeArguments are those in a function's name, which may be whole structs.
var typeArguments = regexp.MustCompile(`\[.*\]`)
