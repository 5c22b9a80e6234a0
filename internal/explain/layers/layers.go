// Package layers splits the CPU time of a profile among the layers of a call: serialisation, RPC library, networking
// and so on. The words are those of the published studies of RPC cost (S. Kanev et al., Profiling a warehouse-scale
// computer, ISCA 2015; K. Seemakhupt et al., A cloud-scale characterization of remote procedure calls, SOSP 2023).
//
// rules.txt says which function belongs to which layer. The innermost function of a call stack that has a layer decides
// for the whole sample. Samples also have a side, by the pprof label that [rpcbench.Start] gives to goroutines. Of
// another program's profile owners.txt says first whose work a sample is.
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
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/pprof/profile"
)

// Other is the layer of samples that no rule knows.
const Other = "other"

// Names returns the layers in the order of rules.txt, and Other.
func Names() []string {
	names, _ := parse(rulesText)
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

func parse(text string) (names []string, r rules) {
	r = rules{}
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

// layer returns the layer of a function, or "" if its caller decides. A beginning has at most 100 bytes: a profile may
// have names of some MB, to keep its reader busy.
func (r rules) layer(function string) string {
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
}

// Split is a profile by parts.
type Split struct {
	Row    string // what was profiled
	Calls  int64  // made meanwhile; 0 of another program, whose parts have layers of [Outside]
	Parts  []Part // they add up to the whole profile
	Unseen string // of another program: an RPC library whose handlers count as RPCs
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

// ReadFile splits the profile of a file.
func ReadFile(path string) (Split, error) {
	file, err := os.Open(path)
	if err != nil {
		return Split{}, err
	}
	defer file.Close()
	return Read(path, file)
}

// Read splits a profile that has a name in messages.
func Read(name string, from io.Reader) (Split, error) {
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
		return Split{}, fmt.Errorf("%s has %d MiB and more, uncompressed: profile for less time, or merge fewer: "+
			"go tool pprof -proto FIRST SECOND > FEWER", name, most>>20)
	}
	p, parseErr := profile.ParseUncompressed(data)
	if err = cmp.Or(err, parseErr); err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return Split{}, fmt.Errorf("%s is no whole profile, as /debug/pprof/profile writes it: %w", name, err)
	}
	s, err := Of(p)
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	s.Row = cmp.Or(s.Row, filepath.Base(name))
	return s, nil
}

// ErrNoSamples is the error of Of for a profile of too little CPU time.
var ErrNoSamples = errors.New("the profile has no samples: a longer one has some, 100 per second of CPU time")

// Of splits a profile of one or more recordings of the same row, or one of another program.
func Of(p *profile.Profile) (s Split, err error) {
	amounts, err := cpuOf(p)
	if err != nil {
		return s, err
	}
	for _, c := range p.Comments {
		var calls int64
		if _, err := fmt.Sscanf(c, comment, &calls, &s.Row); err == nil {
			s.Calls += calls
		}
	}
	for _, f := range p.Function { // a name may end on a terminal
		f.Name = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '?'
		}, strings.ReplaceAll(f.Name, "%2e", ".")) // which linkers make of a package's dot
	}
	_, known := parse(rulesText)
	of := known.part
	if s.Calls == 0 {
		of, s.Unseen = known.owned(p)
	}
	parts, labelled := map[Part]int{}, false
	for _, sample := range p.Sample {
		count, cpu := amounts(sample)
		if count < 0 || cpu < 0 {
			return s, errors.New("it is a difference of two profiles: give one")
		}
		part := of(sample)
		labelled = labelled || part.Side != Unlabelled
		i, seen := parts[part]
		if !seen {
			i = len(s.Parts)
			parts[part], s.Parts = i, append(s.Parts, part)
		}
		s.Parts[i].Samples += count
		s.Parts[i].CPU += cpu
	}
	samples, _ := s.Sum(func(Part) bool { return true })
	nameless, _ := s.Sum(func(p Part) bool { return p.Function == "" })
	ofGo := func(f *profile.Function) bool { return strings.HasPrefix(f.Name, "runtime.") }
	switch {
	case samples == 0:
		return s, ErrNoSamples
	case 2*nameless > samples:
		return s, errors.New("most samples have no function names: add them with go tool pprof -proto PROGRAM PROFILE")
	case s.Calls > 0 && !labelled:
		return s, errors.New("no sample has the label side, so client and server can't be told apart")
	case s.Calls == 0 && !slices.ContainsFunc(p.Function, ofGo):
		return s, errors.New("it is no profile of a Go program: no function is of Go's runtime")
	}
	return s, nil
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
		return nil, errors.New("it is no CPU profile")
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

// Of a service's profile, Encoding is the side of samples below an encoder; others are Unlabelled. Nobodys is the layer
// of the scheduler and the collector, outside of the service's goroutines.
const Encoding, Nobodys = "encoding", "scheduler and collector"

// Outside returns the layers of a service's profile that are no RPC's.
func Outside() []string {
	return []string{"other sockets", "your handlers", Nobodys, "everything else"}
}

// InRPCs reports whether a part of a service's profile serves or calls RPCs.
func InRPCs(p Part) bool { return !slices.Contains(Outside(), p.Layer) }

//go:embed owners.txt
var ownersText string

// Names by which methods of messages, generated code that calls a handler, and streams are known.
var (
	encodes = regexp.MustCompile(`\.(Marsh|Unmarsh)al([^e\W]\w*)?$|\.(EncodeMsg|DecodeMsg|SizeVT|Msgsize)$|` +
		`\.(FastRead|FastWrite|FastWriteNocopy|BLength)$`) // of Kitex
	dispatches = regexp.MustCompile(`(\._\w+_Handler|\)\.serve\w+(JSON|Protobuf))(\.func\d+|\.\d+)*$`)
	streams    = regexp.MustCompile(`\.(Read|Write|Flush|Close)$`)
	library    = regexp.MustCompile(`^[^(]*/[^.(]*`) // a function's package
)

// frame is a function with its layer, and with whose work it is.
type frame struct{ name, layer, owner string }

// frames are those of a profile. unseen is a library of which nobody can tell its own work from that of handlers.
func (r rules) frames(p *profile.Profile) (frames map[*profile.Function]frame, unseen string) {
	_, whose := parse(ownersText)
	frames = map[*profile.Function]frame{}
	for _, function := range p.Function {
		name := typeArguments.ReplaceAllString(function.Name, "")
		f := frame{name, r.layer(name), whose.layer(name)}
		switch {
		case f.owner == "RPC encodes":
		case f.owner == "RPC and handlers":
			unseen = library.FindString(name)
		case f.layer == "serialisation" || encodes.MatchString(name):
			f.layer, f.owner = "serialisation", "encoder"
		case dispatches.MatchString(name): // also of a service that an RPC library defines
			f.owner = "RPC calls handlers"
		case f.owner == "" && strings.Contains(name, "."): // else C or assembly
			f.owner = "the service"
		}
		frames[function] = f
	}
	return frames, unseen
}

// owned returns what tells the part of a service's profile that a sample belongs to. It goes outward from the innermost
// function. The first one that is no helper tells whose work a sample is: an RPC library's, the client's of another
// socket, or the service's. An encoder's work is its caller's. It also returns a library of the profile whose handlers
// can't be told from it, if there is one.
func (r rules) owned(p *profile.Profile) (of func(*profile.Sample) Part, unseen string) {
	frames, unseen := r.frames(p)
	return func(sample *profile.Sample) Part {
		p, innermost := Part{Side: Unlabelled}, ""
		service, outer := "", "" // the innermost function of the service's, and the outermost so far
		ours := false            // an RPC library decides, unless the client of another socket calls it
		of := func(layer, function string) Part { return Part{Layer: layer, Side: p.Side, Function: function} }
		for _, location := range sample.Location {
			for _, line := range location.Line {
				f := frames[line.Function]
				innermost = cmp.Or(innermost, f.name)
				switch {
				case f.owner == "other sockets":
					return of("other sockets", f.name)
				case ours && f.owner == "the service":
					return p
				case ours, f.owner == "encoder" && service != "" && streams.MatchString(outer):
					continue
				case f.owner == "the service":
					service, outer = cmp.Or(service, f.name), f.name
					continue
				case f.owner == "encoder":
					p.Side, service = Encoding, "" // the service's function was a method of a message
				case f.owner == "caller", f.owner == "":
				case service != "" && f.owner == "RPC calls handlers",
					service != "" && f.owner == "HTTP calls handlers" && p.Side != Encoding:
					return of("your handlers", service)
				default:
					if ours = true; f.owner == "RPC encodes" && service == "" {
						p.Side = Encoding
					}
					if service != "" && p.Side != Encoding && p.Layer != "networking (syscalls)" {
						p = of(Other, service) // called in a place that owners.txt does not know
					}
					f.layer, service = cmp.Or(f.layer, "RPC library"), ""
				}
				if p.Layer == "" && service == "" && f.layer != "" {
					p.Layer, p.Function = f.layer, f.name
				}
			}
		}
		switch {
		case ours:
			return p
		case service != "" || p.Side == Encoding:
			return of("everything else", cmp.Or(service, p.Function))
		}
		return of(Nobodys, innermost)
	}, unseen
}
