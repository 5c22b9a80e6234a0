// Package allocproof proves whose code ran, by the allocation profile, which has the call stack of each allocation.
// Neither a wrapper that counts calls nor the bytes on the wire can tell two JSON libraries apart.
//
// Code that does not allocate leaves no trace, and counts are not exact:
//   - Objects of less than 16 bytes without pointers share a block, and only the first of a block counts: see Room. The
//     race detector counts each.
//   - A collection that starts within an allocation allocates an object or two beneath the same functions.
//   - A closure of an inlined function may have the name of the function that it was inlined into.
package allocproof

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"unsafe"

	"github.com/google/pprof/profile"
)

// wholeDepth is a depth at which a call stack is surely complete: Go keeps 128 frames (GODEBUG=profstackdepth),
// including the runtime's own.
const wholeDepth = 100

// ErrDeep is the error of a call stack that is so deep.
var ErrDeep = errors.New("allocproof: the root may be cut off")

// Profile holds what the whole process allocated while one function ran.
type Profile struct{ stacks []stack }

type stack struct {
	packages       []string // import path of each frame
	functions      []string // full name of each frame
	root           string   // the function that started the goroutine, or Client
	objects, bytes int64
}

// Run calls fn on the calling goroutine, and returns what the process allocates meanwhile. No parallel test may run.
// Run sets [runtime.MemProfileRate], and restores it even if fn panics or ends its goroutine.
//
// What is allocated beneath the functions of without, at any depth, is left out.
//
// During another Run, or with -memprofilerate=1, Run returns an error without calling fn. It also returns an error if a
// call stack is so deep that its root may be cut off, since client and server could not be told apart.
func Run(fn func(), without ...string) (Profile, error) {
	all, err := Runs(without, fn)
	if err != nil {
		return Profile{}, err
	}
	return all[0], nil
}

// Runs is Run of one function after the other. It costs less, since between two of them it reads once.
func Runs(without []string, fns ...func()) (all []Profile, _ error) {
	rate := runtime.MemProfileRate
	if rate <= 1 { // only Runs sets such a rate
		return nil, errors.New("allocproof: another Run is under way, one would count the other's objects")
	}
	defer func() { runtime.MemProfileRate = rate }()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection allocates beneath any function
	// At a rate of 1 a profile has exact counts; above, it would be scaled to an estimate. Reading a profile allocates
	// more than most fn, so the rate is 0 then.
	runtime.MemProfileRate = 0
	before, _, err := read()
	if err != nil {
		return nil, err
	}
	for _, fn := range fns {
		runtime.MemProfileRate = 1
		client(fn)
		runtime.MemProfileRate = 0
		after, samples, err := read()
		if err != nil {
			return nil, err
		}
		p, err := parsed(grown(samples, before), without)
		if err != nil {
			return nil, err
		}
		all, before = append(all, p), after
	}
	return all, nil
}

// amounts are the objects of one size of a call stack, and their bytes.
type amounts struct{ objects, bytes int64 }

// grown are samples by what they have more than before. Most have nothing more.
func grown(samples map[string]*profile.Sample, before map[string]amounts) (more []*profile.Sample) {
	for key, s := range samples {
		s.Value[0], s.Value[1] = s.Value[0]-before[key].objects, s.Value[1]-before[key].bytes
		if s.Value[0] != 0 {
			more = append(more, s)
		}
	}
	return more
}

// parsed returns what a profile has beside what is left out.
func parsed(grown []*profile.Sample, without []string) (p Profile, _ error) {
	for _, sample := range grown {
		s := stack{objects: sample.Value[0], bytes: sample.Value[1]}
		for _, location := range sample.Location {
			for _, line := range location.Line { // several if functions are inlined
				s.add(line.Function.Name)
				if function, _, _ := strings.Cut(line.Function.Name, "["); slices.Contains(without, function) {
					s.objects = 0
				}
			}
		}
		if s.objects == 0 { // left out, only freed, or made by read: each P records one object after the rate has changed
			continue
		}
		if s.root != Client && len(s.packages) > wholeDepth {
			return Profile{}, fmt.Errorf("%w: a stack of %d frames begins in %q", ErrDeep, len(s.packages), s.packages[:10])
		}
		p.stacks = append(p.stacks, s)
	}
	return p, nil
}

// Client is the root of allocations by the goroutine that called Run.
const Client = "client"

// client marks the stacks of fn.
//
//go:noinline
func client(fn func()) { fn() }

// add adds the next frame towards the root.
func (s *stack) add(function string) {
	path := importPath(function)
	s.packages, s.functions = append(s.packages, path), append(s.functions, function)
	switch {
	case function == own("read"):
		s.objects, s.bytes = 0, 0
	case s.root == Client:
	case function == own("client"):
		s.root = Client
	case path != "runtime" && path != "sync": // many goroutines start in sync.WaitGroup.Go
		s.root = function
	}
}

// own returns the full name of one of this package's functions, as in profiles.
func own(function string) string { return reflect.TypeFor[Profile]().PkgPath() + "." + function }

// Objects returns how many objects were allocated beneath functions of a library, at any depth. The map's keys are the
// functions that started the goroutines; a goroutine that fn started has its own key. Call stacks with a function of an
// excepted package do not count.
func (p Profile) Objects(library string, except ...string) map[string]int64 {
	return p.sum(library, except, func(s stack) int64 { return s.objects })
}

// ObjectsOf is Objects of one function, such as "net/http.(*Client).do".
func (p Profile) ObjectsOf(function string) map[string]int64 {
	roots := map[string]int64{}
	for _, s := range p.stacks {
		if slices.Contains(s.functions, function) {
			roots[s.root] += s.objects
		}
	}
	return roots
}

// Bytes is Objects in bytes.
func (p Profile) Bytes(library string, except ...string) map[string]int64 {
	return p.sum(library, except, func(s stack) int64 { return s.bytes })
}

// Beneath returns what was allocated beneath functions of one of the libraries, or by the client.
func (p Profile) Beneath(libraries ...string) (beneath Profile) {
	for _, s := range p.stacks {
		of := func(path string) bool {
			return slices.ContainsFunc(libraries, func(library string) bool { return Within(path, library) })
		}
		if s.root == Client || slices.ContainsFunc(s.packages, of) {
			beneath.stacks = append(beneath.stacks, s)
		}
	}
	return beneath
}

// Most is the most room there can be.
const Most = 15

// Room leaves so many bytes in the block that the next objects of less than 16 bytes share. With 0 the first of them
// counts, however small. With Most as few count as can be: as many count wherever else they are allocated. Room is for
// a GOMAXPROCS of 1.
func Room(bytes int) {
	for range Most + 1 { // of which one begins a block; with the race detector none does, since it lies at the end
		if uintptr(unsafe.Pointer(tiny()))%(Most+1) == 0 {
			break
		}
	}
	for range Most - bytes {
		tiny()
	}
}

//go:noinline
func tiny() *byte { return new(byte) }

// Whole is Bytes without blocks of 16 bytes, which objects of any functions may share.
func (p Profile) Whole(library string) map[string]int64 {
	return p.sum(library, nil, func(s stack) int64 {
		if s.bytes == 16*s.objects {
			return 0
		}
		return s.bytes
	})
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

// Within reports whether a package belongs to a library. A library has all packages below its path, except in the
// standard library: encoding/json/v2 does not belong to encoding/json. Another major version is a module of its own, as
// Go's import paths have it: connectrpc.com/connect/v2 does not belong to connectrpc.com/connect.
func Within(pkgPath, library string) bool {
	domain, _, _ := strings.Cut(library, "/")
	below, ok := strings.CutPrefix(pkgPath, library+"/")
	return pkgPath == library || ok && strings.Contains(domain, ".") && !major.MatchString(below)
}

var major = regexp.MustCompile(`^v([2-9]|[1-9]\d+)(/|$)`)

// Packages returns the import paths of all frames, sorted, for the text of an error.
func (p Profile) Packages() []string {
	var all []string
	for _, s := range p.stacks {
		all = append(all, s.packages...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read returns what was allocated so far, by the size of objects and the addresses of their call stack.
func read() (so map[string]amounts, samples map[string]*profile.Sample, _ error) {
	for range 2 { // which empty pools. A profile is as old as the last collection, and no other one begins meanwhile
		runtime.GC()
	}
	var buf bytes.Buffer
	// By pprof, since runtime.MemProfileRecord has at most 32 frames.
	if err := pprof.Lookup("allocs").WriteTo(&buf, 0); err != nil {
		return nil, nil, fmt.Errorf("allocproof: write the profile: %w", err)
	}
	p, err := profile.ParseData(buf.Bytes())
	if err != nil {
		return nil, nil, fmt.Errorf("allocproof: read the profile: %w", err)
	}
	so, samples = make(map[string]amounts, len(p.Sample)), make(map[string]*profile.Sample, len(p.Sample))
	var key []byte
	for _, s := range p.Sample {
		key = key[:0]
		for _, size := range s.NumLabel["bytes"] { // one, where there are objects
			key = binary.NativeEndian.AppendUint64(key, uint64(size))
		}
		for _, location := range s.Location {
			key = binary.NativeEndian.AppendUint64(key, location.Address)
		}
		if same := samples[string(key)]; same != nil {
			same.Value[0], same.Value[1] = same.Value[0]+s.Value[0], same.Value[1]+s.Value[1]
		} else {
			samples[string(key)] = s
		}
		sum := so[string(key)]
		so[string(key)] = amounts{sum.objects + s.Value[0], sum.bytes + s.Value[1]}
	}
	return so, samples, nil
}

// importPath returns the import path in a function's name, such as "gopkg.in/yaml%2ev3.(*Decoder).Decode". Receivers
// and type arguments contain paths of their own.
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
