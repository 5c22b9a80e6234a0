// Package environ describes where a result was measured: the machine, the versions, the settings.
package environ

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// List returns what Machine does, and all modules of this binary as path@version.
func List() []string { return append(Machine(), modules()...) }

// Machine returns name=value pairs: date, Go's release, commit, processor, kernel and settings. Unknown values are
// absent.
func Machine() []string {
	env := []string{"date=" + time.Now().UTC().Format(time.DateOnly), "go=" + runtime.Version()}
	add := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	program, _ := os.Executable()
	add("commit", commit(settings(), Released(build()), program))
	add("json-engine", JSONEngine())
	add("cpu", cpuModel())
	add("cores", strconv.Itoa(runtime.NumCPU()))
	env = append(env, limits(runtime.NumCPU(), Procs(), Quota())...)
	add("kernel", strings.ReplaceAll(output("uname", "-sr"), " ", "-"))
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "GOFLAGS"} {
		add(name, strings.ReplaceAll(os.Getenv(name), " ", ","))
	}
	return env
}

// limits are what keeps programs from using so many cores all the time: the quota of CPUs, if there is one, and the
// GOMAXPROCS that Go makes of that, or has for another reason.
func limits(cores, procs int, quota float64) (all []string) {
	if procs != cores || quota > 0 {
		all = append(all, "gomaxprocs="+strconv.Itoa(procs))
	}
	if quota > 0 {
		all = append(all, "cpu-quota="+strconv.FormatFloat(quota, 'g', 3, 64))
	}
	return all
}

// Libraries returns the modules of this binary that have one of the packages, as path@version.
func Libraries(packages []string) []string { return have(modules(), packages) }

// have returns those of the modules that have one of the packages. The module with the longest path has a package.
func have(modules, packages []string) (found []string) {
	for _, pkg := range packages {
		longest, of := 0, ""
		for _, module := range modules {
			path, _, _ := strings.Cut(module, "@")
			if len(path) > longest && strings.HasPrefix(pkg+"/", path+"/") {
				longest, of = len(path), module
			}
		}
		if of != "" {
			found = append(found, of)
		}
	}
	return slices.DeleteFunc(modules, func(module string) bool { return !slices.Contains(found, module) })
}

// build returns the build information of this binary, which is empty if it has none.
func build() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return new(debug.BuildInfo)
}

// settings returns the build settings of this binary, by name.
func settings() map[string]string {
	all := map[string]string{}
	for _, s := range build().Settings {
		all[s.Key] = s.Value
	}
	return all
}

// Released returns the module of a program's main package as path@version. For a work tree it returns "", also where
// Go names one by its newest tag and its commit.
func Released(info *debug.BuildInfo) string {
	stamped := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if v := info.Main.Version; !stamped && v != "" && v != "(devel)" {
		return info.Main.Path + "@" + v
	}
	return ""
}

// modules returns the modules of this binary, as path@version, its own first if that is released.
func modules() (list []string) {
	if main := Released(build()); main != "" {
		list = append(list, main)
	}
	for _, m := range build().Deps {
		list = append(list, m.Path+"@"+version(m))
	}
	if list != nil {
		return list
	}
	// Before Go 1.27 the build information of a test binary lacks module versions. A test runs in the folder of its
	// module. Without -e one module that no test needs, and nobody has fetched, would leave all versions unknown.
	var m struct {
		debug.Module
		Main, Indirect bool
	}
	all := json.NewDecoder(strings.NewReader(output("go", "list", "-m", "-e", "-json", "all")))
	for all.Decode(&m) == nil {
		if !m.Main && !m.Indirect {
			list = append(list, m.Path+"@"+version(&m.Module))
		}
		m.Module, m.Main, m.Indirect = debug.Module{}, false, false
	}
	return list
}

// version returns the version of the code that runs: that of the replacement, if a module is replaced, or the commit of
// a folder that replaces it.
func version(m *debug.Module) string {
	switch {
	case m.Replace == nil:
		return m.Version
	case m.Replace.Version != "" && m.Replace.Version != "(devel)":
		return m.Replace.Path + "@" + m.Replace.Version
	}
	return cmp.Or(head(folder(m.Path)), "replaced")
}

// folder returns where the source of a module of this binary lies, as go tells in the working directory. It returns ""
// if that is in a module which does not have this binary's own: another's folders say nothing of this program.
func folder(module string) string {
	dirs := output("go", "list", "-m", "-f", "{{.Dir}}", build().Main.Path, module)
	return dirs[strings.LastIndex(dirs, "\n")+1:]
}

// head returns the commit of the work tree that contains dir, or "". A dir of "" is in none.
func head(dir string) string {
	if dir == "" {
		return ""
	}
	head := output("git", "-C", dir, "rev-parse", "--short=12", "HEAD")
	if head != "" && output("git", "-C", dir, "status", "--porcelain", "--untracked-files=normal") != "" {
		head += "+changes"
	}
	return head
}

// fresh matches the program of go run or go test, which they never stamp: in a folder of its own, or in Go's cache.
var fresh = regexp.MustCompile(`[/\\](go-build\d+[/\\]b\d+|[0-9a-f]{64}-d)[/\\]`)

// commit returns the commit that the binary was built of, or "" if that is unknown or the binary is a released version.
// Without a stamp, the folder of the module tells the commit of a fresh program alone: it may have moved on since
// another one was built.
func commit(settings map[string]string, released, program string) string {
	revision := settings["vcs.revision"]
	switch {
	case revision == "" && (released != "" || !fresh.MatchString(program)):
		return ""
	case revision == "":
		return head(folder(build().Main.Path))
	}
	return revision[:12] + map[string]string{"true": "+changes"}[settings["vcs.modified"]]
}

// cpuModel returns Linux's name of the processor, or "" on other systems.
func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(data), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return strings.Join(strings.Fields(model), "-")
}

// Experiment returns the GOEXPERIMENT of this build, which may change the standard library.
func Experiment() string { return settings()["GOEXPERIMENT"] }

// Build returns the build settings that change what is measured: race detector, coverage, compiler flags,
// profile-guided optimization. It returns "" for a plain build.
func Build() string { return flags(settings()) }

func flags(settings map[string]string) string {
	var all []string
	for _, name := range []string{"-race", "-msan", "-asan", "-cover", "-gcflags", "-pgo", "-tags"} {
		if value := settings[name]; value != "" && value != "false" {
			all = append(all, strings.TrimSuffix(name+"="+value, "=true"))
		}
	}
	return strings.Join(all, " ")
}

// JSONEngine returns the import path of the package behind encoding/json in this build. It is encoding/json/v2 from Go
// 1.27 on, unless GOEXPERIMENT=nojsonv2, and else encoding/json. The package behind declares Marshaler.
func JSONEngine() string { return reflect.TypeFor[json.Marshaler]().PkgPath() }

// output returns what a command prints, or "" if it fails.
func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
