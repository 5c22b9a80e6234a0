// Package scaffold makes a small Go module of somebody's .proto and samples. The module is rpcbench with that call:
// JSON over HTTP and gRPC, with types that generators make. Only the command rpcbench imports this package, so that
// neither cli nor other programs compile the generators.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/own"
)

const rpcbench = "github.com/rpcbench/rpcbench"

//go:embed module/*.tmpl
var moduleFiles embed.FS

// goCommand runs the go command in dir. Temporary files lie there too, if it is a folder of ours.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	env := builds.Here()
	if dir != "." {
		env = append(env, "GOTMPDIR="+dir)
	}
	return builds.Output(ctx, dir, env, "go", args...)
}

// call is what the flags say.
type call struct{ own.Messages }

// made is a module that was written.
type made struct {
	own.Module
	Name string // of the module
}

// Make is what the command makes modules by.
func Make(ctx context.Context, of own.Messages, dir, name string) (own.Module, error) {
	m, err := (&call{of}).module(ctx, dir, moduleName(name))
	if err == nil {
		err = m.prove(ctx, dir)
	}
	if err != nil {
		return own.Module{}, err
	}
	return m.Module, nil
}

// module writes the module to dir.
func (c *call) module(ctx context.Context, dir, name string) (*made, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("there is no go command, which builds the module: install Go from go.dev/dl")
	}
	m, s := &made{own.Module{Program: filepath.Join(dir, "program")}, name}, samples{}
	all, requests, replies, err := c.descriptors(ctx, m, &s)
	if err != nil {
		return nil, err
	}
	var requestType, replyType string
	if m.Method, requestType, replyType, err = method(all, c.Call); err != nil {
		return nil, err
	}
	p, err := plugin(all, name, requestType, replyType)
	if err != nil {
		return nil, err
	}
	w := newWalker()
	request, reply := message(p, requestType), message(p, replyType)
	for _, m := range []*protogen.Message{request, reply} {
		if known(m) == "Any" {
			return nil, fmt.Errorf("-call %s: google.protobuf.Any holds types that the .proto does not name: put the type "+
				"that it holds in its place, in a copy of the .proto", c.Call)
		}
	}
	if s.requests, err = w.read(request, "request", requests); err == nil {
		s.replies, err = w.read(reply, "reply", replies)
	}
	if err != nil {
		return nil, err
	}
	s.told = slices.Concat(s.told, w.dropNulls(), w.told)
	s.complete(request, reply)
	if m.Made, m.Lossy = s.made, append(s.guessed, s.told...); m.Schema != nil {
		m.Made = strings.Join(append([]string{m.Made, "schema made of " + plural(len(replies), "sample", "samples") +
			": edit schema.proto, and pass it to -proto"}, m.Lossy...), "; ")
	}
	files, err := source(ctx)
	if err != nil {
		return nil, err
	}
	if work, err := builds.Output(ctx, dir, nil, "go", "env", "GOWORK"); work != "off" && (work != "" || err != nil) {
		files["go.work"] = append(goLine.Find(files["go.mod"]), "\n\nuse .\n"...) // go refuses what is not in the one above
	}
	generate(p, w, m, request, reply, &s)
	return m, m.write(dir, p, files, &s)
}

// prove builds the program, and lets it compare plain structs and protobuf's types. It prints what differs harmlessly.
func (m *made) prove(ctx context.Context, dir string) error {
	if runtime.GOOS == "windows" {
		m.Program += ".exe"
	}
	if _, err := goCommand(ctx, dir, "build", "-buildvcs=false", "-ldflags=-w", "-o", m.Program, "."); err != nil {
		return err
	}
	said, err := builds.Output(ctx, dir, nil, m.Program, "prove")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the proof: %w", err)
	}
	m.Lossy = append(m.Lossy, strings.FieldsFunc(said, func(r rune) bool { return r == '\n' })...)
	return nil
}

// descriptors reads what describes the call, and the samples.
func (c *call) descriptors(ctx context.Context, m *made, s *samples) (
	all files, requests, replies []sample, err error) {
	if c.RequestSize != "" {
		return c.invent(ctx, s)
	}
	switch {
	case c.Protoset != "":
		all, err = readSet(c.Protoset)
	case len(c.Protos) > 0:
		all, err = compile(ctx, nil, slices.Clone(c.Protos), c.Roots)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if replies, err = readSamples(c.Reply); err != nil {
		return nil, nil, nil, fmt.Errorf("-reply: %w", err)
	}
	if requests = slices.Repeat([]sample{{[]byte("{}"), "no -request"}}, len(replies)); c.Request != "" {
		if requests, err = readSamples(c.Request); err != nil {
			return nil, nil, nil, fmt.Errorf("-request: %w", err)
		}
	}
	if len(requests) != len(replies) {
		return nil, nil, nil, fmt.Errorf("%s, but %s: each request needs its own",
			plural(len(requests), "request", "requests"), plural(len(replies), "reply", "replies"))
	}
	for i, q := range requests { // of two folders
		if a := filepath.Base(replies[i].name); c.Request != "" && !isFile(c.Request) && filepath.Base(q.name) != a {
			s.told = append(s.told, fmt.Sprintf("%s is answered by %s: files go in the order of their names", q.name, a))
			break
		}
	}
	if all != nil {
		return all, requests, replies, nil
	}
	given := requests
	if c.Request == "" {
		given = nil
	}
	made, err := infer(given, replies)
	if err != nil {
		return nil, nil, nil, err
	}
	if replies = made.replies; c.Request != "" {
		requests = made.requests
	}
	s.guessed, m.Schema, c.Call = made.told, made.text, "made.Samples/Call"
	all, err = compile(ctx, made.text, []string{"schema.proto"}, nil)
	return all, requests, replies, err
}

var (
	goLine  = regexp.MustCompile(`(?m)^go .*`)
	unnamed = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// moduleName is a module's name for a folder's. No other package has it, and Go forbids none such.
func moduleName(folder string) string {
	name := strings.Trim(unnamed.ReplaceAllString(strings.ToLower(folder), "-"), "-_")
	return "rpcbench-" + cmp.Or(name, "own")
}

// message finds a type by the name that it had in the .proto.
func message(p *protogen.Plugin, name string) (found *protogen.Message) {
	var look func([]*protogen.Message)
	look = func(all []*protogen.Message) {
		for _, m := range all {
			if original(m.Desc) == strings.TrimPrefix(name, ".") {
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
		files[strings.TrimPrefix(f.GetName(), m.Name+"/")] = []byte(f.GetContent())
	}
	if said := p.Response().GetError(); said != "" {
		return errors.New(said)
	}
	if m.Schema != nil {
		files["schema.proto"] = m.Schema
	}
	files["go.mod"] = bytes.Replace(files["go.mod"], []byte("NAME"), []byte(m.Name), 1)
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
