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
)

var (
	release = regexp.MustCompile(`^go1\.\d+(\.\d+|rc\d+)$`)
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
	f := &Folder{dir: dir, source: ".", main: main}
	if err := f.find(ctx); err != nil {
		line, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), f.source, "."), "\n") // results name no folders
		return nil, errors.Join(errors.New(strings.TrimSuffix(line, ":")), f.Remove())
	}
	return f, nil
}

func (f *Folder) find(ctx context.Context) error {
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

// Link makes a program of a build for each seed of a layout; a seed of 0 is the linker's own order. "" is the source
// as it lies. The user's tree is only read: a revision is built in a clone, and another version of a module with a
// copy of go.mod. Link also returns the versions of Go and of the modules, as far as the programs tell, and the
// commit of a revision.
func (f *Folder) Link(ctx context.Context, build string, seeds ...uint64) (
	programs []versus.Program, versions []string, err error) {
	in, p, args := *f, versus.Program{}, []string{"build", "-buildvcs=false"}
	var env []string // of the go command
	var exact string // a module and its version that have to be in the programs
	switch {
	case build == "":
	case release.MatchString(build):
		env = []string{"GOTOOLCHAIN=" + build}
	case setting.MatchString(build):
		env = []string{build}
		p.Env = env
	case strings.Contains(build, "@") && !strings.Contains(build, "@{"):
		var mod string
		mod, exact, err = f.version(ctx, build)
		args = append(args, "-modfile="+mod, "-mod=mod")
	default:
		var hash string
		hash, in.source, err = f.revision(ctx, build)
		versions = []string{fmt.Sprintf("commit=%.12s", hash)}
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
		_, err = in.run(ctx, env, "go", append(own, f.main)...)
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
				if m.Replace == nil { // the version of another's code says nothing
					versions = append(versions, m.Path+"@"+m.Version)
				}
			}
			if exact != "" && !slices.Contains(versions, exact) { // other modules may need a newer one
				err = fmt.Errorf("%s is not in what is measured, which has %s", exact, strings.Join(versions, " "))
			}
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cmp.Or(build, "this source"), err)
	}
	return programs, versions, nil
}

// version returns a go.mod in the temporary folder, with go.sum beside it, that has the wanted version of a module,
// and this version as exactly as go names it.
func (f *Folder) version(ctx context.Context, wanted string) (mod, exact string, err error) {
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
	if _, err = f.run(ctx, nil, "go", "get", "-modfile="+mod, wanted); err != nil {
		return "", "", err
	}
	path, _, _ := strings.Cut(wanted, "@")
	exact, err = f.run(ctx, nil, "go", "list", "-modfile="+mod, "-m", "-f", "{{.Path}}@{{.Version}}", path)
	return mod, exact, err
}

// revision returns the module in a clone of its repository, at a revision that has the program.
func (f *Folder) revision(ctx context.Context, name string) (hash, dir string, err error) {
	hash, err = f.run(ctx, nil, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", "", errors.New("there is no git command")
	case err != nil:
		shallow, _ := f.run(ctx, nil, "git", "rev-parse", "--is-shallow-repository")
		if shallow == "true" {
			return "", "", errors.New("this clone is shallow and has no such revision: git fetch --unshallow gets all; " +
				"actions/checkout does with fetch-depth: 0")
		}
		return "", "", errors.New("this is no git revision, no Go release, no module@version and no KEY=VALUE")
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
		return line == "" || strings.HasPrefix(line, "go: downloading ")
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
