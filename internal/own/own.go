// Package own makes a small Go module of somebody's .proto and samples. The module is rpcbench with that call: JSON
// over HTTP and gRPC, with types that generators make. Only the command rpcbench imports this package, so that neither
// cli nor other programs compile the generators.
package own

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/report"
)

const rpcbench = "github.com/rpcbench/rpcbench"

//go:embed module/*.tmpl
var moduleFiles embed.FS

// Takes says whether a command line is for this package: init, or run with flags that describe a call.
func Takes(args []string) bool {
	if len(args) == 0 || args[0] != "run" {
		return len(args) > 0 && args[0] == "init"
	}
	mine, _ := split(args[1:], words...)
	return len(mine) > 0
}

// Main carries out such a command line, and returns the exit status: 2 for a wrong command line, 1 for what fails
// later, or that of the program that it starts.
func Main(args []string, stdout, stderr io.Writer) int {
	runtime.LockOSThread() // a child that ends with its parent ends with the thread that started it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := command(ctx, args, stdout, stderr)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && args[0] == "run": // the program has said why
		return max(1, exit.ExitCode())
	}
	said := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "rpcbench: ")), " ")
	_, _ = fmt.Fprintln(stderr, "rpcbench: "+args[0]+": "+said)
	if errors.As(err, new(wrongUse)) {
		return 2
	}
	return 1
}

// wrongUse is the error of a command line that can't be carried out.
type wrongUse struct{ error }

func wrong(format string, args ...any) error { return wrongUse{fmt.Errorf(format, args...)} }

// call is what the flags say.
type call struct {
	protos, roots                       []string
	protoset, name, request, reply, out string
}

func (c *call) flags(f *flag.FlagSet) {
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	f.Func("proto", "`file` with the service; may be repeated", list(&c.protos))
	f.Func("I", "`folder` that imports are below; may be repeated; the working directory unless given", list(&c.roots))
	f.StringVar(&c.protoset, "protoset", "", "`file` with a FileDescriptorSet, in place of -proto")
	f.StringVar(&c.name, "call", "", "`method` to call, such as shop.v1.Orders/Get")
	f.StringVar(&c.request, "request", "", "`file` of JSON values, or folder; without a .proto, a size such as 100B")
	f.StringVar(&c.reply, "reply", "", "`file` or folder with the reply to each request, or a size such as 2kB")
}

var (
	words = []string{"proto", "I", "protoset", "call", "request", "reply"} // the flags, but for -out

	// switches are flags of run that take no value.
	switches = []string{"quick", "tls", "unix", "apart", "new-connections", "stream", "headers", "prove", "h", "help"}
)

// split takes the flags of these names out of the arguments of run, up to the first stack.
func split(args []string, words ...string) (mine, rest []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, _, whole := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		n := min(2, len(args))
		if whole || slices.Contains(switches, name) {
			n = 1
		}
		if slices.Contains(words, name) {
			mine = append(mine, args[:n]...)
		} else {
			rest = append(rest, args[:n]...)
		}
		args = args[n:]
	}
	return mine, append(rest, args...)
}

// Help describes the flags of run that are for messages of one's own.
func Help() string {
	var text strings.Builder
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(&text)
	new(call).flags(f)
	f.PrintDefaults()
	return text.String()
}

const usage = `usage: rpcbench init [flags]

Make a Go module that compares ways to serve and call a method of yours.

example: rpcbench init -proto orders.proto -call shop.v1.Orders/Get -request get.json -reply order.json -out orders

`

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c call
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard)
	c.flags(f)
	f.StringVar(&c.out, "out", "", "new `folder` for the module")
	mine, rest := args[1:], []string(nil)
	if args[0] == "run" {
		mine, rest = split(mine, append(slices.Clone(words), "out")...)
	}
	switch err := f.Parse(mine); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, usage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return nil
	case err != nil:
		return wrong("%w: rpcbench init -h shows the flags", err)
	case f.NArg() > 0:
		return wrong("%q is no flag: rpcbench init -h shows the flags", f.Arg(0))
	}
	if err := c.check(); err != nil {
		return err
	}
	if args[0] == "run" {
		return c.run(ctx, args[1:], rest, stdout, stderr)
	}
	return c.init(ctx, stdout)
}

func (c *call) check() error {
	sizes := sized.MatchString(c.request) && sized.MatchString(c.reply)
	switch described := len(c.protos) > 0 || c.protoset != ""; {
	case c.request == "" || c.reply == "":
		return wrong("-request and -reply name the samples, or sizes such as 100B and 2kB")
	case len(c.protos) > 0 && c.protoset != "":
		return wrong("-proto and -protoset both describe the call: leave one of the two out")
	case !described && !sizes:
		return wrong("-proto or -protoset describes the call; without them, -request and -reply are sizes such as 100B")
	case described && c.name == "":
		return wrong("-call names the method, such as shop.v1.Orders/Get")
	case !described && c.name != "":
		return wrong("-call %s: -proto names the file that has it", c.name)
	}
	return nil
}

// init writes the module to a folder that was not there, once it is proved.
func (c *call) init(ctx context.Context, stdout io.Writer) (err error) {
	if c.out == "" {
		return wrong("-out names the folder for the module")
	}
	if _, missing := os.Lstat(c.out); missing == nil {
		return wrong("-out %s: it is there already: name another", c.out)
	}
	out, err := filepath.Abs(c.out)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(out)); err != nil {
		return wrong("-out %s: make the folder %s first", c.out, filepath.Dir(c.out))
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, err := c.proved(ctx, dir, moduleName(filepath.Base(out)), stdout)
	if err != nil {
		return err
	}
	if err := os.Remove(m.program); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.Rename(dir, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s, %s. To compare: cd %[1]s && go run . run -out answer\n", c.out, m.Method, m.Made)
	return err
}

// run makes the module in a temporary folder, runs its program there with the other flags, and removes the folder. The
// program's report shows what was typed.
func (c *call) run(ctx context.Context, typed, args []string, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "rpcbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.out != "" { // lies where the caller is, who is in another folder
		if c.out, err = filepath.Abs(c.out); err != nil {
			return err
		}
		args = append([]string{"-out", c.out}, args...)
	}
	m, err := c.proved(ctx, dir, "own", stderr)
	if err != nil {
		return err
	}
	// The program keeps what was measured when it is told to end.
	cmd := child(ctx, dir, m.program, append([]string{"run"}, args...)...)
	cmd.Env = append(cmd.Env, report.Typed+"=rpcbench\nrun\n"+strings.Join(typed, "\n"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	return cmd.Run()
}

// proved writes the module to dir, proves what was written, and tells what the samples lose.
func (c *call) proved(ctx context.Context, dir, name string, told io.Writer) (*made, error) {
	m, err := c.module(ctx, dir, name)
	if err == nil {
		err = m.prove(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	for _, path := range m.Lossy {
		_, _ = fmt.Fprintln(told, path)
	}
	return m, nil
}

// child is a process that is told to end with ctx, and killed if that takes a minute.
func child(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "PWD="+dir)
	cmd.WaitDelay = time.Minute
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	endWithParent(cmd)
	return cmd
}

// goCommand runs the go command in dir. Its error is one line.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := child(ctx, dir, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		const shown = 4
		return "", fmt.Errorf("go %s: %s", args[0], strings.Join(lines[:min(shown, len(lines))], "; "))
	}
	return strings.TrimSpace(string(out)), nil
}

// made is a module that was written and proved.
type made struct {
	Module, Method, Made string
	Lossy                []string // paths, and what is lost there
	program              string   // built
}

// module writes the module to dir.
func (c *call) module(ctx context.Context, dir, name string) (*made, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("there is no go command, which builds the module: install Go from go.dev/dl")
	}
	w, s := newWalker(), samples{}
	all, err := c.descriptors(ctx, &s)
	if err != nil {
		return nil, err
	}
	method, requestType, replyType, err := method(all, c.name)
	if err != nil {
		return nil, err
	}
	p, err := plugin(all, name, requestType, replyType)
	if err != nil {
		return nil, err
	}
	request, reply := message(p, requestType), message(p, replyType)
	for i := range s.requests {
		err := w.message(request, s.requests[i], "request", []*protogen.Field{})
		if err == nil {
			err = w.message(reply, s.replies[i], "reply", nil)
		}
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i+1, err)
		}
	}
	w.finish()
	s.complete(w, request, reply)
	m := &made{Module: name, Method: method, Made: s.made, program: filepath.Join(dir, "program")}
	for _, at := range slices.Sorted(maps.Keys(w.lossy)) {
		m.Lossy = append(m.Lossy, at+": "+w.lossy[at])
	}
	files, err := source(ctx)
	if err != nil {
		return nil, err
	}
	generate(p, w, m, request, reply, s.key)
	return m, m.write(dir, p, files, &s)
}

// prove builds the program, and lets it compare the samples with what its types make of them.
func (m *made) prove(ctx context.Context, dir string) error {
	if runtime.GOOS == "windows" {
		m.program += ".exe"
	}
	if _, err := goCommand(ctx, dir, "build", "-buildvcs=false", "-ldflags=-w", "-o", m.program, "."); err != nil {
		return err
	}
	said, err := child(ctx, dir, m.program, "prove").CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the types do not have the samples' values: %s", strings.TrimSpace(string(said)))
	}
	return nil
}

// descriptors reads what describes the call, and the samples.
func (c *call) descriptors(ctx context.Context, s *samples) (all files, err error) {
	switch {
	case c.protoset != "":
		all, err = readSet(c.protoset)
	case len(c.protos) > 0:
		all, err = compile(ctx, slices.Clone(c.protos), c.roots)
	default:
		return c.invent(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	if s.requests, err = readSamples(c.request); err != nil {
		return nil, fmt.Errorf("-request: %w", err)
	}
	if s.replies, err = readSamples(c.reply); err != nil {
		return nil, fmt.Errorf("-reply: %w", err)
	}
	if len(s.requests) != len(s.replies) {
		return nil, fmt.Errorf("%d requests, but %d replies: each request needs its own", len(s.requests), len(s.replies))
	}
	return all, nil
}

var unfit = regexp.MustCompile(`[^a-z0-9_-]+`)

// moduleName is a module's name for a folder's.
func moduleName(folder string) string {
	name := strings.Trim(unfit.ReplaceAllString(strings.ToLower(folder), "-"), "-_")
	if name == "" || name == "go" || name == "std" || name == "cmd" {
		return "own"
	}
	return name
}

// message finds a type by the name that it had in the .proto.
func message(p *protogen.Plugin, name string) (found *protogen.Message) {
	var look func([]*protogen.Message)
	look = func(all []*protogen.Message) {
		for _, m := range all {
			if original(m.Desc) == protoreflect.FullName(strings.TrimPrefix(name, ".")) {
				found = m
			}
			look(m.Messages)
		}
	}
	for _, f := range p.Files {
		look(f.Messages)
	}
	return found
}

// write writes all files of the module.
func (m *made) write(dir string, p *protogen.Plugin, files map[string][]byte, s *samples) error {
	for _, f := range p.Response().GetFile() {
		files[strings.TrimPrefix(f.GetName(), m.Module+"/")] = []byte(f.GetContent())
	}
	if said := p.Response().GetError(); said != "" {
		return errors.New(said)
	}
	files["go.mod"] = bytes.Replace(files["go.mod"], []byte("NAME"), []byte(m.Module), 1)
	for name, values := range map[string][]any{"requests": s.requests, "replies": s.replies} {
		var lines bytes.Buffer
		for _, v := range values {
			lines.Write(append(compact(v), '\n'))
		}
		files["samples/"+name+".jsonl"] = lines.Bytes()
	}
	names, err := fs.Glob(moduleFiles, "module/*.tmpl")
	if err != nil {
		return err
	}
	all, err := template.ParseFS(moduleFiles, names...)
	if err != nil {
		return err
	}
	for _, t := range all.Templates() {
		var out bytes.Buffer
		if err := t.Execute(&out, m); err != nil {
			return err
		}
		name := strings.TrimSuffix(t.Name(), ".tmpl")
		files[name] = out.Bytes()
		if strings.HasSuffix(name, ".go") {
			if files[name], err = format.Source(out.Bytes()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sums returns the lines of go.sum for the released rpcbench that this program was built of, which has this go.mod.
func sums(version string, mod []byte) string {
	info, _ := debug.ReadBuildInfo() // never nil in a program of a module
	inner := sha256.Sum256(mod)
	outer := sha256.Sum256(fmt.Appendf(nil, "%x  go.mod\n", inner)) // as golang.org/x/mod/sumdb/dirhash does
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod h1:%[4]s\n", rpcbench, version, info.Main.Sum,
		base64.StdEncoding.EncodeToString(outer[:]))
}

// unpacked returns the folder in the module cache of the released rpcbench that this program was built of. For a
// program of no release it returns where the module of the working directory has rpcbench, or "".
func unpacked(ctx context.Context) string {
	info, _ := debug.ReadBuildInfo() // never nil in a program of a module
	released := environ.Released(info)
	if released == "" {
		dir, _ := goCommand(ctx, ".", "list", "-m", "-f", "{{.Dir}}", rpcbench)
		return dir
	}
	var module struct{ Dir string }
	said, _ := goCommand(ctx, ".", "mod", "download", "-json", released)
	_ = json.Unmarshal([]byte(said), &module) // what go does not say stays ""
	return module.Dir
}

// source finds the rpcbench that this program was built of, and returns a go.mod that needs it, for the module NAME,
// and a go.sum.
func source(ctx context.Context) (map[string][]byte, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if !filepath.IsAbs(dir) { // built with -trimpath
		dir = unpacked(ctx)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !bytes.Contains(mod, []byte("module "+rpcbench+"\n")) {
		return nil, errors.New("the source of rpcbench is not there, and the module needs it: " +
			"build rpcbench in its clone without -trimpath, or run it in a module that requires it")
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	version := "v0.0.0"
	replace := fmt.Sprintf("\nreplace %s => %s\n", rpcbench, strconv.Quote(dir))
	if _, v, ok := strings.Cut(filepath.Base(dir), "@"); ok {
		version, replace = v, ""
		sum = append(sum, sums(version, mod)...)
	}
	text := strings.Replace(string(mod), "module "+rpcbench+"\n", "module NAME\n", 1)
	text += fmt.Sprintf("\nrequire %s %s\n%s", rpcbench, version, replace)
	return map[string][]byte{"go.mod": []byte(text), "go.sum": sum}, nil
}
