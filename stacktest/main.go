package stacktest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main is a TestMain: it runs the tests and benchmarks, then fails if a goroutine is left. When benchmarks run it first
// prints what their results need beside them, in benchmark format (golang.org/x/perf/benchfmt): as keys only what forbids
// comparing two files, the units, and a comment line with commit, versions and settings, which may well differ between
// the files one compares.
func Main(m *testing.M) {
	flag.Parse()
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		printHeader(os.Stdout)
	}
	code := m.Run()
	if code == 0 {
		if err := leftBehind(); err != nil {
			fmt.Fprintln(os.Stderr, "rpcbench: goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leftBehind gives goroutines three seconds to end: net/http keeps a connection for half a second after it refused a body
// that was too large, and goleak by itself waits for less.
func leftBehind(options ...goleak.Option) error {
	err := goleak.Find(options...)
	for start := time.Now(); err != nil && time.Since(start) < 3*time.Second; {
		err = goleak.Find(options...)
	}
	return err
}

// units of the figures that the testing package doesn't know.
func units() []string {
	return []string{
		"p50-ns", "p95-ns", "p99-ns", "cpu-ns/op", "sent-B/op", "recv-B/op",
		"direct-ns/op", "direct-ratio", "direct-ratio-lo", "direct-ratio-hi",
		"rawtcp-ns/op", "tcp-ns/op", "service-ns/op", "codecs-ns/op", "bound-ratio", "bound-ratio-lo", "bound-ratio-hi",
	}
}

func printHeader(w io.Writer) {
	fmt.Fprintln(w, "cores:", runtime.NumCPU())
	if e := experiment(); e != "" {
		fmt.Fprintln(w, "goexperiment:", e)
	}
	for _, u := range units() {
		fmt.Fprintf(w, "Unit %s better=lower\n", u)
	}
	fmt.Fprintln(w, "#", strings.Join(environment(), " "))
}

// environment lists name=value; what can't be had is absent.
func environment() []string {
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

// experiment is the GOEXPERIMENT this binary was built with, which is a different standard library.
func experiment() string {
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
