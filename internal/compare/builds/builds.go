// Package builds makes the programs that versus measures: several links of one source, which differ in where
// functions lie, and builds by another Go release, of another revision, with another version of a module or in
// another environment.
package builds

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
)

const (
	limit = 10 * time.Minute // for one run of go or git, which may fetch a Go release
	shown = 4                // lines of what a failed one printed

	noWorkspace = "GOWORK=off"
)

// noOther is what a name is not that can be a git revision at most.
const noOther = "no Go release, no module@version and no KEY=VALUE"

var (
	release = regexp.MustCompile(`^go\d+\.\d+(\.\d+|rc\d+)$`)
	partial = regexp.MustCompile(`^go1\.\d+$`)
	setting = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)
)

// Folder is a temporary folder of programs. They are built from the module that the working directory is in.
type Folder struct {
	Linked func() // is told of each program; nil if nobody asks

	dir    string
	source string // the module's
	main   string // the import path of the program's main package, which is the module's or that of a tool
	made   int
	found  map[string]source // by build
}

// source is what a build is linked of.
type source struct {
	dir       string   // the module's
	env, args []string // of the go command
	taken     []string // by the environment of the program's processes
	commit    string   // of a revision
	exact     string   // a module and its version; "" is none
	program   string   // equal for builds of one program; "" is that of the source as it lies
}

// Check refuses names that no build can have.
func Check(build string) error {
	switch {
	case partial.MatchString(build):
		return fmt.Errorf("%s is no release of Go: name one in full, %[1]s.0 say", build)
	case strings.HasPrefix(build, "RPCBENCH_"):
		return fmt.Errorf("%s: variables that begin with RPCBENCH_ are for rpcbench itself", build)
	}
	return nil
}

// Open fails, with one line, where there is no go command or no source to build: the module of the working directory
// has no package main, or needs no other module that has it. That is the import path in a program's build information.
func Open(ctx context.Context, main string) (*Folder, error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, source: ".", main: main, found: map[string]source{}}
	if err := f.locate(ctx); err != nil {
		line, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), f.source, "."), "\n") // results name no folders
		return nil, errors.Join(errors.New(strings.TrimSuffix(line, ":")), f.Remove())
	}
	return f, nil
}

func (f *Folder) locate(ctx context.Context) error {
	said, err := f.run(ctx, nil, "go", "env", "GOMOD", "GOFLAGS")
	mod, flags, _ := strings.Cut(said, "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no go command")
	case err != nil:
		return err
	case mod == "" || mod == os.DevNull:
		return errors.New("the working directory is in no Go module")
	case f.main == "" || f.main == "command-line-arguments":
		return errors.New("this program was built of files: go build and go run need the folder of its main package")
	}
	if f.source, err = filepath.EvalSymlinks(filepath.Dir(mod)); err != nil {
		return err
	}
	args := []string{"list", "-e", "-find", "-f", "{{.Name}}", f.main}
	if strings.Contains(flags, "-mod=mod") { // which would add the package's module to go.mod
		args = slices.Insert(args, 1, "-mod=readonly")
	}
	if said, err = f.run(ctx, nil, "go", args...); err == nil && said != "main" {
		err = fmt.Errorf("the module of the working directory neither has nor needs %s: see go help get about -tool", f.main)
	}
	return err
}

// Remove deletes the folder with all programs.
func (f *Folder) Remove() error { return os.RemoveAll(f.dir) }

// Find looks for what a build is to be linked of, and links nothing. It fails where that is not to be had: a release, a
// version of a module, or a revision.
func (f *Folder) Find(ctx context.Context, build string) (err error) {
	if _, done := f.found[build]; done {
		return nil
	}
	s := source{dir: f.source, program: build}
	here := func(name string, args ...string) (said string) { // of the source as it lies
		said, _ = f.run(ctx, nil, name, args...)
		return said
	}
	switch {
	case build == "":
	case release.MatchString(build):
		var version string
		s.env = []string{"GOTOOLCHAIN=" + build}
		if version, err = f.run(ctx, s.env, "go", "env", "GOVERSION"); err != nil {
			err = fmt.Errorf("there is no such release, or go can't fetch it: %w", err)
		}
		s.same(err == nil && version == here("go", "env", "GOVERSION"))
	case setting.MatchString(build):
		s.env, s.taken = []string{build}, []string{build}
		_, err = f.run(ctx, s.env, "go", "env", "GOVERSION") // which refuses values that go can't build with
		if err == nil && strings.HasPrefix(build, "GOEXPERIMENT=") {
			var compiler string
			compiler, err = f.run(ctx, s.env, "go", "tool", "compile", "-V")
			s.same(compiler == here("go", "tool", "compile", "-V"))
		}
	case strings.Contains(build, "@") && !strings.Contains(build, "@{"):
		var mod string
		mod, s.exact, err = f.version(ctx, build)
		s.args = []string{"-modfile=" + mod, "-mod=readonly"} // or go could add what the version lacks
		s.env = []string{noWorkspace}
		s.program = s.exact
		path, _, _ := strings.Cut(s.exact, "@")
		has := here("go", "list", "-m", "-f", "{{if not .Replace}}{{.Path}}@{{.Version}}{{end}}", path)
		s.same(err == nil && s.exact == has)
	default:
		if s.commit, s.dir, err = f.revision(ctx, build); err == nil {
			s.program = cmp.Or(here("git", "rev-parse", s.commit+"^{tree}"), s.commit)
			s.same(s.program == here("git", "rev-parse", "HEAD^{tree}") && here("git", "status", "--porcelain") == "")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", build, err)
	}
	f.found[build] = s
	return nil
}

// same tells that the program is that of the source as it lies, if it is.
func (s *source) same(is bool) {
	if is {
		s.program = ""
	}
}

// Same tells whether two builds that were found make one program.
func (f *Folder) Same(a, b string) bool { return f.found[a].program == f.found[b].program }

// Link makes a program of a build for each seed of a layout; a seed of 0 is the linker's own order. "" is the source
// as it lies. The user's tree is only read: a revision is built in a clone, and another version of a module with a
// copy of go.mod. Link also returns the versions of Go and of the modules, as far as the programs tell, and the
// commit of a revision.
func (f *Folder) Link(ctx context.Context, build string, seeds ...uint64) (
	programs []versus.Program, versions []string, err error) {
	if err := f.Find(ctx, build); err != nil {
		return nil, nil, err
	}
	s, in := f.found[build], *f
	in.source = s.dir
	p, args := versus.Program{Env: s.taken}, append([]string{"build", "-buildvcs=false"}, s.args...)
	if s.commit != "" {
		versions = []string{fmt.Sprintf("commit=%.12s", s.commit)}
	}
	for i, seed := range seeds {
		if err != nil {
			break
		}
		f.made++
		p.Path = filepath.Join(f.dir, "program"+strconv.Itoa(f.made))
		own := append(slices.Clone(args), "-o", p.Path)
		if seed != 0 {
			p.Layout = i + 1
			own = append(own, fmt.Sprintf("-ldflags=-randlayout=%d", seed))
		}
		_, err = in.run(ctx, s.env, "go", append(own, f.main)...)
		programs = append(programs, p)
		if err == nil && f.Linked != nil {
			f.Linked()
		}
		if err == nil && i == 0 {
			err = p.Check(ctx)
		}
		if info, e := buildinfo.ReadFile(p.Path); e == nil && i == 0 {
			versions = append(versions, "go="+info.GoVersion)
			if main := environ.Released(info); main != "" {
				versions = append(versions, main)
			}
			for _, m := range info.Deps {
				if is := cmp.Or(m.Replace, m); is.Path == m.Path { // the version of another's code says nothing
					versions = append(versions, is.Path+"@"+is.Version)
				}
			}
		}
	}
	if err != nil {
		err = tooOld(s.exact, err)
		return nil, nil, fmt.Errorf("%s: %w", cmp.Or(build, "this source"), err)
	}
	return programs, versions, nil
}

// version returns a go.mod in the temporary folder, with go.sum beside it, that has the wanted version of a module in
// the place of any other, and this version as exactly as go names it. With a mere requirement go would look for older
// versions of all that need a newer one, rpcbench too in a module that imports it.
func (f *Folder) version(ctx context.Context, wanted string) (mod, exact string, err error) {
	mains, err := f.run(ctx, nil, "go", "list", "-m") // all modules of a workspace
	switch {
	case err != nil:
		return "", "", err
	case strings.Contains(mains, "\n"): // which a go.mod can't tell of, and the base is built of them
		return "", "", errors.New("this workspace has several modules: set " + noWorkspace +
			" to build with versions of others")
	}
	f.made++
	mod = filepath.Join(f.dir, strconv.Itoa(f.made)+".mod")
	for _, kind := range []string{".mod", ".sum"} {
		data, err := os.ReadFile(filepath.Join(f.source, "go"+kind))
		if err == nil {
			err = os.WriteFile(strings.TrimSuffix(mod, ".mod")+kind, data, 0o600)
		}
		if err != nil {
			return "", "", err
		}
	}
	list := func(format string, args ...string) (said string) { // unless something has failed
		if err == nil {
			args = append([]string{"list", "-modfile=" + mod, "-mod=mod", "-f", format}, args...)
			said, err = f.run(ctx, []string{noWorkspace}, "go", args...)
		}
		return said
	}
	exact = list("{{.Path}}@{{.Version}}", "-m", wanted)
	path, _, _ := strings.Cut(exact, "@")
	if err == nil {
		_, err = f.run(ctx, nil, "go", "mod", "edit", "-replace="+path+"="+exact, mod)
	}
	said := list("{{with .Module}}{{with .Replace}}{{.Path}}@{{.Version}}{{end}}{{end}}", "-deps", f.main)
	switch {
	case err != nil:
		return "", "", tooOld(exact, err)
	case !slices.Contains(strings.Split(said, "\n"), exact):
		return "", "", fmt.Errorf("the program has no package of %s", path)
	}
	return mod, exact, nil
}

// oldest are the first versions of libraries that the program rpcbench compiles with. TestOldest tries them.
var oldest = map[string]string{
	"connectrpc.com/connect":            "v1.19.0",
	"github.com/planetscale/vtprotobuf": "v0.6.0",
	"github.com/tinylib/msgp":           "v1.4.0",
	"golang.org/x/net":                  "v0.47.0",
	"google.golang.org/grpc":            "v1.74.2",
	"google.golang.org/protobuf":        "v1.36.7",
}

// tooOld says of an error with a version of a module whether a newer one is needed.
func tooOld(exact string, err error) error {
	path, version, _ := strings.Cut(exact, "@")
	if needs := oldest[path]; needs != "" && slices.Compare(numbers(version), numbers(needs)) < 0 {
		return fmt.Errorf("rpcbench needs %s or newer: %w", needs, err)
	}
	return err
}

// numbers are those of a version, without what follows them.
func numbers(version string) []int {
	n := make([]int, 3)
	_, _ = fmt.Sscanf(version, "v%d.%d.%d", &n[0], &n[1], &n[2]) // what is no version is older than all
	return n
}

// revision returns the module in a clone of its repository, at a revision that has the program.
func (f *Folder) revision(ctx context.Context, name string) (hash, dir string, err error) {
	hash, err = f.run(ctx, nil, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", "", errors.New("there is no git command")
	case err != nil:
		shallow, none := f.run(ctx, nil, "git", "rev-parse", "--is-shallow-repository")
		switch {
		case none != nil && strings.Contains(none.Error(), "safe.directory"): // it is somebody else's
			return "", "", none
		case none != nil:
			return "", "", errors.New("the working directory is in no git repository, and this is " + noOther)
		}
		if shallow == "true" {
			return "", "", errors.New("this clone is shallow and has no such revision: git fetch --unshallow gets all; " +
				"actions/checkout does with fetch-depth: 0")
		}
		return "", "", errors.New("this is no git revision, " + noOther)
	}
	try := func(name string, args ...string) (said string) { // unless something has failed
		if err == nil {
			said, err = f.run(ctx, nil, name, args...)
		}
		return said
	}
	// where the module is, "" at the top
	up, prefix, _ := strings.Cut(try("git", "rev-parse", "--show-cdup", "--show-prefix"), "\n")
	top, clone := filepath.Join(f.source, up), filepath.Join(f.dir, hash)
	dir = filepath.Join(clone, prefix)
	if _, there := os.Stat(clone); err != nil || there == nil {
		return hash, dir, err
	}
	try("git", "clone", "--quiet", "--shared", "--no-checkout", top, clone)
	try("git", "-C", clone, "checkout", "--quiet", "--detach", hash)
	if _, none := os.Stat(filepath.Join(dir, "go.mod")); err == nil && none != nil {
		err = fmt.Errorf("%.7s has no go.mod where the working directory's module has its own", hash)
	}
	if err == nil {
		err = f.replace(ctx, top, dir)
	}
	if said := try("go", "-C", dir, "list", "-e", "-find", "-f", "{{.Name}}", f.main); err == nil && said != "main" {
		err = fmt.Errorf("%.7s has no %s", hash, f.main)
	}
	return hash, dir, err
}

// replace mends the clone's module in dir: replacements by folders outside of the repository, whose top is named, lie
// where they lie for the source.
func (f *Folder) replace(ctx context.Context, top, dir string) error {
	said, err := f.run(ctx, nil, "go", "-C", dir, "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var mod struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(said), &mod); err != nil {
		return err
	}
	args := []string{"-C", dir, "mod", "edit"}
	for _, r := range mod.Replace {
		path := filepath.Join(f.source, r.New.Path)
		inside, err := filepath.Rel(top, path)
		if r.New.Version != "" || filepath.IsAbs(r.New.Path) || err == nil && filepath.IsLocal(inside) {
			continue
		}
		old := r.Old.Path
		if r.Old.Version != "" {
			old += "@" + r.Old.Version
		}
		args = append(args, "-replace="+old+"="+path)
	}
	if len(args) > 4 {
		_, err = f.run(ctx, nil, "go", args...)
	}
	return err
}

func (f *Folder) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	return Output(ctx, f.source, append([]string{"GOTMPDIR=" + f.dir}, env...), name, args...)
}

// Output returns what a command prints in a folder, with more in its environment. Its error is the first lines of what
// it says.
func Output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(cmd.Environ(), env...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := Run(cmd)
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], context.Cause(ctx))
	}
	said := slices.Compact(slices.DeleteFunc(strings.Split(stderr.String(), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "go: downloading ") || strings.HasPrefix(line, "go: finding module ")
	}))
	if len(said) == 0 {
		return "", err
	}
	return "", errors.New(strings.Join(said[:min(shown, len(said))], "\n"))
}

// Here is the environment of the go command for a module that was made on this machine and runs on it: whatever go is
// told for the user's own modules is not for that one.
func Here() []string {
	return []string{"GO111MODULE=on", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=" + runtime.GOOS,
		"GOARCH=" + runtime.GOARCH}
}

// Run runs what exec.CommandContext made, in a process group of its own. The group is interrupted when the context
// ends, and killed if the command fails. On Linux the command is interrupted also when this process is killed.
func Run(cmd *exec.Cmd) error {
	runtime.LockOSThread() // to the kernel, the thread that starts a process is its parent
	defer runtime.UnlockOSThread()
	kill := inGroup(cmd) // what go has started has to end too
	err := cmd.Run()
	if err != nil {
		kill()
	}
	return err
}
