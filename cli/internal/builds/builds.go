// Package builds makes the programs that versus measures: several links of one source, which differ in where
// functions lie, and builds by another Go release, of another revision, with another version of a module or in
// another environment.
package builds

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/versus"
)

const (
	module  = "github.com/rpcbench/rpcbench"
	command = module + "/cmd/rpcbench"

	limit = 10 * time.Minute // for one run of go or git, which may fetch a Go release
	shown = 4                // lines of what a failed one printed
)

var (
	release = regexp.MustCompile(`^go1\.\d+(\.\d+|rc\d+)?$`)
	setting = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)
)

// Folder is a temporary folder of programs. They are built from the module that the working directory is in.
type Folder struct {
	dir    string
	source string // the module's
	made   int
}

// Open fails where there is no go command or no source to build.
func Open(ctx context.Context) (*Folder, error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, source: "."}
	said, err := f.run(ctx, nil, "go", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	path, source, _ := strings.Cut(said, "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("there is no go command")
	case err != nil || path != module:
		err = errors.New("the working directory is not in a clone of " + module)
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	f.source = source
	return f, nil
}

// Remove deletes the folder with all programs.
func (f *Folder) Remove() error { return os.RemoveAll(f.dir) }

// Link makes a program of a build for each seed of a layout; a seed of 0 is the linker's own order. "" is the source
// as it lies. The user's tree is only read: a revision is built in a clone, and another version of a module with a
// copy of go.mod. Link also returns the versions of Go and of the modules, as far as the programs tell, and the
// commit of a revision.
func (f *Folder) Link(ctx context.Context, build string, seeds ...uint64) (programs []versus.Program, versions []string, err error) {
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
		in.source, err = f.revision(ctx, build)
		versions = []string{fmt.Sprintf("commit=%.12s", filepath.Base(in.source))}
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
		_, err = in.run(ctx, env, "go", append(own, command)...)
		programs = append(programs, p)
		if info, e := buildinfo.ReadFile(p.Path); e == nil && i == 0 {
			versions = append(versions, "go="+info.GoVersion)
			for _, m := range info.Deps {
				versions = append(versions, m.Path+"@"+m.Version)
			}
			if exact != "" && !slices.Contains(versions, exact) { // other modules may need a newer one
				err = fmt.Errorf("%s is not in what is measured, which has %s", exact, strings.Join(versions, " "))
			}
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rpcbench: %s: %w", cmp.Or(build, "this source"), err)
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

// revision returns a clone of the source at a revision that has a command to measure with.
func (f *Folder) revision(ctx context.Context, name string) (dir string, err error) {
	hash, err := f.run(ctx, nil, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", errors.New("this is no git revision, no Go release, no module@version and no KEY=VALUE")
	}
	mark := strconv.Quote(versus.Variable)
	if _, err := f.run(ctx, nil, "git", "grep", "--quiet", "--fixed-strings", mark, hash, "--", "*.go"); err != nil {
		first, _ := f.run(ctx, nil, "git", "log", "--reverse", "--format=%h", "-S"+mark, "--", "*.go")
		first, _, _ = strings.Cut(first, "\n")
		return "", fmt.Errorf("%.7s has no such command to measure with: revisions from %s on have", hash, first)
	}
	dir = filepath.Join(f.dir, hash)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if _, err = f.run(ctx, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", ".", dir); err == nil {
		_, err = f.run(ctx, nil, "git", "-C", dir, "checkout", "--quiet", "--detach", hash)
	}
	return dir, err
}

// run returns what a command prints. Its error is the first lines of what it says.
func (f *Folder) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = f.source, append(append(os.Environ(), "GOTMPDIR="+f.dir), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that go ends the compilers it has started
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], context.Cause(ctx))
	}
	said := slices.DeleteFunc(strings.Split(stderr.String(), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "go: downloading ")
	})
	if len(said) == 0 {
		return "", err
	}
	return "", errors.New(strings.Join(said[:min(shown, len(said))], "\n"))
}
