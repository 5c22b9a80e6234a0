package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Contestant is a stack, or a build of one. People write it stack@build.
type Contestant struct{ Stack, Build string }

// Of reads what somebody wrote. An @ without a build stays with the stack, and Check refuses it.
func Of(name string) Contestant {
	if stack, build, _ := strings.Cut(name, "@"); build != "" {
		return Contestant{stack, build}
	}
	return Contestant{Stack: name}
}

func (c Contestant) String() string {
	if c.Build == "" {
		return c.Stack
	}
	return c.Stack + "@" + c.Build
}

// Contestants are those of a comparison: the base first.
type Contestants []Contestant

// Named makes them of arguments, each stack[@build], and of the base that is named, "" if none is. The program has
// those that are not named.
func Named(p shell.Program, base string, args []string) Contestants {
	switch {
	case base != "":
	case slices.ContainsFunc(args, func(name string) bool { return strings.Contains(name, "@") }):
		base, args = args[0], args[1:]
	default:
		base = p.Base()
	}
	if len(args) == 0 && Of(base).Build == "" {
		args = p.Contestants()
	}
	all := Contestants{Of(base)}
	for _, name := range args {
		if name != base {
			all = append(all, Of(name))
		}
	}
	return all
}

// Stacks are the names of their stacks, without the builds.
func (all Contestants) Stacks() (names []string) {
	for _, c := range all {
		names = append(names, c.Stack)
	}
	return names
}

// Builds are those of all, each once. "" is the source as it lies.
func (all Contestants) Builds() (each []string) {
	for _, c := range all {
		if !slices.Contains(each, c.Build) {
			each = append(each, c.Build)
		}
	}
	return each
}

// OfBuilds tells whether a build is named.
func (all Contestants) OfBuilds() bool {
	return slices.ContainsFunc(all, func(c Contestant) bool { return c.Build != "" })
}

// bare matches a version without the path of a module, or without the go of a release.
var bare = regexp.MustCompile(`^([\w-]+@)?v?(\d+\.\d+.*)$`)

// meant has, for each build that is a bare version, the same stack with that version of its library: a module, or Go.
func (all Contestants) meant(p shell.Program) map[string]string {
	meant := map[string]string{}
	for _, c := range all {
		version := bare.FindStringSubmatch(c.Build)
		stacks, err := p.Find(c.Stack)
		if version == nil || err != nil {
			continue
		}
		build, t := "go"+version[2], stacks[0].Traits
		for _, library := range append(slices.Clone(t.ClientLibraries), t.Codec) {
			if host, _, _ := strings.Cut(library, "/"); strings.Contains(host, ".") {
				build = library + "@v" + version[2]
				break
			}
		}
		meant[c.Build] = c.Stack + "@" + build
	}
	return meant
}

// withoutV2 matches builds that have no encoding/json/v2.
var withoutV2 = regexp.MustCompile(`^go1\.(1?\d|2[0-6])\b|^GOEXPERIMENT=(.*,)?no(ne|jsonv2)(,|$)`)

// Check says what is wrong with those that a command was given, and has their stacks.
func (all Contestants) Check(command string, p shell.Program) (stacks []rpcbench.Stack, err error) {
	for _, c := range all {
		if strings.HasSuffix(c.Stack, "@") {
			return nil, shell.Wrong("%s: %s names no build after the @: give a git revision, a Go release, module@version or "+
				"KEY=VALUE, such as %[2]sHEAD~1", command, c.Stack)
		}
		if c.Stack == shell.JSONv2 && withoutV2.MatchString(c.Build) {
			return nil, shell.Wrong("%s: the build %s has no encoding/json/v2, and so no %s: leave it out", command, c.Build,
				c.Stack)
		}
		if err := builds.Check(c.Build); err != nil {
			return nil, shell.Wrong("%s: %w", command, err)
		}
	}
	if stacks, err = p.Find(all.Stacks()...); err != nil {
		return nil, err
	}
	for _, s := range stacks {
		if s.Serves != stacks[0].Serves {
			return nil, shell.Wrong("%s: %s serves %s, and %s %s: stacks of one method are compared", command,
				stacks[0].Name, cmp.Or(stacks[0].Serves, "create-user"), s.Name, cmp.Or(s.Serves, "create-user"))
		}
	}
	var names []string
	for _, c := range all[1:] {
		names = append(names, c.String())
	}
	if len(names) == 0 {
		return nil, shell.Wrong("%s: nothing to compare with %s: name another stack", command, all[0])
	}
	return stacks, shell.Once(command, names)
}
