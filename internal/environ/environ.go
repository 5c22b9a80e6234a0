// Package environ tells what a result needs beside it: the machine, the versions, the settings.
package environ

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// List returns name=value pairs: date, versions, commit, kernel and settings. What can't be had is absent.
func List() []string {
	env := []string{"date=" + time.Now().UTC().Format(time.DateOnly), "go=" + runtime.Version()}
	add := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	commit := output("git", "rev-parse", "--short=12", "HEAD")
	if commit != "" && output("git", "status", "--porcelain") != "" {
		commit += "+changes"
	}
	add("commit", commit)
	add("kernel", strings.ReplaceAll(output("uname", "-sr"), " ", "-"))
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "GOFLAGS"} {
		add(name, strings.ReplaceAll(os.Getenv(name), " ", ","))
	}
	// A test binary has no module versions in its build information.
	modules := output("go", "list", "-m", "-f", "{{if not (or .Main .Indirect)}}{{.Path}}@{{.Version}}{{end}}", "all")
	return append(env, strings.Fields(modules)...)
}

// Experiment is the GOEXPERIMENT this binary was built with, which is a different standard library.
func Experiment() string {
	if _, e, ok := strings.Cut(runtime.Version(), " X:"); ok {
		return e
	}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "GOEXPERIMENT" {
			return s.Value
		}
	}
	return ""
}

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
