// Package environ tells what a result needs beside it: the machine, the versions, the settings.
package environ

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// List returns name=value pairs: date, versions, commit, processor, kernel and settings. What can't be had is absent.
func List() []string {
	env := []string{"date=" + time.Now().UTC().Format(time.DateOnly), "go=" + runtime.Version()}
	add := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	add("commit", commit(settings()))
	add("json-engine", JSONEngine())
	add("cpu", cpuModel())
	add("cores", strconv.Itoa(runtime.NumCPU()))
	add("kernel", strings.ReplaceAll(output("uname", "-sr"), " ", "-"))
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "GOFLAGS"} {
		add(name, strings.ReplaceAll(os.Getenv(name), " ", ","))
	}
	return append(env, modules()...)
}

// settings are how this binary was built, by name.
func settings() map[string]string {
	all := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			all[s.Key] = s.Value
		}
	}
	return all
}

// modules are the modules of this binary, as path@version.
func modules() (list []string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			list = append(list, m.Path+"@"+version(m))
		}
	}
	if list != nil {
		return list
	}
	// Before Go 1.27 a test binary has no module versions in its build information. It runs where its module is.
	var m struct {
		debug.Module
		Main, Indirect bool
	}
	for all := json.NewDecoder(strings.NewReader(output("go", "list", "-m", "-json", "all"))); all.Decode(&m) == nil; {
		if !m.Main && !m.Indirect {
			list = append(list, m.Path+"@"+version(&m.Module))
		}
		m.Module, m.Main, m.Indirect = debug.Module{}, false, false
	}
	return list
}

// version is that of the code that runs: of what replaces a module, and the commit of a folder that replaces it.
func version(m *debug.Module) string {
	switch {
	case m.Replace == nil:
		return m.Version
	case m.Replace.Version != "" && m.Replace.Version != "(devel)":
		return m.Replace.Path + "@" + m.Replace.Version
	}
	if dir := output("go", "list", "-m", "-f", "{{.Dir}}", m.Path); dir != "" {
		return cmp.Or(head(dir), "replaced")
	}
	return "replaced"
}

// head is the commit of the work tree that dir is in, "" without one.
func head(dir string) string {
	head := output("git", "-C", dir, "rev-parse", "--short=12", "HEAD")
	if head != "" && output("git", "-C", dir, "status", "--porcelain") != "" {
		head += "+changes"
	}
	return head
}

func commit(settings map[string]string) string {
	revision := settings["vcs.revision"]
	if revision == "" {
		return head(".")
	}
	return revision[:12] + map[string]string{"true": "+changes"}[settings["vcs.modified"]]
}

// cpuModel is what Linux calls the processor, "" elsewhere.
func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(data), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return strings.Join(strings.Fields(model), "-")
}

// Experiment is the GOEXPERIMENT this binary was built with, which is a different standard library.
func Experiment() string { return settings()["GOEXPERIMENT"] }

// Build returns how this binary was built, where that changes what is measured: race detector, coverage, compiler
// flags, profile-guided optimization. It is "" for a plain build.
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

// JSONEngine is the import path of the package that does encoding/json's work in this build: encoding/json itself, or
// encoding/json/v2, which Go 1.27 puts beneath it unless GOEXPERIMENT=nojsonv2. One of the two declares Marshaler.
func JSONEngine() string { return reflect.TypeFor[json.Marshaler]().PkgPath() }

// output is what a command prints, or "" where it can't be run.
func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
