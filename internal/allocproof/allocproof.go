// Package allocproof proves whose code ran, through the allocation profile: the profile names every function on the stack of
// every allocation. Neither a wrapper that counts calls nor the bytes on the wire can tell two JSON libraries apart.
//
// Code that doesn't allocate leaves no trace. Counts aren't exact: objects of less than 16 bytes without pointers share
// blocks, and only the first of a block is counted (each of them under the race detector). A collection that starts within
// an allocation makes an object or two of its own beneath the same functions. A closure of an inlined function may carry
// the name of the function it was inlined into.
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
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// ErrBusy says that another Run is under way.
var ErrBusy = errors.New("allocproof: another Run is under way, one would count the other's objects")

// wholeDepth is how many frames surely aren't cut: Go keeps 128 (GODEBUG=profstackdepth), the runtime's own among them.
const wholeDepth = 100

// Profile is what was allocated while one function ran, in the whole process.
type Profile struct{ stacks []stack }

type stack struct {
	packages []string // import path of each frame
	root     string   // the function that the goroutine began with, or Client
	total    amount
}

// amount is the first two values of a profile's sample: objects and bytes allocated, or goroutines.
type amount [2]int64

// Run calls fn on the calling goroutine and returns all that the process allocates meanwhile. So nothing else should run, in
// particular no parallel test. Run sets [runtime.MemProfileRate] and restores it, also when fn panics or ends its goroutine.
//
// A Run during another, nested or on another goroutine, returns [ErrBusy] without calling fn; two that start at the same
// moment may both. A stack so deep that its root may be cut off is an error, since its side is unknown.
func Run(fn func()) (Profile, error) {
	if n, err := running(); err != nil {
		return Profile{}, err
	} else if n > 1 {
		return Profile{}, ErrBusy
	}
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	// At rates up to 1 a profile is written as counted; above, it would be scaled to an estimate. At 0 reading it, which
	// allocates more than most fn, leaves nothing in it.
	runtime.MemProfileRate = 0
	before, err := read("allocs")
	if err != nil {
		return Profile{}, err
	}
	runtime.MemProfileRate = 1
	client(fn)
	runtime.MemProfileRate = 0
	after, err := read("allocs")
	if err != nil {
		return Profile{}, err
	}
	var p Profile
	for key, total := range after {
		s := stack{total: amount{total[0] - before[key][0], total[1] - before[key][1]}}
		if s.total[0] <= 0 {
			continue
		}
		for frame := range strings.Lines(key) {
			function, _, _ := strings.Cut(frame, "\t")
			path := importPath(function)
			s.packages = append(s.packages, path)
			switch {
			case s.root == Client:
			case function == own("client"):
				s.root = Client
			case path != "runtime" && path != "sync": // sync.WaitGroup.Go starts many a goroutine
				s.root = function
			}
		}
		if s.root != Client && len(s.packages) > wholeDepth {
			return Profile{}, fmt.Errorf("allocproof: a stack of %d frames, the root may be cut off: it begins\n%.500s", len(s.packages), key)
		}
		p.stacks = append(p.stacks, s)
	}
	return p, nil
}

// Client is the root of what the goroutine that called Run allocated.
const Client = "client"

// Objects returns how many objects were allocated beneath functions of a library, for however many frames between, by the
// function that their goroutine began with. A goroutine that fn itself started counts under its own function. Stacks that
// also hold a function of an excepted package are left out.
func (p Profile) Objects(library string, except ...string) map[string]int64 {
	return p.sum(0, library, except)
}

// Bytes returns what Objects does, in bytes.
func (p Profile) Bytes(library string, except ...string) map[string]int64 {
	return p.sum(1, library, except)
}

func (p Profile) sum(value int, library string, except []string) map[string]int64 {
	roots := map[string]int64{}
	for _, s := range p.stacks {
		of := slices.ContainsFunc(s.packages, func(path string) bool { return Within(path, library) })
		if of && !slices.ContainsFunc(s.packages, func(path string) bool { return slices.Contains(except, path) }) {
			roots[s.root] += s.total[value]
		}
	}
	return roots
}

// Within reports whether a package belongs to a library. A library outside the standard library is its path and every path
// below. One of the standard library is a single package, since encoding/json/v2 is another library than encoding/json.
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

// client marks the stacks of fn.
//
//go:noinline
func client(fn func()) { fn() }

// running counts the Runs under way, the caller's among them, on the stacks of all goroutines: no variable is needed.
func running() (n int64, err error) {
	stacks, err := read("goroutine")
	for key, goroutines := range stacks {
		for frame := range strings.Lines(key) {
			if strings.HasPrefix(frame, own("Run")+"\t") {
				n += goroutines[0]
			}
		}
	}
	return n, err
}

// read returns the amount of each stack of a profile: allocated so far, or goroutines. The key has a line
// "function\tline\n" per frame, leaf first. What read itself allocates is left out.
func read(name string) (map[string]amount, error) {
	// A profile may be two collections old, and one may be half way.
	for range 3 {
		runtime.GC()
	}
	var buf bytes.Buffer
	// Through pprof, since the frames of runtime.MemProfileRecord end at 32.
	if err := pprof.Lookup(name).WriteTo(&buf, 0); err != nil {
		return nil, fmt.Errorf("allocproof: write the %s profile: %w", name, err)
	}
	prof, err := profile.ParseData(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("allocproof: read the %s profile: %w", name, err)
	}
	values := map[string]amount{}
	for _, s := range prof.Sample {
		var key strings.Builder
		for _, loc := range s.Location {
			for _, line := range loc.Line { // more than one where functions are inlined
				key.WriteString(line.Function.Name + "\t" + strconv.FormatInt(line.Line, 10) + "\n")
			}
		}
		if name == "goroutine" || !strings.Contains(key.String(), own("read")+"\t") {
			v := values[key.String()]
			v[0] += s.Value[0]
			if len(s.Value) > 1 {
				v[1] += s.Value[1]
			}
			values[key.String()] = v
		}
	}
	return values, nil
}

// own is the name of one of this package's functions, as profiles give it.
func own(function string) string { return reflect.TypeFor[Profile]().PkgPath() + "." + function }

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
