// Package allocproof proves whose code ran, through the allocation profile: it names each function on the stack of each
// allocation. Neither a wrapper that counts calls nor the bytes on the wire can tell two JSON libraries apart.
//
// Code that doesn't allocate leaves no trace. Counts aren't exact: objects of less than 16 bytes without pointers share
// blocks, and only the first of a block is counted (each of them under the race detector). A collection that starts
// within an allocation makes an object or two of its own beneath the same functions. A closure of an inlined function
// may carry the name of the function it was inlined into.
package allocproof

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// wholeDepth is how many frames surely aren't cut: Go keeps 128 (GODEBUG=profstackdepth), the runtime's own among them.
const wholeDepth = 100

// Profile is what was allocated while one function ran, in the whole process.
type Profile struct{ stacks []stack }

type stack struct {
	packages       []string // import path of each frame
	root           string   // the function that the goroutine began with, or Client
	objects, bytes int64
}

// Run calls fn on the calling goroutine and returns all that the process allocates meanwhile. So nothing else should
// run, in particular no parallel test. Run sets [runtime.MemProfileRate], and restores it even when fn panics or ends
// its goroutine. During another Run, or with -memprofilerate=1, it returns an error without calling fn. It is an error
// too if a stack is so deep that its root may be cut off: its side is unknown.
func Run(fn func()) (Profile, error) {
	rate := runtime.MemProfileRate
	if rate <= 1 { // which only Run sets
		return Profile{}, errors.New("allocproof: another Run is under way, one would count the other's objects")
	}
	defer func() { runtime.MemProfileRate = rate }()
	// At rates up to 1 a profile is written as counted; above, it would be scaled to an estimate. At 0 reading it, which
	// allocates more than most fn, leaves next to nothing in it.
	runtime.MemProfileRate = 0
	before, err := read()
	if err != nil {
		return Profile{}, err
	}
	runtime.MemProfileRate = 1
	client(fn)
	runtime.MemProfileRate = 0
	after, err := read()
	if err != nil {
		return Profile{}, err
	}
	before.Scale(-1)
	grown, err := profile.Merge([]*profile.Profile{after, before})
	if err != nil {
		return Profile{}, fmt.Errorf("allocproof: compare the profiles: %w", err)
	}
	var p Profile
	for _, sample := range grown.Sample {
		s := stack{objects: sample.Value[0], bytes: sample.Value[1]}
		for _, location := range sample.Location {
			for _, line := range location.Line { // more than one where functions are inlined
				s.add(line.Function.Name)
			}
		}
		if s.objects == 0 { // only freed, or of read: each P records one object after the rate has changed
			continue
		}
		if s.root != Client && len(s.packages) > wholeDepth {
			return Profile{}, fmt.Errorf("allocproof: a stack of %d frames, the root may be cut off: it begins in %q",
				len(s.packages), s.packages[:10])
		}
		p.stacks = append(p.stacks, s)
	}
	return p, nil
}

// Client is the root of what the goroutine that called Run allocated.
const Client = "client"

// client marks the stacks of fn.
//
//go:noinline
func client(fn func()) { fn() }

// add adds the next frame towards the root.
func (s *stack) add(function string) {
	path := importPath(function)
	s.packages = append(s.packages, path)
	switch {
	case function == own("read"):
		s.objects, s.bytes = 0, 0
	case s.root == Client:
	case function == own("client"):
		s.root = Client
	case path != "runtime" && path != "sync": // sync.WaitGroup.Go starts many a goroutine
		s.root = function
	}
}

// own is the name of one of this package's functions, as profiles give it.
func own(function string) string { return reflect.TypeFor[Profile]().PkgPath() + "." + function }

// Objects returns how many objects were allocated beneath functions of a library, for however many frames between, by
// the function that their goroutine began with. A goroutine that fn itself started counts under its own function.
// Stacks that also hold a function of an excepted package are left out.
func (p Profile) Objects(library string, except ...string) map[string]int64 {
	return p.sum(library, except, func(s stack) int64 { return s.objects })
}

// Bytes returns what Objects does, in bytes.
func (p Profile) Bytes(library string, except ...string) map[string]int64 {
	return p.sum(library, except, func(s stack) int64 { return s.bytes })
}

func (p Profile) sum(library string, except []string, amount func(stack) int64) map[string]int64 {
	roots := map[string]int64{}
	for _, s := range p.stacks {
		of := slices.ContainsFunc(s.packages, func(path string) bool { return Within(path, library) })
		if of && !slices.ContainsFunc(s.packages, func(path string) bool { return slices.Contains(except, path) }) {
			roots[s.root] += amount(s)
		}
	}
	return roots
}

// Within reports whether a package belongs to a library. A library outside the standard library is its path and every
// path below. One of the standard library is a package: encoding/json/v2 is another library than encoding/json.
func Within(pkgPath, library string) bool {
	domain, _, _ := strings.Cut(library, "/")
	return pkgPath == library || strings.Contains(domain, ".") && strings.HasPrefix(pkgPath, library+"/")
}

// Packages returns the import paths of all frames, sorted: for the text of an error.
func (p Profile) Packages() []string {
	var all []string
	for _, s := range p.stacks {
		all = append(all, s.packages...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read returns what was allocated so far.
func read() (*profile.Profile, error) {
	for range 3 { // a profile may be two collections old, and one may be half way
		runtime.GC()
	}
	var buf bytes.Buffer
	// Through pprof, since the frames of runtime.MemProfileRecord end at 32.
	if err := pprof.Lookup("allocs").WriteTo(&buf, 0); err != nil {
		return nil, fmt.Errorf("allocproof: write the profile: %w", err)
	}
	p, err := profile.ParseData(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("allocproof: read the profile: %w", err)
	}
	return p, nil
}

// importPath takes the import path from a function's name such as "gopkg.in/yaml%2ev3.(*Decoder).Decode". Brackets
// of receivers and type arguments hold paths of their own.
func importPath(function string) string {
	if i := strings.IndexAny(function, "([{"); i >= 0 {
		function = function[:i]
	}
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	path := function[:last] + name
	if unescaped, err := url.PathUnescape(path); err == nil {
		return unescaped
	}
	return path
}
