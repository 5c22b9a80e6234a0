package bound

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
)

// Service is the profile of one, by parts: those of RPCs in the layers of a call, and those of the layers [Outside].
type Service struct {
	Name   string
	Parts  layers.Parts
	Unseen string // an RPC library whose handlers count as RPCs

	Labels []string // keys of the samples' pprof labels
	By     string   // the one whose values the parts have; or ""
	Twice  int64    // samples with several values of it
}

// Of splits the profile of a service that has a name in messages.
func Of(name string, p *profile.Profile) (s Service, err error) { return By(name, p, "") }

// By does what Of does, and splits the parts by the values that samples have of a pprof label, unless that is "".
func By(name string, p *profile.Profile, label string) (s Service, err error) {
	layers.Legible(p)
	of, unseen := owned(p)
	s = Service{Name: filepath.Base(name), Unseen: unseen, Labels: labels(p), By: label}
	twice := map[string]bool{}
	s.Parts, err = layers.Tally(p, func(sample *profile.Sample) layers.Part {
		part, values := of(sample), sample.Label[label]
		part.Label = layers.Plain(strings.Join(values, " and "))
		twice[part.Label] = twice[part.Label] || len(values) > 1
		return part
	})
	s.Twice, _ = s.Parts.Sum(func(p layers.Part) bool { return twice[p.Label] })
	ofGo := func(f *profile.Function) bool { return strings.HasPrefix(f.Name, "runtime.") }
	if err == nil && !slices.ContainsFunc(p.Function, ofGo) {
		err = errors.New("it is no profile of a Go program: no function is of Go's runtime")
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// labels are the keys of the samples' labels, as a line has them.
func labels(p *profile.Profile) []string {
	keys := map[string]bool{}
	for _, sample := range p.Sample {
		for key := range sample.Label {
			keys[inRow(key)] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// Encoding is the side of samples below an encoder; others are layers.Unlabelled. Nobodys is the layer of the scheduler
// and the collector, outside of the service's goroutines, and Handlers is that of the service's own.
const Encoding, Nobodys, Handlers = "encoding", "scheduler and collector", "your handlers"

// Outside returns the layers of a service's profile that are no RPC's.
func Outside() []string {
	return []string{"other sockets", Handlers, Nobodys, "everything else"}
}

// InRPCs reports whether a part of a service's profile serves or calls RPCs.
func InRPCs(p layers.Part) bool { return !slices.Contains(Outside(), p.Layer) }

//go:embed owners.txt
var ownersText string

// Names by which methods of messages, generated code that calls a handler, and streams are known. Of the methods that
// write a value those count that generators give to messages. MarshalText, MarshalBinary, MarshalLogObject and the like
// are of IDs, times, decimals and logs, which handlers write and parse for themselves: below an encoder they encode.
var (
	encodes = regexp.MustCompile(`\.(Marsh|Unmarsh)al((JSON|EasyJSON|XML|CBOR|Msg|Msgpack|VT|To|From|Append|Proto)` +
		`([A-Z0-9]\w*)?|Merge|Deterministic|Indent|Context|NoEscape|String|Write|Read)?$|` +
		`\.(EncodeMsg|DecodeMsg|SizeVT|Msgsize)$|` +
		`\.(FastRead|FastWrite|FastWriteNocopy|BLength)$`) // of Kitex
	dispatches = regexp.MustCompile(`(\._\w+_Handler|\)\.serve\w+(JSON|Protobuf))(\.func\d+|\.\d+)*$`)
	streams    = regexp.MustCompile(`\.(Read|Write|Flush|Close)$`)
	library    = regexp.MustCompile(`^[^(]*/[^.(]*`)                // a function's package
	elsewhere  = regexp.MustCompile(`@v\d|(^|/)(vendor|external)/`) // files of others: module cache, copies, Bazel
)

// packageOf is the path of a function's package, or the part of it that ends at a dot of its last element.
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	return function[:last] + name
}

// goTrees returns the folders that Go's own packages are in, as the files of a profile begin: one, unless profiles were
// merged. With -trimpath it's "".
func goTrees(p *profile.Profile) map[string]bool {
	trees := map[string]bool{}
	for _, f := range p.Function {
		if i := strings.LastIndex(f.Filename, "runtime/"); i >= 0 && strings.HasPrefix(f.Name, "runtime.") {
			trees[f.Filename[:i]] = true
		}
	}
	return trees
}

// ofRuntime tells whether a goroutine, or a stack of the scheduler, that begins with this function is the runtime's. A
// linkname may give a function of the runtime another name, and Go 1.27 its closures none: time.now, _.goready.func1.
func ofRuntime(f *profile.Function, trees map[string]bool) bool {
	for tree := range trees {
		if file, found := strings.CutPrefix(f.Filename, tree); found && path.Dir(file) == "runtime" {
			return true
		}
	}
	return strings.HasPrefix(f.Name, "runtime.") || strings.HasPrefix(f.Name, "internal/runtime/") ||
		strings.HasPrefix(f.Name, "_.") && f.Filename == ""
}

// mainModule returns the packages of the service's own modules. A function's file tells: it lies neither in Go's trees
// nor in a folder of a version or of copies. With -trimpath, files begin with the path of their package. Where the code
// that calls handlers would be of such a package, a library is built like the service, and files tell nothing.
func mainModule(p *profile.Profile, trees map[string]bool, whose layers.Rules) map[string]bool {
	ofGo := func(of, file string) bool {
		if first, _, _ := strings.Cut(of, "/"); len(trees) == 0 || trees[""] {
			return !strings.Contains(first, ".")
		}
		for tree := range trees {
			if strings.HasPrefix(file, tree) {
				return true
			}
		}
		return false
	}
	own, others := map[string]bool{}, map[string]bool{}
	for _, f := range p.Function {
		of := packageOf(layers.Name(f))
		switch {
		case !strings.Contains(f.Filename, "/"): // none, or of a generator
		case elsewhere.MatchString(f.Filename) || ofGo(of, f.Filename):
			others[of] = true
		default:
			own[of] = true
		}
	}
	maps.DeleteFunc(own, func(of string, _ bool) bool { return others[of] })
	for _, f := range p.Function {
		if name := layers.Name(f); own[packageOf(name)] && strings.HasSuffix(whose.Layer(name), "calls handlers") {
			return nil
		}
	}
	return own
}

// frame is a function with its layer, and with whose work it is.
type frame struct {
	name, layer, owner string
	runtime            bool // nobody's goroutine begins with it
}

// framesOf are those of a profile. unseen is a library of which nobody can tell its own work from that of handlers.
func framesOf(p *profile.Profile) (frames map[*profile.Function]frame, unseen string) {
	known := layers.Known()
	_, whose := layers.Parse(ownersText)
	trees := goTrees(p)
	own := mainModule(p, trees, whose)
	frames = map[*profile.Function]frame{}
	for _, function := range p.Function {
		name := layers.Name(function)
		f := frame{name, known.Layer(name), whose.Layer(name), ofRuntime(function, trees)}
		if own[packageOf(name)] {
			f.owner = ""
		}
		byName := f.owner != "caller" && f.owner != "other sockets" // crypto/x509 and BSON have such names, too
		switch {
		case f.owner == "RPC encodes":
		case f.owner == "RPC and handlers":
			unseen = library.FindString(name)
		case f.owner == "caller, no encoder":
			f.owner = "caller"
		case f.layer == "serialisation" || byName && encodes.MatchString(name):
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
// socket, or the service's. An encoder's work is its caller's. Where all are helpers, the outermost one tells whether
// it's the runtime's own, or the work of a goroutine that a library has started. It also returns a library of the
// profile whose handlers can't be told from it, if there is one.
func owned(p *profile.Profile) (of func(*profile.Sample) layers.Part, unseen string) {
	frames, unseen := framesOf(p)
	return func(sample *profile.Sample) layers.Part {
		p, innermost := layers.Part{Side: layers.Unlabelled}, ""
		service, outer := "", "" // the innermost function of the service's, and the outermost so far
		ours := false            // an RPC library decides, unless the client of another socket calls it
		var begins frame         // the outermost one, without C and assembly
		of := func(layer, function string) layers.Part {
			return layers.Part{Layer: layer, Side: p.Side, Function: function}
		}
		for _, location := range sample.Location {
			for _, line := range location.Line {
				f := frames[line.Function]
				if innermost = cmp.Or(innermost, f.name); strings.Contains(f.name, ".") && f.name != "runtime.goexit" {
					begins = f
				}
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
					return of(Handlers, service)
				default:
					if ours = true; f.owner == "RPC encodes" && service == "" {
						p.Side = Encoding
					}
					if service != "" && p.Side != Encoding && p.Layer != "networking (syscalls)" {
						p = of(layers.Other, service) // called in a place that owners.txt does not know
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
		case begins.name != "" && !begins.runtime:
			return of("everything else", begins.name)
		}
		return of(Nobodys, innermost)
	}, unseen
}
